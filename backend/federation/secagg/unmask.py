"""Opening a sum: secrets joined from shares, checked, and turned into the masks that are left on it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from backend.federation.secagg.errors import SumFailed
from backend.federation.secagg.record import SumRecord
from device_app.wire.pairing import pair_seed, seed_commitment
from device_app.wire.shamir import LagrangeBasis, SharingError, join_bytes

TRIES = 64
"""Sets of holders tried for one secret, where some of them send false shares."""


@dataclass(frozen=True)
class LeftoverMasks:
    """Seeds of the masks still on a sum: to be added to it, and to be taken off."""

    plus: list[bytes]
    minus: list[bytes]


class Joiner:
    """Joins the secrets of one sum. Bases are kept by their holders: in a complete graph one serves all secrets."""

    def __init__(self, threshold: int) -> None:
        self._threshold = threshold
        self._bases: dict[tuple[int, ...], LagrangeBasis] = {}
        # Which holders are tried is no secret and costs no privacy: a repeatable choice is good enough.
        self._order = random.Random(0)
        self._trusted: list[int] = []

    def join(self, shares: Mapping[int, bytes], fits: _Check) -> bytes:
        """The secret that `fits`, from the first set of holders that gives it.

        Raises SumFailed if there are fewer shares than the threshold, or no set that was tried gives a fitting secret.
        """
        if len(shares) < self._threshold:
            raise SumFailed(f"{len(shares)} of the {self._threshold} shares of {fits.name} have come.")
        holders = [one for one in self._trusted if one in shares]
        holders += sorted(shares.keys() - set(holders))
        for _ in range(TRIES):
            chosen = tuple(sorted(holders[: self._threshold]))
            try:
                secret = join_bytes(self._basis(chosen), shares)
            except SharingError:
                secret = None
            if secret is not None and fits(secret):
                self._trusted = list(chosen)
                return secret
            if len(shares) == self._threshold:
                break
            self._order.shuffle(holders)
        raise SumFailed(f"The shares of {fits.name} do not give it: some of their holders sent false ones.")

    def _basis(self, holders: tuple[int, ...]) -> LagrangeBasis:
        if holders not in self._bases:
            self._bases[holders] = LagrangeBasis.at(holders)
        return self._bases[holders]


@dataclass(frozen=True)
class _Check:
    """Whether a joined secret is the one that its owner committed to."""

    record: SumRecord
    context: bytes
    member: int
    kind: str

    @property
    def name(self) -> str:
        return f"member {self.member}'s {self.kind}"

    def __call__(self, secret: bytes) -> bool:
        if self.kind == "seed":
            return seed_commitment(self.context, self.member, secret) == self.record.commitments[self.member]
        public = X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()
        return public == self.record.keys[self.member].mask_key


def leftover_masks(record: SumRecord, neighbours: Mapping[int, tuple[int, ...]]) -> LeftoverMasks:
    """What is still on the sum of U3: every survivor's self mask, and the pair masks between U3 and U2 without U3.

    Raises SumFailed where a secret can't be joined.
    """
    context = record.terms.digest()
    joiner = Joiner(record.threshold)
    alive = set(record.survivors)
    seed_shares: dict[int, dict[int, bytes]] = {member: {} for member in record.survivors}
    key_shares: dict[int, dict[int, bytes]] = {member: {} for member in record.commitments if member not in alive}
    for holder, answer in record.answers.items():
        for one in answer.seeds:
            seed_shares[one.member][holder] = one.share
        for one in answer.keys:
            key_shares[one.member][holder] = one.share
    minus = [joiner.join(seed_shares[member], _Check(record, context, member, "seed")) for member in record.survivors]
    plus: list[bytes] = []
    for gone, shares in key_shares.items():
        left = [member for member in neighbours[gone] if member in alive]
        if not left:
            continue
        secret = X25519PrivateKey.from_private_bytes(joiner.join(shares, _Check(record, context, gone, "key")))
        for member in left:
            seed = pair_seed(context, secret, record.keys[member].mask_key, (member, gone))
            # The lower member added this mask, the higher took it off.
            (minus if member < gone else plus).append(seed)
    return LeftoverMasks(plus, minus)
