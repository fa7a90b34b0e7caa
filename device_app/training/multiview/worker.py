"""The worker process of the views, and the sandbox of each job (Linux 5.13 or newer, Landlock).

The worker (`-m` of this module) reads jobs from stdin and writes protected gradients to stdout, each as one frame. A
separate process computes each job, forked from the worker, which has imported everything needed and has no reader's
data: it only passes on jobs and answers. The forked process locks itself down, opens its own store, computes, and ends.
Imports are most of the cost of starting a process, and none is possible after the lockdown.

Guarantees after `lock_down`, enforced by the kernel and irreversible: no file can be opened, created, removed or listed
except those named; no program can be started from the disk; no other process can be traced or its memory read, as the
sandbox of one view isn't inside another's; from Linux 6.7 no TCP connection can be made, from 6.12 no signal sent
outside and no abstract socket reached. The same user's other processes can't read this one's memory (not dumpable).

Not guaranteed: files opened before stay open, so lock down before opening a store; UDP is not covered; nor is a kernel
bug or the machine's administrator; time and memory used can be observed.
"""

import ctypes
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from device_app.privacy.noise_sources import SystemNoise
from device_app.store.database import Database
from device_app.training.gradients import OnnxGradients
from device_app.training.multiview.job import from_bytes, read_frame, write_frame
from device_app.training.multiview.view import view_gradient

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
"""System call numbers, the same on every architecture."""
VERSION_FLAG = 1
RULE_PATH_BENEATH = 1
PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 4, 38
WRITE_FILE, READ_FILE, TRUNCATE = 1 << 1, 1 << 2, 1 << 14
FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
"""All rights on files, by the version of the Landlock interface."""
TCP_BIND_AND_CONNECT = 3
ABSTRACT_SOCKETS_AND_SIGNALS = 3


class LockdownUnavailable(RuntimeError):
    """This system can't isolate a process; the message says why."""


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("tcp", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


def version() -> int:
    """Return the version of the kernel's Landlock interface.

    0 if it is missing or switched off.
    """
    if sys.platform != "linux":
        return 0
    found = int(_libc().syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(VERSION_FLAG)))
    return max(0, found)


def lock_down(files: Sequence[Path]) -> None:
    """Limit this process to reading and writing these files, which must exist.

    It can't be undone.

    Raises LockdownUnavailable if the kernel refuses; the process must end then.
    """
    interface = version()
    if not interface:
        raise LockdownUnavailable("this system has no Landlock, so views can't be kept apart here")
    libc = _libc()
    rights = FILE_RIGHTS[max(known for known in FILE_RIGHTS if known <= interface)]
    attributes = _Ruleset(rights, TCP_BIND_AND_CONNECT, ABSTRACT_SOCKETS_AND_SIGNALS)
    size = 8 if interface < 4 else 16 if interface < 6 else 24
    ruleset = _done(libc.syscall(CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(size), 0), "make a ruleset")
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


NOTHING = b"nothing"
BESIDE = ("", "-wal", "-shm")
FAILED = 1


def store_files(store: Path) -> list[Path]:
    """Return a store's file, and the two that SQLite keeps next to it while it is open."""
    return [store.with_name(store.name + ending) for ending in BESIDE]


def main() -> None:
    """Answer jobs one after another until stdin ends.

    An answer is one byte, the exit code of the job's process, followed by its output.
    """
    # A view's noise needs both, and no job can import anything; whoever only starts this process does without.
    import scipy.optimize
    import scipy.special  # noqa: F401

    while True:
        try:
            job = read_frame(sys.stdin.fileno())
        except EOFError:
            return
        code, answer = _apart(job)
        write_frame(sys.stdout.fileno(), bytes([code]) + answer)


def _apart(job: bytes) -> tuple[int, bytes]:
    """Run the job in a forked process.

    An error ends it without a message, since its text could reveal data of the store.
    """
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        code = FAILED
        try:
            os.close(reads)
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, sys.stdin.fileno())  # other jobs come there
            os.dup2(null, sys.stdout.fileno())
            with os.fdopen(writes, "wb") as answer:
                answer.write(_computed(job))
            code = 0
        finally:
            os._exit(code)
    os.close(writes)
    with os.fdopen(reads, "rb") as answers:
        found = answers.read()
    _, status = os.waitpid(child, 0)
    return (FAILED if os.waitstatus_to_exitcode(status) else 0), found


def _computed(content: bytes) -> bytes:
    job = from_bytes(content)
    rng = np.random.default_rng(job.seed)
    gradients = OnnxGradients(job.graph)  # loaded when first used, after the lock: a graph may name files of values
    lock_down(store_files(job.store))
    database = Database.of_another(job.store)
    found = view_gradient(job, database, SystemNoise(), rng, gradients)
    database.close()
    return NOTHING if found is None else save(dict(found))


if __name__ == "__main__":
    main()
