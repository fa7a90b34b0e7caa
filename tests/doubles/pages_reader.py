"""A browser without scripts in front of a stand-in device."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.testclient import TestClient

from device_app.pages.local_origin import LocalOriginMiddleware, PageKey
from device_app.pages.routes import router
from device_app.pages.story_links import StoryLinks
from tests.doubles.pages_device import PagesDevice

HOME = "http://127.0.0.1:8401"
OURS = {"origin": HOME, "sec-fetch-site": "same-origin"}
FOLLOWS_A_LINK = {"sec-fetch-site": "same-origin", "sec-fetch-mode": "navigate"}
"""Headers of a browser whose reader follows a link of our own pages."""


def page_key(port: int = 8401) -> PageKey:
    """A key as in a profile."""
    return PageKey("a key of thirty-two bytes or more", port)


def enter(client: TestClient, key: PageKey) -> TestClient:
    """Open the printed link: from then on the client has the cookie."""
    assert client.get(key.link("127.0.0.1"), follow_redirects=False).status_code == 303
    return client


class PagesReader:
    """A browser without scripts in front of one stand-in device."""

    def __init__(self, kind: str = "typical") -> None:
        self.device = PagesDevice(kind)  # type: ignore[arg-type]
        app = FastAPI(openapi_url=None)
        app.routes.extend(router(self.device, page_key()).routes)  # type: ignore[arg-type]
        app.add_middleware(LocalOriginMiddleware, port=8401, key=page_key())
        self.client = TestClient(app, base_url=HOME, follow_redirects=False, headers=FOLLOWS_A_LINK)
        enter(self.client, page_key())

    def get(self, path: str) -> str:
        answer = self.client.get(path)
        assert answer.status_code == 200, f"{path}: {answer.status_code}"
        return answer.text

    def click(self, news_id: str, feed_id: str | None = None, found: str | None = None) -> str:
        """Follow a link of these pages to a story; return its page."""
        answer = self.client.get(StoryLinks(page_key()).link(news_id, feed_id, found))
        assert answer.status_code == 303, answer.status_code
        return self.get(answer.headers["location"])

    def post(self, path: str, **form: str) -> str:
        """Post a form; return the address it redirects to."""
        answer = self.client.post(path, data=form, headers=OURS)
        assert answer.status_code == 303, f"{path}: {answer.status_code} {answer.text[:300]}"
        return answer.headers["location"]
