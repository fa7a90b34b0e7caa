"""Where a check-in comes from: whom a server believes, what it keeps, and how often one source may ask."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from backend.errors import BackendSettingsRefused
from backend.federation.rounds.client_addresses import AddressRules, ClientAddresses, load_or_create_address_key
from tests.doubles.clock import StillClock

KEY = bytes(range(32))


def addresses(**rules: object) -> ClientAddresses:
    return ClientAddresses(AddressRules(**{"places": 3, **rules}), KEY)  # type: ignore[arg-type]


def test_one_address_is_one_source_and_another_is_another() -> None:
    those = addresses()
    assert those.source("198.51.100.7") == those.source("198.51.100.7") == those.source("::ffff:198.51.100.7")
    assert those.source("198.51.100.7") != those.source("198.51.100.8")
    assert those.source("2001:db8::1") == those.source("2001:db8::ffff:1") == those.source("2001:db8::1%eth0")
    assert those.source("2001:db8::1") != those.source("2001:db8:0:1::1")
    assert those.source(None) == those.source("a socket")
    assert those.source("198.51.100.7") != ClientAddresses(AddressRules(3), bytes(32)).source("198.51.100.7")


def test_only_a_trusted_proxy_says_who_is_behind_it_and_the_client_cannot_add_to_it() -> None:
    behind = addresses(proxies=("10.0.0.0/8",))
    client = behind.source("198.51.100.7")
    assert behind.source("10.1.1.1", ["198.51.100.7"]) == client
    assert behind.source("10.1.1.1", ["198.51.100.7, 10.2.2.2"]) == client
    assert behind.source("10.1.1.1", ["198.51.100.7", "10.2.2.2"]) == client
    assert behind.source("10.1.1.1", ["203.0.113.1, 198.51.100.7"]) == client, "what the client wrote itself"
    assert behind.source("203.0.113.1", ["198.51.100.7"]) == behind.source("203.0.113.1")
    assert behind.source("10.1.1.1", ["nonsense"]) == behind.source("10.1.1.1")


def test_an_unbounded_network_has_no_source_and_nobody_forwards_himself_into_it() -> None:
    those = addresses(unbounded=("127.0.0.0/8",), proxies=("10.0.0.0/8",))
    assert those.source("127.0.0.1") is None
    assert those.source("198.51.100.7", ["127.0.0.1"]) is not None
    assert addresses().source("127.0.0.1") is not None, "loopback is bounded unless the settings say so"


def test_check_ins_come_back_evenly_and_no_source_pays_for_another() -> None:
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
def test_a_network_that_is_none_is_refused_by_the_name_of_its_setting(name: str) -> None:
    setting = {"proxies": "trusted_proxies", "unbounded": "unbounded_addresses"}[name]
    with pytest.raises(BackendSettingsRefused, match=f"{setting}: '10.0.0.300/8' is no network"):
        addresses(**{name: ("10.0.0.300/8",)})


def test_the_key_is_made_once_and_is_its_owners(tmp_path: Path) -> None:
    path = tmp_path / "addresses.key"
    key = load_or_create_address_key(path)
    assert load_or_create_address_key(path) == key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("size", [0, 1, 31, 33, 4_096])
def test_a_key_of_another_length_is_named_and_not_replaced(tmp_path: Path, size: int) -> None:
    path = tmp_path / "addresses.key"
    path.write_bytes(bytes(size))
    with pytest.raises(BackendSettingsRefused, match=rf"addresses\.key is damaged: {size} bytes instead of 32"):
        load_or_create_address_key(path)
    assert path.read_bytes() == bytes(size)
