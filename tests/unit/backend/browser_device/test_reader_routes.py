"""GET /reader/ and below: the page, files by hash, headers, and the answers without a build."""

from __future__ import annotations

import gzip
import json
from hashlib import sha256
from pathlib import Path
from unittest.mock import Mock

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.browser_device.builds import (
    BUILDS_KEPT,
    LOOK_AGAIN_SEC,
    BrowserBuild,
    BuildHistory,
    BuildStore,
    SignedBuilds,
    read_build,
)
from backend.browser_device.routes import router
from backend.server.problems import install_problems
from backend.server.request_limits import RequestLimits
from backend.storage.object_store import LocalFolder

SCRIPT = b"console.log('a script of some length', 'a script of some length')"
PICTURE = b"\x89PNG no compression"
HEADERS = {"content-security-policy": "default-src 'none'", "referrer-policy": "no-referrer"}


def named(name: str, content: bytes) -> str:
    stem, _, suffix = name.rpartition(".")
    return f"{stem}.{sha256(content).hexdigest()[:16]}.{suffix}"


APP, WORKER, ICON = named("app.js", SCRIPT), named("service_worker.js", SCRIPT), named("icon.png", PICTURE)


def built(folder: Path) -> Path:
    """Write a build of three files in the builder's layout."""
    files = {}
    for name, content, media, squeezed in (
        (APP, SCRIPT, "text/javascript", True),
        (WORKER, SCRIPT, "text/javascript", True),
        (ICON, PICTURE, "image/png", False),
    ):
        kept = folder / (f"{name}.gz" if squeezed else name)
        kept.write_bytes(gzip.compress(content) if squeezed else content)
        files[name] = {
            "sha256": sha256(content).hexdigest(),
            "bytes": len(content),
            "type": media,
            "gzip": squeezed,
        }
    reported = {
        "build": sha256(SCRIPT).hexdigest(),
        "script": WORKER,
        "entries": {"app": APP},
        "headers": HEADERS,
        "shell": "<!doctype html><head></head><body>The reader's page</body>",
        "files": files,
    }
    (folder / "manifest.json").write_text(json.dumps(reported), encoding="utf-8")
    return folder


class ListedBuilds(BuildHistory):
    """A list without a signing key."""

    def __init__(self) -> None:
        pass

    def signed(self) -> SignedBuilds:
        return {"builds": "[]", "signature": "", "public_key": ""}


def client_of(folder: Path, history: BuildHistory | None = None) -> TestClient:
    app = FastAPI(redirect_slashes=False)
    app.routes.extend(router(folder, history).routes)
    install_problems(app)
    app.add_middleware(RequestLimits)
    return TestClient(app, follow_redirects=False)


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    return client_of(built(tmp_path))


@pytest.mark.parametrize("path", ["/reader/", "/reader/story/n1", "/reader/privacy?said=x"])
def test_every_page_address_serves_the_one_page_with_the_builds_headers(client: TestClient, path: str) -> None:
    answer = client.get(path, headers={"accept": "text/html"})
    assert answer.status_code == 200
    assert "The reader's page" in answer.text
    assert f'<meta name="service-worker" content="{WORKER}">' in answer.text
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert answer.headers["cache-control"] == "no-cache"


def test_address_without_a_slash_redirects_on_the_same_host(client: TestClient) -> None:
    answer = client.get("/reader", headers={"host": "elsewhere.example"})
    assert (answer.status_code, answer.headers["location"]) == (308, "/reader/")


def test_build_file_is_cached_permanently_in_the_accepted_encoding(client: TestClient) -> None:
    squeezed = client.get(f"/reader/files/{APP}", headers={"accept-encoding": "gzip"})
    plain = client.get(f"/reader/files/{APP}", headers={"accept-encoding": "identity"})
    assert (squeezed.headers["content-encoding"], plain.headers.get("content-encoding")) == ("gzip", None)
    assert squeezed.content == plain.content == SCRIPT  # the client undoes what the first came in
    assert int(squeezed.headers["content-length"]) < len(gzip.compress(SCRIPT)) + 1
    for answer in (squeezed, plain):
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["vary"] == "accept-encoding"
        assert answer.headers["content-type"].startswith("text/javascript")
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS


