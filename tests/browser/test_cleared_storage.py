"""Storage that the server's answers or the browser clear, with tabs open meanwhile.

A spent budget can be spent again only if the reader says so, and a build is replaced only after asking. Oracles:
reports as the server received them, and the reader's own export.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.browser_device.builds import read_build
from backend.settings import BackendSettings
from tests.browser.conftest import BEGIN, begin_first_visit
from tests.browser.test_browser_device import CONTROLLED
from tests.browser.test_installed_build import TELL, other_build
from tests.conformance.node_end import WEB
from tests.doubles.long_form import by_length
from tests.doubles.small_world import WORDS, SmallWorld, first_folder, shared_cache

pytestmark = [pytest.mark.browser, pytest.mark.node]
WITHIN_MS = 60_000
WIPES = by_length(2, long=5)
WAYS = [("evict", "clear_by_answer", "clear_by_browser")]
"""By turns; the short form wipes once in each of the first two, and the test of an import in the third."""
CLEAR = (b"clear-site-data", b'"storage", "cache"')
ELSEWHERE = "/elsewhere"
WORKER_SCRIPT = "/reader/files/service_worker."
BEFORE, NEW_PAGE, RUN_THIS = "main button[name=before]", "Refresh", "Run this build"
FEED, CARD = "main[data-feed]", "article.card[id]"
CLEARED = "Your browser deleted this site's data"
RECALL = "/v1/recall"
PACE = ("recall_poll_sec: optional(real({ above: 0 }), 900)", "recall_poll_sec: optional(real({ above: 0 }), 1)")
ZOPFLI = ("ZOPFLI_LIMIT_BYTES = 2_000_000", "ZOPFLI_LIMIT_BYTES = 0")
"""Zopfli's ten seconds spare a reader some kilobytes, and this test nothing."""
A_DAY = 8.0
UNTIL_NOTED = """async () => { const until = Date.now() + 60_000;
  while (localStorage.getItem('ownfeed-build') === null) {
    if (Date.now() > until) throw new Error('no build was noted within a minute');
    await new Promise((resolve) => setTimeout(resolve, 50));
  } }"""
KEPT_FILES = """async () => {
  const names = [];
  for await (const [name] of await navigator.storage.getDirectory()) names.push(name);
  return names;
}"""


class Clearing:
    """ASGI middleware that answers normally but has the browser clear the site's data where it can."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.clears: Callable[[Scope], bool] = lambda _: False
        self.cleared: list[str] = []
        self.answered = threading.Condition()
        self.recalls = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start" and self.clears(scope):
                self.cleared.append(scope["path"])
                message = {**message, "headers": [*message.get("headers", ()), CLEAR]}
            await send(message)

        await self.app(scope, receive, sent)
        if scope["type"] == "http" and scope["path"] == RECALL:
            with self.answered:
                self.recalls += 1
                self.answered.notify_all()


class Server:
    """The world, how it clears browsers' storage, and which build it serves."""

    def __init__(self, world: SmallWorld, clearing: Clearing) -> None:
        self.world, self.clearing = world, clearing
        self.home = f"{world.url}/reader/"

    def reports(self) -> list[bytes]:
        return [each.body for each in self.world.requests() if each.path == RECALL]

    def next_reports(self) -> None:
        """Wait for two more answered requests for candidates; the second was made after this call."""
        with self.clearing.answered:
            until = self.clearing.recalls + 2
            assert self.clearing.answered.wait_for(lambda: self.clearing.recalls >= until, WITHIN_MS / 1_000)

    def asked(self, beginning: str) -> int:
        return sum(each.path.startswith(beginning) for each in self.world.requests())

    def wait_for_device_to_end(self, context: BrowserContext) -> None:
        """Wait until no device runs on the origin: a closed tab may still be writing its files."""
        page = context.new_page()
        page.goto(self.world.url + ELSEWHERE)
        page.wait_for_function("async () => (await navigator.locks.query()).held.length === 0")
        page.close()

    def clear_by_answer(self, context: BrowserContext) -> None:
        """Follow a link on the origin outside the reader's page; its answer clears the storage."""
        before = len(self.clearing.cleared)
        self.clearing.clears = lambda scope: scope["path"] == ELSEWHERE
        page = context.new_page()
        page.goto(self.world.url + ELSEWHERE)
        page.close()
        self.clearing.clears = lambda _: False
        assert len(self.clearing.cleared) == before + 1

    def clear_by_browser(self, context: BrowserContext) -> None:
        """Clear site data as the browser's own command does."""
        self._clear(context, "all")

    def evict(self, context: BrowserContext) -> None:
        """Remove the whole storage of the origin, as the browser does when space runs short."""
        self._clear(context, "file_systems,indexeddb,local_storage,service_workers,cache_storage")

    def _clear(self, context: BrowserContext, kinds: str) -> None:
        page = context.new_page()
        session = context.new_cdp_session(page)
        session.send("Storage.clearDataForOrigin", {"origin": self.world.url, "storageTypes": kinds})
        page.close()


