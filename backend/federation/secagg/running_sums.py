"""Running sums in the storage: an object each, whose name has its SHA-256; the one stored last is in memory too.

An Ownfeed of before `SumName.kept_as` knows a running sum by its SHA-256 alone. While such a one may serve beside this
one (`db.schema_readers`), each object has that name as well, and what it has stored is found by it.
"""

from __future__ import annotations

import logging
import threading
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from secrets import token_hex
from typing import NamedTuple

import numpy as np

from backend.federation.secagg.errors import SumFailed
from backend.federation.secagg.secure_sum import zero_vector
from backend.storage.object_store import ObjectStore, StorageUnavailable
from device_app.wire.ring import RingVector, ring_dtype
from device_app.wire.secagg import SumTerms

_log = logging.getLogger(__name__)
_TOKEN_BYTES = 10
"""With the hash in base64 a name is the 64 characters that a row has for it."""


class SumName(NamedTuple):
    """What a row says of its running sum.

    total: its SHA-256 in hexadecimal digits, and the name by which an Ownfeed of before reads and stores it.
    kept_as: a token and the hash, the name that no other sum has; of an earlier total where such an Ownfeed has added
    since.
    """

    total: str | None = None
    kept_as: str | None = None

    @property
    def known(self) -> tuple[str, ...]:
        """Names of the present sum, the one to ask for first; none where there is no sum."""
        if self.total is None:
            return ()
        mine = self.kept_as is not None and urlsafe_b64decode(f"{self.kept_as.rpartition('.')[2]}=").hex() == self.total
        return (self.kept_as, self.total) if mine and self.kept_as is not None else (self.total,)


class RunningSums:
    """Reads running sums, keeps them, and removes them. Safe for several threads, processes and machines.

    Formal guarantees: what `read` and `take` give has the SHA-256 in its name. Two calls of `keep` give one
    `kept_as` with probability 2^-80: whatever members send, no sum removes another's object by that name. `take` gives
    what this process made and hashed itself where that is still the sum of this name, however many workers have added
    to others meanwhile; `read`, by which sums are opened, always what is stored.
    """

    def __init__(self, objects: ObjectStore) -> None:
        self.objects = objects
        self._lock = threading.Lock()
        self._held: tuple[str, RingVector] | None = None

    def read(self, name: SumName, terms: SumTerms) -> RingVector:
        """What is stored. Raises SumFailed if it is lost or damaged."""
        total = zero_vector(terms.length, ring_dtype(terms.bits))
        for each in name.known:
            try:
                self.objects.read_into(_key(each), total.view(np.uint8).data)
            except FileNotFoundError:
                continue
            if not _is_named(each, sha256(total.data).digest()):
                raise SumFailed("The running sum is damaged on disk.")
            return total
        raise SumFailed("The running sum is missing on disk.")

    def take(self, name: SumName, terms: SumTerms) -> RingVector:
        """The same, to be added to: from memory where it's held, and held no longer. Raises as `read`."""
        with self._lock:
            held, self._held = self._held, None
        if held is not None and held[0] in name.known[:1]:
            return held[1]
        return self.read(name, terms)

    def keep(self, total: RingVector, before: SumName = SumName()) -> SumName:
        """Store it; returns its name. before: what it was, whose names stay. Raises OSError or StorageUnavailable."""
        digest = sha256(total.data)
        # Drawn anew each time: sums of two rounds, or parts, may be equal, and a sum be what it was before.
        kept = SumName(digest.hexdigest(), f"{token_hex(_TOKEN_BYTES)}.{_short(digest.digest())}")
        try:
            self.objects.put(_key(str(kept.kept_as)), total.data)
            self.objects.link(_key(str(kept.kept_as)), _key(str(kept.total)))
        except OSError:
            # A full disk may refuse to bring a folder to the disk that has the object already.
            self.remove(kept, before)
            raise
        return kept

    def hold(self, name: SumName, total: RingVector) -> None:
        """Remember what is stored by this name, once the transaction that names it is committed."""
        with self._lock:
            self._held = name.known[0], total

    def let_go(self, name: SumName) -> None:
        """Hold it no longer: its stage is over."""
        with self._lock:
            if self._held is not None and self._held[0] in name:
                self._held = None

    def remove(self, name: SumName, after: SumName = SumName()) -> bool:
        """Whether it is gone. The transaction that it comes after holds, whatever the storage answers: what can't be
        removed is an error in the log, and the next `clear` or `sweep` tries again.

        after: what it became, whose names stay.
        """
        self.let_go(name)
        key = ""
        try:
            for each in name:
                if each is not None and each not in after:
                    key = _key(each)
                    self.objects.delete(key)
        except (OSError, StorageUnavailable) as why:
            self._log_not_removed(key, why)
            return False
        return True

    def sweep(self, named: set[str], before: float) -> None:
        """Remove those that no row names. before: what is younger may be another worker's, between its storage and its
        commit; in seconds since 1970. What can't be removed is an error in the log, until the next `sweep`."""
        keys, key = {_key(each) for each in named}, ""
        try:
            for each in list(self.objects.list()):
                if each.key not in keys and each.modified < before:
                    key = each.key
                    self.objects.delete(key)
        except (OSError, StorageUnavailable) as why:  # each of the others would take as long to fail
            self._log_not_removed(key, why)

    def _log_not_removed(self, key: str, why: Exception) -> None:
        _log.error("A running sum could not be removed: %s/%s (%s)", self.objects, key, why)


def _is_named(name: str, digest: bytes) -> bool:
    """Whether the name has this hash: after the token, or alone in hexadecimal digits, as rows of before have it."""
    return name.rpartition(".")[2] == _short(digest) or name == digest.hex()


def _short(digest: bytes) -> str:
    return urlsafe_b64encode(digest).decode().rstrip("=")


def _key(total: str) -> str:
    return f"{total}.sum"
