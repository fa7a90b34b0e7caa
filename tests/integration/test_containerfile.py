"""The files and the command that docs/deploy/Containerfile names exist.

Oracles: the shell, the command line. `python -m tests.integration.container_steps` runs its steps, which takes minutes
and downloads.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import typer

from ownfeed import app
from tests.integration.container_steps import ROOT, copied, instructions, start_words

SCRIPT = ROOT / "docs" / "deploy" / "container_install.sh"


def test_files_copied_by_the_containerfile_exist_except_the_wheel() -> None:
    patterns = copied()
    assert "dist/ownfeed-*.whl" in patterns
    assert all((ROOT / name).is_file() for name in patterns if not name.startswith("dist/"))
    assert str(SCRIPT.relative_to(ROOT)) in patterns


def test_container_script_is_valid_and_installs_with_hashes() -> None:
    subprocess.run(["sh", "-n", SCRIPT], check=True)
    script = SCRIPT.read_text(encoding="utf-8")
    installs = [line.strip() for line in script.splitlines() if line.strip().startswith("$pip ")]
    assert len(installs) == 5
    without = [line for line in installs if "--require-hashes" not in line]
    assert [re.search(r"torch==|\.whl", line) is not None for line in without] == [True, True]
    assert all("--no-deps" in line for line in installs)
    named = set(re.findall(r"requirements[\w-]*\.txt", script))
    assert named <= set(copied())


def test_container_starts_an_existing_command_with_data_in_the_volume() -> None:
    name, *words = start_words()
    group = typer.main.get_command(app)
    context = group.make_context("ownfeed", [name, *words], resilient_parsing=True)
    command = group.get_command(context, name)  # type: ignore[attr-defined]
    asked = command.make_context(name, list(words), parent=context)
    assert asked.params["data_dir"].is_relative_to(Path(*instructions("VOLUME")))
    assert [str(asked.params["port"])] == instructions("EXPOSE")
