"""A browser at the console of stand-in services, as far as HTTP goes."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.testclient import TestClient

from backend.console.controller import cookie_name, pass_of
from backend.console.routes import router
from tests.doubles.console_services import TOKEN, StandInServices

HOME = "http://127.0.0.1:8400"
OURS = {"origin": HOME, "sec-fetch-site": "same-origin"}


def client_of(services: StandInServices, *, signed_in: bool = True) -> TestClient:
    app = FastAPI(openapi_url=None)
    app.routes.extend(router(services).routes)  # type: ignore[arg-type]
    cookies = {cookie_name("127.0.0.1:8400"): pass_of(TOKEN)} if signed_in else {}
    return TestClient(app, base_url=HOME, follow_redirects=False, cookies=cookies)
