"""A neighbour: another user of the reader's machine, who may try to open any file and connect to any port.

When run as root the tests also become another user; otherwise they check modes and answers, and report what was
skipped.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from html import unescape
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute
from starlette.testclient import TestClient

from backend.composition import load_or_create_token
from backend.operations.admin_client import Operator, OperatorRefused, address_of
from backend.server.address import ServerAddress
from backend.settings import load_settings
from device_app.app import create_app
from device_app.composition import build_device
from device_app.device import Device
from device_app.pages.local_origin import KEY_NAME, PageKey
from device_app.pages.story_links import StoryLinks
from device_app.settings import DeviceSettings
from protocol.private_files import tighten
from tests.doubles.backend import FakeBackend
from tests.doubles.long_form import by_length
from tests.doubles.small_world import free_port

NOBODY = 65_534
PORT = 8401
HOME = f"http://127.0.0.1:{PORT}"
SAME_ORIGIN = {"origin": HOME, "sec-fetch-site": "same-origin", "sec-fetch-mode": "navigate"}
SPY = 'for one; do if ls "$one/" >/dev/null 2>&1 || head -c 1 "$one" >/dev/null 2>&1; then echo "$one"; fi; done'
"""Prints what of its arguments this user can list or read."""


USUAL = pytest.param(0o022, id="umask 022", marks=pytest.mark.long_form)


@pytest.fixture(params=[*by_length([], long=[USUAL]), pytest.param(0o000, id="umask 000")])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    """The umask that protects nothing, and in the long form the usual one, too."""
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.fixture
def device(tmp_path: Path, umask: None) -> Iterator[Device]:
    """A device that has read, searched and reported, with every file that a device has."""
    backend = FakeBackend()
    made = build_device(DeviceSettings(profile="anna", data_dir=tmp_path / "data"), transport=backend.transport())
    made.sync()
    made.reading.open(made.reading.feed().items[0].card.id)
    made.library.save_search("axolotl")
    while made.prefetch_step():
        pass
    PageKey.of_profile(made.settings.home, PORT)
    yield made
    made.close()


def open_to_others(folder: Path) -> list[str]:
    """Return everything in a folder, itself included, that another user may read, write or enter."""
    return [str(path) for path in (folder, *folder.rglob("*")) if stat.S_IMODE(path.lstat().st_mode) & 0o077]


def test_profile_files_are_private_under_any_umask(device: Device) -> None:
    home = device.settings.home
    names = {path.name for path in home.rglob("*")}
    assert {"device.sqlite", "device.sqlite-wal", "device.sqlite-shm", "searches.sqlite", KEY_NAME} <= names
    assert len(list((home / "blobs").iterdir())) > 2
    assert open_to_others(home) == []


def test_profile_permissions_open_to_others_are_tightened(device: Device) -> None:
    home = device.settings.home
    for path in (home, *home.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert tighten(home) == len([home, *home.rglob("*")])
    assert open_to_others(home) == []
    assert tighten(home) == 0
    device.reading.open(device.reading.feed().items[1].card.id)
    assert open_to_others(home) == [], "new files of SQLite take the database's mode"


def test_backend_folder_permissions_are_tightened_but_links_are_not_followed(tmp_path: Path) -> None:
    os.umask(0o022)  # a command run before in this process has set its own
    outside = tmp_path / "outside"
    outside.write_text("another's")
    outside.chmod(0o644)
    data = tmp_path / "backend"
    load_or_create_token(data / "admin.token")
    (data / "sums").mkdir(mode=0o755)
    (data / "sums" / "round-1.sum").write_bytes(b"sum")
    (data / "sums" / "round-1.sum").chmod(0o644)
    (data / "link").symlink_to(outside)
    data.chmod(0o755)
    assert tighten(data) == 3
    assert [path for path in open_to_others(data) if not Path(path).is_symlink()] == []
    assert stat.S_IMODE(outside.stat().st_mode) == 0o644


def test_linked_data_folder_is_tightened_at_its_target(tmp_path: Path) -> None:
    """Regression: the files in it were tightened, but the folder stayed writable for all, to put another key or token
    there."""
    disk, data = tmp_path / "disk", tmp_path / "data"
    disk.mkdir()
    (disk / "signing.key").write_bytes(b"key")
    disk.chmod(0o777)
    (disk / "signing.key").chmod(0o644)
    data.symlink_to(disk)
    assert tighten(data) == 2
    assert open_to_others(disk) == []


def test_foreign_folders_keep_their_permissions(tmp_path: Path) -> None:
    """Regression: `data_dir = "/etc/passwd"` closed that file to all others, and "/var" would have closed all of it."""
    var, file = tmp_path / "var", tmp_path / "passwd"
    (var / "cache").mkdir(parents=True)
    file.write_text("")
    for each in (var, var / "cache", file):
        each.chmod(0o755)
    with pytest.raises(FileExistsError, match=f"{var} contains cache but no data of Ownfeed"):
        tighten(var)
    with pytest.raises(NotADirectoryError, match=f"{file} is not a folder"):
        tighten(file)
    assert {stat.S_IMODE(each.stat().st_mode) for each in (var, var / "cache", file)} == {0o755}
    disk = tmp_path / "disk"
    (disk / "lost+found").mkdir(parents=True, mode=0o700)
    disk.chmod(0o755)
    assert tighten(disk) == 1, "a disk of its own that nothing has been written to"


@pytest.mark.skipif(
    os.name != "posix" or os.geteuid() != 0, reason="only root can become another user: files not tried"
)
def test_other_users_cannot_open_any_profile_file(device: Device, tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents):
        if str(folder) != "/" and not folder.stat().st_mode & 0o001:
            folder.chmod(
                folder.stat().st_mode | 0o011
            )  # the way there is open: only the profile's own modes protect it
    home = device.settings.home
    home.parent.parent.chmod(0o755)
    names = [str(path) for path in (home, *home.rglob("*"))]
    control = tmp_path / "control"
    control.write_text("anybody's")
    control.chmod(0o644)
    spy = subprocess.run(
        ["/bin/sh", "-c", SPY, "sh", *names, str(control)],
        cwd="/",
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(names) > 8
    assert spy.stdout.splitlines() == [str(control)], "the spy works, and reads nothing of the profile"


@pytest.fixture
def pages(device: Device) -> FastAPI:
    return create_app(device=device)


def every_route(routes: Sequence[BaseRoute]) -> Iterator[APIRoute]:
    for route in routes:
        if isinstance(route, APIRoute):
            yield route
        else:
            yield from every_route(route.original_router.routes)  # type: ignore[attr-defined]


def addresses(pages: FastAPI, device: Device) -> Iterator[tuple[str, str]]:
    """Yield every method and path of the device's app, with real values for its parameters."""
    story = device.reading.feed().items[0].card.id
    real = {"news_id": story, "section": "section1", "entry_id": "1", "oldest_id": "1", "newest_id": "1", "key": "1",
            "search_id": "1", "click_id": "1", "version": "1", "name": "x", "path": "nowhere",
            "topic": "x", "publisher": "x", "rule_id": "1",
            "feed_id": device.reading.feed().feed_id}  # fmt: skip
    for route in every_route(pages.routes):
        for method in sorted(route.methods or ()):
            yield method, route.path.replace(":any", "").format(**real)


