"""What the internet sees of a backend, and what `ownfeed serve --public` requires before it starts."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from fastapi.testclient import TestClient

import ownfeed
from backend.errors import BackendSettingsRefused
from backend.server.http_server import check_port, ports
from backend.server.public_port import PublicPort, require_public
from backend.settings import BackendSettings

ORIGIN, CONSOLE_PORT = "https://news.example.org", 8500
OPERATORS = ("/console", "/console/rounds", "/v1/admin/rounds", "/metrics")
READERS = ("/reader/", "/v1/recall", "/v1/releases/current", "/consoles", "/metricsx")


def client(at: str, **face: Any) -> TestClient:
    app = FastAPI()
    app.add_middleware(PublicPort, **({"origin": None, "console_port": None} | face))

    @app.get("/{path:path}")
    def answer(path: str) -> PlainTextResponse:
        return PlainTextResponse("here")

    return TestClient(app, base_url=at)


@pytest.mark.parametrize("path", [*OPERATORS, *READERS])
def test_without_settings_one_port_serves_everything(path: str) -> None:
    assert client("http://127.0.0.1:8400").get(path).text == "here"


@pytest.mark.parametrize(
    ("path", "operators"), [*((one, True) for one in OPERATORS), *((one, False) for one in READERS)]
)
def test_console_with_its_own_port_is_served_only_there(path: str, operators: bool) -> None:
    public, console = (
        client(f"http://127.0.0.1:{port}", console_port=CONSOLE_PORT).get(path) for port in (8400, CONSOLE_PORT)
    )
    assert (public.status_code, console.status_code) == ((404, 200) if operators else (200, 404))


def test_health_is_answered_on_both_ports() -> None:
    for port in (8400, CONSOLE_PORT):
        assert client(f"http://127.0.0.1:{port}", console_port=CONSOLE_PORT).get("/v1/health").status_code == 200


@pytest.mark.parametrize("host", ["rebound.example", "127.0.0.1:8400", "news.example.org.evil.example", ""])
def test_unknown_host_is_answered_like_a_wrong_address(host: str) -> None:
    answer = client(ORIGIN, origin=ORIGIN).get("/v1/releases/current", headers={"host": host})
    assert answer.status_code == 404
    assert "news.example.org" not in answer.text


def test_public_host_is_answered_with_strict_transport_security() -> None:
    answer = client(ORIGIN, origin=ORIGIN).get("/v1/releases/current", headers={"host": "News.Example.org"})
    assert (answer.text, answer.headers["strict-transport-security"]) == ("here", "max-age=31536000")


def test_console_port_on_the_own_machine_needs_no_public_name() -> None:
    answer = client(f"http://127.0.0.1:{CONSOLE_PORT}", origin=ORIGIN, console_port=CONSOLE_PORT).get("/console")
    assert (answer.text, answer.headers.get("strict-transport-security")) == ("here", None)


READER_ORIGIN = "https://reader.example.org"


@pytest.mark.parametrize(
    ("host", "path", "status"),
    [
        ("reader.example.org", "/reader/", 200),
        ("reader.example.org", "/reader/files/app.js", 200),
        ("reader.example.org", "/v1/releases/current", 404),
        ("reader.example.org", "/console", 404),
        ("reader.example.org", "/", 404),
        ("news.example.org", "/v1/releases/current", 200),
        ("news.example.org", "/reader/files/app.js", 404),
        ("news.example.org", "/reader/build.json", 404),
        ("evil.example", "/reader/", 404),
    ],
)
def test_reader_origin_serves_only_the_browser_device(host: str, path: str, status: int) -> None:
    face = client(ORIGIN, origin=ORIGIN, reader_origin=READER_ORIGIN)
    assert face.get(path, headers={"host": host}).status_code == status


def test_browser_device_at_the_public_origin_redirects_to_the_reader_origin() -> None:
    face = client(ORIGIN, origin=ORIGIN, reader_origin=READER_ORIGIN)
    answer = face.get("/reader/", headers={"host": "news.example.org"}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (308, f"{READER_ORIGIN}/reader/")


def test_only_the_reader_origin_may_read_answers_and_without_cookies() -> None:
    face = client(ORIGIN, origin=ORIGIN, reader_origin=READER_ORIGIN)
    for origin in (READER_ORIGIN, "https://evil.example"):
        answer = face.get("/v1/recall", headers={"host": "news.example.org", "origin": origin})
        assert answer.headers["access-control-allow-origin"] == READER_ORIGIN
        assert "access-control-allow-credentials" not in answer.headers
    preflight = face.options("/v1/recall", headers={"host": "news.example.org", "origin": READER_ORIGIN})
    assert preflight.status_code == 204
    assert {"content-type", "if-none-match"} <= set(preflight.headers["access-control-allow-headers"].split(", "))
    answers = [face.get("/v1/admin/rounds", headers={"host": "news.example.org"})]
    answers += [client(ORIGIN, origin=ORIGIN).get("/v1/recall", headers={"host": "news.example.org"})]
    for answer in answers:
        assert "access-control-allow-origin" not in answer.headers


def fit(folder: Path, **changes: Any) -> BackendSettings:
    """Return settings that a public start accepts, except for the changes."""
    token = folder / "admin.token"
    token.write_text("0123456789abcdef" * 4, encoding="utf-8")
    token.chmod(0o600)
    chosen: dict[str, Any] = {
        "public_origin": ORIGIN,
        "trusted_proxies": ("127.0.0.1/32",),
        "console_port": CONSOLE_PORT,
    }
    return BackendSettings(data_dir=folder, **(chosen | changes))


def test_suitable_public_settings_are_accepted(tmp_path: Path) -> None:
    require_public(fit(tmp_path))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"public_origin": None}, "public_origin"),
        ({"trusted_proxies": ()}, "trusted_proxies"),
        ({"trusted_proxies": ("10.0.0.0/8", "0.0.0.0/0")}, "in 0.0.0.0/0 would choose"),
        ({"trusted_proxies": ("::/0", "fd00::/8")}, "in ::/0 would choose"),
        ({"console_port": None}, "console_port"),
        ({"unbounded_addresses": ("127.0.0.0/8",)}, "unbounded_addresses"),
        ({"requests_per_minute": 0}, "requests_per_minute"),
        ({"places_per_address": 0}, "places_per_address"),
        ({"host": "8.8.8.8"}, "8.8.8.8"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_missing_public_setting_is_named_in_the_error(tmp_path: Path, changes: dict[str, Any], named: str) -> None:
    with pytest.raises(BackendSettingsRefused, match=named) as refused:
        require_public(fit(tmp_path, **changes))
    assert "1 things" in refused.value.detail


@pytest.mark.parametrize("fault", ["none", "short", "readable", "link", "folder"])
def test_token_readable_by_others_is_refused(tmp_path: Path, fault: str) -> None:
    settings = fit(tmp_path)
    token = settings.admin_token_file
    if fault == "none":
        token.unlink()
    elif fault == "short":
        token.write_text("short", encoding="utf-8")
    elif fault == "readable":
        token.chmod(0o640)
    elif fault == "link":
        token.rename(tmp_path / "elsewhere")
        token.symlink_to(tmp_path / "elsewhere")
    else:
        token.unlink()
        token.mkdir()
    with pytest.raises(BackendSettingsRefused, match="token"):
        require_public(settings)


def test_mounted_storage_readable_by_others_is_refused(tmp_path: Path) -> None:
    mounted = tmp_path / "mounted"
    mounted.mkdir(mode=0o700)
    settings = fit(tmp_path, storage=f"file://{mounted}")
    require_public(settings)
    mounted.chmod(0o755)
    with pytest.raises(BackendSettingsRefused, match=f"Permissions of the storage: others may look into {mounted}"):
        require_public(settings)


def test_data_folder_readable_by_others_is_refused(tmp_path: Path) -> None:
    settings = fit(tmp_path)
    for others in (0o750, 0o701, 0o777):
        tmp_path.chmod(others)
        with pytest.raises(BackendSettingsRefused, match="data folder"):
            require_public(settings)
    tmp_path.chmod(0o700)
    require_public(settings)


def test_token_in_a_folder_writable_by_others_is_refused(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    settings = fit(tmp_path, admin_token_file=elsewhere / "token")
    settings.data_dir.joinpath("admin.token").rename(elsewhere / "token")
    elsewhere.chmod(0o777)
    with pytest.raises(BackendSettingsRefused, match="token's folder"):
        require_public(settings)
    elsewhere.chmod(0o755)
    require_public(settings)


def test_command_refuses_everything_missing_before_creating_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BackendSettingsRefused) as refused:
        ownfeed.serve(data_dir=tmp_path / "data", host=None, port=None, public=True)
    for each in ("admin.token", "public_origin", "trusted_proxies", "console_port"):
        assert each in refused.value.detail
    assert list(tmp_path.iterdir()) == []


def test_console_always_listens_on_loopback() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    public, console = ports(BackendSettings(host="0.0.0.0", port=0, console_port=port))
    with public, console:
        assert public.getsockname()[0] == "0.0.0.0"
        assert console.getsockname() == ("127.0.0.1", port)
        console.listen()
        with pytest.raises(OSError, match="can't be opened for listening"):
            check_port("127.0.0.1", port)
