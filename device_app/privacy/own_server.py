"""Seals what a reader's device asks of that reader's own server, on the same machine (`ownfeed read`)."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from device_app.privacy.sealed import JSON, Charge, Sealed, close, json_payload
from protocol.own_feeds import OwnMessage

HERE = "own_server"
"""The mechanism of a request that stays on this machine."""


def is_this_machine(url: str) -> bool:
    """Return whether an address is a loopback one, by its number: a name could lead anywhere."""
    try:
        return ip_address(urlsplit(url).hostname or "").is_loopback
    except ValueError:
        return False


def seal_for_own_server(message: OwnMessage, url: str, words: str) -> Sealed[OwnMessage]:
    """Seal a request about feeds for the reader's own server. Raises ValueError unless its address is a loopback one.

    Formal guarantees: it leaves the device's process, but not this machine: epsilon 0. Nothing that is read enters it;
    it says which feeds the reader wants, which their publishers learn from the requests for them.
    """
    if not is_this_machine(url):
        raise ValueError(f"{url} is not on this machine, so nothing about this reader's feeds is sent there")
    return close(message, json_payload(message), JSON, Charge("none", HERE), words)
