"""Objects as files of a folder: of one machine's disk, or one that several machines mount."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from backend.storage.durable_files import files_below, make_private, write_durably
from backend.storage.object_store import StoredObject


class LocalFolder:
    """An `ObjectStore` whose objects are files: `path` is the file itself, and nothing is copied."""

    def __init__(self, folder: Path) -> None:
        make_private(folder)
        self.folder = folder

    def __str__(self) -> str:
        return str(self.folder)

    def under(self, name: str) -> LocalFolder:
        """As `ObjectStore`; the folder is made."""
        return LocalFolder(self.folder / name)

    def put(self, key: str, content: bytes | memoryview) -> None:
        """As `ObjectStore`; on the disk when it returns."""
        path = self.folder / key
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            write_durably(path, content)
        except FileNotFoundError:  # another process has removed the folder, which was empty
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_durably(path, content)

    def link(self, key: str, name: str) -> None:
        """As `ObjectStore`: a hard link, or a copy where the file system has none."""
        try:
            os.link(self.folder / key, self.folder / name)
        except FileExistsError:
            pass
        except OSError:
            write_durably(self.folder / name, self.read(key))

    def read(self, key: str) -> bytes:
        """As `ObjectStore`."""
        return (self.folder / key).read_bytes()

    def read_into(self, key: str, buffer: memoryview) -> None:
        """As `ObjectStore`."""
        with (self.folder / key).open("rb") as file:
            file.readinto(buffer)

    def path(self, key: str) -> Path:
        """As `ObjectStore`."""
        path = self.folder / key
        path.stat()  # raises FileNotFoundError
        return path

    def forget_copy(self, key: str) -> bool:
        """There are no copies."""
        return False

    def forget_copies(self, keep: Collection[str], *, older_than_sec: float) -> None:
        """There are no copies."""

    def list(self, below: str = "") -> Iterator[StoredObject]:
        """As `ObjectStore`."""
        for path in files_below(self.folder / below):
            with suppress(FileNotFoundError):  # removed by another process meanwhile
                yield StoredObject(path.relative_to(self.folder).as_posix(), path.stat().st_mtime)

    def delete(self, key: str) -> None:
        """As `ObjectStore`; a folder that it leaves empty goes too."""
        path = self.folder / key
        path.unlink(missing_ok=True)
        with suppress(OSError):  # not empty, or gone already
            if path.parent != self.folder:
                path.parent.rmdir()