@contextmanager
def serve_world(
    folder: Path, first: Path, build: Callable[[], Path], port: int = 0, changes: Mapping[str, str] | None = None
) -> Iterator[Server]:
    shutil.copytree(first, folder / "backend")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("backend.app.built_folder", build)
        settings = BackendSettings(data_dir=folder / "backend").model_copy(update=dict(changes or {}))
        world = SmallWorld(folder, settings)
        with world.backend(port):
            assert world.ears is not None
            world.ears.app = clearing = Clearing(world.ears.app)
            yield Server(world, clearing)


@pytest.fixture(scope="module")
def hurried_build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a build of the browser's device that asks for candidates every second, not every quarter of an hour."""
    node = shutil.which("node")
    assert node is not None
    root = tmp_path_factory.mktemp("hurried")
    (root / "web").mkdir()
    for each in (*WEB.glob("*.mjs"), *WEB.glob("*.json")):
        shutil.copy(each, root / "web")
    for name in ("device", "templates"):
        shutil.copytree(WEB / name, root / "web" / name)
    shutil.copytree(WEB / "static", root / "web" / "static", ignore=shutil.ignore_patterns("device"))
    (root / "web" / "node_modules").symlink_to(WEB / "node_modules")
    for name in ("device_app", "protocol"):
        (root / name).symlink_to(WEB.parent / name)
    settings = root / "web" / "device" / "feed_settings.ts"
    text = settings.read_text(encoding="utf-8")
    assert text.count(PACE[0]) == 1
    settings.write_text(text.replace(*PACE), encoding="utf-8")
    script = root / "web" / "build.mjs"
    text = script.read_text(encoding="utf-8")
    assert text.count(ZOPFLI[0]) == 1
    script.write_text(text.replace(*ZOPFLI), encoding="utf-8")
    environment = os.environ | {"PYTHON": sys.executable}
    subprocess.run([node, str(script), str(root / "made")], env=environment, check=True)
    return root / "made"


