"""Child processes that end with the server, and the environment of those that read untrusted bytes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from threading import Event, Thread, Timer


def end_with_parent() -> None:
    """Initializer of a process pool's processes: makes them exit when their parent ends, however it ends.

    Otherwise they would wait for work forever, with everything they have loaded: each holds the other end of its queue.
    """
    Thread(target=_wait, name="end-with-parent", daemon=True).start()


def _wait() -> None:
    from multiprocessing import parent_process  # a process that reads untrusted bytes starts without it

    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # whatever it is doing: nobody is left to receive its result


NAMES = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
"""Python finds its libraries by these; Windows starts no process without the last."""


def child_environment() -> dict[str, str]:
    """The complete environment of a process that reads untrusted bytes: paths, but no settings or secrets."""
    return {name: os.environ[name] for name in NAMES if name in os.environ}


def read_untrusted(
    script: str, arguments: Sequence[str], data: bytes, *, wall_sec: float, answer_bytes: int
) -> tuple[int, bytes]:
    """Run a Python script on untrusted bytes, its standard input; return its exit code and its standard output.

    It gets none of the server's settings and secrets, and limits itself (`limit_this_process`). If it writes more than
    `answer_bytes`, it is ended, and one byte more is returned. Raises TimeoutError if it runs longer than `wall_sec`.
    """
    late = Event()

    def end() -> None:
        late.set()
        process.kill()

    with tempfile.TemporaryFile() as given:
        given.write(data)
        given.seek(0)
        with subprocess.Popen(
            [sys.executable, "-I", script, *arguments],
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=child_environment(),
        ) as process:
            clock = Timer(wall_sec, end)
            clock.start()
            try:
                assert process.stdout is not None
                output = process.stdout.read(answer_bytes + 1)
                if len(output) > answer_bytes:
                    process.kill()
                code = process.wait()
            except BaseException:
                process.kill()
                raise
            finally:
                clock.cancel()
    if late.is_set():
        raise TimeoutError
    return code, output


def limit_this_process(cpu_sec: int, memory_bytes: int, file_bytes: int) -> None:
    """Limit this process's processor time and memory, and the size of any file that it writes."""
    try:
        import resource
    except ImportError:  # not on Windows, where the parent's timeout is the only limit
        return
    for what, most in (
        (resource.RLIMIT_CPU, cpu_sec),
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_FSIZE, file_bytes),
    ):
        resource.setrlimit(what, (most, most))
