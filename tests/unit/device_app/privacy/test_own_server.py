"""Requests to a reader's own server are sealed only for an address of this machine."""

from __future__ import annotations

import pytest

from device_app.privacy.requests import is_this_machine, seal_for_own_server
from protocol.own_feeds import NamedFeed


@pytest.mark.parametrize("url", ["http://127.0.0.1:8400", "http://127.8.9.1", "http://[::1]:8400/"])
def test_loopback_address_counts_as_this_machine(url: str) -> None:
    assert is_this_machine(url)
    assert seal_for_own_server(NamedFeed(key="k"), url, "words").charge.epsilon == 0


@pytest.mark.parametrize(
    "url",
    ["https://news.example", "http://192.168.1.5:8400", "http://127.0.0.1.evil.example/", "http://localhost:8400", "x"],
)
def test_addresses_of_other_machines_and_host_names_are_refused(url: str) -> None:
    assert not is_this_machine(url)
    with pytest.raises(ValueError, match="is not on this machine"):
        seal_for_own_server(NamedFeed(key="k"), url, "words")
