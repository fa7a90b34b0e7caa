"""What `web/build.mjs` makes of the checkout: names and hashes agree, one hash stands for all, the page stays closed.

Oracles: hashlib, the directives of a content security policy read one by one, a new database of the Python device.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from backend.browser_device.built import BrowserBuild, path_of, plain, read_build
from device_app.store.database import Database

ROOT = Path(__file__).parents[4]
pytestmark = pytest.mark.node
COMPRESSED_LIMIT_BYTES = 5_500_000
"""The bar of a first visit."""
START_LIMIT_BYTES = 300_000
"""Of it, all scripts, styles and the empty database, ONNX Runtime's and SQLite's scripts included."""
SCHEMA = "SELECT type, name, sql FROM sqlite_schema WHERE instr(tbl_name, 'yoyo') = 0 ORDER BY type, name"
"""But for yoyo's own tables, which each of both writes with spaces of its own."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    node = shutil.which("node")
    if node is None:
        pytest.fail("node is missing: install Node.js 20 or newer; `make test` says so too")
    out = tmp_path_factory.mktemp("built")
    command = [node, str(ROOT / "web" / "build.mjs"), str(out)]
    environment = os.environ | {"PYTHON": sys.executable}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=200)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return out


@pytest.fixture(scope="module")
def built(folder: Path) -> BrowserBuild:
    found = read_build(folder)
    assert found is not None
    return found


def test_every_file_is_what_its_name_and_its_hash_say(folder: Path, built: BrowserBuild) -> None:
    assert len(built.files) >= 10
    for name, file in built.files.items():
        content = plain(path_of(folder, name, file), file)
        assert sha256(content).hexdigest() == file.sha256
        assert len(content) == file.bytes
        assert name.split(".")[-2] == file.sha256[:16], name
    assert {path.name for path in folder.iterdir()} == {
        "manifest.json",
        *(path_of(folder, name, file).name for name, file in built.files.items()),
    }


def held(path: Path) -> tuple[list[Any], list[Any], dict[str, int]]:
    """A database's schema, the migrations that were run, and how many rows each table has."""
    with closing(sqlite3.connect(path)) as connection:
        schema = connection.execute(SCHEMA).fetchall()
        run = connection.execute("SELECT migration_hash, migration_id FROM _yoyo_migration ORDER BY 2").fetchall()
        tables = [name for kind, name, *_ in schema if kind == "table"]
        counts = {table: len(connection.execute(f"SELECT * FROM {table}").fetchall()) for table in tables}
    return schema, run, counts


def test_the_database_that_a_new_device_begins_with_is_an_empty_one_of_the_python_device(
    folder: Path, built: BrowserBuild, tmp_path: Path
) -> None:
    (name,) = (each for each in built.files if each.endswith(".sqlite"))
    (tmp_path / "theirs.db").write_bytes(plain(path_of(folder, name, built.files[name]), built.files[name]))
    Database(tmp_path / "ours.db").close()
    assert held(tmp_path / "theirs.db") == held(tmp_path / "ours.db")


def test_the_service_workers_script_names_all_other_files_and_its_hash_is_the_builds(
    folder: Path, built: BrowserBuild
) -> None:
    script = plain(path_of(folder, built.script, built.files[built.script]), built.files[built.script])
    assert sha256(script).hexdigest() == built.build
    for name, file in built.files.items():
        if name != built.script:
            assert name.encode() in script
            assert file.sha256.encode() in script
    for header in built.headers.values():
        assert json.dumps(header)[1:-1].encode() in script
    assert built.entries["app"].encode() in script, "the page that it keeps names the page's script"


def test_the_page_names_only_files_of_the_build_and_holds_no_script_or_style_of_its_own(built: BrowserBuild) -> None:
    shell = built.shell.replace("&#x2f;", "/")
    named = re.findall(r'(?:src|href|data-worker)="([^"]+)"', shell)
    assert len(named) >= 6
    for address in named:
        assert address.removeprefix("/reader/files/") in built.files, address
    assert "<style" not in shell
    assert not re.search(r"<script(?![^>]* src=)", shell)
    assert not re.search(r"\son\w+=|\sstyle=", shell)


def test_the_policy_lets_a_page_reach_its_own_origin_and_nothing_else(built: BrowserBuild) -> None:
    policy = {
        words[0]: words[1:] for part in built.headers["content-security-policy"].split(";") if (words := part.split())
    }
    assert policy["default-src"] == ["'none'"]
    assert policy["script-src"] == ["'self'", "'wasm-unsafe-eval'"]
    assert policy["connect-src"] == policy["worker-src"] == policy["style-src"] == ["'self'"]
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == ["'none'"]
    for sources in policy.values():
        assert set(sources) <= {"'none'", "'self'", "'wasm-unsafe-eval'", "data:"}
    assert policy["img-src"] == ["'self'", "data:"]
    assert [name for name, sources in policy.items() if "data:" in sources] == ["img-src"]


def test_the_installed_app_starts_at_addresses_that_name_no_page_to_the_server(
    folder: Path, built: BrowserBuild
) -> None:
    manifest = built.entries["manifest"]
    told = json.loads(plain(path_of(folder, manifest, built.files[manifest]), built.files[manifest]))
    starts = [told["start_url"], told["id"], told["scope"], *(one["url"] for one in told["shortcuts"])]
    assert len(starts) >= 4
    assert {address.partition("#")[0] for address in starts} == {"/reader/"}


def test_every_answer_isolates_the_page_and_tells_no_other_where_it_came_from(built: BrowserBuild) -> None:
    assert built.headers["cross-origin-opener-policy"] == "same-origin"
    assert built.headers["cross-origin-embedder-policy"] == "require-corp"
    assert built.headers["cross-origin-resource-policy"] == "same-origin"
    assert built.headers["referrer-policy"] == "no-referrer"
    assert built.headers["x-content-type-options"] == "nosniff"


def test_a_first_visit_is_within_the_bar(folder: Path, built: BrowserBuild) -> None:
    sizes = {name: path_of(folder, name, file).stat().st_size for name, file in built.files.items()}
    assert sum(sizes.values()) <= COMPRESSED_LIMIT_BYTES
    scripts = {name: size for name, size in sizes.items() if name.endswith((".js", ".css", ".sqlite"))}
    assert len(scripts) == 6
    assert sum(scripts.values()) <= START_LIMIT_BYTES, scripts
