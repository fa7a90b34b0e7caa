"""The certificate of a home network's pages, and which address they are served on. Oracle: Python's ssl module."""

from __future__ import annotations

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from starlette.responses import PlainTextResponse

from backend.server.home_network import VALID, NoHomeNetwork, home_address, own_certificate, serve_beside
from tests.doubles.small_world import free_port


@pytest.mark.parametrize("address", ["192.168.1.5", "10.0.0.7", "172.20.3.4"])
def test_private_address_is_accepted(address: str) -> None:
    assert home_address(address) == address


@pytest.mark.parametrize("address", ["8.8.8.8", "127.0.0.1", "0.0.0.0", "fe80::1", "example.org", "192.168.1"])
def test_unsuitable_address_is_named_in_the_error(address: str) -> None:
    with pytest.raises(NoHomeNetwork, match="--lan-address"):
        home_address(address)


def test_certificate_is_kept_and_renewed_for_another_address_or_before_expiry(tmp_path: Path) -> None:
    now = datetime(2026, 11, 28, tzinfo=UTC)
    first = own_certificate(tmp_path, "192.168.1.5", now)
    assert own_certificate(tmp_path, "192.168.1.5", now + timedelta(days=700)) == first
    assert first.key.stat().st_mode & 0o077 == 0
    other = own_certificate(tmp_path, "192.168.1.6", now)
    assert other.fingerprint != first.fingerprint
    assert own_certificate(tmp_path, "192.168.1.6", now + VALID).fingerprint != other.fingerprint


def test_certificate_is_valid_only_for_its_address(tmp_path: Path) -> None:
    made = own_certificate(tmp_path, "192.168.1.5")
    found = x509.load_pem_x509_certificate(made.certificate.read_bytes()).extensions
    names = found.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [*names] == [x509.IPAddress(ipaddress.ip_address("192.168.1.5"))]
    limits = found.get_extension_for_class(x509.NameConstraints)
    assert limits.critical
    assert limits.value.permitted_subtrees == [x509.IPAddress(ipaddress.ip_network("192.168.1.5/32"))]


def test_pages_are_reachable_only_by_trusting_the_certificate(tmp_path: Path) -> None:
    made, port = own_certificate(tmp_path, "127.0.0.1"), free_port()
    server = serve_beside(PlainTextResponse("the pages"), "127.0.0.1", port, made, ws="none", log_level="error")
    trusting = ssl.create_default_context(cafile=str(made.certificate))
    transport = httpx.HTTPTransport(verify=trusting, retries=8)
    with httpx.Client(transport=transport, trust_env=False) as client:
        assert client.get(f"https://127.0.0.1:{port}/").text == "the pages"
    with pytest.raises(httpx.ConnectError, match="certificate"):
        httpx.get(f"https://127.0.0.1:{port}/", trust_env=False)
    server.should_exit = True