@pytest.fixture(scope="module")
def server(hurried_build: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("cleared")
    with serve_world(folder, first_folder(shared_cache(tmp_path_factory)), lambda: hurried_build) as found:
        yield found


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    made = chromium.new_context()
    made.set_default_timeout(WITHIN_MS)
    yield made
    made.close()


def open_page(context: BrowserContext, server: Server) -> Page:
    """Open the page, and answer the question that appears if traces of an earlier build are left."""
    page = context.new_page()
    page.goto(server.home)
    run, ready = page.get_by_role("button", name=RUN_THIS), page.locator("main h1, main[data-feed]").first
    expect(run.or_(page.locator("#main")).first).to_be_visible()
    if run.is_visible():
        run.click()
    expect(ready).to_be_visible()
    return page


def begin(context: BrowserContext, server: Server, button: str = BEGIN) -> Page:
    """Open the page on an empty store, and pass the first visit."""
    page = open_page(context, server)
    page.locator(button).click()
    if button == BEFORE:
        expect(page.get_by_role("heading", name="Have you used Ownfeed in this browser before?")).to_be_visible()
        page.goto(f"{server.home}#/")
    page.wait_for_selector(f"{FEED} {CARD}")
    return page


def installed_build(page: Page) -> str:
    """Return the installed build once the page has recorded it."""
    page.evaluate(CONTROLLED)
    page.evaluate(UNTIL_NOTED)
    build: str = page.evaluate(TELL)
    return build


def open_stories(page: Page, section: str, count: int = 3) -> None:
    """Open this many stories of a section, then request a new page, which makes a report due.

    Before the third story a report is a random number, charged like any other.
    """
    unread = ", ".join(f"article.card:not(.read)[id^='n-{topic}-'] .headline a" for topic in WORDS[section])
    for _ in range(count):
        page.locator(unread).first.click()
        page.wait_for_selector(".story .prose p")
        page.get_by_role("link", name="Back to the feed").click()
        page.wait_for_selector(FEED)
    new_page(page)


def new_page(page: Page) -> None:
    shown = page.locator(FEED).get_attribute("data-feed")
    page.get_by_role("button", name=NEW_PAGE).first.click()
    page.wait_for_selector(f"{FEED}:not([data-feed='{shown}'])")


def exported(page: Page, server: Server) -> dict[str, list[dict[str, Any]]]:
    page.goto(f"{server.home}#/settings")
    with page.expect_download() as download:
        page.get_by_role("link", name="Export").click()
    tables: dict[str, list[dict[str, Any]]] = json.loads(download.value.path().read_text(encoding="utf-8"))["tables"]
    return tables


def spent_on_reports(tables: dict[str, list[dict[str, Any]]]) -> float:
    """Return the ledger's charges for reports in an export; each was drawn once."""
    charges = [each for each in tables["charge"] if each["channel"] == "reports" and each["mechanism"] != "moved"]
    assert len(charges) == len(tables["drawn_report"])
    return float(sum(each["epsilon"] for each in tables["charge"] if each["channel"] == "reports"))


def export_after_report(page: Page, server: Server) -> dict[str, list[dict[str, Any]]]:
    """Return the export once a report was charged."""
    server.next_reports()
    tables = exported(page, server)
    assert spent_on_reports(tables), "nothing was reported, so there is nothing to report twice"
    page.goto(f"{server.home}#/")
    page.wait_for_selector(f"{FEED} {CARD}")
    return tables


@dataclass(frozen=True)
class Reported:
    """A reader's open page, the installed build, and an export from after a report was charged."""

    page: Page
    context: BrowserContext
    build: str
    before: dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def once_reported(chromium: Browser, server: Server) -> Iterator[BrowserContext]:
    """The browser of a reader who has read and reported, in which no page is open."""
    context = chromium.new_context()
    context.set_default_timeout(WITHIN_MS)
    page = begin(context, server)
    open_stories(page, "sport")
    installed_build(page)
    export_after_report(page, server)
    page.close()
    yield context
    context.close()


@pytest.fixture
def reported(once_reported: BrowserContext, server: Server) -> Iterator[Reported]:
    """One more visit of that reader, whose storage every test leaves complete."""
    server.wait_for_device_to_end(once_reported)
    page = open_page(once_reported, server)
    page.wait_for_selector(f"{FEED} {CARD}")
    before = exported(page, server)
    assert spent_on_reports(before), "an earlier test lost what was spent"
    page.goto(f"{server.home}#/")
    page.wait_for_selector(f"{FEED} {CARD}")
    yield Reported(page, once_reported, installed_build(page), before)
    for each in once_reported.pages:
        each.close()


@pytest.mark.long_form
@pytest.mark.parametrize("ways", by_length(WAYS, long=[*WAYS, ("clear_by_answer",)]), ids="-".join)
def test_device_whose_storage_is_wiped_repeatedly_sends_only_cover_reports(
    server: Server, context: BrowserContext, ways: tuple[str, ...]
) -> None:
    page = begin(context, server)
    open_stories(page, "sport", 1)
    export_after_report(page, server)
    installed_build(page)
    page.close()
    for number in range(WIPES):
        getattr(server, ways[number % len(ways)])(context)
        page = begin(context, server, BEFORE)
        open_stories(page, "politics")
        server.next_reports()
        tables = exported(page, server)
        assert tables["charge"] == [], number
        assert tables["drawn_report"] == [], "a cover is drawn without the reader"
        page.close()


def test_first_button_after_a_wipe_does_not_confirm_a_new_start(server: Server, context: BrowserContext) -> None:
    page = begin(context, server)
    open_stories(page, "sport", 1)
    export_after_report(page, server)
    build = installed_build(page)
    page.goto("about:blank")
    server.clear_by_answer(context)
    page.go_back()  # this tab's own history is a sign that nobody clears; the build is the same, so that it runs
    expect(page.get_by_text("Ownfeed was used in this browser before")).to_be_visible()
    begin_first_visit(page)
    page.wait_for_selector(f"{FEED} {CARD}")
    open_stories(page, "politics")
    server.next_reports()
    assert exported(page, server)["charge"] == []
    assert installed_build(page) == build

    page.goto(f"{server.home}#/settings")
    page.get_by_role("button", name="I was here before and have no export").click()
    expect(page.get_by_text("Sharing starts again tomorrow")).to_be_visible()
    server.next_reports()
    tables = exported(page, server)
    assert spent_on_reports(tables) == A_DAY
    assert tables["drawn_report"] == [], "today's budget counts as spent"


def test_export_imported_after_a_wipe_restores_the_spent_budget(
    server: Server, context: BrowserContext, tmp_path: Path
) -> None:
    page = begin(context, server)
    open_stories(page, "sport", 1)
    installed_build(page)
    page.goto(f"{server.home}#/settings")
    with page.expect_download() as download:
        page.get_by_role("link", name="Export").click()
    file = tmp_path / "mine.json"
    download.value.save_as(file)
    charges = json.loads(file.read_text(encoding="utf-8"))["tables"]["charge"]
    page.close()
    server.clear_by_browser(context)
    page = begin(context, server, BEFORE)
    page.goto(f"{server.home}#/settings")
    page.locator("#moved").set_input_files(file)
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_role("status").filter(has_text="budget already used there counts here")).to_be_visible()
    expect(page.get_by_role("heading", name="Have you used Ownfeed in this browser before?")).to_have_count(0)
    now = exported(page, server)["charge"]
    assert [each["at"] for each in charges] == [each["at"] for each in now[: len(charges)]]
    assert sum(each["epsilon"] for each in now if each["channel"] == "reports") == pytest.approx(8)


