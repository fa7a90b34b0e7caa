"""The calls that NetNewsWire (ReaderAPIAccount) and Read You (GoogleReaderRssService) make, replayed against a device.

Written from the apps' public source. Oracles: what the device then holds as read, saved and clicked, and what the
server follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.testclient import TestClient

from device_app.pages.greader import ITEM, OPENED_AT_ONCE, number_of, numbers_of
from device_app.pages.passwords import GUESSES, PasswordLimiter
from tests.doubles.own_world import COURANT, POST, World, own_world
from tests.doubles.pages_reader import HOME

READING_LIST = "user/-/state/com.google/reading-list"
READ, STARRED = "user/-/state/com.google/read", "user/-/state/com.google/starred"


class App:
    """A reader app: no cookies, no Origin, the token in a header."""

    def __init__(self, world: World, base: str) -> None:
        self.client = TestClient(world.pages.app, base_url=HOME, follow_redirects=False)
        self.base, self.headers, self.token = base, dict[str, str](), ""

    def sign_in(self, password: str) -> httpx.Response:
        """Exchange the password for a token, as both apps do first."""
        answer = self.client.post(f"{self.base}/accounts/ClientLogin", data={"Email": "reader", "Passwd": password})
        if answer.status_code == 200:
            auth = dict(line.split("=", 1) for line in answer.text.splitlines())["Auth"]
            self.headers = {"authorization": f"GoogleLogin auth={auth}"}
            self.token = self.get("token").text
        return answer  # type: ignore[return-value]

    def get(self, what: str, **query: str) -> httpx.Response:
        """Send a GET to the API."""
        return self.client.get(f"{self.base}/reader/api/0/{what}", params=query, headers=self.headers)  # type: ignore[return-value]

    def post(self, what: str, **form: str | list[str]) -> httpx.Response:
        """Post a form to the API."""
        sent = {"T": self.token, **form}
        return self.client.post(f"{self.base}/reader/api/0/{what}", data=sent, headers=self.headers)  # type: ignore[return-value]

    def ids(self, **query: str) -> list[str]:
        """Return all numbers of a stream, page by page."""
        found: list[str] = []
        more: dict[str, str] = {}
        while True:
            reported = self.get("stream/items/ids", output="json", **query, **more).json()
            found += [one["id"] for one in reported["itemRefs"]]
            if "continuation" not in reported:
                return found
            more = {"c": reported["continuation"]}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with own_world(tmp_path) as one:
        one.device.sync()
        one.post("/feeds/manage/follow", url=COURANT, folder="News")
        one.post("/feeds/manage/follow", url=POST)
        one.read_feeds()
        yield one


def app_password(world: World) -> str:
    """Press the button on the page of apps and return the password it shows."""
    page = world.pages.post("/apps/password", headers={"origin": HOME, "sec-fetch-site": "same-origin"})
    found = re.search(r'<code class="secret">([^<]+)</code>', page.text)
    assert found is not None
    return found[1]


@pytest.fixture(params=["", "/api/greader.php"], ids=["as Miniflux", "as FreshRSS"])
def app(world: World, request: pytest.FixtureRequest) -> App:
    app = App(world, request.param)
    assert app.sign_in(app_password(world)).status_code == 200
    return app


def test_reader_apps_need_a_password_and_stop_when_switched_off(world: World) -> None:
    app = App(world, "")
    assert app.sign_in("anything").status_code == 403
    assert app.get("subscription/list").status_code == 401
    password = app_password(world)
    assert password not in world.pages.get("/apps").text, "shown once"
    kept = (world.device.settings.home / "apps.password").read_text(encoding="utf-8")
    assert password not in kept
    assert app.sign_in(password).status_code == 200
    assert app.get("subscription/list").status_code == 200
    assert app_password(world) != password
    assert app.get("subscription/list").status_code == 401, "a new password signs out"
    world.pages.post("/apps/off", headers={"origin": HOME, "sec-fetch-site": "same-origin"})
    assert app.sign_in(password).status_code == 403


def test_wrong_passwords_are_rate_limited(world: World) -> None:
    password, app = app_password(world), App(world, "")
    answers = [app.sign_in("wrong").status_code for _ in range(GUESSES + 1)]
    assert answers == [401] * GUESSES + [429]
    late = app.sign_in(password)
    assert late.status_code == 429
    assert int(late.headers["retry-after"]) > 0


def test_password_guesses_are_limited_by_address_and_in_total_until_they_expire() -> None:
    now = [0.0]
    guesses = PasswordLimiter(lambda: now[0])
    for _ in range(GUESSES):
        assert guesses.wait_sec("a") == 0
        guesses.wrong("a")
    assert guesses.wait_sec("a") == 300
    assert guesses.wait_sec("b") == 0
    now[0] = 300.0
    assert guesses.wait_sec("a") == 0
    for number in range(60):
        guesses.wrong(f"address {number}")
    assert guesses.wait_sec("another") > 0


def test_requests_from_another_site_or_host_are_refused(world: World, app: App) -> None:
    for headers in (
        {"origin": "https://evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"host": "evil.example:8401"},
    ):
        answer = app.client.get("/reader/api/0/subscription/list", headers=app.headers | headers)
        assert answer.status_code == 403, headers


def test_netnewswire_syncs(world: World, app: App) -> None:
    tags = app.get("tag/list", output="json").json()["tags"]
    assert {"id": "user/-/label/News", "type": "folder"} in tags
    feeds = app.get("subscription/list", output="json").json()["subscriptions"]
    courant = next(one for one in feeds if one["url"] == COURANT)
    assert courant["title"] == "Courant"
    assert [one["id"] for one in courant["categories"]] == ["user/-/label/News"]

    everything = app.ids(s=READING_LIST, n="2", ot="1")
    unread = app.ids(s=READING_LIST, n="10000", xt=READ)
    assert len(everything) == len(set(everything)) == 6
    assert set(unread) == set(everything)
    assert app.ids(s=STARRED, n="10000") == []

    named = [f"{ITEM}{int(number):016x}" for number in everything]
    items = app.post("stream/items/contents", output="json", i=named).json()["items"]
    assert [one["id"] for one in items] == named
    first = next(one for one in items if one["title"] == "Courant story 2")
    assert "The whole text of story 2." in first["summary"]["content"]
    assert first["origin"]["streamId"] == courant["id"]
    assert first["canonical"] == [{"href": "https://courant.example/2"}]

    assert app.post("edit-tag", i=first["id"], a=READ).text == "OK"
    assert app.post("edit-tag", i=first["id"], a=STARRED).text == "OK"
    assert app.ids(s=STARRED, n="10000") == [str(int(first["id"].removeprefix(ITEM), 16))]
    assert len(app.ids(s=READING_LIST, n="10000", xt=READ)) == 5
    saved = [card.title for card in world.device.library.saved()]
    assert saved == ["Courant story 2"]
    assert world.device.parts.stores.clicks.count() == 1, "opened there is learnt here"
    app.post("edit-tag", i=first["id"], r=STARRED)
    app.post("edit-tag", i=first["id"], r=READ)
    assert world.device.library.saved() == []
    assert len(app.ids(s=READING_LIST, n="10000", xt=READ)) == 6


def test_netnewswire_manages_feeds(world: World, app: App) -> None:
    followed = world.services.feeds.followed
    app.post("subscription/edit", ac="edit", s=f"feed/{COURANT}", t="My paper")
    app.post("subscription/edit", ac="edit", s=f"feed/{COURANT}", a="user/-/label/Papers", r="user/-/label/News")
    changed = followed.one(COURANT)
    assert (changed.title, changed.folder) == ("My paper", ("Papers",))
    app.post("rename-tag", s="user/-/label/Papers", dest="user/-/label/Daily")
    assert followed.one(COURANT).folder == ("Daily",)
    app.post("disable-tag", s="user/-/label/Daily")
    assert followed.one(COURANT).folder == ()
    app.post("subscription/edit", ac="unsubscribe", s=f"feed/{COURANT}")
    assert followed.find(COURANT) is None
    assert app.post("subscription/edit", ac="subscribe", s=f"feed/{COURANT}").text == "OK"
    assert followed.one(COURANT).title == "My paper", "it comes back as it was"
    refused = app.post("subscription/quickadd", quickadd="ftp://nowhere.example/").json()
    assert refused["numResults"] == 0


def test_read_you_syncs(world: World, app: App) -> None:
    assert app.get("user-info").json()["userId"]
    unread = app.ids(s=READING_LIST, xt=READ, n="10000")
    hexadecimal = [f"{int(number):016x}" for number in unread]
    items = app.post("stream/items/contents", output="json", i=hexadecimal).json()["items"]
    assert [one["id"].removeprefix(ITEM) for one in items] == hexadecimal
    app.post("edit-tag", i=hexadecimal[:2], a=READ)
    assert sorted(app.ids(s=READ, n="10000", ot="1")) == sorted(unread[:2])
    counts = {one["id"]: one["count"] for one in app.get("unread-count", output="json").json()["unreadcounts"]}
    assert counts[READING_LIST] == 4

    page = app.get(f"stream/contents/feed/{POST}", n="2", output="json").json()
    assert [one["title"] for one in page["items"]] == ["Post story 2", "Post story 1"]
    rest = app.get(f"stream/contents/feed/{POST}", n="2", output="json", c=page["continuation"]).json()
    assert [one["title"] for one in rest["items"]] == ["Post story 0"]
    oldest = app.get("stream/contents/user/-/label/News", r="o", n="1", output="json").json()
    assert [one["title"] for one in oldest["items"]] == ["Courant story 0"]


def test_marking_many_stories_read_records_no_clicks(world: World, app: App) -> None:
    everything = app.ids(s=READING_LIST, n="10000")
    assert len(everything) > OPENED_AT_ONCE
    app.post("edit-tag", i=everything, a=READ)
    assert app.ids(s=READING_LIST, n="10000", xt=READ) == []
    app.post("edit-tag", i=everything, r=READ)
    newest = max(int(one["timestampUsec"]) for one in app.get("stream/items/ids", s=READING_LIST).json()["itemRefs"])
    app.post("mark-all-as-read", s="user/-/label/News", ts=str(newest - 1))
    left = app.ids(s="user/-/label/News", n="10000", xt=READ)
    assert len(left) == 1, "a story that came later stays unread"
    app.post("mark-all-as-read", s=READING_LIST, ts=str(newest))
    assert app.ids(s=READING_LIST, n="10000", xt=READ) == []
    assert world.device.parts.stores.clicks.count() == 0


def test_missing_items_answer_not_found(app: App) -> None:
    assert app.get("stream/contents/feed/https://other.example/feed").status_code == 404
    assert app.get("something-else").status_code == 404
    assert app.post("edit-tag", i="tag:google.com,2005:reader/item/ffffffffffffffff", a=READ).text == "OK"
    assert app.post("subscription/edit", ac="dance", s=f"feed/{COURANT}").status_code == 400


def test_every_item_number_format_is_read() -> None:
    number = number_of("n:1")
    assert numbers_of(f"{ITEM}{number:016x}") == [number]
    assert number in numbers_of(f"{number:016x}")
    assert number in numbers_of(str(number))
    assert numbers_of("x") == numbers_of(f"{ITEM}zz") == []
