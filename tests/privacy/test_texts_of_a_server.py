"""A malicious server sends scripts, frames, forms and links to the reader's own network as a story's text.

Its answers go straight to the device, without the server's sanitising. None of it may run on the device's pages, no
browser may load anything because of it, and none of its links may count as the reader's click.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

from starlette.testclient import TestClient

from device_app.app import create_app
from device_app.composition import build_device
from device_app.settings import DeviceSettings
from protocol.links import leads_out
from tests.doubles.backend import FakeBackend
from tests.doubles.bodies import HOSTILE_BODIES, RICH_BODY
from tests.doubles.news import synthetic_pool
from tests.doubles.pages_reader import FOLLOWS_A_LINK, HOME, enter

RUNS = {"script", "style", "iframe", "object", "embed", "svg", "math", "form", "input", "button", "link", "meta",
        "base", "template", "video", "audio", "source", "textarea", "select", "title"}  # fmt: skip


class Found(HTMLParser):
    """Collects the tags in the text of a story's page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def text_on(page: str) -> str:
    """Return what is between the marks of the text; fails if the text has ended them itself."""
    (text,) = re.findall(r'<div class="prose" dir="auto">(.*?)</div>\n', page, re.DOTALL)
    return str(text)


def test_hostile_text_runs_no_script_loads_nothing_and_clicks_nothing(tmp_path: Path) -> None:
    pool = synthetic_pool()
    texts = [*HOSTILE_BODIES.items(), ("rich", RICH_BODY)]
    backend = FakeBackend(pool=pool)
    device = build_device(DeviceSettings(data_dir=tmp_path), transport=backend.transport())
    device.sync()
    missing = set(device.parts.stores.news.missing([card.id for card in pool.cards]))
    here = [card.id for card in pool.cards if card.id not in missing]
    shown = {news_id: text for news_id, (_, text) in zip(here, texts, strict=False)}
    backend.texts = shown
    reader = TestClient(app := create_app(device=device), base_url=HOME, headers=FOLLOWS_A_LINK)
    enter(reader, app.state.page_key)
    device.interests.choose_sections(())
    while device.parts.bodies.step():
        pass
    assert not device.parts.stores.news.without_body(list(shown)), "the server has sent each of them"
    assert len(shown) == len(texts) > 60
    before = len(backend.requests)
    for news_id, text in shown.items():
        answer = reader.get(f"/story/{news_id}")
        assert answer.status_code == 200, text[:100]
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "https:" not in policy
        found = Found()
        found.feed(text_on(answer.text))
        for tag, attributes in found.tags:
            assert tag not in RUNS, text[:100]
            assert not {"id", "name", "style", "srcset", "ping", "action"} & set(attributes), text[:100]
            assert not any(name.startswith(("on", "data-")) for name in attributes), text[:100]
            link = attributes.get("href")
            assert link is None or leads_out(link) or link.startswith("mailto:"), text[:100]
            assert "src" not in attributes, "no picture was sent"
    assert len(backend.requests) == before, "showing a text asks for nothing"
    assert device.parts.stores.clicks.count() == 0
    device.close()
