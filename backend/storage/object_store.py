"""Storage that a server's processes share besides the database: objects by key.

Objects are files in a folder of one machine's disk, or of one that several machines mount (`LocalFolder`), or in an
object store such as S3 (`backend.storage.opening`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from backend.errors import Unavailable
from backend.storage.durable_files import files_below, make_private, write_durably


class StorageUnavailable(Unavailable):
    """The store did not answer, or reported that it can't now, after several tries.

    A later try may succeed.
    """

    code, status, title = "storage-unavailable", 503, "The server's storage doesn't answer"

    def __init__(self, why: str) -> None:
        super().__init__(f"The storage of releases and rounds doesn't answer ({why}).", field="storage")


@dataclass(frozen=True)
class StoredObject:
    """One object of a listing. modified: when it was stored, in seconds since 1970."""

    key: str
    modified: float


class ObjectStore(Protocol):
    """Objects by key, a path of plain names. Safe for several threads, processes and machines.

    An object exists whole or not at all, and all see it once `put` has returned. Of two puts under one key the later
    wins. Every method raises OSError (a full disk) or StorageUnavailable; `read`, `read_into` and `path` raise
    FileNotFoundError if there is no such object.
    """

    def under(self, name: str) -> ObjectStore:
        """The store of all keys that begin with `name/`, with that prefix removed."""

    def put(self, key: str, content: bytes | memoryview) -> None:
        """Store an object."""

    def read(self, key: str) -> bytes:
        """The object's bytes."""

    def read_into(self, key: str, buffer: memoryview) -> None:
        """Read the object's bytes into writable memory.

        Excess bytes are dropped, and missing ones leave it unchanged.
        """

    def path(self, key: str) -> Path:
        """A local file with the object's bytes, for mapping or sending.

        Only for objects that never change.
        """

    def forget_copy(self, key: str) -> bool:
        """Remove this machine's copy of an object, so that `path` downloads it again.

        False if there is none.
        """

    def forget_copies(self, keep: Collection[str], *, older_than_sec: float) -> None:
        """Remove this machine's copies of all objects except those in `keep` and younger ones."""

    def list(self, below: str = "") -> Iterator[StoredObject]:
        """All objects, and files that killed writers may have left, under names that no object has.

        below: only keys that begin with it and a slash.
        """

    def delete(self, key: str) -> None:
        """Remove an object; does nothing if there is none."""


class LocalFolder:
    """An `ObjectStore` whose objects are files: `path` is the file itself, and nothing is copied."""

    def __init__(self, folder: Path) -> None:
        make_private(folder)
        self.folder = folder

    def __str__(self) -> str:
        return str(self.folder)

    def under(self, name: str) -> LocalFolder:
        """See `ObjectStore`; the folder is made."""
        return LocalFolder(self.folder / name)

    def put(self, key: str, content: bytes | memoryview) -> None:
        """See `ObjectStore`; the object is on the disk when it returns."""
        path = self.folder / key
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            write_durably(path, content)
        except FileNotFoundError:  # another process has removed the folder, which was empty
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_durably(path, content)

    def read(self, key: str) -> bytes:
        return (self.folder / key).read_bytes()

    def read_into(self, key: str, buffer: memoryview) -> None:
        with (self.folder / key).open("rb") as file:
            file.readinto(buffer)

    def path(self, key: str) -> Path:
        path = self.folder / key
        path.stat()  # raises FileNotFoundError
        return path

    def forget_copy(self, key: str) -> bool:
        """There are no copies."""
        return False

    def forget_copies(self, keep: Collection[str], *, older_than_sec: float) -> None:
        """There are no copies."""

    def list(self, below: str = "") -> Iterator[StoredObject]:
        for path in files_below(self.folder / below):
            with suppress(FileNotFoundError):  # removed by another process meanwhile
                yield StoredObject(path.relative_to(self.folder).as_posix(), path.stat().st_mtime)

    def delete(self, key: str) -> None:
        """See `ObjectStore`; also removes a folder that becomes empty."""
        path = self.folder / key
        path.unlink(missing_ok=True)
        with suppress(OSError):  # not empty, or already removed
            if path.parent != self.folder:
                path.parent.rmdir()
