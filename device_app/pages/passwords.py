"""Passwords for access from phones and apps: stored as scrypt hashes, with limited guesses."""

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
"""Parameters of scrypt: 32 MiB and about 0.1 s per guess (RFC 7914; OWASP's second choice of equal strength)."""
MEMORY_BYTES = 64 * 1024 * 1024
SALT_BYTES = 16
GUESSES, SPAN_SEC = 5, 300.0
"""Most wrong passwords from one address within SPAN_SEC; further tries are refused without checking."""
GUESSES_IN_ALL, SPAN_IN_ALL_SEC = 60, 3_600.0
"""The same limit for all addresses together, since an attacker may have many."""
ADDRESSES_KEPT = 1_000


def hashed(password: str) -> str:
    """Return a new salted hash of a password, as text for a file."""
    salt = secrets.token_bytes(SALT_BYTES)
    digest = hashlib.scrypt(password.encode(), salt=salt, maxmem=MEMORY_BYTES, **COST)
    return json.dumps({"salt": base64.b64encode(salt).decode(), "scrypt": base64.b64encode(digest).decode()})


class PasswordFile:
    """A file (mode 0600) with the hash of one password; without the file there is no password."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def is_set(self) -> bool:
        return self._kept() is not None

    def set(self, password: str) -> None:
        """Replace the password; secrets derived from the previous one become invalid."""
        make_folder(self._path.parent)
        write_file(self._path, hashed(password))

    def clear(self) -> None:
        self._path.unlink(missing_ok=True)

    def matches(self, password: str) -> bool:
        kept = self._kept()
        if kept is None:
            return False
        salt, expected = kept
        digest = hashlib.scrypt(password.encode(), salt=salt, maxmem=MEMORY_BYTES, **COST)
        return hmac.compare_digest(digest, expected)

    def derived(self, use: bytes) -> str | None:
        """Return a secret for this use, derived from the password's hash; None without a password."""
        kept = self._kept()
        return None if kept is None else hmac.new(kept[1], use, hashlib.sha256).hexdigest()

    def _kept(self) -> tuple[bytes, bytes] | None:
        try:
            stored = json.loads(self._path.read_text(encoding="utf-8"))
            return base64.b64decode(stored["salt"]), base64.b64decode(stored["scrypt"])
        except (OSError, ValueError, KeyError, TypeError):
            return None  # a damaged file lets nobody in


class PasswordLimiter:
    """Limits wrong passwords per address and in total. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._of: OrderedDict[str, deque[float]] = OrderedDict()
        self._all: deque[float] = deque()

    def wait_sec(self, address: str) -> int:
        """Return the seconds that this address must wait before its next try."""
        now = self._clock()
        with self._lock:
            mine = _left(self._of.get(address, deque()), GUESSES, SPAN_SEC, now)
            return math.ceil(max(mine, _left(self._all, GUESSES_IN_ALL, SPAN_IN_ALL_SEC, now)))

    def wrong(self, address: str) -> None:
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
    """Return the seconds until fewer than `limit` of these times are in the span; drops old ones."""
    while times and now - times[0] >= span_sec:
        times.popleft()
    return 0.0 if len(times) < limit else times[len(times) - limit] + span_sec - now
