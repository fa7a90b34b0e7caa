"""The ledger's ceilings.

The highest ones in force are kept for a ledger that may lose some of its days.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, ValidationError

from device_app.privacy.settings import PrivacySettings
from protocol.concentrated import rho_within

CHANNELS = ("reports", "training", "counts")


@dataclass(frozen=True)
class Ceilings:
    """What may be charged, in epsilon.

    By channel, and for noisy sums if every other device is fake. A lifetime ceiling of None means no limit. delta: the
    delta at which noisy sums are priced.
    """

    day: Mapping[str, float]
    life: Mapping[str, float | None]
    alone_day: float
    alone_life: float | None
    delta: float

    @classmethod
    def of(cls, settings: PrivacySettings) -> Ceilings:
        """Return the ceilings that the reader set."""
        return cls(
            day={channel: getattr(settings, f"epsilon_per_day_{channel}") for channel in CHANNELS},
            life={channel: getattr(settings, f"epsilon_lifetime_{channel}") for channel in CHANNELS},
            alone_day=settings.epsilon_per_day_alone,
            alone_life=settings.epsilon_lifetime_alone,
            delta=settings.delta_per_sum,
        )


class Limits(BaseModel):
    """Ceilings as they are stored.

    Those of noisy sums if every other device is fake are given as rho.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    day: dict[str, float]
    life: dict[str, float | None]
    rho_day: float
    rho_life: float | None
    delta: float

    @classmethod
    def of(cls, ceilings: Ceilings) -> Limits:
        """Return these ceilings as they are stored."""
        delta, life = ceilings.delta, ceilings.alone_life
        return cls(
            day=dict(ceilings.day),
            life=dict(ceilings.life),
            rho_day=rho_within(ceilings.alone_day, delta),
            rho_life=None if life is None else rho_within(life, delta),
            delta=delta,
        )

    @classmethod
    def read(cls, text: str) -> Limits:
        """Parse limits from JSON. Raises ValueError for anything else, or if a channel is missing."""
        try:
            read = cls.model_validate_json(text)
        except ValidationError as wrong:
            raise ValueError(f"limits: {wrong.errors()[0]['msg']}") from wrong
        if set(read.day) != set(CHANNELS) or set(read.life) != set(CHANNELS):
            raise ValueError(f"limits: the channels are {', '.join(CHANNELS)}")
        return read

    def or_higher(self, other: Limits) -> Limits:
        """Return the higher of each pair of ceilings.

        If each of the two held at some time, this is an upper bound on what held at any time.
        """
        return Limits(
            day={channel: max(self.day[channel], other.day[channel]) for channel in CHANNELS},
            life={channel: _higher(self.life[channel], other.life[channel]) for channel in CHANNELS},
            rho_day=max(self.rho_day, other.rho_day),
            rho_life=_higher(self.rho_life, other.rho_life),
            delta=max(self.delta, other.delta),
        )


def _higher(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else max(one, other)
