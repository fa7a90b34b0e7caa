"""Immutable files named by their SHA-256; many devices of a fleet may share one folder."""

import os
import time
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile

from device_app.errors import StoreBroken
from protocol.private_files import make_folder

UNUSED_KEPT_SEC = 24 * 3600


class Blobs:
    """A folder of blobs, each named by its hash; written whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, digest: str) -> Path:
        """Return the path of the blob with this hash, whether or not it exists."""
        return self.folder / digest

    def has(self, digest: str) -> bool:
        """Return whether the blob exists; `read` checks that it is intact."""
        return self.path(digest).exists()

    def put(self, content: bytes) -> str:
        """Store a blob and return its hash. Raises StoreBroken if it can't be written."""
        digest = sha256(content).hexdigest()
        if self.has(digest):
            return digest
        temporary: Path | None = None
        try:
            make_folder(self.folder)
            with NamedTemporaryFile(dir=self.folder, prefix=".part-", delete=False) as part:
                temporary = Path(part.name)
                part.write(content)
                part.flush()
                os.fsync(part.fileno())
            temporary.replace(self.path(digest))
        except OSError as broken:
            if temporary is not None:
                temporary.unlink(missing_ok=True)
            raise StoreBroken(self.folder, str(broken)) from broken
        return digest

    def read(self, digest: str) -> bytes | None:
        """Return the blob, or None if it's missing.

        A damaged file is removed and counts as missing.
        """
        try:
            content = self.path(digest).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as broken:
            raise StoreBroken(self.path(digest), str(broken)) from broken
        if sha256(content).hexdigest() != digest:
            self.path(digest).unlink(missing_ok=True)
            return None
        return content

    def touch(self, digest: str) -> None:
        """Mark the blob as used now; `prune` keeps it for another day."""
        try:
            os.utime(self.path(digest))
        except FileNotFoundError:
            return

    def prune(self, keep: Iterable[str]) -> int:
        """Remove blobs not in `keep` that were unused for a day (another device may be fetching).

        Returns how many.
        """
        wanted, removed = set(keep), 0
        if not self.folder.exists():
            return 0
        for file in self.folder.iterdir():
            try:
                if file.name not in wanted and time.time() - file.stat().st_mtime > UNUSED_KEPT_SEC:
                    file.unlink()
                    removed += 1
            except FileNotFoundError:
                continue  # another device has finished writing it, or was quicker
        return removed
