"""A disk that is full for some writes, as the process sees it: requests for space are refused with ENOSPC.

Space is requested where a file or folder is made or renamed, where bytes are written, and where written data is synced.
Bytes are cut in half first, as a disk that fills up cuts them. SQLite's own writes are refused below it: its Unix layer
accepts replacements for system calls, which its own tests use.
"""

from __future__ import annotations

import _io
import _sqlite3
import builtins
import ctypes
import errno
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.doubles.written_paths import WRITING
from tests.qa.faults.points import PointCounts

NAMED = frozenset({"os.mkdir", "os.rename"})
OUR_OWN = ".log"
"""Ends the names of what the tests themselves note in the folder."""
WRITES = (b"pwrite64", b"pwrite", b"write")
"""SQLite's: the first that it has is the one that it uses."""
_open = io.open
_Write = ctypes.CFUNCTYPE(
    ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64, use_errno=True
)
_kept: list[Any] = []
"""What SQLite calls, which has to outlive everything."""


class _Vfs(ctypes.Structure):
    """`sqlite3_vfs` of sqlite3.h, version 3."""

    _fields_ = (
        ("iVersion", ctypes.c_int), ("szOsFile", ctypes.c_int), ("mxPathname", ctypes.c_int),
        *((name, ctypes.c_void_p) for name in (
            "pNext", "zName", "pAppData", "xOpen", "xDelete", "xAccess", "xFullPathname", "xDlOpen", "xDlError",
            "xDlSym", "xDlClose", "xRandomness", "xSleep", "xCurrentTime", "xGetLastError", "xCurrentTimeInt64",
        )),
        ("xSetSystemCall", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)),
        ("xGetSystemCall", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)),
        ("xNextSystemCall", ctypes.c_void_p),
    )  # fmt: skip


class ScarceSpace:
    """The room below one folder."""

    def __init__(self, folder: Path, counts: PointCounts) -> None:
        self._below, self._counts = f"{folder}{os.sep}", counts

    def watched(self, file: object) -> str | None:
        """Return the path, also of a descriptor, if it lies below the folder and isn't the tests' own."""
        if isinstance(file, int):
            try:
                file = os.readlink(f"/proc/self/fd/{file}")
            except OSError:
                return None
        path = os.fspath(file) if isinstance(file, str | os.PathLike) else ""
        ours = isinstance(path, str) and path.startswith(self._below) and not path.endswith(OUR_OWN)
        return path.removeprefix(self._below) if ours else None

    def is_refused(self, what: str, file: object) -> bool:
        """Request space; what isn't watched always gets it."""
        path = self.watched(file)
        return path is not None and self._counts.asks_room(f"{what} {path}")

    def require(self, what: str, file: object) -> None:
        """Request space. Raises OSError if there is none."""
        if self.is_refused(what, file):
            raise full()


def full() -> OSError:
    """Return the system's error."""
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def make_scarce(folder: Path, counts: PointCounts) -> None:
    """Make this process ask `counts` for space from now on. It can't be undone."""
    space = ScarceSpace(folder, counts)
    _watch_names(space)
    _watch_files(space)
    _watch_sqlite(space)


def _watch_names(space: ScarceSpace) -> None:
    def received(name: str, arguments: tuple[Any, ...]) -> None:
        if name == "open":
            path, _, flags = arguments
            makes = isinstance(flags, int) and flags & WRITING and flags & os.O_CREAT and not isinstance(path, int)
        else:
            path, makes = arguments[name != "os.mkdir"] if name in NAMED else "", name in NAMED
        if makes and space.watched(path) is not None and not (name != "os.rename" and os.path.lexists(path)):
            space.require(name, path)

    sys.addaudithook(received)


def _watch_files(space: ScarceSpace) -> None:
    class ScarceFile(io.FileIO):
        """A file whose writes request space: a refused write is cut short, as by the system, and the next fails."""

        is_cut = False

        def write(self, content: Any, /) -> int:
            whole = memoryview(content).cast("B")
            if not self.is_cut and not space.is_refused("write", self.fileno()):
                return super().write(whole) or 0
            self.is_cut = not self.is_cut and len(whole) > 1
            if not self.is_cut:
                raise full()
            return super().write(whole[: len(whole) // 2]) or 0

    def opened(
        file: Any, mode: str = "r", buffering: int = -1, encoding: str | None = None, errors: str | None = None,
        newline: str | None = None, closefd: bool = True, opener: Any = None,
    ) -> Any:  # fmt: skip
        if not set("wax+") & set(mode) or space.watched(file) is None:
            return _open(file, mode, buffering, encoding, errors, newline, closefd, opener)
        raw = ScarceFile(file, mode.replace("b", "").replace("t", ""), closefd, opener)
        if buffering == 0:
            return raw
        buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, errors, newline, buffering == 1)

    # pathlib, os.fdopen and tempfile each find it in another of these.
    builtins.open = io.open = _io.open = opened
    os.fsync = _asking(space, os.fsync, 0)
    os.write = _asking(space, os.write, 0)
    os.sendfile = _asking(space, os.sendfile, 0)
    os.copy_file_range = _asking(space, os.copy_file_range, 1)


def _asking(space: ScarceSpace, call: Callable[..., Any], place: int) -> Callable[..., Any]:
    """Wrap the system call so that it requests space first. place: of the descriptor that is written to."""

    def asked(*arguments: Any, **named: Any) -> Any:
        target = arguments[place]
        space.require(call.__name__, target if isinstance(target, int) else target.fileno())
        return call(*arguments, **named)

    return asked


def _watch_sqlite(space: ScarceSpace) -> None:
    library = ctypes.CDLL(_sqlite3.__file__)
    library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
    library.sqlite3_vfs_find.argtypes = [ctypes.c_char_p]
    found = library.sqlite3_vfs_find(b"unix")
    vfs, address = found.contents, ctypes.cast(found, ctypes.c_void_p)
    name = next(each for each in WRITES if vfs.xGetSystemCall(address, each))
    if name == b"write":
        raise NotImplementedError("this SQLite writes without telling where, which is not watched")
    write = _Write(vfs.xGetSystemCall(address, name))

    def asked(descriptor: int, content: int, size: int, offset: int) -> int:
        if space.is_refused("SQLite writes", descriptor):
            ctypes.set_errno(errno.ENOSPC)
            return -1
        return int(write(descriptor, content, size, offset))

    _kept.append(_Write(asked))
    if vfs.xSetSystemCall(address, name, ctypes.cast(_kept[-1], ctypes.c_void_p)):
        raise RuntimeError(f"SQLite keeps its own {name.decode()}")
