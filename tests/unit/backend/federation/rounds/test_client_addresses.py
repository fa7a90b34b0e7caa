"""The source of a check-in: which headers a server trusts, what it stores, and how often one source may ask."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from backend.errors import BackendSettingsRefused
from backend.federation.rounds.selection import AddressRules, ClientAddresses, load_or_create_address_key
from tests.doubles.clock import StillClock

KEY = bytes(range(32))


def addresses(**rules: object) -> ClientAddresses:
    return ClientAddresses(AddressRules(**{"places": 3, **rules}), KEY)  # type: ignore[arg-type]


def test_each_ipv4_address_and_ipv6_network_is_a_separate_source() -> None:
    those = addresses()
    assert those.source("198.51.100.7") == those.source("198.51.100.7") == those.source("::ffff:198.51.100.7")
    assert those.source("198.51.100.7") != those.source("198.51.100.8")
    assert those.source("2001:db8::1") == those.source("2001:db8::ffff:1") == those.source("2001:db8::1%eth0")
    assert those.source("2001:db8::1") != those.source("2001:db8:0:1::1")
    assert those.source(None) == those.source("a socket")
    assert those.source("198.51.100.7") != ClientAddresses(AddressRules(3), bytes(32)).source("198.51.100.7")


def test_forwarded_address_is_trusted_only_from_a_known_proxy() -> None:
    behind = addresses(proxies=("10.0.0.0/8",))
    client = behind.source("198.51.100.7")
    assert behind.source("10.1.1.1", ["198.51.100.7"]) == client
    assert behind.source("10.1.1.1", ["198.51.100.7, 10.2.2.2"]) == client
    assert behind.source("10.1.1.1", ["198.51.100.7", "10.2.2.2"]) == client
    assert behind.source("10.1.1.1", ["203.0.113.1, 198.51.100.7"]) == client, "what the client wrote itself"
    assert behind.source("203.0.113.1", ["198.51.100.7"]) == behind.source("203.0.113.1")
    assert behind.source("10.1.1.1", ["nonsense"]) == behind.source("10.1.1.1")


FORGED = [
    [""], [","], [" , , "], ["127.0.0.1"], ["127.0.0.1, 10.1.1.1"], ["10.1.1.1"] * 50, ["::1"], ["::ffff:127.0.0.1"],
    ["[::1]:80"], ["unknown"], ["_hidden"], ["unix:"], ["localhost"], ["198.51.100.9:x"], ["[2001:db8::1"], ["0x7f.1"],
    ["2130706433"], ["127.0.0.1%eth0"], ["127.0.0.1;203.0.113.1"], ["\xb2.\xb2.\xb2.\xb2"], ["\x00"], ["a" * 60_000],
    ["127.0.0.1, " * 5_000], ["for=127.0.0.1"], ["127.0.0.1\t"], ["203.0.113.1", "203.0.113.2, 203.0.113.3"],
]  # fmt: skip
"""What a client may send before the proxy adds its own."""


@pytest.mark.parametrize("forged", FORGED, ids=lambda forged: repr(forged)[:30])
def test_client_cannot_spoof_the_address_its_proxy_saw(forged: list[str]) -> None:
    rules = {"proxies": ("10.0.0.0/8",), "unbounded": ("127.0.0.0/8", "10.0.0.0/8")}
    behind, bare = addresses(**rules), addresses(unbounded=("127.0.0.0/8", "10.0.0.0/8"))
    client = behind.source("198.51.100.7")
    assert behind.source("10.1.1.1", [*forged, "198.51.100.7"]) == client, "a header of its own, as HAProxy's"
    *others, last = forged
    assert behind.source("10.1.1.1", [*others, f"{last}, 198.51.100.7"]) == client, "at the end of the last, as nginx's"
    assert behind.source("198.51.100.7", forged) == client, "past the proxy"
    assert bare.source("198.51.100.7", forged) == bare.source("198.51.100.7"), "no proxy is named"


@pytest.mark.parametrize(
    "said", ["198.51.100.7:443", " 198.51.100.7 ", "[::ffff:198.51.100.7]:1", "::ffff:198.51.100.7"]
)
def test_forwarded_address_may_have_a_port_and_spaces(said: str) -> None:
    behind = addresses(proxies=("10.0.0.0/8",))
    assert behind.source("10.1.1.1", [f"203.0.113.1, {said}"]) == behind.source("198.51.100.7")
    assert behind.source("::ffff:10.1.1.1", ["[2001:db8::1]:443"]) == behind.source("2001:db8::2")


@pytest.mark.parametrize("said", ["unix:", "unknown", "", "198.51.100.7:", "[::1", "198.51.100.7:123456"])
def test_unreadable_forwarded_address_is_still_rate_limited(said: str) -> None:
    """Regression: behind a proxy with an unbounded address, such as this machine's, no client had bounds."""
    behind = addresses(proxies=("127.0.0.1/32",), unbounded=("127.0.0.0/8",))
    assert behind.source("127.0.0.1", [said]) == addresses().source("127.0.0.1")
    assert behind.source("127.0.0.1") is None, "of this machine itself"


def test_addresses_of_one_ipv6_network_are_one_source() -> None:
    those = addresses(proxies=("10.0.0.0/8",))
    rotated = {those.source("10.1.1.1", [f"2001:db8:1:2:{at:x}:{at * 7:x}::{at:x}"]) for at in range(2_000)}
    assert rotated == {those.source("2001:db8:1:2::")}


def test_addresses_in_unlimited_networks_have_no_source_and_cannot_be_faked() -> None:
    those = addresses(unbounded=("127.0.0.0/8",), proxies=("10.0.0.0/8",))
    assert those.source("127.0.0.1") is None
    assert those.source("198.51.100.7", ["127.0.0.1"]) is not None
    assert addresses().source("127.0.0.1") is not None, "loopback is bounded unless the settings say so"


def test_check_in_allowance_refills_evenly_for_each_source() -> None:
    clock = StillClock()
    those = ClientAddresses(AddressRules(3, check_ins_per_minute=6), KEY, clock=lambda: clock().timestamp())
    assert [those.seconds_to_wait("a") for _ in range(6)] == [0.0] * 6
    assert those.seconds_to_wait("a") == pytest.approx(10.0)
    assert those.seconds_to_wait("b") == 0.0
    assert those.seconds_to_wait(None) == 0.0
    clock.go_on(9.0)
    assert those.seconds_to_wait("a") == pytest.approx(1.0)
    clock.go_on(1.0)
    assert those.seconds_to_wait("a") == 0.0
    assert those.seconds_to_wait("a") > 0.0


@pytest.mark.parametrize("name", ["proxies", "unbounded"])
def test_error_for_an_invalid_network_names_the_setting(name: str) -> None:
    setting = {"proxies": "trusted_proxies", "unbounded": "unbounded_addresses"}[name]
    with pytest.raises(BackendSettingsRefused, match=f"{setting}: '10.0.0.300/8' is not a network"):
        addresses(**{name: ("10.0.0.300/8",)})


def test_address_key_is_created_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / "addresses.key"
    key = load_or_create_address_key(path)
    assert load_or_create_address_key(path) == key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("size", [0, 1, 31, 33, 4_096])
def test_address_key_of_wrong_length_is_named_in_the_error_and_not_replaced(tmp_path: Path, size: int) -> None:
    path = tmp_path / "addresses.key"
    path.write_bytes(bytes(size))
    with pytest.raises(BackendSettingsRefused, match=rf"addresses\.key is damaged: {size} bytes instead of 32"):
        load_or_create_address_key(path)
    assert path.read_bytes() == bytes(size)
