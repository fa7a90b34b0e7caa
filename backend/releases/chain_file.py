"""The chain of releases in a file, so that a restored backup continues where devices are.

A device accepts only releases that follow those it has used. A restored database doesn't know the last of them; this
file does. A release's line is written before the release is published, so every release that devices may have seen is
in the file.
"""

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

from pydantic import ValidationError

from backend.releases.errors import ChainFileRefused
from backend.storage.object_store import ObjectStore
from protocol.chain import ChainedRelease, head_after
from protocol.ids import Sha256, release_number

READ_AT_ONCE = 16


class NotedRelease(ChainedRelease):
    """One release of the chain, with the chain's head."""

    head: Sha256


class ChainFile:
    """A file with one release a line, as JSON, safe for several processes.

    If two lines have the same number, the later counts.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    def add(self, releases: Iterable[NotedRelease]) -> None:
        """Append these releases and sync the file. Raises OSError."""
        lines = "".join(f"{each.model_dump_json()}\n" for each in releases)
        if not lines:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "r+b") as file:
            if size := os.fstat(descriptor).st_size:
                file.seek(size - 1)
                if file.read(1) != b"\n":
                    lines = f"\n{lines}"  # a write was cut short by a kill or a full disk
            file.write(lines.encode())
            file.flush()
            os.fsync(descriptor)

    def read(self) -> dict[int, NotedRelease]:
        """Return the releases by number; {} without a file. A truncated line is left out.

        Raises ChainFileRefused if the file is not a list of releases.
        """
        try:
            lines = self.path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return {}
        except OSError as broken:
            raise ChainFileRefused(self, f"it can't be read: {broken.strerror}") from broken
        found: dict[int, NotedRelease] = {}
        for at, line in enumerate(lines, 1):
            try:
                if line:
                    release = NotedRelease.model_validate_json(line)
                    found[release_number(release.release)] = release
            except ValidationError as broken:
                if line.endswith(b"}"):
                    raise ChainFileRefused(self, f"line {at} is not a release") from broken
        return found

    def lost(self, published: Sequence[NotedRelease]) -> list[NotedRelease]:
        """Return the releases in this file that follow the last of `published`, oldest first.

        published: the database's releases. Raises ChainFileRefused if file and database belong to different chains.
        """
        known = self.read()
        numbers = [release_number(each.release) for each in published]
        both = [each for number, each in zip(numbers, published, strict=True) if number in known]
        if both and known[release_number(both[-1].release)].head != both[-1].head:
            raise ChainFileRefused(self, f"its {both[-1].release} differs from the database's")
        last = max(known, default=0)
        if numbers and numbers[-1] >= last:
            return []
        first = numbers[-1] if numbers else min(known, default=1)
        if missing := next((each for each in range(first, last + 1) if each not in known), 0):
            raise ChainFileRefused(self, f"r{missing} is missing")
        found = [known[each] for each in range(first, last + 1)]
        for before, after in pairwise(found):
            if head_after(before.head, [after]) != after.head:
                raise ChainFileRefused(self, f"its {after.release} doesn't follow {before.release}")
        return found[1:] if numbers else found


class StoredChain(ChainFile):
    """The chain for several machines that share a store: one object for each release.

    If two objects have the same number, the later counts.
    """

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def __str__(self) -> str:
        return str(self._objects)

    def add(self, releases: Iterable[NotedRelease]) -> None:
        """See `ChainFile`. Raises OSError or StorageUnavailable."""
        for each in releases:
            self._objects.put(f"{each.release}.json", each.model_dump_json().encode())

    def read(self) -> dict[int, NotedRelease]:
        keys = [each.key for each in self._objects.list() if each.key.endswith(".json")]
        with ThreadPoolExecutor(READ_AT_ONCE) as readers:
            releases = list(readers.map(self._release, keys))
        return {release_number(each.release): each for each in releases}

    def _release(self, key: str) -> NotedRelease:
        try:
            return NotedRelease.model_validate_json(self._objects.read(key))
        except ValidationError as broken:
            raise ChainFileRefused(self, f"{key} is not a release") from broken
