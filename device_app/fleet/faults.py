"""Simulated faults of a fleet's devices in rounds, by rate.

These are dropouts, stragglers, crashes and malicious clients.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from device_app.uplink.faulty_transport import Fault

MESSAGES_MOST = 5
"""A fault hits one of a device's first messages of a round, up to this many.

Secure aggregation has five or six messages.
"""
MASKED_MESSAGE = 3
"""Index of the message that carries the masked vector."""
OFFSET_BITS = (8.0, 30.0)
"""Range of the exponent of a malicious offset, in powers of two.

It reaches from offsets that any noise hides to the end of a 32-bit ring.
"""


@dataclass(frozen=True)
class FaultRates:
    """Probability of each fault for one device in one round; at most one occurs.

    Each rate lies between 0 and 1, and so does their sum. dropout: after some message it sends nothing more in that
    round, like a phone that is out of reach. straggler: one message is sent so late that its stage may have closed.
    crash: it dies while sending a message, loses its memory and restarts from disk. malicious: it replaces one message
    with other bytes of the same length. Half of these attack the masked vector of a secure aggregation: they add a
    number of steps whose logarithm is uniform, so that it may or may not be small enough to pass for noise.
    """

    dropout: float = 0.0
    straggler: float = 0.0
    crash: float = 0.0
    malicious: float = 0.0

    def __post_init__(self) -> None:
        for each in fields(self):
            rate = getattr(self, each.name)
            if not 0 <= rate <= 1:
                raise ValueError(f"{each.name}: must be a share from 0 to 1, got {rate}")
        if (total := sum(self.all().values())) > 1:
            raise ValueError(f"faults: the rates add up to {total:g}, the limit is 1")

    @classmethod
    def parse(cls, words: list[str]) -> Self:
        """Return rates parsed from ['dropout=0.1', 'malicious=0.02'].

        Raises ValueError, naming the item.
        """
        rates: dict[str, float] = {}
        known = [each.name for each in fields(cls)]
        for word in words:
            name, separator, rate = word.partition("=")
            if name not in known or not separator:
                raise ValueError(
                    f"faults: {word!r} is not one of {', '.join(known)} with its rate, such as dropout=0.1"
                )
            try:
                rates[name] = float(rate)
            except ValueError:
                raise ValueError(f"{name}: {rate!r} is not a number") from None
        return cls(**rates)

    def all(self) -> dict[Fault, float]:
        """Return each fault's rate by name."""
        return {"dropout": self.dropout, "straggler": self.straggler, "crash": self.crash, "malicious": self.malicious}

    def draw(self, rng: np.random.Generator) -> InjectedFault | None:
        """Draw the fault of one device in one round, or None."""
        at = rng.random()
        for fault, rate in self.all().items():
            if at < rate:
                message = int(rng.integers(MESSAGES_MOST))
                if fault != "malicious":
                    return InjectedFault(fault, message)
                sign = int(rng.choice((-1, 1)))
                offset_steps = sign * round(2.0 ** rng.uniform(*OFFSET_BITS))
                return InjectedFault(fault, MASKED_MESSAGE if rng.random() < 0.5 else message, offset_steps)
            at -= rate
        return None


@dataclass(frozen=True)
class InjectedFault:
    """A fault, and the index of the message of the round that it hits, from 0.

    offset_steps: what a malicious client adds to every number of its masked vector, in steps of the sum's fixed point.
    """

    fault: Fault
    message: int
    offset_steps: int = 0