def test_every_route_without_the_key_answers_403_and_does_nothing(pages: FastAPI, device: Device) -> None:
    neighbour = TestClient(pages, base_url=HOME, follow_redirects=False)
    tries = list(addresses(pages, device))
    before = device.privacy.export()["tables"]
    answers = set()
    tried = 0
    for method, path in tries:
        if path.startswith("/static/"):
            continue
        answer = neighbour.request(
            method, path, headers=SAME_ORIGIN, data={"confirm": "erase"} if method == "POST" else {}
        )
        assert answer.status_code == 403, f"{method} {path}"
        answers.add(answer.text)
        tried += 1
    assert neighbour.get("/no/such/page", headers=SAME_ORIGIN).text in answers
    assert tried > 25
    (page,) = answers
    assert "the link that Ownfeed prints when it starts" in page
    assert "anna" not in page
    after = device.privacy.export()["tables"]
    for table in ("click", "impression", "reaction", "preference", "charge"):
        assert after[table] == before[table], table


@pytest.mark.parametrize(
    "tried",
    [
        "/enter",
        "/enter?key=",
        "/enter?key=%00",
        "/enter?key=" + "A" * 43,
        "/enter?key=a&key=b",
        "/enter?KEY=x",
        "/enter/?key=x",
        "//enter?key=x",
    ],
)
def test_link_with_a_guessed_key_is_refused_and_sets_no_cookie(pages: FastAPI, tried: str) -> None:
    answer = TestClient(pages, base_url=HOME, follow_redirects=False).get(tried)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_link_sets_a_cookie_and_redirects_to_an_address_without_the_key(pages: FastAPI) -> None:
    key: PageKey = pages.state.page_key
    reader = TestClient(pages, base_url=HOME, follow_redirects=False)
    answer = reader.get(key.link("127.0.0.1"))
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"ownfeed_{PORT}=")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    secret = key.link("127.0.0.1").partition("key=")[2]
    assert secret not in cookie
    assert reader.get("/privacy").status_code == 200
    assert reader.get("/privacy/export").status_code == 200
    other_port = {"cookie": cookie.partition(";")[0].replace(f"ownfeed_{PORT}", "ownfeed_8402")}
    assert TestClient(pages, base_url=HOME).get("/privacy", headers=other_port).status_code == 403
    assert reader.get(key.link("127.0.0.1"), headers={"sec-fetch-site": "cross-site"}).status_code == 403


