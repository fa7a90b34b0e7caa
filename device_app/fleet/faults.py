"""Readers whose devices vanish, dawdle, crash or lie: what a fleet does to rounds, by rate."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from device_app.uplink.faulty_transport import Fault

MESSAGES_MOST = 5
"""A fault strikes at one of a device's first so many messages of a round: a secure sum has five or six."""
MASKED_MESSAGE = 3
"""The masked vector among them."""
LIE_BITS = (8.0, 30.0)
"""From lies that any noise hides to the end of a ring of 32 bits."""


@dataclass(frozen=True)
class FaultRates:
    """How likely each fault is for one device in one round; at most one strikes. Shares from 0 to 1, 1 in all.

    dropout: from one message on it sends nothing more in that round, as a phone that is out of reach.
    straggler: one message leaves so late that its stage may have closed.
    crash: it dies while a message is under way, loses its memory and starts again from its disk.
    liar: one message is other bytes of the same length than the device made; half of the liars strike at the masked
    vector of a secure sum, to which they add a number of steps that is as likely small enough to pass for noise as not.
    """

    dropout: float = 0.0
    straggler: float = 0.0
    crash: float = 0.0
    liar: float = 0.0

    def __post_init__(self) -> None:
        for each in fields(self):
            rate = getattr(self, each.name)
            if not 0 <= rate <= 1:
                raise ValueError(f"{each.name}: a share from 0 to 1, got {rate}")
        if (total := sum(self.all().values())) > 1:
            raise ValueError(f"faults: {total:g} in all, the limit is 1")

    @classmethod
    def parse(cls, words: list[str]) -> Self:
        """Of ['dropout=0.1', 'liar=0.02']. Raises ValueError, naming the word."""
        rates: dict[str, float] = {}
        known = [each.name for each in fields(cls)]
        for word in words:
            name, separator, rate = word.partition("=")
            if name not in known or not separator:
                raise ValueError(f"faults: {word!r} is not one of {', '.join(known)} with its rate, as dropout=0.1")
            try:
                rates[name] = float(rate)
            except ValueError:
                raise ValueError(f"{name}: {rate!r} is no number") from None
        return cls(**rates)

    def all(self) -> dict[Fault, float]:
        """Each fault's rate, by its name."""
        return {"dropout": self.dropout, "straggler": self.straggler, "crash": self.crash, "liar": self.liar}

    def draw(self, rng: np.random.Generator) -> InjectedFault | None:
        """What befalls one device in one round."""
        at = rng.random()
        for fault, rate in self.all().items():
            if at < rate:
                message = int(rng.integers(MESSAGES_MOST))
                if fault != "liar":
                    return InjectedFault(fault, message)
                sign = int(rng.choice((-1, 1)))
                lie_steps = sign * round(2.0 ** rng.uniform(*LIE_BITS))
                return InjectedFault(fault, MASKED_MESSAGE if rng.random() < 0.5 else message, lie_steps)
            at -= rate
        return None


@dataclass(frozen=True)
class InjectedFault:
    """A fault, and the message of the round that it strikes at, counted from 0.

    lie_steps: what a liar adds to every number of its masked vector, in steps of the sum's fixed point.
    """

    fault: Fault
    message: int
    lie_steps: int = 0
