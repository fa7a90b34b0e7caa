"""Hostile texts in Chromium run nothing, request nothing, and leave the page intact.

Oracle: the browser itself, which reports each request, each error and each violation of the page's policy.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.browser.conftest import Serve
from tests.browser.standing_devices import WatchedPage, app_of, enter
from tests.doubles.bodies import HOSTILE_BODIES, RICH_BODY
from tests.doubles.pages_device import PagesDevice

pytestmark = pytest.mark.browser

LENGTH = 5_000
ALONE = ("a link, ", "a link to ", "a picture from ")
"""Beginnings of the names of texts that are whole elements and so can't change what follows them: one page shows all
that begin alike."""
SHOWN = """() => ({
  hacked: window.hacked ?? null,
  texts: document.querySelectorAll('main .prose').length,
  forbidden: document.querySelectorAll(
    '.prose :is(script, style, iframe, form, svg, math, object, video, audio)').length,
  rails: document.querySelectorAll('main aside.rail').length,
  base: document.baseURI,
})"""


def shown_texts() -> dict[str, str]:
    """Return the texts of each page by what its failure names."""
    found = {name: text for name, text in HOSTILE_BODIES.items() if not name.startswith(ALONE)} | {"rich": RICH_BODY}
    for beginning in ALONE:
        alike = [text for name, text in HOSTILE_BODIES.items() if name.startswith(beginning)]
        assert len(alike) > 1, beginning
        found[beginning] = "\n".join(alike)
        assert len(found[beginning]) < LENGTH, beginning
    return found


def test_hostile_texts_run_no_script_and_send_no_request(chromium: Browser, serve: Serve) -> None:
    device = PagesDevice("typical")
    home = serve(app_of(device))
    context = chromium.new_context()
    enter(context, home)
    watched = WatchedPage(context.new_page(), home)
    card = device.cards[1]
    own: list[str] = []
    watched.page.on("request", lambda one: own.append(one.url))
    for name, text in shown_texts().items():
        device.bodies[card.id] = text[:LENGTH]
        own.clear()
        watched.page.goto(f"{home}/story/{card.id}", wait_until="load")
        whole = {"hacked": None, "texts": 1, "forbidden": 0, "rails": 1, "base": watched.page.url}
        assert watched.page.evaluate(SHOWN) == whole, name
        assert not [url for url in own if "/privacy" in url], name
    assert watched.errors == []
    assert watched.foreign_requests == []
    context.close()
