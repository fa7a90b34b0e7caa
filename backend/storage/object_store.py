"""What a backend's processes share besides the database: objects by key, on a disk or in an object store such as S3."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from backend.errors import Unavailable


class StorageUnavailable(Unavailable):
    """The store did not answer, or answered that it can't now, after several tries; the same may work later."""

    code, status, title = "storage-unavailable", 503, "The server's storage doesn't answer"

    def __init__(self, why: str) -> None:
        super().__init__(f"The storage of releases and rounds doesn't answer ({why}).", field="storage")


@dataclass(frozen=True)
class StoredObject:
    """One object of a listing. modified: when it was put, in seconds since 1970."""

    key: str
    modified: float


class ObjectStore(Protocol):
    """Objects by key, a path of plain names. Safe for several threads, processes and machines.

    An object is there whole or not at all, and all see it once `put` has returned. Of two puts under one key the later
    counts. Every method raises OSError (a full disk) or StorageUnavailable; `read`, `read_into` and `path` raise
    FileNotFoundError where there is no such object.
    """

    def under(self, name: str) -> ObjectStore:
        """The store of all keys that begin with `name/`, without that beginning."""
        ...

    def put(self, key: str, content: bytes | memoryview) -> None:
        """Keep an object."""
        ...

    def link(self, key: str, name: str) -> None:
        """Give an object of a folder another key as well, unless something has that; each is deleted by itself.

        For an Ownfeed of before this interface, which reads that folder: other stores it doesn't know, and nothing is
        done there.
        """
        ...

    def read(self, key: str) -> bytes:
        """The object's bytes."""
        ...

    def read_into(self, key: str, buffer: memoryview) -> None:
        """The object's bytes into writable memory; bytes beyond its end are left out, as is what it lacks."""
        ...

    def path(self, key: str) -> Path:
        """A file of this machine that has the object's bytes, to be mapped or sent. For objects that never change."""
        ...

    def forget_copy(self, key: str) -> bool:
        """Remove this machine's copy of an object, so that `path` takes it anew; False where there is none."""
        ...

    def forget_copies(self, keep: Collection[str], *, older_than_sec: float) -> None:
        """Remove this machine's copies of all objects but those in `keep` and what is younger."""
        ...

    def list(self, below: str = "") -> Iterator[StoredObject]:
        """All objects, and what a killed writer may have left, by names that no object has.

        below: only of keys that begin with that and a slash."""
        ...

    def delete(self, key: str) -> None:
        """Remove an object; nothing where there is none."""
        ...
