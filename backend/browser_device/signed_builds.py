"""Publishes a list of all browser builds this server has served, signed with the release key, for comparison.

The list is separate from the releases, whose signed bytes stay unchanged. By it the operator vouches for builds:
whoever has a build that isn't on the list can show both as evidence.
"""

from __future__ import annotations

import json
import logging
from base64 import b64encode
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict

from sqlalchemy import Engine

from backend.browser_device.built import BrowserBuild
from backend.browser_device.kept_builds import KeptBuilds
from backend.db.advisory_lock import awaited_lock
from backend.releases.signing import public_half
from backend.releases.store import ReleaseStore
from backend.storage.object_store import ObjectStore, StorageUnavailable

_log = logging.getLogger(__name__)

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
        self.files = KeptBuilds(objects)

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
