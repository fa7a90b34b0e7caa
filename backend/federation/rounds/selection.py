"""Select devices for a round, and limit what one network address may take.

Devices have no identity, so the server can't draw from a list of them: it draws independently at each check-in. A
device that was not drawn checks in again later and is drawn again, so all waiting devices have the same chance at every
check-in.

A network address may have a limited number of places in a round and of check-ins per minute. Addresses are personal
data, so only a keyed hash is kept with a place, and only while its round is under way; the address itself is never
stored.

How many devices wait for a round is estimated from their polls, since the server can't identify them.
"""

import hmac
import math
import re
import secrets
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path

from sqlalchemy import Engine, delete, func, or_, select

from backend.db.engine import reading_session, writing_session
from backend.db.tables import PollCountRow
from backend.errors import BackendSettingsRefused
from backend.server.request_limits import TokenBuckets
from backend.storage.durable_files import load_or_create_secret

WINDOW_SEC = 30.0
"""The time over which polls are counted: twice the usual interval between a device's polls, so few are missed."""
POLLS_KEPT = 100_000
PUBLISH_SEC = 2.0
"""The interval at which a process writes its count to the database."""
SWEEP_AGE_SEC = 3_600.0


class PollCounter:
    """Counts the polls for a round over the last half minute.

    A device polls several times within the window, about twice at its usual settings, so the number of devices is an
    estimate (`devices`); devices that poll more often, or a reader's page that polls too, make it too large. The
    estimate opens rounds and sets the chance of a place. Nothing secret depends on it, but a client that forges many
    polls would leave honest devices no chance. Polls of one network address are therefore counted only up to the number
    of places it may have. Processes that serve devices together, on one machine or several, share their counts through
    a row each in the database; these are at most two seconds old.

    Args:
        clock: returns the time in UTC; it may be set forward or back.
        engine: the database that all processes of this server share; None: there is one process.
        window_sec: the time over which polls are counted.
        places: how many places one source may have in a round; 0: any number.
        per_device: how often a waiting device polls within the window.
    """

    def __init__(
        self,
        clock: Callable[[], datetime],
        engine: Engine | None = None,
        window_sec: float = WINDOW_SEC,
        places: int = 0,
        per_device: float = 1.0,
    ) -> None:
        self._clock, self._window, self._places = clock, timedelta(seconds=window_sec), places
        self.per_device = per_device
        self._polls: deque[tuple[datetime, str | None]] = deque()
        self._of_source: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._engine, self._process = engine, secrets.token_hex(8)
        self._published_at: datetime | None = None

    def note(self, source: str | None = None) -> None:
        """Count one poll of a device that waits for a round.

        source: `ClientAddresses.source` of the device; None for an address without limits.
        """
        with self._lock:
            self._forget_old()
            if len(self._polls) >= POLLS_KEPT:
                return
            if source is not None:
                if self._places and self._of_source[source] >= self._places:
                    return
                self._of_source[source] += 1
            self._polls.append((self._clock(), source))

    def publish(self) -> None:
        """Write this process's count for the other processes, at most every PUBLISH_SEC; call it often."""
        now = self._clock()
        since = None if self._published_at is None else now - self._published_at
        if self._engine is None or (since is not None and timedelta(0) <= since < timedelta(seconds=PUBLISH_SEC)):
            return
        count = self._own()
        if not count and self._published_at is None:
            return
        self._published_at = now
        ended = timedelta(seconds=SWEEP_AGE_SEC)
        with writing_session(self._engine) as session:
            session.merge(PollCountRow(process=self._process, told_at=now, polls=count))
            session.execute(
                delete(PollCountRow).where(
                    PollCountRow.process != self._process,
                    or_(PollCountRow.told_at < now - ended, PollCountRow.told_at > now + ended),
                )
            )

    def waiting(self) -> int:
        """Return the number of polls within the window, over all processes."""
        return self._own() + self._others()

    def devices(self) -> int:
        """Return the estimated number of waiting devices, rounded up."""
        return math.ceil(self.waiting() / self.per_device)

    def fair_chance(self, places: int) -> float:
        """Return the admission probability that gives about `places` waiting devices a place.

        This approximates a draw from a list of devices. Within a window the first to poll has no advantage, because a
        device that was not drawn is drawn independently at its next poll.
        """
        return min(1.0, places / max(1, self.waiting()))

    def _own(self) -> int:
        with self._lock:
            self._forget_old()
            return len(self._polls)

    def _forget_old(self) -> None:
        """Drop polls outside the window.

        This includes polls that lie in the future since the clock was set back.
        """
        now = self._clock()
        while self._polls and not now - self._window < self._polls[0][0] <= now:
            source = self._polls.popleft()[1]
            if source is not None:
                self._of_source[source] -= 1
                if not self._of_source[source]:
                    del self._of_source[source]

    def _others(self) -> int:
        """Return the counts of other processes within the window.

        The clocks of other machines may be ahead by up to a window.
        """
        if self._engine is None:
            return 0
        now = self._clock()
        counts = select(func.coalesce(func.sum(PollCountRow.polls), 0)).where(
            PollCountRow.process != self._process,
            PollCountRow.told_at > now - self._window,
            PollCountRow.told_at < now + self._window,
        )
        with reading_session(self._engine) as session:
            return int(session.scalars(counts).one())