def test_page_key_survives_restarts_and_has_256_bits(tmp_path: Path) -> None:
    first, again = PageKey.of_profile(tmp_path, PORT), PageKey.of_profile(tmp_path, PORT)
    assert first.link("localhost") == again.link("localhost")
    kept = (tmp_path / KEY_NAME).read_text()
    assert len(kept) == 43
    assert PageKey.of_profile(tmp_path / "other", PORT).link("localhost") != first.link("localhost")


SERVES = """
import sys
from fastapi import FastAPI
from backend.server.http_server import serve_until_stopped
from backend.settings import load_settings
serve_until_stopped(FastAPI(), load_settings(data_dir=sys.argv[1], port=0))
"""


class Thief(BaseHTTPRequestHandler):
    """Listens where another server did, and records what it is sent."""

    taken: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.taken.append(self.headers["Authorization"])
        self.send_error(404)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


def test_operators_token_is_not_sent_to_a_process_on_a_reused_port(tmp_path: Path) -> None:
    """Regression: another backend on the folder vouched for the killed one's address, by a lock that they shared."""
    token = load_or_create_token(tmp_path / "admin.token")
    settings = load_settings(data_dir=tmp_path, port=free_port())
    other, known = ServerAddress(settings.servers_dir), f"http://127.0.0.1:{free_port()}"
    other.say(known)
    with subprocess.Popen([sys.executable, "-c", SERVES, str(tmp_path)]) as backend:
        until = time.monotonic() + 60
        while (killed := address_of(settings)) == known:
            assert time.monotonic() < until, "the backend doesn't listen"
            time.sleep(0.02)
        backend.kill()
    assert any(killed in file.read_text() for file in settings.servers_dir.iterdir()), "the kill leaves the file"
    Thief.taken.clear()
    with HTTPServer(("127.0.0.1", int(killed.rpartition(":")[2])), Thief) as thief:
        listening = threading.Thread(target=thief.serve_forever, args=[0.02])
        listening.start()
        try:
            with pytest.raises(OperatorRefused, match=f"{known} does not answer"):
                Operator(address_of(settings), settings.admin_token_file).rounds()
            assert Thief.taken == []
            with pytest.raises(OperatorRefused, match="404"):
                Operator(killed, settings.admin_token_file).rounds()
            assert Thief.taken == [f"Bearer {token}"], "the thief works: only the address kept the token from it"
        finally:
            thief.shutdown()
            listening.join()
    other.forget()
    assert address_of(settings) == f"http://127.0.0.1:{settings.port}", "that of the settings"


def test_cookie_leaked_to_another_port_works_until_the_page_key_is_removed(pages: FastAPI, device: Device) -> None:
    """A known limit: browsers send a host's cookies to all its ports."""
    jar = httpx.Cookies()
    link = pages.state.page_key.link("127.0.0.1")
    answer = TestClient(pages, base_url=HOME, follow_redirects=False).get(link)
    given = httpx.Response(303, headers=dict(answer.headers), request=httpx.Request("GET", link))
    jar.extract_cookies(given)
    elsewhere = httpx.Request("GET", "http://127.0.0.1:9999/")
    jar.set_cookie_header(elsewhere)
    leaked = elsewhere.headers["cookie"]
    assert leaked.startswith(f"ownfeed_{PORT}="), "a browser of the standard sends it along"
    neighbour = TestClient(pages, base_url=HOME, headers={"cookie": leaked})
    assert neighbour.get("/privacy").status_code == 200
    assert neighbour.get("/privacy/export").status_code == 200, "all of it"
    secret = link.partition("key=")[2]
    assert secret not in leaked, "the link can't be had from it"
    (device.settings.home / KEY_NAME).unlink()
    again = create_app(device=device)
    assert TestClient(again, base_url=HOME, headers={"cookie": leaked}).get("/privacy").status_code == 403


