"""Store each accepted update as an object, and delete it when its round ends."""

import logging
from collections.abc import Callable, Collection, Sequence

from backend.releases.blobs import digest
from backend.storage.object_store import ObjectStore, StorageUnavailable

_log = logging.getLogger(__name__)


class UpdateDamaged(ValueError):
    """An object is missing, or its bytes no longer match the accepted hash."""


class UpdateStore:
    """Stores updates by round, pseudonym and hash, so racing uploads never share an object.

    No machine keeps a local copy.
    """

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def keep(self, round_id: str, pseudonym: str, content: bytes) -> str:
        """Store an update durably and return its SHA-256.

        It only counts once its row is in the database.
        """
        sha256 = digest(content)
        self._objects.put(_key(round_id, pseudonym, sha256), content)
        return sha256

    def read(self, round_id: str, pseudonym: str, sha256: str) -> bytes:
        """Return the accepted bytes. Raises UpdateDamaged."""
        try:
            content = self._objects.read(_key(round_id, pseudonym, sha256))
        except FileNotFoundError as missing:
            raise UpdateDamaged("the file is missing") from missing
        if digest(content) != sha256:
            raise UpdateDamaged("the bytes don't match their hash")
        return content

    def remove(self, round_id: str, pseudonym: str, sha256: str) -> None:
        """Delete an update that came too late; logs an error if that fails."""
        self._delete([_key(round_id, pseudonym, sha256)])

    def discard(self, round_id: str) -> None:
        """Delete a round's updates: the server keeps no single update longer than it needs.

        A failed deletion is logged as an error, and the next start tries again.
        """
        self._delete(self._listed(round_id))

    def sweep(self, under_way: Callable[[], Collection[str]]) -> None:
        """Delete the updates of ended rounds that remain after a crash.

        under_way: returns the ids of the rounds under way. It is called after the listing, so that a round that opens
        meanwhile keeps its updates.
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
                    return  # the others would fail as slowly


def _round_of(key: str) -> str:
    return key.partition("/")[0]


def _key(round_id: str, pseudonym: str, sha256: str) -> str:
    # The protocol allows no separators in round ids and pseudonyms.
    return f"{round_id}/{pseudonym}.{sha256}.safetensors"
