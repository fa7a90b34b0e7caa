"""One process a profile: two would each keep half of what must be known before anything leaves."""

from __future__ import annotations

import os
from pathlib import Path

from filelock import FileLock, Timeout

from device_app.errors import ProfileInUse, StoreBroken
from device_app.private_files import FILE_MODE, make_folder, write_file

LOCK_NAME, HOLDER_NAME = "device.lock", "device.pid"


class ProfileLock:
    """An exclusive lock on a profile's folder, held by the operating system for this process.

    It ends with the process, however that ends, so that nothing stale is left after a kill. What the database itself
    guarantees (`RoundUploads`, `SumParts`) doesn't depend on it.
    """

    def __init__(self, home: Path) -> None:
        """Take the lock of the profile in `home`. Raises ProfileInUse, naming the process, or StoreBroken."""
        self._holder = home / HOLDER_NAME
        try:
            make_folder(home)
            self._lock = FileLock(home / LOCK_NAME, timeout=0, mode=FILE_MODE, thread_local=False)
            self._lock.acquire()
            write_file(self._holder, f"process {os.getpid()}")
        except Timeout:
            raise ProfileInUse(home, _holder(self._holder)) from None
        except OSError as broken:
            raise StoreBroken(home, broken.strerror or str(broken)) from broken

    def release(self) -> None:
        """Let another process have the profile; again does nothing."""
        if self._lock.is_locked:
            self._holder.unlink(missing_ok=True)
            self._lock.release()


def _holder(note: Path) -> str:
    try:
        return note.read_text(encoding="utf-8").strip() or "another process"
    except OSError:
        return "another process"
