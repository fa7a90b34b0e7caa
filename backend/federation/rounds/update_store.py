"""Accepted updates, an object each, until their round ends; then they are gone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence

from backend.releases.blobs import digest
from backend.storage.object_store import ObjectStore, StorageUnavailable

_log = logging.getLogger(__name__)


class UpdateDamaged(ValueError):
    """An object is missing, or its bytes no longer fit the hash that was accepted."""


class UpdateStore:
    """Keyed by round, pseudonym and hash, so two racing uploads never share one. No machine keeps a copy."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def keep(self, round_id: str, pseudonym: str, content: bytes) -> str:
        """Write an update durably; returns its SHA-256. Without a row in the database it counts for nothing."""
        sha256 = digest(content)
        self._objects.put(_key(round_id, pseudonym, sha256), content)
        return sha256

    def read(self, round_id: str, pseudonym: str, sha256: str) -> bytes:
        """The accepted bytes. Raises UpdateDamaged."""
        try:
            content = self._objects.read(_key(round_id, pseudonym, sha256))
        except FileNotFoundError as missing:
            raise UpdateDamaged("the file is missing") from missing
        if digest(content) != sha256:
            raise UpdateDamaged("the bytes do not fit their hash")
        return content

    def remove(self, round_id: str, pseudonym: str, sha256: str) -> None:
        """Remove an update that came too late; what can't be removed is an error in the log."""
        self._delete([_key(round_id, pseudonym, sha256)])

    def discard(self, round_id: str) -> None:
        """Remove a round's updates: the server keeps no single update longer than it needs.

        What can't be removed is an error in the log; the next start tries again.
        """
        self._delete(self._listed(round_id))

    def sweep(self, under_way: Callable[[], Collection[str]]) -> None:
        """Remove the updates of rounds that have ended, after a crash between the end and the removal.

        under_way: ids of the others, asked after the listing, so that a round which opens meanwhile keeps its updates.
        """
        listed = self._listed()
        keep = under_way()
        self._delete([key for key in listed if _round_of(key) not in keep])

    def _listed(self, below: str = "") -> list[str]:
        try:
            return [each.key for each in self._objects.list(below)]
        except (OSError, StorageUnavailable) as why:
            _log.error("Updates of single users could not be removed: %s (%s)", self._objects, why)
            return []

    def _delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            try:
                self._objects.delete(key)
            except (OSError, StorageUnavailable) as why:
                _log.error("Updates of single users could not be removed: %s/%s (%s)", self._objects, key, why)
                if isinstance(why, StorageUnavailable):
                    return  # each of the others would take as long to fail


def _round_of(key: str) -> str:
    return key.partition("/")[0]


def _key(round_id: str, pseudonym: str, sha256: str) -> str:
    # The wire's alphabets of both names hold no separators.
    return f"{round_id}/{pseudonym}.{sha256}.safetensors"