def holds(after: dict[str, list[dict[str, Any]]], before: dict[str, list[dict[str, Any]]]) -> None:
    """Check that nothing paid for or read is missing, and that no day's budget is exceeded."""
    for table in ("charge", "drawn_report", "report_meaning", "click", "reaction"):
        missing = [row for row in before[table] if row not in after[table]]
        assert not missing, table
    assert spent_on_reports(after) <= A_DAY


def test_open_tab_restores_spent_budget_and_reading_with_a_notice(server: Server, context: BrowserContext) -> None:
    page = begin(context, server)
    open_stories(page, "sport")
    build = installed_build(page)
    before = export_after_report(page, server)
    server.clear_by_answer(context)
    expect(page.get_by_label(CLEARED)).to_be_visible(timeout=WITHIN_MS)
    assert installed_build(page) == build
    holds(exported(page, server), before)
    page.goto(f"{server.home}#/")
    page.wait_for_selector(f"{FEED} {CARD}")
    new_page(page)
    server.next_reports()
    page.close()
    page = open_page(context, server)
    expect(page.locator(FEED)).to_be_visible()
    holds(exported(page, server), before)


def test_reloads_neither_clear_the_store_nor_request_the_worker_script(server: Server, reported: Reported) -> None:
    page, asked = reported.page, server.asked(WORKER_SCRIPT)
    session = reported.context.new_cdp_session(page)
    server.clearing.clears = lambda _: True  # but for the device's own requests nothing of a reload reaches the server
    try:
        page.reload()
        page.wait_for_selector(f"{FEED} {CARD}")
        session.send("Page.getAppManifest")
        assert page.evaluate(KEPT_FILES)
        expect(page.get_by_label(CLEARED)).to_have_count(0)
        server.clearing.clears = lambda scope: scope["path"].startswith(WORKER_SCRIPT)
        for _ in range(2):
            page.reload()
            page.wait_for_selector(f"{FEED} {CARD}")
        second = reported.context.new_page()
        second.goto(server.home)
        second.wait_for_selector(f"{FEED} {CARD}")
        second.evaluate("navigator.serviceWorker.getRegistration('/reader/').then((one) => one.update())")
    finally:
        server.clearing.clears = lambda _: False
    assert server.asked(WORKER_SCRIPT) == asked
    assert page.evaluate(KEPT_FILES)
    holds(exported(page, server), reported.before)


