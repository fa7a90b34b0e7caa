"""Runs a script's work in forks of a process that has imported what the work needs.

A Python of its own for each document would spend ten times as long on its imports as on a feed. Each fork has its own
memory and limits and ends with its document, so nothing of one document reaches the next.

The process starts at the first use, and ends with its parent or after IDLE_SEC without work.
"""

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import IO

from backend.server.child_processes import child_environment

IDLE_SEC = 60.0
FORK = "--fork"
"""A script's first argument if it is to call `serve_forks`; its second is the number of the socket."""
LATE = -int(getattr(signal, "SIGALRM", 14))
"""Exit code of work that took longer than its limit."""


class ForkedScript:
    """The process of one script. Thread-safe.

    Where the system has no fork (Windows), each call starts the script itself, without FORK.
    """

    def __init__(self) -> None:
        self._starting = threading.Lock()
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._command: tuple[int, tuple[str, ...]] | None = None

    def run(
        self, script: Sequence[str], arguments: Sequence[str], document: IO[bytes], answer: IO[bytes], limit_sec: float
    ) -> int:
        """Let a fork read `document` and write `answer`, both files; return its exit code, LATE after `limit_sec`.

        script: the script's path and the arguments that are the same for every document. A code below 0 is the signal
        that ended the fork. Raises OSError if no process can be started.
        """
        if not hasattr(os, "fork"):
            return _alone([*script, *arguments], document, answer, limit_sec)
        request = json.dumps([limit_sec, *arguments]).encode()
        for control in (self._running(script), None):
            code = _ask(control or self._running(script, restart=True), request, document, answer)
            if code:
                return int(code)
            # It ended by itself just now, or something ended it.
        raise ChildProcessError(f"the process of {script[0]} ended before it answered")

    def close(self) -> None:
        """End the process once its work in progress has ended; the next use starts another."""
        with self._starting:
            self._end()

    def _end(self) -> None:
        if self._control is not None and self._process is not None and self._command is not None:
            self._control.close()
            if self._command[0] == os.getpid():
                self._process.wait()
            self._control = self._process = self._command = None

    def _running(self, script: Sequence[str], *, restart: bool = False) -> socket.socket:
        with self._starting:
            command = (os.getpid(), tuple(script))  # a fork of this process needs its own
            if self._control is None or self._command != command or restart:
                self._end()
                ours, theirs = socket.socketpair()
                with theirs:
                    self._process = subprocess.Popen(
                        [sys.executable, "-I", script[0], FORK, str(theirs.fileno()), *script[1:]],
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                        env=child_environment(),
                        pass_fds=[theirs.fileno()],
                    )
                self._control, self._command = ours, command
            return self._control


def _ask(control: socket.socket, request: bytes, document: IO[bytes], answer: IO[bytes]) -> bytes:
    """The exit code as text; empty if the process has ended."""
    ours, theirs = socket.socketpair()
    with ours:
        try:
            with theirs:
                socket.send_fds(control, [b"\0"], [document.fileno(), answer.fileno(), theirs.fileno()])
            ours.sendall(request)
            ours.shutdown(socket.SHUT_WR)
            return _until_closed(ours)
        except (BrokenPipeError, ConnectionResetError):
            return b""


def _until_closed(connection: socket.socket) -> bytes:
    parts = []
    while part := connection.recv(65_536):
        parts.append(part)
    return b"".join(parts)


def _alone(command: Sequence[str], document: IO[bytes], answer: IO[bytes], limit_sec: float) -> int:
    try:
        return subprocess.run(
            [sys.executable, "-I", *command],
            stdin=document,
            stdout=answer,
            stderr=subprocess.DEVNULL,
            env=child_environment(),
            timeout=limit_sec,
            check=False,
        ).returncode
    except subprocess.TimeoutExpired:
        return LATE


def serve_forks(number: int, work: Callable[[Sequence[str]], None]) -> None:
    """In the script: call `work` in a fork for each request on this socket, with the request's arguments.

    The fork's standard input is the document, its standard output the answer. Call it from a process of one thread.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system reaps the supervising forks
    gc.collect()
    gc.freeze()  # the collector would write to pages that the forks share
    with socket.socket(fileno=number) as control:
        control.settimeout(IDLE_SEC)
        while True:
            try:
                sent, files, _, _ = socket.recv_fds(control, 1, 3)
            except TimeoutError:
                return
            if not sent:
                return
            if os.fork() == 0:
                try:
                    control.close()
                    _supervise(files, work)
                finally:
                    os._exit(0)
            for each in files:
                os.close(each)


def _supervise(files: Sequence[int], work: Callable[[Sequence[str]], None]) -> None:
    """Fork for the document, and report how the fork ended. It runs nothing on the document itself."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    document, answer, theirs = files
    with socket.socket(fileno=theirs) as connection:
        limit_sec, *arguments = json.loads(_until_closed(connection))
        worker = os.fork()
        if worker == 0:
            _work(connection, document, answer, lambda: work(arguments))
        is_late = False

        def end(*_: object) -> None:
            nonlocal is_late
            is_late = True
            os.kill(worker, signal.SIGKILL)

        signal.signal(signal.SIGALRM, end)
        signal.setitimer(signal.ITIMER_REAL, limit_sec)
        code = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
        connection.sendall(str(LATE if is_late else code).encode())


def _work(connection: socket.socket, document: int, answer: int, work: Callable[[], None]) -> None:
    code = 1
    try:
        connection.close()
        os.dup2(document, 0)
        os.dup2(answer, 1)
        work()
        sys.stdout.flush()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    finally:
        os._exit(code)
