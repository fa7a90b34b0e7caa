"""How much may be spent in a day and in a life, as settings have it, for a ledger that has lost some of its days."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, ValidationError

from device_app.privacy.ledger import CHANNELS, ceiling_of_day, ceiling_of_life
from device_app.privacy.settings import PrivacySettings
from device_app.wire.concentrated import rho_within


class Limits(BaseModel):
    """The ceilings of all prices: epsilon by channel, and rho of the noisy sums with one share of noise each.

    None in a lifetime ceiling: there is none. delta: at which noisy sums were priced.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    day: dict[str, float]
    life: dict[str, float | None]
    rho_day: float
    rho_life: float | None
    delta: float

    @classmethod
    def of(cls, settings: PrivacySettings) -> Limits:
        """Those that the settings allow now."""
        delta, life = settings.delta_per_sum, settings.epsilon_lifetime_alone
        return cls(
            day={channel: ceiling_of_day(settings, channel) for channel in CHANNELS},
            life={channel: ceiling_of_life(settings, channel) for channel in CHANNELS},
            rho_day=rho_within(settings.epsilon_per_day_alone, delta),
            rho_life=None if life is None else rho_within(life, delta),
            delta=delta,
        )

    @classmethod
    def read(cls, text: str) -> Limits:
        """From JSON. Raises ValueError for anything else, or for limits without one of the channels."""
        try:
            read = cls.model_validate_json(text)
        except ValidationError as wrong:
            raise ValueError(f"limits: {wrong.errors()[0]['msg']}") from wrong
        if set(read.day) != set(CHANNELS) or set(read.life) != set(CHANNELS):
            raise ValueError(f"limits: the channels are {', '.join(CHANNELS)}")
        return read

    def or_higher(self, other: Limits) -> Limits:
        """Of each ceiling the higher one: what held at any time, if these two did."""
        return Limits(
            day={channel: max(self.day[channel], other.day[channel]) for channel in CHANNELS},
            life={channel: _higher(self.life[channel], other.life[channel]) for channel in CHANNELS},
            rho_day=max(self.rho_day, other.rho_day),
            rho_life=_higher(self.rho_life, other.rho_life),
            delta=max(self.delta, other.delta),
        )


def _higher(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else max(one, other)
