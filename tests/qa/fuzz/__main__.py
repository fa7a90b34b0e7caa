"""Fuzzes one target with atheris for some minutes: `python -m tests.qa.fuzz NAME --minutes M [--corpus FOLDER]`.

It starts from the stored seeds and continues from the corpus folder, where it adds inputs that reached new code. An
input that fails is written to that folder as `crash-...` and ends the run with exit code 77 and the traceback. The
first argument may be `all`: every target in turn, each for its minutes, whatever happened to the previous ones.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

SLOW_INPUT_SEC = 60


def _main() -> str | None:
    """Run what the arguments say; return the failed targets in a sentence, None for none."""
    parser = argparse.ArgumentParser(prog="python -m tests.qa.fuzz", description=__doc__)
    parser.add_argument("name", help="a target of tests/qa/fuzz/targets.py, or all")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--corpus", type=Path, default=Path(tempfile.gettempdir()) / "ownfeed-fuzz")
    given = parser.parse_args()
    if given.name == "all":
        from tests.qa.fuzz.targets import FUZZED

        return _fuzz_all(FUZZED, ["--minutes", str(given.minutes), "--corpus", str(given.corpus)])
    _fuzz(given.name, round(60 * given.minutes), given.corpus / given.name)
    return None  # not reached: libFuzzer ends the process


def _fuzz_all(names: Iterable[str], options: Sequence[str]) -> str | None:
    """Run one process per target, since libFuzzer ends its own."""
    command = [sys.executable, "-m", "tests.qa.fuzz"]
    ended = {name: subprocess.run([*command, name, *options], check=False).returncode for name in names}
    broken = [f"{name} ({code})" for name, code in ended.items() if code]  # below 0 where a signal killed it
    return f"broken, by exit code: {', '.join(broken)}" if broken else None


def _fuzz(name: str, seconds: int, corpus: Path) -> None:
    import atheris

    with atheris.instrument_imports(include=["backend", "device_app", "feedparser", "sgmllib", "html", "_markupbase"]):
        from tests.qa.fuzz.targets import FUZZED, SEEDS, message_kinds

        message_kinds()  # imports the wire, which is instrumented only here
    if name not in FUZZED:
        raise SystemExit(f"{name} is none of the targets: {', '.join(FUZZED)}")
    target = FUZZED[name]
    seeds = SEEDS / name
    corpus.mkdir(parents=True, exist_ok=True)
    atheris.Setup(
        [
            f"fuzz {name}",
            f"-max_total_time={seconds}",
            f"-max_len={target.limit_bytes}",
            f"-timeout={SLOW_INPUT_SEC}",
            f"-artifact_prefix={corpus}/",
            "-print_final_stats=1",
            "-rss_limit_mb=2048",
            str(corpus),
            *([str(seeds)] if seeds.is_dir() else []),
        ],
        target.run,
        **({} if target.mutator is None else {"custom_mutator": target.mutator(_changed_bytes)}),
    )
    atheris.Fuzz()


def _changed_bytes(data: bytes, limit_bytes: int) -> bytes:
    import atheris

    return bytes(atheris.Mutate(data, limit_bytes))  # looked up here: Setup puts the one that works into its place


if __name__ == "__main__":
    sys.exit(_main())
