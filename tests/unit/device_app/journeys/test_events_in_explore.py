"""Explore lists an event once in a section. Oracle: the stories of the backend's own cards."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

from starlette.testclient import TestClient

from device_app.app import create_app
from tests.doubles.backend import FakeBackend
from tests.doubles.journey import Make
from tests.doubles.pages_reader import FOLLOWS_A_LINK, HOME, enter


def test_reports_of_one_event_are_one_line_with_its_sources(make: Make, backend: FakeBackend) -> None:
    section = backend.pool.cards[0].section
    cards = tuple(
        card.model_copy(update={"story": "storm", "publisher": f"Paper {row % 3}"}) if card.section == section else card
        for row, card in enumerate(backend.pool.cards)
    )
    backend.pool = replace(backend.pool, cards=cards)
    backend.publish()
    device = make()
    device.sync()
    app = create_app(device=device)
    browser = TestClient(app, base_url=HOME, headers=FOLLOWS_A_LINK)
    enter(browser, app.state.page_key)
    shown = re.findall(r'data-story[^>]* id="n-([^"]+)"(.*?)</li>', browser.get("/explore").text, re.DOTALL)
    of_event = {card.id for card in cards if card.story == "storm"}
    (line,) = [unescape(text) for news_id, text in shown if news_id in of_event]
    assert len(re.findall(r"Paper [012]</(?:a|span)>", line.partition("Also in")[2])) == 2
    assert len(shown) > 1