@pytest.mark.long_form
@pytest.mark.parametrize("path", ["/favicon.ico", *by_length([], long=["/reader", "/nowhere"])])
def test_open_tab_survives_a_storage_clearing_header_on_any_other_path(
    server: Server, reported: Reported, path: str
) -> None:
    server.clearing.clears = lambda scope: scope["path"] == path
    other = reported.context.new_page()
    other.goto(server.world.url + path)
    other.close()
    server.clearing.clears = lambda _: False
    assert path in server.clearing.cleared
    expect(reported.page.get_by_label(CLEARED)).to_be_visible(timeout=WITHIN_MS)
    holds(exported(reported.page, server), reported.before)


def test_open_tab_survives_a_clearing_service_worker_script(server: Server, reported: Reported) -> None:
    page, asked = reported.page, server.asked(WORKER_SCRIPT)
    reported.context.new_cdp_session(page).send("Network.clearBrowserCache")  # as a day later
    server.clearing.clears = lambda scope: scope["path"].startswith(WORKER_SCRIPT)
    try:
        page.evaluate("navigator.serviceWorker.getRegistration('/reader/').then((one) => one.update()).catch(String)")
    finally:
        server.clearing.clears = lambda _: False
    assert server.asked(WORKER_SCRIPT) > asked
    expect(page.get_by_label(CLEARED)).to_be_visible(timeout=WITHIN_MS)
    assert installed_build(page) == reported.build
    holds(exported(page, server), reported.before)


def test_tabs_before_and_after_a_wipe_share_one_ledger(server: Server, reported: Reported) -> None:
    old, before = reported.page, reported.before
    beside = open_page(reported.context, server)  # which waits for the earlier lock
    server.clear_by_answer(reported.context)
    new = open_page(reported.context, server)
    for page in (old, beside):
        expect(page.get_by_label(CLEARED)).to_be_visible(timeout=WITHIN_MS)
    for page in (new, old, beside):
        holds(exported(page, server), before)
    old.close()
    for page in (beside, new):
        page.goto(f"{server.home}#/")
        page.wait_for_selector(f"{FEED} {CARD}")
        new_page(page)
    server.next_reports()
    tables = [exported(page, server) for page in (beside, new)]
    holds(tables[0], before)
    holds(tables[1], tables[0])


