"""The output of `web/build.mjs`: names match hashes, one hash identifies the build, and the page's policy is strict.

Oracles: hashlib, the directives of a content security policy read one by one, a new database of the Python device.
"""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from backend.browser_device.builds import BrowserBuild, path_of, plain, read_build
from device_app.store.database import Database
from tests.doubles.built_device import built_device
from tests.doubles.small_world import shared_cache
from web.build_device import SOURCES_NOTE

ROOT = Path(__file__).parents[4]
pytestmark = pytest.mark.node
COMPRESSED_LIMIT_BYTES = 5_500_000
"""The bar of a first visit."""
START_LIMIT_BYTES = 318_000
"""Of it, all scripts, styles and the empty database, with the scripts of ONNX Runtime and SQLite.

The related words of searches are 12 kB of it.
"""
SCHEMA = "SELECT type, name, sql FROM sqlite_schema WHERE instr(tbl_name, 'yoyo') = 0 ORDER BY type, name"
"""But for yoyo's own tables, which each of both writes with spaces of its own."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_device(shared_cache(tmp_path_factory))


@pytest.fixture(scope="module")
def built(folder: Path) -> BrowserBuild:
    found = read_build(folder)
    assert found is not None
    return found


def test_every_build_file_matches_its_name_and_hash(folder: Path, built: BrowserBuild) -> None:
    assert len(built.files) >= 10
    for name, file in built.files.items():
        content = plain(path_of(folder, name, file), file)
        assert sha256(content).hexdigest() == file.sha256
        assert len(content) == file.bytes
        assert name.split(".")[-2] == file.sha256[:16], name
    assert {path.name for path in folder.iterdir()} == {
        "manifest.json",
        SOURCES_NOTE.name,
        *(path_of(folder, name, file).name for name, file in built.files.items()),
    }


def held(path: Path) -> tuple[list[Any], list[Any], dict[str, int]]:
    """Return a database's schema, its migrations, and the number of rows of each table."""
    with closing(sqlite3.connect(path)) as connection:
        schema = connection.execute(SCHEMA).fetchall()
        run = connection.execute("SELECT migration_hash, migration_id FROM _yoyo_migration ORDER BY 2").fetchall()
        tables = [name for kind, name, *_ in schema if kind == "table"]
        counts = {table: len(connection.execute(f"SELECT * FROM {table}").fetchall()) for table in tables}
    return schema, run, counts


def test_new_devices_database_is_empty_except_for_the_first_use_question(
    folder: Path, built: BrowserBuild, tmp_path: Path
) -> None:
    (name,) = (each for each in built.files if each.endswith(".sqlite"))
    (tmp_path / "theirs.db").write_bytes(plain(path_of(folder, name, built.files[name]), built.files[name]))
    Database(tmp_path / "ours.db").close()
    schema, run, counts = held(tmp_path / "ours.db")
    assert held(tmp_path / "theirs.db") == (schema, run, counts | {"preference": 1})
    with closing(sqlite3.connect(tmp_path / "theirs.db")) as connection:
        asked = connection.execute("SELECT name, value FROM preference").fetchall()
    assert asked == [("first_use", '"new"')], "it asks whether it is its reader's first one here"


def test_service_worker_names_all_other_files_and_its_hash_is_the_builds(folder: Path, built: BrowserBuild) -> None:
    script = plain(path_of(folder, built.script, built.files[built.script]), built.files[built.script])
    assert sha256(script).hexdigest() == built.build
    for name, file in built.files.items():
        if name != built.script:
            assert name.encode() in script
            assert file.sha256.encode() in script
    for header in built.headers.values():
        assert json.dumps(header)[1:-1].encode() in script
    assert built.entries["app"].encode() in script, "the page that it keeps names the page's script"


def test_page_references_only_build_files_and_has_no_inline_code(built: BrowserBuild) -> None:
    shell = built.shell.replace("&#x2f;", "/")
    named = re.findall(r'(?:src|href|data-worker)="([^"]+)"', shell)
    assert len(named) >= 6
    for address in named:
        own_page = address.startswith("/reader/#/")
        assert own_page or address.removeprefix("/reader/files/") in built.files, address
    assert "<style" not in shell
    assert not re.search(r"<script(?![^>]* src=)", shell)
    assert not re.search(r"\son\w+=|\sstyle=", shell)


def test_content_policy_allows_only_the_pages_origin(built: BrowserBuild) -> None:
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


def test_installed_app_starts_at_addresses_that_reveal_no_page(folder: Path, built: BrowserBuild) -> None:
    manifest = built.entries["manifest"]
    reported = json.loads(plain(path_of(folder, manifest, built.files[manifest]), built.files[manifest]))
    starts = [reported["start_url"], reported["id"], reported["scope"], *(one["url"] for one in reported["shortcuts"])]
    assert len(starts) >= 4
    assert {address.partition("#")[0] for address in starts} == {"/reader/"}


def test_every_answer_isolates_the_page_and_sends_no_referrer(built: BrowserBuild) -> None:
    assert built.headers["cross-origin-opener-policy"] == "same-origin"
    assert built.headers["cross-origin-embedder-policy"] == "require-corp"
    assert built.headers["cross-origin-resource-policy"] == "same-origin"
    assert built.headers["referrer-policy"] == "no-referrer"
    assert built.headers["x-content-type-options"] == "nosniff"
    assert built.headers["x-dns-prefetch-control"] == "off", "no name of a story's link is looked up ahead"


def test_first_visit_stays_within_the_size_limit(folder: Path, built: BrowserBuild) -> None:
    sizes = {name: path_of(folder, name, file).stat().st_size for name, file in built.files.items()}
    assert sum(sizes.values()) <= COMPRESSED_LIMIT_BYTES
    scripts = {name: size for name, size in sizes.items() if name.endswith((".js", ".css", ".sqlite"))}
    assert len(scripts) == 7
    assert sum(scripts.values()) <= START_LIMIT_BYTES, scripts
