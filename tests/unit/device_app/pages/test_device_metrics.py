"""The device's metrics and logs contain nothing of what is read.

Oracle: two readers of opposite tastes, whose stories the test knows, do the same number of things.
"""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from fastapi import FastAPI
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from device_app.app import create_app
from device_app.background import Background
from device_app.composition import build_device
from device_app.device import Device, Reading
from device_app.errors import BudgetSpent
from device_app.pages.story_links import StoryLinks
from device_app.privacy.sealed import Charge
from device_app.process import json_logs
from device_app.settings import DeviceSettings
from protocol.server_timing import parse_server_timing
from tests.doubles.backend import FakeBackend
from tests.doubles.pages_reader import FOLLOWS_A_LINK, OURS, enter

STORIES = 6


@dataclass
class WatchedReader:
    device: Device
    app: FastAPI
    read: list[str]
    log: str

    @property
    def browser(self) -> TestClient:
        home = f"http://127.0.0.1:{self.device.settings.port}"
        return TestClient(self.app, base_url=home, follow_redirects=False, headers=FOLLOWS_A_LINK)

    @property
    def metrics(self) -> str:
        key = (self.device.settings.home / "page.key").read_text()
        answer = self.browser.get("/metrics", headers={"authorization": f"Bearer {key}", "sec-fetch-site": "none"})
        assert answer.status_code == 200
        return answer.text


def reading(folder: Path, *, first: bool) -> WatchedReader:
    """A reader of the first or of the last sections, who opens, reacts, saves a search and spends the budget."""
    log = io.StringIO()
    budget = {"epsilon_per_day_reports": 8.0, "mode": "code"}
    settings = DeviceSettings(profile="anna", data_dir=folder, privacy=budget, log_format="json")  # type: ignore[arg-type]
    with json_logs(settings.log_format == "json", log):
        device = build_device(settings, transport=FakeBackend().transport())
        device.sync()
        reader = WatchedReader(device, create_app(device=device), [], "")
        browser = enter(reader.browser, reader.app.state.page_key)
        cards = sorted((item.card for item in device.reading.feed().items), key=lambda card: (card.section, card.id))
        for card in cards[:STORIES] if first else cards[-STORIES:]:
            assert browser.get(StoryLinks(reader.app.state.page_key).link(card.id)).status_code == 303
            liked = browser.post(f"/story/{card.id}/react", data={"kind": "like"}, headers=OURS)
            assert liked.status_code in (204, 303, 404, 422)
            reader.read += [card.title, card.id, card.section, card.topic]
        device.library.save_search("axolotl" if first else "zebra")
        for _ in range(3):
            assert browser.get("/").status_code == 200
            device.reading.feed(refresh=True)
        logging.getLogger("device_app").warning("the end of the log")
    reader.log = log.getvalue()
    return reader


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[WatchedReader, WatchedReader]]:
    with ExitStack() as open_ones:
        made = [reading(tmp_path_factory.mktemp("home"), first=first) for first in (True, False)]
        for each in made:
            open_ones.callback(each.device.close)
        yield made[0], made[1]


def test_stage_names_invented_by_a_server_do_not_become_metric_labels() -> None:
    """A malicious server could fill the device's memory and files with names of stages, thousands in one answer."""
    made_up = ", ".join(f"{a}{b}_{c};dur=1" for a in "abcdefgh" for b in "abcdefgh" for c in "abcdefgh")
    assert parse_server_timing(f"{made_up}, merge;dur=2") == {"merge": 2.0}


@pytest.mark.parametrize("form", ["json", "text"])
def test_error_that_quotes_read_stories_is_logged_without_them(
    form: str, readers: tuple[WatchedReader, WatchedReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = io.StringIO()
    plain = logging.StreamHandler(log)

    def fails(*quoted: object, **_: object) -> None:
        raise LookupError(*quoted, *readers[0].read)

    monkeypatch.setattr(Reading, "open", fails)
    with ExitStack() as until:
        if form == "text":
            logging.getLogger("device_app").addHandler(plain)
            until.callback(logging.getLogger("device_app").removeHandler, plain)
        until.enter_context(json_logs(form == "json", log))
        for reader in readers:
            browser = enter(reader.browser, reader.app.state.page_key)
            assert browser.get(f"/story/{reader.read[1]}").status_code == 500
            assert Background(reader.device)._guarded("texts", fails)
        if form == "json":
            try:
                fails()
            except LookupError:  # as a library logs its own
                logging.getLogger("uvicorn").exception("Exception in ASGI application")
    reported = log.getvalue()
    assert reported.count("builtins.LookupError") == (5 if form == "json" else 4)
    assert "in fails" in reported
    assert not [word for reader in readers for word in reader.read if word in reported]


def labels(text: str) -> set[tuple[str, tuple[tuple[str, str], ...]]]:
    return {
        (sample.name, tuple(sorted(sample.labels.items())))
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_opposite_readers_have_the_same_metric_labels(readers: tuple[WatchedReader, WatchedReader]) -> None:
    first, last = readers
    assert not set(first.read[1::4]) & set(last.read[1::4]), "they read different stories"
    assert labels(first.metrics) == labels(last.metrics)
    names = {name for name, _ in labels(first.metrics)}
    assert {"ownfeed_device_requests_total", "ownfeed_device_stage_seconds_bucket"} <= names
    assert ("ownfeed_device_ledger_refusals_total", (("channel", "reports"),)) in labels(first.metrics)


def test_metrics_and_logs_name_no_story_and_no_key(
    readers: tuple[WatchedReader, WatchedReader],
) -> None:
    for reader, search in zip(readers, ("axolotl", "zebra"), strict=True):
        reported = reader.metrics + reader.log
        assert "the end of the log" in reader.log
        assert all(json.loads(line)["level"] for line in reader.log.splitlines())
        home = reader.device.settings.home
        secrets = [(home / "page.key").read_text().strip(), reader.app.state.page_key.set_cookie().split("=")[1][:64]]
        for word in {*reader.read, search, "anna", *secrets}:
            assert not re.search(rf"(?<!\w){re.escape(word)}(?!\w)", reported), word


def test_refused_charge_is_counted_by_its_channel(readers: tuple[WatchedReader, WatchedReader]) -> None:
    ledger = readers[0].device.parts.ledger
    received: list[str] = []
    ledger.listen(received.append)
    before = refusals(readers[0].metrics)
    with pytest.raises(BudgetSpent):
        ledger.spend(Charge("training", "laplace", {}, epsilon=1e12, delta=0.0, payload_sha256="0" * 64))
    assert received == ["training"]
    assert refusals(readers[0].metrics) == before + 1


def refusals(text: str) -> float:
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "ownfeed_device_ledger_refusals_total"
    )


def test_metrics_page_requires_the_key(readers: tuple[WatchedReader, WatchedReader]) -> None:
    browser = readers[0].browser
    assert browser.get("/metrics").status_code == 403
    for wrong in ("Bearer wrong", "Basic " + "a" * 43, ""):
        assert browser.get("/metrics", headers={"authorization": wrong}).status_code == 403
    key = (readers[0].device.settings.home / "page.key").read_text()
    assert browser.get("/", headers={"authorization": f"Bearer {key}"}).status_code == 403, "the pages need the cookie"
    assert enter(browser, readers[0].app.state.page_key).get("/metrics").status_code == 200
