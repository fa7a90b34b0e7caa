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


def test_hostile_texts_run_no_script_and_send_no_request(chromium: Browser, serve: Serve) -> None:
    device = PagesDevice("typical")
    home = serve(app_of(device))
    context = chromium.new_context()
    enter(context, home)
    watched = WatchedPage(context.new_page(), home)
    card = device.cards[1]
    own: list[str] = []
    watched.page.on("request", lambda one: own.append(one.url))
    for name, text in (*HOSTILE_BODIES.items(), ("rich", RICH_BODY)):
        device.bodies[card.id] = text[:5_000]
        own.clear()
        watched.page.goto(f"{home}/story/{card.id}", wait_until="load")
        assert watched.page.evaluate("window.hacked") is None, name
        assert watched.page.locator("main .prose").count() == 1, name
        assert (
            watched.page.locator(".prose :is(script, style, iframe, form, svg, math, object, video, audio)").count()
            == 0
        )
        assert watched.page.locator("main aside.rail").count() == 1, f"{name}: the page after the text is whole"
        assert watched.page.evaluate("document.baseURI") == watched.page.url, name
        assert not [url for url in own if "/privacy" in url], name
    assert watched.errors == []
    assert watched.foreign_requests == []
    context.close()
