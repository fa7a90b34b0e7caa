"""Feeds that lead this server to its own machine, played by servers of the test on other loopback addresses.

127.0.0.2 stands for the feed's public server: it is the one network that the test allows. The attacker's goals listen
on 127.0.0.1. Oracle: the requests that they get.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path

import httpx
import pytest

from backend.news.errors import SourceUnreachable
from backend.news.public_addresses import AddressRefused, CheckedTransport, is_public, networks
from backend.news.sources.download import Document, fetch
from tests.doubles.certificates import certificate_of
from tests.doubles.recording_web_server import FEED, RecordingWebServer

FEED_HOST, SECRET_HOST = "127.0.0.2", "127.0.0.1"
ALLOWED = networks([f"{FEED_HOST}/32"])


@pytest.fixture
def feed_server() -> Iterator[RecordingWebServer]:
    made = RecordingWebServer(FEED_HOST)
    yield made
    made.close()


@pytest.fixture
def secret() -> Iterator[RecordingWebServer]:
    made = RecordingWebServer(SECRET_HOST)
    made.answer = lambda _: b"<rss version='2.0'><channel><title>the operator's token</title></channel></rss>"
    yield made
    made.close()


LOOPBACKS = ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "127.1", "[::ffff:127.0.0.1]"]


@pytest.mark.parametrize("host", [*LOOPBACKS, "0.0.0.0", "[::]"])
def test_redirect_to_this_machine_is_not_followed(
    feed_server: RecordingWebServer, secret: RecordingWebServer, host: str
) -> None:
    feed_server.answer = lambda _: f"http://{host}:{secret.port}/v1/admin/rounds"
    with pytest.raises(SourceUnreachable, match=r"is not public|has no address"):
        fetch(feed_server.url, allowed=ALLOWED)
    assert len(feed_server.asked) == 1
    assert secret.asked == []


@pytest.mark.parametrize("host", LOOPBACKS)
def test_url_of_this_machine_is_not_fetched(secret: RecordingWebServer, host: str) -> None:
    with pytest.raises(SourceUnreachable, match=r"is not public|has no address"):
        fetch(f"http://{host}:{secret.port}/feed")
    assert secret.asked == []


def test_every_redirect_is_checked_and_a_loop_ends(feed_server: RecordingWebServer, secret: RecordingWebServer) -> None:
    hops = {"/": "/two", "/two": f"http://{FEED_HOST}:{feed_server.port}/three", "/three": secret.url}
    feed_server.answer = lambda path: hops[path]
    with pytest.raises(SourceUnreachable, match="is not public"):
        fetch(feed_server.url, allowed=ALLOWED)
    assert [path for _, path in feed_server.asked] == ["/", "/two", "/three"]
    assert secret.asked == []

    feed_server.asked.clear()
    feed_server.answer = lambda path: path + "x"
    with pytest.raises(SourceUnreachable, match="more than 5 redirects"):
        fetch(feed_server.url, allowed=ALLOWED)
    assert len(feed_server.asked) == 6


def test_host_name_is_resolved_once_so_a_later_answer_cannot_redirect_it(
    feed_server: RecordingWebServer, secret: RecordingWebServer
) -> None:
    answers = iter([[FEED_HOST], [SECRET_HOST], [SECRET_HOST]])
    asked: list[str] = []

    def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return next(answers)

    with httpx.Client(transport=CheckedTransport(ALLOWED, resolve=rebinding)) as client:
        answer = client.get(f"http://feeds.example:{feed_server.port}/feed")
        assert answer.content == FEED
        assert asked == ["feeds.example"], "once a request: what was checked is what was connected to"
        assert feed_server.asked == [(f"feeds.example:{feed_server.port}", "/feed")], "by its name, for virtual hosts"
        with pytest.raises(AddressRefused, match="is not public"):
            client.get(f"http://feeds.example:{secret.port}/feed")
    assert secret.asked == []


def test_only_public_addresses_of_a_name_are_connected_to(feed_server: RecordingWebServer) -> None:
    def both(host: str, port: int) -> list[str]:
        return [SECRET_HOST, FEED_HOST]

    with httpx.Client(transport=CheckedTransport(ALLOWED, resolve=both)) as client:
        assert client.get(f"http://feeds.example:{feed_server.port}/").content == FEED
    assert len(feed_server.asked) == 1


def test_tls_is_verified_against_the_name_not_the_address() -> None:
    seen: list[httpx.Request] = []

    def carry(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200)

    transport = CheckedTransport(resolve=lambda host, port: ["93.184.216.34"], inner=httpx.MockTransport(carry))
    with httpx.Client(transport=transport) as client:
        client.get("https://feeds.example/a?b=c")
    (request,) = seen
    assert str(request.url) == "https://93.184.216.34/a?b=c"
    assert request.extensions["sni_hostname"] == "feeds.example"
    assert request.headers["host"] == "feeds.example"


def test_second_host_name_at_the_same_address_gets_its_own_verified_connection(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An attacker answers for another's name through a lying resolver, and has a certificate only for its own host at
    the same address.

    Regression: the connection to that host was reused, and its answers were accepted.
    """
    certificate, key = certificate_of("feeds.example", tmp_path)
    trusting = ssl.create_default_context(cafile=certificate)
    monkeypatch.setattr("backend.news.public_addresses._certificates", lambda unverified: trusting)
    answering = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    answering.load_cert_chain(certificate, key)
    server = RecordingWebServer(FEED_HOST, tls=answering)
    try:
        with httpx.Client(transport=CheckedTransport(ALLOWED, resolve=lambda host, port: [FEED_HOST])) as client:
            assert client.get(f"https://feeds.example:{server.port}/").content == FEED
            with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
                client.get(f"https://paper.example:{server.port}/")
    finally:
        server.close()
    assert [host.partition(":")[0] for host, _ in server.asked] == ["feeds.example"]


