"""A malicious server puts a script, or a page of the reader's own device or network, where a link belongs.

A reader who followed a script link would run it on the device's own pages; a link to the device would act there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from device_app.app import create_app
from device_app.composition import build_device
from device_app.device import Device
from device_app.settings import DeviceSettings
from tests.doubles.backend import FakeBackend
from tests.doubles.local_links import LOCAL_LINKS
from tests.doubles.news import synthetic_pool
from tests.doubles.pages_reader import FOLLOWS_A_LINK, HOME, enter

SCRIPTS = (
    "javascript:alert(document.cookie)",
    "JaVaScRiPt:alert(1)",
    " javascript:alert(1)",
    "java\nscript:alert(1)",
    "java\tscript:alert(1)",
    "\x01javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "vbscript:msgbox(1)",
    "blob:https://a.example/x",
    "file:///etc/passwd",
    "//evil.example/x",
    "/privacy/erase",
    "https:",
    "https://",
    "http:///privacy",
    "http://[::1",
    "ownfeed://x",
    *LOCAL_LINKS,
)
LINK = "https://paper.example/a?b=c&d=%20e#f"


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Device]:
    pool = synthetic_pool()
    wanted = (*SCRIPTS, LINK)
    cards = tuple(
        card.model_copy(update={"url": wanted[row % len(wanted)]}) for row, card in enumerate(pool.cards)
    )  # model_copy validates nothing: this server sends what it likes
    backend = FakeBackend(pool=replace(pool, cards=cards))
    made = build_device(DeviceSettings(data_dir=tmp_path), transport=backend.transport())
    made.sync()
    yield made
    made.close()


def test_pages_link_only_to_web_or_device_addresses(device: Device) -> None:
    reader = TestClient(app := create_app(device=device), base_url=HOME, headers=FOLLOWS_A_LINK)
    enter(reader, app.state.page_key)
    device.interests.choose_sections(())
    cards = [card for listed in device.reading.explore() for card in listed.cards]
    assert len(cards) > 2 * len(SCRIPTS), "each of them is on the device"
    pages = ["/", "/explore", "/fresh", "/popular", "/following", "/search?q=Headline"]
    pages += [f"/story/{card.id}" for card in (*cards[: 2 * len(SCRIPTS)], *(card for card in cards if card.url))]
    outside = set()
    for page in pages:
        answer = reader.get(page)
        assert answer.status_code == 200, page
        for target in re.findall(r'(?:href|src|action)="([^"]*)"', answer.text):
            assert re.match(r"(/(?!/)|#|https://paper\.example/|/?$)", target), f"{page}: {target!r}"
            outside |= {target} if target.startswith("https:") else set()
    assert outside == {LINK.replace("&", "&amp;")}, "a true link is kept as it is"


def test_script_links_in_cards_of_an_earlier_version_are_removed(device: Device) -> None:
    stores = device.parts.stores
    (news_id,) = stores.database.row("SELECT id FROM news LIMIT 1") or ("",)
    with stores.database.transaction():
        stores.database.write(
            "UPDATE news SET card = json_set(card, '$.url', 'javascript:alert(1)') WHERE id = ?", (news_id,)
        )
    assert stores.news.card(news_id).url == ""
