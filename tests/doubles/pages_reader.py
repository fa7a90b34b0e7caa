"""A browser without scripts in front of a stand-in device."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.testclient import TestClient

from device_app.ui.guard import LocalGuard
from device_app.ui.routes import router
from tests.doubles.pages_device import PagesDevice

HOME = "http://127.0.0.1:8401"
OURS = {"origin": HOME, "sec-fetch-site": "same-origin"}


class Reader:
    """A browser without scripts in front of one stand-in device."""

    def __init__(self, kind: str = "typical") -> None:
        self.device = PagesDevice(kind)  # type: ignore[arg-type]
        app = FastAPI(openapi_url=None)
        app.include_router(router(self.device))  # type: ignore[arg-type]
        app.add_middleware(LocalGuard, port=8401)
        self.client = TestClient(app, base_url=HOME, follow_redirects=False)

    def get(self, path: str) -> str:
        answer = self.client.get(path)
        assert answer.status_code == 200, f"{path}: {answer.status_code}"
        return answer.text

    def post(self, path: str, **form: str) -> str:
        """Post a form; returns where it leads."""
        answer = self.client.post(path, data=form, headers=OURS)
        assert answer.status_code == 303, f"{path}: {answer.status_code} {answer.text[:300]}"
        return answer.headers["location"]
