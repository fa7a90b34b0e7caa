"""Other sites, other hosts and prefetching browsers are refused; our own pages are let in."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from device_app.pages.local_origin import LocalOriginMiddleware, own_hosts, refusal
from tests.doubles.pages_reader import enter, page_key

HOSTS = own_hosts(8401)
HOME = "127.0.0.1:8401"


def is_refused(method: str, path: str, **headers: str) -> bool:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return refusal(method, path, Headers({"host": HOME} | sent), HOSTS) is not None


@pytest.mark.parametrize("host", ["127.0.0.1:8401", "localhost:8401", "[::1]:8401", "LOCALHOST:8401"])
def test_own_host_names_are_answered(host: str) -> None:
    assert not is_refused("GET", "/", host=host)


@pytest.mark.parametrize(
    "host", ["evil.example:8401", "127.0.0.1", "127.0.0.1:8400", "127.0.0.1.evil.example:8401", "localhost", ""]
)
def test_rebound_or_foreign_host_is_refused(host: str) -> None:
    assert is_refused("GET", "/", host=host)


def test_port_80_is_also_answered_without_a_port() -> None:
    assert "localhost" in own_hosts(80)
    assert "localhost" not in own_hosts(8401)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_change_requires_proof_of_coming_from_our_own_page(method: str) -> None:
    assert is_refused(method, "/stance")
    assert is_refused(method, "/stance", sec_fetch_site="cross-site")
    assert is_refused(method, "/stance", sec_fetch_site="same-site")
    assert is_refused(method, "/stance", sec_fetch_site="none")
    assert is_refused(method, "/stance", origin="https://evil.example")
    assert is_refused(method, "/stance", origin="null")
    assert is_refused(method, "/stance", origin=f"http://{HOME}", sec_fetch_site="cross-site")
    assert is_refused(method, "/stance", origin="http://127.0.0.1:8400", sec_fetch_site="same-origin")
    assert is_refused(method, "/stance", origin="null", sec_fetch_site="cross-site")
    assert not is_refused(method, "/stance", sec_fetch_site="same-origin")
    assert not is_refused(method, "/stance", origin="null", sec_fetch_site="same-origin"), "as Chromium sends a form"
    assert not is_refused(method, "/stance", origin=f"http://{HOME}")
    assert not is_refused(method, "/stance", origin=f"http://{HOME}", sec_fetch_site="same-origin")


@pytest.mark.parametrize("path", ["/story/n1", "/", "/privacy", "/pictures/n1.webp"])
def test_link_or_picture_on_another_site_opens_nothing(path: str) -> None:
    assert is_refused("GET", path, sec_fetch_site="cross-site")
    assert is_refused("GET", path, sec_fetch_site="same-site")
    assert is_refused("GET", path, referer="https://evil.example/page")
    assert not is_refused("GET", path, sec_fetch_site="none")
    assert not is_refused("GET", path, sec_fetch_site="same-origin")
    assert not is_refused("GET", path)


def test_prefetch_records_no_click() -> None:
    assert is_refused("GET", "/story/n1", sec_purpose="prefetch;prerender", sec_fetch_site="same-origin")
    assert is_refused("GET", "/story/n1", purpose="prefetch")
    assert not is_refused("GET", "/fresh", sec_purpose="prefetch", sec_fetch_site="same-origin")


def test_every_answer_forbids_storing_and_outside_resources() -> None:
    app = Starlette(routes=[Route("/", lambda _: PlainTextResponse("news"))])
    app.add_middleware(LocalOriginMiddleware, port=8401, key=page_key())
    client = enter(TestClient(app, base_url=f"http://{HOME}"), page_key())
    for answer in (client.get("/"), client.get("/", headers={"sec-fetch-site": "cross-site"}), client.get("/none")):
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-dns-prefetch-control"] == "off"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert client.get("/").text == "news"
    assert "news" not in client.get("/", headers={"sec-fetch-site": "cross-site"}).text


def test_route_may_allow_caching_of_its_answer() -> None:
    kept = PlainTextResponse("style", headers={"cache-control": "private, max-age=60"})
    app = Starlette(routes=[Route("/", lambda _: kept)])
    app.add_middleware(LocalOriginMiddleware, port=8401, key=page_key())
    client = enter(TestClient(app, base_url=f"http://{HOME}"), page_key())
    assert client.get("/").headers["cache-control"] == "private, max-age=60"
