"""Network addresses as rounds bound them: so many places in a round for one, and so many check-ins in a minute.

An address is personal. Here it becomes a keyed hash, which is kept with a place while its round is under way and no
longer; the address itself is written nowhere.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path

from backend.errors import BackendSettingsRefused
from backend.rate_limits import TokenBuckets
from backend.secret_files import load_or_create_secret

IPV6_PREFIX = 64
"""Bits of an IPv6 address that are a subscriber's; whoever has one has 2^64 addresses below it."""
SOURCE_CHARS = 32
KEY_BYTES = 32
UNKNOWN = "unknown"
"""Of connections that have no address, such as a Unix socket's."""

Address = IPv4Address | IPv6Address


@dataclass(frozen=True)
class AddressRules:
    """What is allowed of one client address: a whole IPv4 address, or an IPv6 network of 64 bits.

    Args:
        places: in one round; 0: any number.
        check_ins_per_minute: and as many at once; 0: any number.
        proxies: networks whose X-Forwarded-For is believed, as 'address/bits'.
        unbounded: networks for which nothing of this holds.
    """

    places: int
    check_ins_per_minute: int = 0
    proxies: tuple[str, ...] = ()
    unbounded: tuple[str, ...] = ()


@dataclass
class ClientAddresses:
    """Names the source of a request, and counts its check-ins.

    Args:
        rules: what is allowed.
        key: of the hash; secret, and the same in all processes of a server.
        clock: seconds that only grow.
    """

    rules: AddressRules
    key: bytes
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._check_ins = TokenBuckets(self.rules.check_ins_per_minute, self.clock)
        self._proxies = networks("trusted_proxies", self.rules.proxies)
        self._unbounded = networks("unbounded_addresses", self.rules.unbounded)

    def source(self, peer: str | None, forwarded_for: Sequence[str] = ()) -> str | None:
        """A keyed hash of where a request comes from, or None for an address without bounds.

        peer is the other end of the connection. Only where that is a trusted proxy are the values of X-Forwarded-For
        read, from the right: every trusted proxy is passed over, and the first other address is the client's.
        """
        address = _parsed(peer)
        hops = [hop for value in forwarded_for for hop in value.split(",")]
        while address is not None and _within(address, self._proxies) and hops:
            before = _parsed(hops.pop())
            if before is None:
                break
            address = before
        if address is not None and _within(address, self._unbounded):
            return None
        return hmac.new(self.key, _bounded_part(address).encode("ascii"), sha256).hexdigest()[:SOURCE_CHARS]

    def seconds_to_wait(self, source: str | None) -> float:
        """0 if this check-in is within what the source may do in a minute, and it is counted; else how long to wait.

        A token bucket: a minute's check-ins may come at once, and are given back evenly.
        """
        return self._check_ins.seconds_to_wait(source)


def networks(name: str, written: Sequence[str]) -> tuple[str, ...]:
    """The same, checked. Raises BackendSettingsRefused naming the setting."""
    for one in written:
        try:
            ip_network(one)
        except ValueError as broken:
            raise BackendSettingsRefused(
                f"{name}: {one!r} is no network ({broken}).", field=name, limit="such as 10.0.0.0/8 or fd00::/8"
            ) from broken
    return tuple(written)


def load_or_create_address_key(path: Path) -> bytes:
    """32 random bytes, made at the first start, readable by their owner only.

    Raises BackendSettingsRefused for a file of another length: addresses would count as others than they did, and on
    other machines still do.
    """
    key = load_or_create_secret(path, lambda: secrets.token_bytes(KEY_BYTES))
    if len(key) != KEY_BYTES:
        raise BackendSettingsRefused(
            f"The key of the address hashes in {path} is damaged: {len(key)} bytes instead of {KEY_BYTES}. Put it back "
            "from another machine of this backend or from a backup; without any, remove the file, and the next start "
            "makes another one.",
            field=path.name,
            limit=f"{KEY_BYTES} bytes",
        )
    return key


def _parsed(written: str | None) -> Address | None:
    try:
        address = ip_address((written or "").strip().partition("%")[0])
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def _within(address: Address, those: Sequence[str]) -> bool:
    return any(address in ip_network(one) for one in those)


def _bounded_part(address: Address | None) -> str:
    if isinstance(address, IPv6Address):
        return str(IPv6Network((address, IPV6_PREFIX), strict=False))
    return UNKNOWN if address is None else str(address)
