"""Somebody on the home network tries to read a device that is served there (`ownfeed read --lan`).

Oracle: the contents of the answers. The device holds stories whose titles would be visible.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from starlette.testclient import TestClient

from device_app.app import create_app
from device_app.composition import build_device
from device_app.pages.lan import COOKIE, PASSWORD_FILE, SESSION_SEC, LanAccess, LanRequests
from device_app.pages.passwords import GUESSES, PasswordFile, PasswordLimiter
from device_app.settings import DeviceSettings
from tests.doubles.backend import FakeBackend
from tests.doubles.pages_reader import FOLLOWS_A_LINK, HOME, enter

ADDRESS = "192.168.1.5:8443"
LAN = f"https://{ADDRESS}"
PASSWORD = "a long password"
OURS = {"origin": LAN, "sec-fetch-site": "same-origin"}


@dataclass
class Served:
    """A device on both ports: the app, the link that opens it on its own machine, and its paths."""

    app: object
    link: str
    paths: list[str]
    home: Path

    def stranger(self, base: str = LAN, **headers: str) -> TestClient:
        """Somebody on the network, with a browser that has no cookie yet."""
        return TestClient(
            LanRequests(self.app),  # type: ignore[arg-type]
            base_url=base,
            follow_redirects=False,
            headers=FOLLOWS_A_LINK | headers,
            client=("192.168.1.66", 5),
        )

    def signed_in(self) -> TestClient:
        """The reader's phone."""
        phone = self.stranger()
        answer = phone.post("/sign-in", data={"password": PASSWORD}, headers=OURS)
        assert answer.status_code == 303, answer.text
        return phone


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("lan")
    settings = DeviceSettings(data_dir=folder, lan=ADDRESS)
    device = build_device(settings, transport=FakeBackend().transport())
    device.sync()
    device.reading.feed()
    PasswordFile(settings.home / PASSWORD_FILE).set(PASSWORD)
    (settings.home / "lan.crt").write_text("a certificate", encoding="utf-8")
    app = create_app(device=device)
    paths = [path for path in (getattr(route, "path", "") for route in app.routes) if "{" not in path]
    yield Served(app, app.state.page_key.link("127.0.0.1"), [*paths, "/story/newsroom:0001", "/nowhere"], settings.home)
    device.close()


def test_nothing_is_served_without_the_password(served: Served) -> None:
    stranger, reader = served.stranger(), served.signed_in()
    assert "data-story" in reader.get("/explore").text, "there is something to see"
    sign_in = stranger.get("/").text
    assert 'type="password"' in sign_in
    for path in served.paths:
        for method in ("GET", "POST", "HEAD"):
            answer = stranger.request(method, path, headers=OURS)
            assert answer.status_code in (200, 401, 411, 413), (method, path)
            assert answer.text in (sign_in, ""), (method, path)
            assert "set-cookie" not in answer.headers


def test_only_the_password_signs_in_and_it_is_stored_hashed(served: Served) -> None:
    phone = served.signed_in()
    assert phone.get("/explore").status_code == 200
    kept = (served.home / PASSWORD_FILE).read_text(encoding="utf-8")
    assert PASSWORD not in kept
    assert (served.home / PASSWORD_FILE).stat().st_mode & 0o077 == 0
    assert served.stranger().post("/sign-in", data={"password": "another"}, headers=OURS).status_code == 401


def test_session_cookie_is_hidden_from_scripts_and_other_sites(served: Served) -> None:
    answer = served.stranger().post("/sign-in", data={"password": PASSWORD}, headers=OURS)
    flags = answer.headers["set-cookie"].split("; ")
    assert flags[0].startswith(f"{COOKIE}=")
    assert {"Secure", "HttpOnly", "SameSite=Strict", "Path=/"} <= set(flags)
    assert not any(flag.startswith("Domain") for flag in flags)


def test_button_signs_out_a_browser_of_the_home_network_only(served: Served) -> None:
    button = '<form class="after" method="post" action="/sign-out">'
    phone = served.signed_in()
    assert button in phone.get("/you").text
    gone = phone.post("/sign-out", headers=OURS)
    assert (gone.status_code, gone.headers["location"]) == (303, "/sign-in")
    assert gone.headers["clear-site-data"] == '"cache", "storage"', "its offline copy goes, too"
    assert phone.get("/you").status_code == 401
    here = TestClient(served.app, base_url=HOME, follow_redirects=False, headers=FOLLOWS_A_LINK)  # type: ignore[arg-type]
    enter(here, served.app.state.page_key)  # type: ignore[attr-defined]
    assert here.get("/you").status_code == 200
    assert button not in here.get("/you").text