def test_story_request_without_proof_from_the_browser_records_no_click(pages: FastAPI, device: Device) -> None:
    reader = TestClient(pages, base_url=HOME)
    reader.get(pages.state.page_key.link("127.0.0.1"))
    story = device.reading.feed().items[2].card
    clicks, path = device.status().clicks, f"/story/{story.id}"
    for headers in (
        {},
        {"sec-fetch-site": "none", "sec-fetch-mode": "navigate"},
        {"sec-fetch-site": "same-origin", "sec-fetch-mode": "no-cors"},
    ):
        assert reader.get(path, headers=headers).status_code == 200
    assert reader.get(path, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert reader.get(path, headers=SAME_ORIGIN | {"sec-purpose": "prefetch"}).status_code == 403
    assert reader.head(path, headers=SAME_ORIGIN).status_code == 405
    assert device.status().clicks == clicks


def test_story_address_without_a_valid_token_records_no_click_even_from_our_own_page(
    pages: FastAPI, device: Device
) -> None:
    """To a browser, a link on a story's page has the same origin whoever wrote it, even a publisher."""
    reader = TestClient(pages, base_url=HOME, headers=SAME_ORIGIN, follow_redirects=False)
    reader.get(pages.state.page_key.link("127.0.0.1"), headers={"sec-fetch-site": "none"})
    first, second = (item.card.id for item in device.reading.feed().items[2:4])
    links, clicks = StoryLinks(pages.state.page_key), device.status().clicks
    token = links.link(first).partition("token=")[2]
    elsewhere = StoryLinks(PageKey("the key of another reader, thirty-two bytes", PORT))
    for forged in (
        f"/story/{second}",
        f"/story/{second}?feed=feed-1",
        f"/story/{second}?token=",
        f"/story/{second}?token={token}",
        f"/story/{first}?found=words&token={token}",
        f"/story/{first}?found=&token={token}",
        f"/story/{first}?feed=feed-1&token={token}",
        f"/story/{first}?token={token}&token={token[:-1]}",
        elsewhere.link(second),
    ):
        answer = reader.get(forged)
        shown = reader.get(answer.headers["location"]) if answer.status_code == 303 else answer
        assert shown.status_code == 200, "the story is shown all the same"
    assert device.status().clicks == clicks
    for headers in ({"sec-fetch-site": "none"}, {"sec-fetch-mode": "no-cors"}):  # a bookmark, a script
        assert reader.get(links.link(first), headers=headers).status_code in (200, 303)
    for headers in ({"sec-fetch-site": "same-site"}, {"sec-fetch-site": "cross-site"}):  # by another port or site
        assert reader.get(links.link(first), headers=headers).status_code == 403
    assert device.status().clicks == clicks


def test_click_is_recorded_before_redirecting_to_a_clickless_address(pages: FastAPI, device: Device) -> None:
    """So a reload or Back doesn't bring back a click that the reader has deleted."""
    reader = TestClient(pages, base_url=HOME, headers=SAME_ORIGIN, follow_redirects=False)
    reader.get(pages.state.page_key.link("127.0.0.1"), headers={"sec-fetch-site": "none"})
    feed = device.reading.feed()
    story, clicks = feed.items[2].card, device.status().clicks
    text = reader.get("/").text
    linked = [unescape(link) for link in re.findall(r'href="(/story/[^"]+)"', text) if f"/{quote(story.id)}?" in link]
    assert linked
    assert len(set(linked)) == 1
    shown = reader.get(linked[0])
    assert (shown.status_code, shown.headers["location"]) == (303, f"/story/{quote(story.id)}?feed={feed.feed_id}")
    assert device.status().clicks == clicks + 1
    (click,) = [click for click in device.library.history().entries if click.news_id == story.id]
    device.library.delete_click(click.click_id)
    for _ in range(2):
        assert reader.get(shown.headers["location"]).status_code == 200
    assert device.status().clicks == clicks
