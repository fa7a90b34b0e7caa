"""Accepted updates on disk, one file each, until their round ends; then they are gone."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Collection
from pathlib import Path

from backend.releases.blobs import digest, write_durably

_log = logging.getLogger(__name__)


class UpdateDamaged(ValueError):
    """A file is missing, or its bytes no longer fit the hash that was accepted."""


class UpdateStore:
    """One folder a round. A file is named by pseudonym and hash, so two racing uploads never share one."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder

    def keep(self, round_id: str, pseudonym: str, content: bytes) -> str:
        """Write an update durably; returns its SHA-256. Without a row in the database the file counts for nothing."""
        sha256 = digest(content)
        path = self._path(round_id, pseudonym, sha256)
        path.parent.mkdir(exist_ok=True)
        write_durably(path, content)
        return sha256

    def read(self, round_id: str, pseudonym: str, sha256: str) -> bytes:
        """The accepted bytes. Raises UpdateDamaged."""
        try:
            content = self._path(round_id, pseudonym, sha256).read_bytes()
        except FileNotFoundError as missing:
            raise UpdateDamaged("the file is missing") from missing
        if digest(content) != sha256:
            raise UpdateDamaged("the bytes do not fit their hash")
        return content

    def discard(self, round_id: str) -> None:
        """Remove a round's updates: the server keeps no single update longer than it needs.

        What can't be removed is an error in the log, with its path; the next start tries again.
        """
        _remove(self._folder / round_id)

    def sweep(self, keep: Collection[str]) -> None:
        """Remove the updates of every round but those in `keep`, after a crash between the end and the removal."""
        for folder in self._folder.iterdir():
            if folder.name not in keep:
                _remove(folder)

    def _path(self, round_id: str, pseudonym: str, sha256: str) -> Path:
        # The wire's alphabets of both names hold no separators.
        return self._folder / round_id / f"{pseudonym}.{sha256}.safetensors"


def _remove(folder: Path) -> None:
    def tell(_: object, path: str, why: tuple[object, BaseException, object]) -> None:
        if not isinstance(why[1], FileNotFoundError):  # removed by another process, or never there
            _log.error("Updates of single users could not be removed: %s (%s)", path, why[1])

    shutil.rmtree(folder, onerror=tell)
