"""Passwords that open the pages from elsewhere: kept as scrypt hashes in private files, guesses limited."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import math
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from pathlib import Path
from threading import Lock

from protocol.private_files import make_folder, write_file

COST = {"n": 2**15, "r": 8, "p": 1}
"""scrypt's parameters: 32 MiB and about 0.1 s a guess (RFC 7914; OWASP's second choice of equal strength)."""
MEMORY_BYTES = 64 * 1024 * 1024
SALT_BYTES = 16
GUESSES, SPAN_SEC = 5, 300.0
"""Wrong passwords of one address within a span; further tries are refused unread."""
GUESSES_IN_ALL, SPAN_IN_ALL_SEC = 60, 3_600.0
"""The same of all addresses together, since a network has many."""
ADDRESSES_KEPT = 1_000


def hashed(password: str) -> str:
    """Return a new salted hash of a password, as text for a file."""
    salt = secrets.token_bytes(SALT_BYTES)
    made = hashlib.scrypt(password.encode(), salt=salt, maxmem=MEMORY_BYTES, **COST)
    return json.dumps({"salt": base64.b64encode(salt).decode(), "scrypt": base64.b64encode(made).decode()})


class KeptPassword:
    """The hash of one password in a file (0600); no file: there is no password."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def is_set(self) -> bool:
        """Return whether there is a password."""
        return self._kept() is not None

    def set(self, password: str) -> None:
        """Replace the password; what was derived from the previous one becomes invalid."""
        make_folder(self._path.parent)
        write_file(self._path, hashed(password))

    def clear(self) -> None:
        """Remove the password."""
        self._path.unlink(missing_ok=True)

    def matches(self, password: str) -> bool:
        """Return whether this is the password."""
        kept = self._kept()
        if kept is None:
            return False
        salt, expected = kept
        made = hashlib.scrypt(password.encode(), salt=salt, maxmem=MEMORY_BYTES, **COST)
        return hmac.compare_digest(made, expected)

    def derived(self, use: bytes) -> str | None:
        """Return a secret for one use that changes with the password; None without one."""
        kept = self._kept()
        return None if kept is None else hmac.new(kept[1], use, hashlib.sha256).hexdigest()

    def _kept(self) -> tuple[bytes, bytes] | None:
        try:
            told = json.loads(self._path.read_text(encoding="utf-8"))
            return base64.b64decode(told["salt"]), base64.b64decode(told["scrypt"])
        except (OSError, ValueError, KeyError, TypeError):
            return None  # a damaged file opens nothing


class Guesses:
    """Limits wrong passwords, of one address and of all together. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._of: OrderedDict[str, deque[float]] = OrderedDict()
        self._all: deque[float] = deque()

    def wait_sec(self, address: str) -> int:
        """Return how many seconds this address has to wait before its next try; 0: none."""
        now = self._clock()
        with self._lock:
            mine = _left(self._of.get(address, deque()), GUESSES, SPAN_SEC, now)
            return math.ceil(max(mine, _left(self._all, GUESSES_IN_ALL, SPAN_IN_ALL_SEC, now)))

    def wrong(self, address: str) -> None:
        """Count a wrong password."""
        now = self._clock()
        with self._lock:
            self._of.setdefault(address, deque()).append(now)
            self._of.move_to_end(address)
            if len(self._of) > ADDRESSES_KEPT:
                self._of.popitem(last=False)
            self._all.append(now)

    def right(self, address: str) -> None:
        """Forget the wrong passwords of an address."""
        with self._lock:
            self._of.pop(address, None)


def _left(times: deque[float], limit: int, span_sec: float, now: float) -> float:
    """Return the seconds until fewer than `limit` of these times lie within the span; drops older ones."""
    while times and now - times[0] >= span_sec:
        times.popleft()
    return 0.0 if len(times) < limit else times[len(times) - limit] + span_sec - now
