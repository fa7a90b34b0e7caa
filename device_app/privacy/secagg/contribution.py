"""What a device adds to a secure sum: a vector, and the charge that is paid before it is masked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from device_app.privacy.sealed import Charge, digest
from device_app.wire.masks import masked_bytes
from device_app.wire.ring import RingVector, ring_dtype
from device_app.wire.secagg import SumTerms


class Spender(Protocol):
    """The ledger, as far as a secure sum needs it."""

    def spend(self, charge: Charge) -> object:
        """Write the charge down, or raise BudgetSpent."""


@dataclass(frozen=True, eq=False)
class Contribution:
    """What a device adds to a sum: its clipped, encoded and perhaps noisy vector, and what the opened sum costs it.

    The charge is that of the opened sum at the smallest number of survivors that the round's terms allow, since the
    device has to pay before it can know how many will survive. paid is called in the transaction that pays.
    """

    vector: RingVector
    charge: Charge
    paid: Callable[[], None] | None = None

    def check(self, terms: SumTerms) -> None:
        """Raise ValueError unless the vector has the length and the type that the terms say."""
        vector = self.vector
        if vector.shape != (terms.length,) or vector.dtype != ring_dtype(terms.bits):
            raise ValueError(
                f"vector: {vector.dtype} {vector.shape}, the terms say {terms.length} of {terms.bits} bits"
            )

    def masked(
        self, ledger: Spender, *, plus: Sequence[bytes], minus: Sequence[bytes], threads: int
    ) -> tuple[bytes, str]:
        """The vector under the masks of these seeds, added and taken away, and its SHA-256; paid for when it returns.

        Raises BudgetSpent, after which nothing of it may leave.

        Formal guarantees: to whoever lacks one of the seeds the payload is uniform noise; the charge is of the opened
        sum.
        """
        payload = masked_bytes(self.vector, plus=plus, minus=minus, threads=threads)
        masked_sha256 = digest(payload)
        ledger.spend(replace(self.charge, payload_sha256=masked_sha256))
        return payload, masked_sha256