def test_local_link_and_cookie_do_not_work_from_the_network(served: Served) -> None:
    link = urlsplit(served.link)
    stranger = served.stranger()
    answer = stranger.get(f"{link.path}?{link.query}")
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
    here = TestClient(served.app, base_url=HOME, follow_redirects=False, headers=FOLLOWS_A_LINK)  # type: ignore[arg-type]
    enter(here, served.app.state.page_key)  # type: ignore[attr-defined]
    cookie = "; ".join(f"{name}={value}" for name, value in here.cookies.items())
    assert here.get("/explore").status_code == 200
    assert served.stranger(cookie=cookie).get("/explore").status_code == 401
    key = link.query.partition("=")[2]
    assert served.stranger(authorization=f"Bearer {key}").get("/metrics").status_code == 401


def test_network_session_does_not_work_on_the_local_port(served: Served) -> None:
    phone = served.signed_in()
    cookie = f"{COOKIE}={phone.cookies[COOKIE]}"
    here = TestClient(served.app, base_url=HOME, follow_redirects=False, headers=FOLLOWS_A_LINK | {"cookie": cookie})  # type: ignore[arg-type]
    assert here.get("/explore").status_code == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8443", "192.168.1.5", "localhost:8443", HOME[7:]])
def test_foreign_host_name_is_refused_even_with_a_valid_session(served: Served, host: str) -> None:
    phone = served.signed_in()
    assert phone.get("/explore", headers={"host": host}).status_code == 403
    sent = served.stranger(host=host).post("/sign-in", data={"password": PASSWORD}, headers=OURS)
    assert sent.status_code == 403


def test_other_sites_cannot_sign_in_or_change_anything(served: Served) -> None:
    foreign = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}
    assert served.stranger().post("/sign-in", data={"password": PASSWORD}, headers=foreign).status_code == 403
    assert served.signed_in().post("/feed/refresh", headers=foreign).status_code == 403
    assert served.signed_in().get("/explore", headers={"sec-fetch-site": "cross-site"}).status_code == 403


def door(folder: Path, now: list[float]) -> TestClient:
    """A sign-in with a clock of the test's, in front of an app that answers 'in'."""
    password = PasswordFile(folder / PASSWORD_FILE)
    password.set(PASSWORD)
    lan = LanAccess(ADDRESS, password, folder / "lan.crt", PasswordLimiter(lambda: now[0]), lambda: now[0])

    async def app(scope, receive, send):  # type: ignore[no-untyped-def]
        from starlette.responses import PlainTextResponse

        cookies = dict(scope["headers"]).get(b"cookie", b"").decode()
        inside = PlainTextResponse("in")
        await (inside if lan.holds_session(cookies) else lan.answer(scope) or inside)(scope, receive, send)

    return TestClient(app, base_url=LAN, follow_redirects=False)


def test_password_guesses_are_rate_limited_even_for_the_right_one(tmp_path: Path) -> None:
    now = [1_000.0]
    client = door(tmp_path, now)
    for _ in range(GUESSES):
        assert client.post("/sign-in", data={"password": "guess"}).status_code == 401
    late = client.post("/sign-in", data={"password": PASSWORD})
    assert late.status_code == 429
    now[0] += int(late.headers["retry-after"])
    assert client.post("/sign-in", data={"password": PASSWORD}).status_code == 303


def test_session_ends_after_its_lifetime_or_a_password_change(tmp_path: Path) -> None:
    now = [1_000.0]
    client = door(tmp_path, now)
    client.post("/sign-in", data={"password": PASSWORD})
    assert client.get("/").text == "in"
    now[0] += SESSION_SEC
    assert client.get("/").text != "in"
    client.post("/sign-in", data={"password": PASSWORD})
    assert client.get("/").text == "in"
    PasswordFile(tmp_path / PASSWORD_FILE).set("another password")
    assert client.get("/").text != "in"


@pytest.mark.parametrize("forged", ["", ".", "9999999999.", "9999999999.00", "x.y", "-1.0", f"{'9' * 400}.0"])
def test_forged_session_is_refused(tmp_path: Path, forged: str) -> None:
    client = door(tmp_path, [1_000.0])
    assert client.get("/", headers={"cookie": f"{COOKIE}={forged}"}).text != "in"


def test_reader_apps_need_their_own_password(served: Served) -> None:
    stranger = served.stranger()
    assert stranger.get("/reader/api/0/subscription/list").status_code in (401, 403, 404)
    assert stranger.get("/reader/api/0/token", headers={"host": "evil.example"}).status_code == 403


def test_device_without_the_setting_has_no_network_sign_in(tmp_path: Path) -> None:
    device = build_device(DeviceSettings(data_dir=tmp_path), transport=FakeBackend().transport())
    app = create_app(device=device)
    client = TestClient(LanRequests(app), base_url=LAN)
    assert client.get("/").status_code == 403
    device.close()