def test_each_request_on_a_reused_connection_is_checked(
    feed_server: RecordingWebServer, secret: RecordingWebServer
) -> None:
    """IPv4 and IPv6 side by side, rebound between two redirects of one download."""
    answers = iter([["::1", FEED_HOST, SECRET_HOST], [SECRET_HOST, "::1"], [FEED_HOST]])
    feed_server.answer = lambda path: "/again"
    transport = CheckedTransport(ALLOWED, resolve=lambda host, port: next(answers))
    with pytest.raises(SourceUnreachable, match=r"the address of feeds\.example, 127\.0\.0\.1, ::1, is not public"):
        fetch(f"http://feeds.example:{feed_server.port}/", transport=transport)
    assert (len(feed_server.asked), secret.asked) == (1, [])


@pytest.mark.parametrize("port", [22, 25, 110, 389, 1023])
def test_ports_of_other_services_are_refused(port: int) -> None:
    with pytest.raises(SourceUnreachable, match=f"port {port} of {FEED_HOST} is not a web port"):
        fetch(f"http://{FEED_HOST}:{port}/", allowed=ALLOWED)


@pytest.mark.parametrize(
    "text",
    """
    127.0.0.1 10.1.2.3 172.16.0.1 192.168.1.1 169.254.169.254 100.64.0.1 0.0.0.0 224.0.0.1 255.255.255.255 240.0.0.1
    192.0.2.1 198.18.0.1 ::1 :: fe80::1 fc00::1 ff02::1 ::ffff:10.0.0.1 64:ff9b::7f00:1 64:ff9b:1::a00:1 2002:7f00:1::
    2001:db8::1 192.0.0.192 168.63.129.16 fec0::a9fe:a9fe 64:ff9b:1:a9fe:a9:fe00:808:808 192.88.99.1
    """.split(),  # noqa: SIM905 (a list would take a screen)
)
def test_private_addresses_are_recognised(text: str) -> None:
    assert not is_public(ip_address(text))


@pytest.mark.parametrize("text", ["93.184.216.34", "2606:2800:220:1::1", "64:ff9b::5db8:d822", "::ffff:93.184.216.34"])
def test_public_addresses_are_recognised(text: str) -> None:
    assert is_public(ip_address(text))


def test_network_allowed_by_the_operator_is_fetched_from(secret: RecordingWebServer) -> None:
    found = fetch(secret.url, allowed=networks(["127.0.0.0/8"]))
    assert isinstance(found, Document)
    assert len(secret.asked) == 1


def test_environment_proxy_is_not_used(
    feed_server: RecordingWebServer, secret: RecordingWebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, secret.url)
    assert fetch(feed_server.url, allowed=ALLOWED) is not None
    assert (len(feed_server.asked), secret.asked) == (1, [])
