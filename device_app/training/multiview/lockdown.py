"""Shuts a process of its own out of every file but the few it was told of. Linux 5.13 or newer (Landlock).

What holds after `lock_down`, enforced by the kernel and not to be taken back: no file can be opened, made, removed or
listed but those named; no program can be started from the disk; no other process can be traced or its memory read, as
the sandbox of one view lies in no other's; from Linux 6.7 no TCP connection can be made, from 6.12 no signal sent
outside and no abstract socket reached. The same user's other processes can't read this one's memory (not dumpable).

What doesn't: whatever was opened before stays open, so lock down before opening a store; UDP is not covered; a kernel
bug or the machine's administrator is beyond it; time and memory used can be observed.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence
from pathlib import Path

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
"""System call numbers, the same on every architecture."""
VERSION_FLAG = 1
RULE_PATH_BENEATH = 1
PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 4, 38
WRITE_FILE, READ_FILE, TRUNCATE = 1 << 1, 1 << 2, 1 << 14
FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
"""All rights on files that a version of the interface knows."""
TCP_BIND_AND_CONNECT = 3
ABSTRACT_SOCKETS_AND_SIGNALS = 3


class LockdownUnavailable(RuntimeError):
    """This system can't shut a process in; the message says why."""


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("tcp", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


def version() -> int:
    """Of the kernel's Landlock interface; 0 where there is none, or it is switched off."""
    if sys.platform != "linux":
        return 0
    found = int(_libc().syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(VERSION_FLAG)))
    return max(0, found)


def lock_down(files: Sequence[Path]) -> None:
    """Leave this process nothing but reading and writing these files, which must exist. It can't be taken back.

    Raises LockdownUnavailable where the kernel refuses; the process must end then.
    """
    interface = version()
    if not interface:
        raise LockdownUnavailable("this system has no Landlock, so views can't be kept apart here")
    libc = _libc()
    rights = FILE_RIGHTS[max(known for known in FILE_RIGHTS if known <= interface)]
    asked = _Ruleset(rights, TCP_BIND_AND_CONNECT, ABSTRACT_SOCKETS_AND_SIGNALS)
    size = 8 if interface < 4 else 16 if interface < 6 else 24
    ruleset = _done(libc.syscall(CREATE_RULESET, ctypes.byref(asked), ctypes.c_size_t(size), 0), "make a ruleset")
    try:
        for file in files:
            handle = os.open(file, os.O_PATH | os.O_CLOEXEC)
            try:
                rule = _Beneath((READ_FILE | WRITE_FILE | TRUNCATE) & rights, handle)
                _done(libc.syscall(ADD_RULE, ruleset, RULE_PATH_BENEATH, ctypes.byref(rule), 0), f"allow {file.name}")
            finally:
                os.close(handle)
        _done(libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "hide the process's memory")
        _done(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "give up new privileges")
        _done(libc.syscall(RESTRICT_SELF, ruleset, 0), "shut the process in")
    finally:
        os.close(ruleset)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _done(result: int, what: str) -> int:
    if result < 0:
        raise LockdownUnavailable(f"the system refused to {what}: {os.strerror(ctypes.get_errno())}")
    return result