def test_incompressible_file_is_sent_uncompressed(client: TestClient) -> None:
    answer = client.get(f"/reader/files/{ICON}")
    assert (answer.content, answer.headers["content-type"]) == (PICTURE, "image/png")
    assert "content-encoding" not in answer.headers


def test_only_the_service_worker_script_may_control_all_pages(client: TestClient) -> None:
    allowed = {
        name: client.get(f"/reader/files/{name}").headers.get("service-worker-allowed") for name in (APP, WORKER, ICON)
    }
    assert allowed == {APP: None, WORKER: "/reader/", ICON: None}


def test_offered_build_is_named_and_never_cached(client: TestClient) -> None:
    answer = client.get("/reader/build.json")
    assert answer.json() == {"build": sha256(SCRIPT).hexdigest(), "script": WORKER}
    assert answer.headers["cache-control"] == "no-store"


def test_signed_list_of_builds_is_served_if_it_exists(tmp_path: Path) -> None:
    answer = client_of(built(tmp_path), ListedBuilds()).get("/reader/builds.json")
    assert answer.json() == {"builds": "[]", "signature": "", "public_key": ""}
    assert answer.headers["cache-control"] == "no-store"
    assert client_of(tmp_path).get("/reader/builds.json").status_code == 404


@pytest.mark.parametrize("path", ["/reader/files/app.js", "/reader/files/..%2Fmanifest.json", "/reader/nothing.json"])
def test_missing_file_is_404_not_the_page(client: TestClient, path: str) -> None:
    answer = client.get(path, headers={"accept": "*/*"})
    assert answer.status_code == 404
    assert "The reader's page" not in answer.text


def test_missing_build_is_reported_on_every_address(tmp_path: Path) -> None:
    client = client_of(tmp_path)
    for path in ("/reader/", "/reader/files/app.js", "/reader/story/n1"):
        answer = client.get(path)
        assert answer.status_code == 503
        assert "make setup" in answer.text
        assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_answers_neither_set_nor_depend_on_cookies(client: TestClient) -> None:
    for path in ("/reader/", "/reader/build.json", f"/reader/files/{APP}"):
        bare, known = (client.get(path, headers=each) for each in ({}, {"cookie": "reader=1"}))
        assert "set-cookie" not in bare.headers
        assert (bare.content, bare.headers) == (known.content, known.headers)


def test_log_holds_no_page_addresses(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "backend.requests"):
        client.get("/reader/story/n123456", headers={"accept": "text/html"})
        client.get("/reader/build.json")
    lines = [record.getMessage() for record in caplog.records]
    assert [line.split()[1] for line in lines] == ["/reader/...", "/reader/build.json"]


