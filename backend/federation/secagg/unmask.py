"""Open a sum: reconstruct and check secrets, and derive the masks that remain on it."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from backend.federation.errors import SumFailed
from backend.federation.secagg.decoding import decode, tolerated
from backend.federation.secagg.graph import Sources
from backend.federation.secagg.members import Members
from backend.federation.secagg.messages import commitment_of, revealed_rows
from protocol.pairing import pair_seed, seed_commitment
from protocol.shamir import SECRET_BYTES, SHARE_BYTES, LagrangeBasis, SharingError, join_bytes

TRIES = 64
"""How many sets of holders are tried for one secret if some of them send false shares."""
DECODED = 16
"""How many secrets of one sum are decoded; DECODED_SHARES limits the shares of each, since the time is quadratic in
them.
"""
DECODED_SHARES = 256
BASES_KEPT = 64
"""How many Lagrange bases are cached. In a sparse graph nearly every secret has its own set of holders, so a basis for
each would only fill the memory.
"""
_NUMBER_BYTES = 4


class SecretMismatch(Exception):
    """Shares that don't reconstruct the secret; `leftover_masks` turns this into SumFailed.

    suspects: the maximum number of sources that may have sent false shares while the owner of the secret is still to
    blame; 0: it is unknown who is to blame.
    """

    def __init__(self, detail: str, suspects: int) -> None:
        super().__init__(detail)
        self.detail, self.suspects = detail, suspects


@dataclass(frozen=True)
class LeftoverMasks:
    """Seeds of the masks still on the sum of the survivors, to be added or subtracted."""

    plus: list[bytes]
    minus: list[bytes]
    survivors: tuple[int, ...]


class Reconstruction:
    """Reconstructs the secrets of one sum.

    Lagrange bases are cached by their holders: in a complete graph one basis serves all secrets. sources: called only
    once false shares have arrived.
    """

    def __init__(self, threshold: int, sources: Callable[[], Sources] = Sources) -> None:
        self._threshold, self._sources = threshold, sources
        self._bases: dict[tuple[int, ...], LagrangeBasis] = {}
        # The choice of holders is not secret and costs no privacy, so a repeatable one suffices.
        self._order = random.Random(0)
        self._trusted: list[int] = []
        self._left = DECODED

    def join(self, name: str, shares: Mapping[int, bytes], fits: Callable[[bytes], bool]) -> bytes:
        """Return the secret that `fits`, from the first set of holders that gives it.

        Raises SumFailed, with the secret's name, if there are fewer shares than the threshold, and FalseSecret if no
        set that was tried gives a fitting secret.
        """
        if len(shares) < self._threshold:
            raise SumFailed(f"{len(shares)} of the {self._threshold} shares of {name} have arrived.", by_members=True)
        holders = [one for one in self._trusted if one in shares]
        holders += sorted(shares.keys() - set(holders))
        suspects = 0
        for attempt in range(TRIES):
            if attempt == 1 and self._can_decode(shares):
                found = self._decoded(shares, fits) or self._without_one_source(holders, shares, fits)
                if found is not None:
                    return found
                suspects = self._sources().malicious_at_most(shares.keys(), self._threshold)
            if (secret := self._joined(holders[: self._threshold], shares, fits)) is not None:
                return secret
            if len(shares) == self._threshold:
                break
            self._order.shuffle(holders)
        raise SecretMismatch(f"The shares of {name} don't reconstruct it: at least one is false.", suspects)

    def _joined(
        self, holders: Sequence[int], shares: Mapping[int, bytes], fits: Callable[[bytes], bool]
    ) -> bytes | None:
        chosen = tuple(sorted(holders))
        try:
            secret = join_bytes(self._basis(chosen), shares)
        except SharingError:
            return None
        if secret is None or not fits(secret):
            return None
        self._trusted = list(chosen)
        return secret

    def _without_one_source(
        self, holders: Sequence[int], shares: Mapping[int, bytes], fits: Callable[[bytes], bool]
    ) -> bytes | None:
        """Return the secret without one source's shares, trying each source with several holders.

        A source may hold more false shares than decoding corrects. A secret that fits is proof enough, whoever is left
        out.
        """
        for group in self._sources().by_source(shares.keys()):
            others = [one for one in holders if one not in group]
            if len(group) > 1 and len(others) >= self._threshold:
                secret = self._joined(others[: self._threshold], shares, fits)
                if secret is not None:
                    return secret
        return None

    def _can_decode(self, shares: Mapping[int, bytes]) -> bool:
        return bool(self._left and len(shares) <= DECODED_SHARES and tolerated(len(shares), self._threshold))

    def _decoded(self, shares: Mapping[int, bytes], fits: Callable[[bytes], bool]) -> bytes | None:
        """Return the fitting secret if all but `tolerated` shares lie on its polynomial."""
        self._left -= 1
        found = decode({holder: int.from_bytes(share, "big") for holder, share in shares.items()}, self._threshold)
        if found is None or found.secret >> (8 * SECRET_BYTES):
            return None
        secret = found.secret.to_bytes(SECRET_BYTES, "big")
        if not fits(secret):
            return None
        self._trusted = sorted(found.agreeing)
        return secret

    def _basis(self, holders: tuple[int, ...]) -> LagrangeBasis:
        if holders not in self._bases:
            if len(self._bases) >= BASES_KEPT:
                self._bases.clear()
            self._bases[holders] = LagrangeBasis.at(holders)
        return self._bases[holders]


def leftover_masks(members: Members) -> LeftoverMasks:
    """Return the masks that remain on the sum of U3.

    These are the survivors' self masks, and the pair masks between members of U3 and members of U2 that are not in U3.
    Raises SumFailed if a secret can't be reconstructed. It names the members that shared a false secret: a seed or key
    other than the one they committed to. It names nobody else, as long as the malicious members among the r members
    that hold shares of the secret and answered come from at most K sources. K is the largest number for which any K
    sources have at most k = floor((r - t) / 2) of these members, since that many false shares are corrected; and it is
    at least 1 if t members remain without the largest source, since the secret is also tried without that source's
    shares. If secrets of members from more than K sources are false, then members from more than K sources were
    malicious, in sharing or in answering; nobody can tell which, so nobody is named. With K = 0 nobody is ever named.
    """
    messages, record = members.messages, members.record
    context = record.terms.digest()
    sources = cache(messages.sources)
    joiner = Reconstruction(record.threshold, sources)
    survivors = messages.members("masked")
    alive, dropped = set(survivors), set(record.dropped)
    seed_shares, key_shares = _aggregated(members)
    minus: list[bytes] = []
    gone: list[int] = []
    false = _FalseSecrets(sources)
    for member, body in messages.bodies("shares"):
        if member in dropped:
            continue
        if member not in alive:
            gone.append(member)
            continue
        commitment = commitment_of(body)

        def seed_fits(secret: bytes, member: int = member, commitment: bytes = commitment) -> bool:
            return seed_commitment(context, member, secret) == commitment

        with false.of(member):
            minus.append(joiner.join(f"member {member}'s seed", _shares(seed_shares, member), seed_fits))
    plus: list[bytes] = []
    for member in gone:
        left = members.alive(member)
        if not left:
            continue
        keys = members.keys_of((*left, member))

        def key_fits(secret: bytes, public: bytes = keys[member].mask_key) -> bool:
            return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw() == public

        with false.of(member):
            joined = joiner.join(f"member {member}'s key", _shares(key_shares, member), key_fits)
        if member in false.members:
            continue
        secret = X25519PrivateKey.from_private_bytes(joined)
        for one in left:
            seed = pair_seed(context, secret, keys[one].mask_key, (one, member))
            # The member with the lower number added this mask, the other subtracted it.
            (minus if one < member else plus).append(seed)
    false.check()
    return LeftoverMasks(plus, minus, survivors)


@dataclass
class _FalseSecrets:
    """Members whose secrets could not be reconstructed.

    fewest: the smallest `suspects` of these secrets.
    """

    sources: Callable[[], Sources]
    members: list[int] = field(default_factory=list)
    fewest: int = 0
    first: SecretMismatch | None = None

    @contextmanager
    def of(self, member: int) -> Iterator[None]:
        """Record whether the secret of this member fails in the block.

        Raises SumFailed once too many are false to name the senders.
        """
        try:
            yield
        except SecretMismatch as false:
            self.fewest = false.suspects if self.first is None else min(self.fewest, false.suspects)
            self.first = self.first or false
            self.members.append(member)
            if not self._can_be_named():
                raise self._failed() from false

    def check(self) -> None:
        """Raise SumFailed if any secret was false."""
        if self.first is not None:
            raise self._failed() from self.first

    def _failed(self) -> SumFailed:
        assert self.first is not None
        malicious = self.members if self._can_be_named() else []
        return SumFailed(self.first.detail, by_members=True, malicious=malicious)

    def _can_be_named(self) -> bool:
        return len(self.sources().of(self.members)) <= self.fewest


def _aggregated(members: Members) -> tuple[dict[int, bytearray], dict[int, bytearray]]:
    """Return all shares of seeds and of keys by owner, concatenated as (holder, share)."""
    seeds: dict[int, bytearray] = {}
    keys: dict[int, bytearray] = {}
    for holder, body in members.messages.bodies("unmask"):
        number = holder.to_bytes(_NUMBER_BYTES, "big")
        for of_key, member, share in revealed_rows(body):
            owner = (keys if of_key else seeds).setdefault(member, bytearray())
            owner += number
            owner += share
    return seeds, keys


def _shares(aggregated: Mapping[int, bytearray], owner: int) -> dict[int, bytes]:
    """Return one owner's shares by holder."""
    rows, size = bytes(aggregated.get(owner, b"")), _NUMBER_BYTES + SHARE_BYTES
    return {
        int.from_bytes(rows[start : start + _NUMBER_BYTES], "big"): rows[start + _NUMBER_BYTES : start + size]
        for start in range(0, len(rows), size)
    }
