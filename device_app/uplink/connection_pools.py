"""Connection pools that keep apart what a server must not be able to join: one transport, a pool for each purpose."""

from __future__ import annotations

import re
import ssl
import threading
from collections import OrderedDict

import httpx

KEPT_CONNECTIONS = 4
CONNECTIONS_LIMIT = 16
IDLE_SEC = 5.0
"""How long an idle connection is kept: less than servers keep theirs, or a request would meet one that closes."""
PLACES_KEPT = 4
"""Pools of places in rounds that stay open; the one used longest ago is closed for another."""

_REPORTS = re.compile(rb"/v1/(recall|news/bodies)(\?|$)")
_PLACE = re.compile(rb"/v1/rounds/([^/?]+)/[^/?]+/([^/?]+)")
_ROUNDS = re.compile(rb"/v1/rounds(/|$)")


class SeparatePools(httpx.BaseTransport):
    """Sends a request over the pool that its path belongs to. Use from any thread.

    'reports': recall, and texts of the lists that recall returned. 'rounds': polls for a round and check-ins, each on a
    connection of its own that is closed after the answer. A pool for every place in a round, named by round and
    pseudonym. 'everybody's': the rest, which is the same for all readers.

    Formal guarantees: no TCP connection carries requests of two of these pools, so a connection joins no report to a
    round, no pseudonym to another and no two polls for a round. No TLS session is resumed across connections (the
    standard library's client never offers a ticket unless it's handed one). The network address and the moment of a
    request are not hidden by this.

    Args:
        encrypted: whether certificates are checked; loading them takes 30 ms, done once for all pools.
    """

    def __init__(self, *, encrypted: bool) -> None:
        self._verify: ssl.SSLContext | bool = httpx.create_ssl_context(trust_env=False) if encrypted else False
        self._lock = threading.Lock()
        self._pools: dict[str, httpx.HTTPTransport] = {}
        self._places: OrderedDict[str, httpx.HTTPTransport] = OrderedDict()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """As `httpx.HTTPTransport`."""
        return self._pool(pool_name(request.url.raw_path)).handle_request(request)

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            for pool in (*self._pools.values(), *self._places.values()):
                pool.close()
            self._pools.clear()
            self._places.clear()

    def _pool(self, name: str) -> httpx.HTTPTransport:
        with self._lock:
            pools = self._places if name.startswith("place ") else self._pools
            if name not in pools:
                pools[name] = self._opened(0 if name == "rounds" else KEPT_CONNECTIONS)
            if pools is self._places:
                self._places.move_to_end(name)
                if len(self._places) > PLACES_KEPT:
                    self._places.popitem(last=False)[1].close()
            return pools[name]

    def _opened(self, kept: int) -> httpx.HTTPTransport:
        limits = httpx.Limits(
            max_connections=CONNECTIONS_LIMIT, max_keepalive_connections=kept, keepalive_expiry=IDLE_SEC
        )
        return httpx.HTTPTransport(verify=self._verify, limits=limits, trust_env=False)


def pool_name(raw_path: bytes) -> str:
    """The pool of a path: 'reports', 'rounds', 'everybody's', or 'place <round> <pseudonym>'."""
    if _REPORTS.match(raw_path):
        return "reports"
    if place := _PLACE.match(raw_path):
        return f"place {place[1].decode('ascii')} {place[2].decode('ascii')}"
    return "rounds" if _ROUNDS.match(raw_path) else "everybody's"