def test_uncompressed_file_is_unpacked_once_for_all_requests(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpack = Mock(side_effect=gzip.decompress)
    monkeypatch.setattr("backend.browser_device.builds.gzip.decompress", unpack)
    for _ in range(3):
        assert client.get(f"/reader/files/{APP}", headers={"accept-encoding": "identity"}).content == SCRIPT
    unpack.assert_called_once()


class KeptHistory(ListedBuilds):
    """The stored files of builds that servers of one storage have served."""

    def __init__(self, storage: Path) -> None:
        self.files = BuildStore(LocalFolder(storage))


def serve_build(folder: Path, history: BuildHistory, served: list[str]) -> BrowserBuild:
    read = read_build(folder)
    assert read is not None
    history.files.keep(folder, read, served)
    return read


def another(folder: Path, number: int) -> tuple[Path, str]:
    """Return the folder and the script name of a build with another script and the same icon."""
    (made := folder / f"build-{number}").mkdir()
    built(made)
    content = SCRIPT + b"%d" % number
    name, reported = named("app.js", content), json.loads((made / "manifest.json").read_text(encoding="utf-8"))
    (made / f"{APP}.gz").rename(made / f"{name}.gz")
    (made / f"{name}.gz").write_bytes(gzip.compress(content))
    reported["files"][name] = reported["files"].pop(APP) | {"sha256": sha256(content).hexdigest()}
    reported["build"] = sha256(content).hexdigest()
    (made / "manifest.json").write_text(json.dumps(reported), encoding="utf-8")
    return made, name


def test_files_of_other_versions_builds_are_served_during_an_upgrade(tmp_path: Path) -> None:
    """Regression, in a rolling upgrade: one server sent the page, and another was asked for its files."""
    (first := tmp_path / "first").mkdir()
    second, name = another(tmp_path, 2)
    servers = [KeptHistory(tmp_path / "storage") for _ in range(2)]
    one = client_of(built(first), servers[0])
    assert one.get(f"/reader/files/{name}").status_code == 404
    served = [serve_build(first, servers[0], []).build]
    serve_build(second, servers[1], served)
    two = client_of(second, servers[1])
    servers[0].files._looked_at -= LOOK_AGAIN_SEC
    for client, file, content in ((one, name, SCRIPT + b"2"), (two, APP, SCRIPT)):
        answer = client.get(f"/reader/files/{file}")
        assert (answer.status_code, answer.content) == (200, content)
        assert {header: answer.headers[header] for header in HEADERS} == HEADERS
    for path in first.iterdir():
        path.unlink()
    assert one.get(f"/reader/files/{ICON}").content == PICTURE
    assert one.get("/reader/files/..%2Fmanifest.json").status_code == 404


@pytest.mark.parametrize(
    "content", [gzip.compress(b"fetch('https://example.org')"), b"no gzip", b""], ids=["another", "no gzip", "empty"]
)
def test_tampered_stored_builds_are_not_served(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    """The attacker replaces a stored script, lists its hash, and adds headers that allow everything."""
    (first := tmp_path / "first").mkdir()
    second, name = another(tmp_path, 2)
    history = KeptHistory(tmp_path / "storage")
    read = serve_build(second, history, [])
    kept = tmp_path / "storage" / "reader-builds"
    reported = json.loads((kept / "builds" / f"{read.build}.json").read_text())
    reported["headers"] = {"content-security-policy": "default-src *", "set-cookie": "a=b"}
    reported["files"][name]["sha256"] = sha256(b"fetch('https://example.org')").hexdigest()
    (kept / "builds" / f"{read.build}.json").write_text(json.dumps(reported))
    one = client_of(built(first), history)
    answer = one.get(f"/reader/files/{name}")
    assert (answer.status_code, answer.content) == (200, SCRIPT + b"2")
    assert {header: answer.headers[header] for header in HEADERS} == HEADERS
    assert "set-cookie" not in answer.headers

    (kept / "files" / f"{name}.gz").write_bytes(content)
    other = client_of(first, KeptHistory(tmp_path / "storage"))
    assert other.get(f"/reader/files/{name}").status_code == 404
    assert "does not match the hash in its name" in caplog.text


def test_files_of_recent_builds_are_kept_and_older_ones_deleted(tmp_path: Path) -> None:
    history, served = KeptHistory(tmp_path / "storage"), list[str]()
    names = []
    for number in range(BUILDS_KEPT + 2):
        folder, name = another(tmp_path, number)
        served.append(serve_build(folder, history, served).build)
        names.append(name)
    kept = {path.name.removesuffix(".gz") for path in (tmp_path / "storage" / "reader-builds" / "files").iterdir()}
    assert kept == {WORKER, ICON, *names[2:]}
    assert history.files.find(names[1]) is None
    found = history.files.find(names[2])
    assert found is not None
    assert gzip.decompress(found.path.read_bytes()) == SCRIPT + b"2"


def test_unreadable_build_format_hides_no_other_build(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (first := tmp_path / "first").mkdir()
    history = KeptHistory(tmp_path / "storage")
    serve_build(built(first), history, [])
    (tmp_path / "storage" / "reader-builds" / "builds" / f"{'f' * 64}.json").write_text('{"build": 7}')
    assert history.files.find(APP) is not None
    assert "of a form that this version can't read" in caplog.text


def test_page_served_for_another_origin_names_it_and_its_content_policy_allows_it(tmp_path: Path) -> None:
    folder = built(tmp_path)
    reported = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    reported["headers"] |= {"content-security-policy": "default-src 'none'; connect-src 'self'; img-src 'self'"}
    (folder / "manifest.json").write_text(json.dumps(reported), encoding="utf-8")
    app = FastAPI()
    app.routes.extend(router(folder, api="https://news.example.org").routes)
    client = TestClient(app)
    page = client.get("/reader/")
    assert '<meta name="api" content="https://news.example.org">' in page.text
    for answer in (page, client.get(f"/reader/files/{APP}"), client.get("/reader/build.json")):
        policy = answer.headers["content-security-policy"]
        assert policy == "default-src 'none'; connect-src 'self' https://news.example.org; img-src 'self'"