_SOURCE = secrets.SystemRandom()


def places(cohort: int, over_selection: float) -> int:
    """Return how many places to give for a cohort.

    An over_selection above 1 compensates for devices that drop out.
    """
    return math.ceil(cohort * over_selection)


def admitted(rate: float, uniform: Callable[[], float] = _SOURCE.random) -> bool:
    """Return True with probability `rate`; a rate of 1 admits every device."""
    return rate >= 1.0 or uniform() < rate


def draw_pseudonym() -> str:
    """Return a random name of 192 bits for one device in one round.

    It is linked to nothing else.
    """
    return secrets.token_urlsafe(24)


IPV6_PREFIX = 64
"""The bits of an IPv6 address that identify a subscriber, who has all 2^64 addresses with that prefix."""
SOURCE_CHARS = 32
KEY_BYTES = 32
UNKNOWN = "unknown"
"""The source of connections without an address, such as those of a Unix socket."""

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


@dataclass(frozen=True)
class AddressRules:
    """Limits for one client address: a whole IPv4 address, or an IPv6 network of 64 bits.

    Args:
        places: number in one round; 0: any number.
        check_ins_per_minute: this is also the largest burst; 0: any number.
        proxies: networks, as 'address/bits', whose X-Forwarded-For header is trusted.
        unbounded: networks without any of these limits.
    """

    places: int
    check_ins_per_minute: int = 0
    proxies: tuple[str, ...] = ()
    unbounded: tuple[str, ...] = ()


@dataclass
class ClientAddresses:
    """Identifies the source of a request by a keyed hash, and limits its check-ins.

    Args:
        rules: the limits.
        key: the secret key of the hash, the same in all processes of a server.
        clock: monotonic seconds.
    """

    rules: AddressRules
    key: bytes
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._check_ins = TokenBuckets(self.rules.check_ins_per_minute, self.clock)
        self._proxies = networks("trusted_proxies", self.rules.proxies)
        self._unbounded = networks("unbounded_addresses", self.rules.unbounded)

    def source(self, peer: str | None, forwarded_for: Sequence[str] = ()) -> str | None:
        """Return a keyed hash of a request's origin, or None for an address without limits.

        peer is the other end of the connection. If it is a trusted proxy, the values of X-Forwarded-For are read from
        the right: trusted proxies are skipped, and the first other address is the client's. If a proxy forwards an
        address that can't be parsed, the proxy's own address is used, and it is limited even if it is in `unbounded`.
        """
        address, is_read = _parsed(peer), True
        hops = [hop for value in forwarded_for for hop in value.split(",")]
        while is_read and address is not None and _within(address, self._proxies) and hops:
            before = _parsed(_without_port(hops.pop()))
            is_read, address = before is not None, before or address
        if is_read and address is not None and _within(address, self._unbounded):
            return None
        return hmac.digest(self.key, _bounded_part(address).encode("ascii"), "sha256").hex()[:SOURCE_CHARS]

    def seconds_to_wait(self, source: str | None) -> float:
        """Return 0 and count the check-in if it is within the limit, else how long to wait.

        The limit is a token bucket: a minute's check-ins may come in one burst, and tokens return at a steady rate.
        """
        return self._check_ins.seconds_to_wait(source)


def networks(name: str, written: Sequence[str]) -> tuple[Network, ...]:
    """Return the networks that these texts describe.

    Raises BackendSettingsRefused naming the setting.
    """
    found = []
    for one in written:
        try:
            found.append(ip_network(one))
        except ValueError as broken:
            raise BackendSettingsRefused(
                f"{name}: {one!r} is not a network ({broken}).", field=name, limit="such as 10.0.0.0/8 or fd00::/8"
            ) from broken
    return tuple(found)


def load_or_create_address_key(path: Path) -> bytes:
    """Return the 32 random bytes of the key.

    They are created at the first start, readable by their owner only. Raises BackendSettingsRefused for a file of
    another length: its hashes would differ from earlier ones and from those on other machines.
    """
    key = load_or_create_secret(path, lambda: secrets.token_bytes(KEY_BYTES))
    if len(key) != KEY_BYTES:
        raise BackendSettingsRefused(
            f"The key of the address hashes in {path} is damaged: {len(key)} bytes instead of {KEY_BYTES}. Put it back "
            "from another machine of this backend or from a backup. If there is none, remove the file: the next start "
            "creates a new key.",
            field=path.name,
            limit=f"{KEY_BYTES} bytes",
        )
    return key


def _without_port(hop: str) -> str:
    """Return the address of a hop without its port, which some proxies add.

    Examples: 192.0.2.1:80, [2001:db8::1]:80.
    """
    found = re.fullmatch(r"\s*(?:([0-9.]+):[0-9]{1,5}|\[([0-9a-fA-F:.%]+)\](?::[0-9]{1,5})?)\s*", hop)
    return hop if found is None else found[1] or found[2]


def _parsed(written: str | None) -> Address | None:
    try:
        address = ip_address((written or "").strip().partition("%")[0])
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def _within(address: Address, those: Sequence[Network]) -> bool:
    return any(address in one for one in those)


def _bounded_part(address: Address | None) -> str:
    if isinstance(address, IPv6Address):
        return str(IPv6Network((address, IPV6_PREFIX), strict=False))
    return UNKNOWN if address is None else str(address)
