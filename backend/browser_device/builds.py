"""The builds of the browser's device that this server serves, stores and publishes.

A build is the output of `web/build_device.py`: files by hash, the page, and the headers of every answer.

`BuildStore` stores the files of the last served builds for all servers, also those that this server was not installed
with. While servers of two versions run side by side, a page may request its files from the other one; a browser that
continues with an earlier build may have dropped one of its files and request it again.

Readers' browsers execute these files, so write access to the storage is not trusted: a file is served only under a name
that contains its own hash.

`BuildHistory` publishes a list of all builds this server has served, signed with the release key, for comparison. The
list is separate from the releases, whose signed bytes stay unchanged. With it the operator vouches for builds: a reader
with a build that isn't on the list can show both as evidence.
"""

import gzip
import json
import logging
import threading
import time
import zlib
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TypedDict

from pydantic import BaseModel, ConfigDict, ValidationError
from sqlalchemy import Engine

from backend.db.advisory_lock import awaited_lock
from backend.releases.signing import public_half
from backend.releases.store import ReleaseStore
from backend.storage.object_store import ObjectStore, StorageUnavailable
from protocol.ids import Sha256

MANIFEST = "manifest.json"


class BuiltFile(BaseModel):
    """One file. bytes: its size as the browser sees it; gzip: stored compressed, under its name and '.gz'."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    sha256: Sha256
    bytes: int
    type: str
    gzip: bool


class BrowserBuild(BaseModel):
    """One build of the browser's device, as described in web/static/device/manifest.json.

    build is the SHA-256 of the service worker's script, which names every other file by its hash and contains the page:
    two readers with the same hash run the same code.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    build: Sha256
    script: str
    entries: dict[str, str]
    headers: dict[str, str]
    shell: str
    files: dict[str, BuiltFile]


def built_folder() -> Path:
    """Folder of the built files, in a checkout or an installed wheel."""
    return Path(str(files("web").joinpath("static"))) / "device"


def read_build(folder: Path) -> BrowserBuild | None:
    """The build in a folder; None if nothing was built.

    Raises ValueError if the manifest can't be read.
    """
    manifest = folder / MANIFEST
    return BrowserBuild.model_validate_json(manifest.read_bytes()) if manifest.is_file() else None


def kept_name(name: str, file: BuiltFile) -> str:
    """The file's name on disk."""
    return f"{name}.gz" if file.gzip else name


def path_of(folder: Path, name: str, file: BuiltFile) -> Path:
    """The file's path on disk."""
    return folder / kept_name(name, file)


def plain(path: Path, file: BuiltFile) -> bytes:
    """The file's uncompressed bytes, for a client that doesn't accept gzip."""
    kept = path.read_bytes()
    return gzip.decompress(kept) if file.gzip else kept


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


class BuildStore:
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
        removed = [key for key in here if key.removesuffix(".json") not in last]
        for key in removed:
            self._builds.delete(key)
        if removed:
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
                    _log.error("a stored file of the browser's device does not match the hash in its name: %s", path)
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


DOMAIN = b"ownfeed builds of the browser's device v1\n"
"""Prefix of the signed bytes, so that no other signature of the key can pass for this one."""
FILE = "browser-builds.json"
NOTING = "browser-builds"
"""Name of the lock of the process that writes the list."""


class SignedBuilds(TypedDict):
    """The signed list.

    builds: JSON text, a list of {build: SHA-256 in hex, since: when it was first served}, oldest first. signature:
    Ed25519 over DOMAIN and that text in UTF-8; signature and public_key are in base64.
    """

    builds: str
    signature: str
    public_key: str


class BuildHistory:
    """The list in the storage, and the files of its last builds.

    Safe in threads, and in all processes of this database, also with different builds.
    """

    def __init__(self, engine: Engine, objects: ObjectStore, releases: ReleaseStore) -> None:
        self._engine, self._objects, self._releases = engine, objects, releases
        self.files = BuildStore(objects)

    def note(self, build: str) -> None:
        """Record that this build is served from now on; does nothing if it is the last of the list.

        Raises the errors of `ObjectStore`.
        """
        with awaited_lock(self._engine, NOTING):
            known = self._known()
            if known and known[-1]["build"] == build:
                return
            known.append({"build": build, "since": datetime.now(UTC).isoformat(timespec="seconds")})
            self._objects.put(FILE, json.dumps(known).encode())

    def keep(self, folder: Path, built: BrowserBuild) -> None:
        """Store a build's files for servers of other versions; an error of the storage is only logged."""
        with awaited_lock(self._engine, NOTING):
            try:
                self.files.keep(folder, built, [each["build"] for each in self._known()])
            except (OSError, StorageUnavailable) as why:
                _log.warning("the files of the browser's device could not be kept for other versions' servers: %s", why)

    def signed(self) -> SignedBuilds:
        """The list, signed with the key of the newest release.

        Raises NothingPublished, SigningKeyRefused.
        """
        self._releases.require_current()
        key = self._releases.signing_key()
        text = json.dumps(self._known(), separators=(",", ":"))
        signature = key.sign(DOMAIN + text.encode())
        return {
            "builds": text,
            "signature": b64encode(signature).decode(),
            "public_key": b64encode(public_half(key)).decode(),
        }

    def _known(self) -> list[dict[str, str]]:
        try:
            found: list[dict[str, str]] = json.loads(self._objects.read(FILE))
        except FileNotFoundError:
            return []
        return found
