"""Stores the files of the last served builds for all servers.

These include builds that this server was not installed with.

While servers of two versions run side by side, a page may request its files from the other one; a browser that
continues with an earlier build may have dropped one of its files and request it again.

Readers' browsers execute these files, so write access to the storage is not trusted: a file is served only under a name
that contains its own hash.
"""

from __future__ import annotations

import gzip
import logging
import threading
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pydantic import ValidationError

from backend.browser_device.built import BrowserBuild, BuiltFile, kept_name, path_of, plain
from backend.storage.object_store import ObjectStore

FOLDER = "reader-builds"
BUILDS_KEPT = 8
"""A build differs from the previous one by some 300 KB of its 5 MB."""
HASH_CHARS = 16
"""Characters of a file's SHA-256 in its name."""
LOOK_AGAIN_SEC = 10.0
"""Shortest interval between two searches of the storage, since anyone may request a name without a file."""
_BUILDS, _FILES = "builds", "files"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ServedFile:
    """A file of a build, and its path on this machine."""

    path: Path
    file: BuiltFile
    build: BrowserBuild


class KeptBuilds:
    """The stored builds. Safe in threads. Objects never change: a file's name has its hash, a build's name is its
    hash."""

    def __init__(self, objects: ObjectStore) -> None:
        self._builds, self._files = objects.under(FOLDER).under(_BUILDS), objects.under(FOLDER).under(_FILES)
        self._lock, self._looked_at = threading.Lock(), -LOOK_AGAIN_SEC
        self._by_name: dict[str, BrowserBuild] = {}
        self._checked: set[str] = set()

    def keep(self, folder: Path, built: BrowserBuild, served: Sequence[str]) -> None:
        """Store a build, and remove all but the last of the served ones; one process at a time.

        served: builds by their hash, oldest first. Raises the errors of `ObjectStore`.
        """
        here = {each.key for each in self._builds.list()}
        if f"{built.build}.json" not in here:
            there = {each.key for each in self._files.list()}
            for name, file in built.files.items():
                if (key := kept_name(name, file)) not in there:
                    self._files.put(key, path_of(folder, name, file).read_bytes())
            self._builds.put(f"{built.build}.json", built.model_dump_json().encode())
        last = list(dict.fromkeys([built.build, *reversed(served)]))[:BUILDS_KEPT]
        gone = [key for key in here if key.removesuffix(".json") not in last]
        for key in gone:
            self._builds.delete(key)
        if gone:
            named = {kept_name(name, file) for each in self._known() for name, file in each.files.items()}
            for key in [each.key for each in self._files.list()]:
                if key not in named:
                    self._files.delete(key)

    def find(self, name: str) -> ServedFile | None:
        """A file of any of these builds, by its name below /reader/files/.

        Returns None, and logs an error, for a file that doesn't match the hash in its name. Raises the errors of
        `ObjectStore`.
        """
        with self._lock:
            if name not in self._by_name and time.monotonic() - self._looked_at >= LOOK_AGAIN_SEC:
                self._by_name = {each: build for build in self._known() for each in build.files}
                self._looked_at = time.monotonic()
            build = self._by_name.get(name)
        if build is None:
            return None
        file = build.files[name]
        try:
            path = self._files.path(kept_name(name, file))
            if name not in self._checked:
                if not _is_named(name, path, file):
                    _log.error("a kept file of the browser's device is not what its name says: %s", path)
                    return None
                self._checked.add(name)
            return ServedFile(path, file, build)
        except FileNotFoundError:
            return None  # its build is no longer among the last

    def _known(self) -> list[BrowserBuild]:
        found = []
        for key in [each.key for each in self._builds.list() if each.key.endswith(".json")]:
            try:
                found.append(BrowserBuild.model_validate_json(self._builds.read(key)))
            except FileNotFoundError:
                continue  # another process has just removed it
            except ValidationError:
                _log.warning("a kept build of the browser's device is of a form that this version can't read: %s", key)
        return found


def _is_named(name: str, path: Path, file: BuiltFile) -> bool:
    """Whether the hash in a file's name (`nameByContent` of web/bundling.mjs) is that of its content."""
    try:
        content = plain(path, file)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return False
    return name.split(".")[-2:-1] == [sha256(content).hexdigest()[:HASH_CHARS]]