def test_two_simultaneous_first_tabs_share_one_ledger(server: Server, context: BrowserContext) -> None:
    pages = [context.new_page() for _ in range(2)]
    for page in pages:
        page.goto(server.home, wait_until="commit")
    for page in pages:
        page.locator(BEGIN).wait_for()
    for page in pages:
        page.locator(BEGIN).click(no_wait_after=True)
    for page in pages:
        page.wait_for_selector(f"{FEED} {CARD}")
    first, second = pages
    open_stories(first, "sport", 1)
    second.goto(f"{server.home}#/settings")
    second.goto(f"{server.home}#/")
    second.wait_for_selector(f"{FEED} {CARD}")
    for page in pages:
        page.get_by_role("button", name=NEW_PAGE).first.click(no_wait_after=True)
    for page in pages:
        page.wait_for_selector(f"main[data-feed]:not([aria-busy]) {CARD}")
    before = export_after_report(first, server)
    holds(exported(second, server), before)


def test_another_build_replaces_a_cleared_one_only_after_asking(
    chromium: Browser, reader_build: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("replaced")
    second = other_build(reader_build, folder / "second")
    builds = [read_build(each) for each in (reader_build, second)]
    assert builds[0] is not None
    assert builds[1] is not None
    first = first_folder(shared_cache(tmp_path_factory))
    context = chromium.new_context()
    context.set_default_timeout(WITHIN_MS)
    with serve_world(folder / "world", first, lambda: reader_build) as server:
        page = begin(context, server)
        installed_build(page)
        page.reload()
        page.wait_for_selector(f"{FEED} {CARD}")
        port = int(server.world.url.rpartition(":")[2])
        page.goto("about:blank")
        server.wait_for_device_to_end(context)
        server.clear_by_answer(context)
    with serve_world(folder / "world2", first, lambda: second, port) as server:
        page.go_back()
        question = page.get_by_role("alert")
        expect(question).to_contain_text("The build that was installed here is gone")
        expect(question).to_contain_text(builds[0].build)
        expect(question).to_contain_text(builds[1].build)
        assert page.evaluate(KEPT_FILES) == [], "nothing of the other build has run"
        assert not server.asked("/v1/")
        page.get_by_role("button", name=RUN_THIS).click()
        expect(page.get_by_text("Ownfeed was used in this browser before")).to_be_visible()
    context.close()


def test_server_cannot_clear_the_storage_of_a_page_on_a_separate_origin(
    chromium: Browser, hurried_build: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    api, readers = f"http://127.0.0.1:{port}", f"http://localhost:{port}"
    origins = {"public_origin": api, "reader_origin": readers}
    folder, first = tmp_path_factory.mktemp("apart"), first_folder(shared_cache(tmp_path_factory))
    context = chromium.new_context()
    context.set_default_timeout(WITHIN_MS)
    with serve_world(folder / "world", first, lambda: hurried_build, port, origins) as server:
        server.home = f"{readers}/reader/"
        page = begin(context, server)
        open_stories(page, "sport", 1)
        installed_build(page)
        page.reload()
        page.wait_for_selector(f"{FEED} {CARD}")
        before = export_after_report(page, server)
        server.clearing.clears = lambda scope: (b"host", f"127.0.0.1:{port}".encode()) in scope["headers"]
        page.goto(f"{server.home}#/")
        page.wait_for_selector(f"{FEED} {CARD}")
        new_page(page)
        other = context.new_page()
        other.goto(api + ELSEWHERE)
        assert server.clearing.cleared
        after = exported(page, server)
        holds(after, before)
        assert [one["news_id"] for one in after["click"]][: len(before["click"])] == [
            one["news_id"] for one in before["click"]
        ]
        expect(page.get_by_label(CLEARED)).to_have_count(0)
        asked = {each.path for each in server.world.requests() if f"host: localhost:{port}".encode() in each.headers}
        assert asked
        assert all(path.startswith("/reader/") for path in asked)
    context.close()
