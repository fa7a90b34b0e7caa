"""A browser without scripts in front of a stand-in device."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.testclient import TestClient

from device_app.pages.local_origin import LocalOriginMiddleware
from device_app.pages.page_key import PageKey
from device_app.pages.routes import router
from tests.doubles.pages_device import PagesDevice

HOME = "http://127.0.0.1:8401"
OURS = {"origin": HOME, "sec-fetch-site": "same-origin"}
FOLLOWS_A_LINK = {"sec-fetch-site": "same-origin", "sec-fetch-mode": "navigate"}
"""What a browser sends when the reader follows a link of our own pages."""


def page_key(port: int = 8401) -> PageKey:
    """A key as a profile has one."""
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
        app.routes.extend(router(self.device).routes)  # type: ignore[arg-type]
        app.add_middleware(LocalOriginMiddleware, port=8401, key=page_key())
        self.client = TestClient(app, base_url=HOME, follow_redirects=False, headers=FOLLOWS_A_LINK)
        enter(self.client, page_key())

    def get(self, path: str) -> str:
        answer = self.client.get(path)
        assert answer.status_code == 200, f"{path}: {answer.status_code}"
        return answer.text

    def post(self, path: str, **form: str) -> str:
        """Post a form; returns where it leads."""
        answer = self.client.post(path, data=form, headers=OURS)
        assert answer.status_code == 303, f"{path}: {answer.status_code} {answer.text[:300]}"
        return answer.headers["location"]
