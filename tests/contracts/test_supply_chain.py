"""Every installed package has a hash. Oracles: packaging's parser, `constraints.txt`, npm's lock.

`python tests/contracts/test_supply_chain.py` writes `requirements*.txt` again with uv (`make lock`).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
REQUIREMENTS, TRAIN, TORCH = (ROOT / f"requirements{which}.txt" for which in ("", "-train", "-torch"))
HEADS = {
    REQUIREMENTS: "# What a server runs with, for every system, each file by its hash. By `make lock`.\n",
    TRAIN: "# What trains news models and exports graphs needs besides that and torch. By `make lock`.\n",
    TORCH: "# torch as PyPI has it, on Linux with CUDA; docs/commands.md has the CPU build. By `make lock`.\n",
}
EXTRAS = ("he", "storage")
"""Of a server; `train` is apart."""
OF_TORCH = re.compile(r"torch|triton|nvidia-.*|cuda-.*")
"""What comes with torch from PyPI, and not with its CPU build."""
SHA256 = re.compile(r"--hash=sha256:[0-9a-f]{64}$")


def pins(text: str) -> dict[str, str]:
    """Return versions by canonical name, from a file with one pin per line."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, version = line.split("==")
            assert found.setdefault(canonicalize_name(name), version) == version
    return found


def entries(text: str) -> list[tuple[Requirement, list[str]]]:
    """Return each requirement with its hashes; continued lines are joined as pip joins them."""
    joined = re.sub(r"\s*\\\n\s*", " ", text)
    found = []
    for line in joined.splitlines():
        if line and not line.startswith("#"):
            requirement, *hashes = re.split(r"\s+(?=--hash=)", line)
            found.append((Requirement(requirement), hashes))
    return found


def compiled(*extras: str) -> dict[str, str]:
    """Return by name what uv makes of pyproject.toml with these extras under constraints.txt."""
    words = [word for extra in extras for word in ("--extra", extra)]
    asked = ["pip", "compile", "pyproject.toml", *words, "-c", "constraints.txt", "--generate-hashes"]
    shown = ["--universal", "--python-version", "3.11", "--no-header", "--no-annotate", "--quiet"]
    program = Path(sys.executable).with_name("uv")
    done = subprocess.run([program, *asked, *shown], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    blocks = re.split(r"\n(?=[a-zA-Z0-9])", done.stdout.strip())
    return {re.match(r"[\w.-]+", block)[0]: block + "\n" for block in blocks}  # type: ignore[index]


def locked() -> dict[Path, str]:
    """Return all files as uv makes them."""
    plain, trained = compiled(*EXTRAS), compiled(*EXTRAS, "train")
    mine = {REQUIREMENTS: "".join(plain.values()), TRAIN: "", TORCH: ""}
    for name, block in trained.items():
        if name not in plain:
            mine[TORCH if OF_TORCH.fullmatch(name) else TRAIN] += block
    return {path: HEADS[path] + text for path, text in mine.items()}


@pytest.mark.parametrize("path", HEADS, ids=lambda path: path.name)
def test_every_package_is_pinned_once_with_hashes(path: Path) -> None:
    found = entries(path.read_text(encoding="utf-8"))
    assert len(found) > (60 if path == REQUIREMENTS else 5)
    for requirement, hashes in found:
        (pin,) = requirement.specifier
        assert pin.operator == "==", requirement
        assert hashes, requirement
        assert all(SHA256.match(each) for each in hashes), requirement
    names = [canonicalize_name(requirement.name) for requirement, _ in found]
    assert len(set(names)) == len(names)


def test_hashed_versions_match_the_tested_ones() -> None:
    constrained = pins((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    here = {canonicalize_name(one.name): one for path in HEADS for one, _ in entries(path.read_text(encoding="utf-8"))}
    for name, requirement in here.items():
        if name in constrained:
            assert str(requirement.specifier) == f"=={constrained[name]}", "run `make lock`"
        else:  # of other systems, or of torch's
            assert requirement.marker is not None or name == "setuptools", name
    assert "torch" in here
    plain = {canonicalize_name(one.name) for one, _ in entries(REQUIREMENTS.read_text(encoding="utf-8"))}
    assert not {name for name in plain if OF_TORCH.fullmatch(name)}


def test_server_dependencies_have_hashes() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [
        *project["dependencies"],
        *(one for extra in ("train", *EXTRAS) for one in project["optional-dependencies"][extra]),
    ]
    here = {canonicalize_name(one.name) for path in HEADS for one, _ in entries(path.read_text(encoding="utf-8"))}
    assert {canonicalize_name(Requirement(one).name) for one in asked} - {"ownfeed"} <= here


def test_flower_constraints_differ_only_where_flower_requires() -> None:
    ours, flowers = (
        pins((ROOT / name).read_text(encoding="utf-8")) for name in ("constraints.txt", "constraints-flower.txt")
    )
    assert ours.keys() <= flowers.keys()
    others = {name for name, version in ours.items() if flowers[name] != version}
    assert others <= {"certifi", "fastapi", "packaging", "protobuf", "rich", "starlette", "typer", "uvicorn"}
    assert flowers["flwr"].startswith("1.42.")


def test_npm_installs_only_files_hashed_in_the_lock() -> None:
    lock = json.loads((ROOT / "web" / "package-lock.json").read_text(encoding="utf-8"))
    packages = {name: each for name, each in lock["packages"].items() if name}
    assert len(packages) > 10
    for name, each in packages.items():
        assert each["integrity"].startswith("sha512-"), name
        assert each.get("resolved", "https://registry.npmjs.org/").startswith("https://registry.npmjs.org/"), name
    # `npm ci` installs the lock or nothing; `npm install` may change it
    makefile, build = ((ROOT / name).read_text(encoding="utf-8") for name in ("Makefile", "web/build_device.py"))
    assert "npm ci" in makefile
    assert "npm install" not in makefile
    assert re.findall(r'\[\*npm, "(\w+)"', build) == ["ci"]


if __name__ == "__main__":
    for path, text in locked().items():
        path.write_text(text, encoding="utf-8")
