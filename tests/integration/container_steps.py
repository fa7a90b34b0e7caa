"""`python -m tests.integration.container_steps`: runs the steps of docs/deploy/Containerfile without a container.

It builds the wheel, gathers the files that the image copies, runs the install script into a temporary folder, and
starts what the image starts, on a free port, until it answers. It downloads some 500 MB with TORCH_INDEX as in
docs/commands.md, several gigabytes without, and takes minutes.
"""

from __future__ import annotations

import glob
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

from tests.doubles.small_world import free_port

ROOT = Path(__file__).parents[2]
CONTAINERFILE = ROOT / "docs" / "deploy" / "Containerfile"
ANSWERS_WITHIN_SEC = 1_800.0
"""Ends what hangs: a first start prepares the news encoder, minutes on a busy machine."""


def instructions(name: str) -> list[str]:
    """Return the text after each instruction of that name."""
    lines = CONTAINERFILE.read_text(encoding="utf-8").splitlines()
    return [line.removeprefix(f"{name} ") for line in lines if line.startswith(f"{name} ")]


def copied() -> list[str]:
    """Return the patterns of the files that the build stage takes from the checkout."""
    return [word for line in instructions("COPY") if not line.startswith("--from") for word in line.split()[:-1]]


def start_words() -> list[str]:
    """Return the words that the image starts after `ownfeed`."""
    (words,) = instructions("CMD")
    found: list[str] = json.loads(words)
    return found


def install(prefix: Path, folder: Path) -> None:
    """Put the wheel and the image's other files into `folder`, and run the install script into `prefix`."""
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT, check=True)
    for pattern in copied():
        for name in glob.glob(pattern, root_dir=ROOT):
            if not name.startswith("dist/"):
                shutil.copy(ROOT / name, folder)
    (step,) = [line for line in instructions("RUN") if "container_install.sh" in line]
    script = shlex.split(step.partition(" sh ")[2])[0]
    subprocess.run(["sh", folder / Path(script).name, prefix, folder], check=True)


def answer_of(prefix: Path, data: Path) -> int:
    """Return the status of the started server for its newest release, asked until it answers."""
    port, words = free_port(), start_words()
    for option, value in {"--host": "127.0.0.1", "--port": str(port), "--data-dir": str(data)}.items():
        words[words.index(option) + 1] = value
    program = prefix / "bin" / "ownfeed"
    subprocess.run(
        [program, "ingest", "newsroom", "--data-dir", data], check=True
    )  # a backend wants news to begin with
    with subprocess.Popen([program, *words]) as process:
        try:
            until = time.monotonic() + ANSWERS_WITHIN_SEC
            while process.poll() is None and time.monotonic() < until:
                try:
                    return httpx.get(f"http://127.0.0.1:{port}/v1/releases/current").status_code
                except httpx.TransportError:
                    time.sleep(0.2)
            ended = process.poll()
            raise RuntimeError(
                f"no answer within {ANSWERS_WITHIN_SEC:g} s" if ended is None else f"it ended with {ended}"
            )
        finally:
            process.terminate()


def main() -> None:
    """Run the steps and print the results."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ownfeed-container-") as scratch:
        prefix, folder = Path(scratch, "opt"), Path(scratch, "build")
        folder.mkdir()
        install(prefix, folder)
        sys.stdout.write(f"installed after {time.monotonic() - began:.0f} s\n")
        status = answer_of(prefix, Path(scratch, "data"))
    sys.stdout.write(f"it answers ({status}) after {time.monotonic() - began:.0f} s\n")


if __name__ == "__main__":
    main()
