"""The privacy page's values: what left, what it could reveal, what can be switched."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from device_app.settings import PrivacySettings


@dataclass(frozen=True)
class MechanismFacts:
    """The mechanism of the current release and what it costs, counted honestly (ALGORITHMS 2.6)."""

    name: str
    sentence: str
    clip: float
    scale: float
    basis_size: int
    channels_limit: int
    epsilon_per_score: float
    epsilon_per_channel: float
    epsilon_per_report: float


@dataclass(frozen=True)
class BudgetView:
    """One channel of the ledger ('reports' or 'training'), in pure epsilon."""

    channel: str
    per_day: float
    spent_today: float
    left_today: float
    lifetime: float


@dataclass(frozen=True)
class LedgerDay:
    """What one channel cost on one day (UTC)."""

    day: date
    channel: str
    epsilon: float
    charges: int


@dataclass(frozen=True)
class ReportPair:
    """The report in use: what the device computed and what it sends instead. Both are channels x basis.

    clear is None where only the noisy report was kept. labels names each channel for the reader alone.
    """

    made_at: datetime
    expires_at: datetime
    release: str
    clear: tuple[tuple[float, ...], ...] | None
    noisy: tuple[tuple[float, ...], ...]
    counts: tuple[int, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True)
class TrafficEntry:
    """One request that left this device: a line of the table, without the bytes."""

    entry_id: int
    at: datetime
    words: str
    method: str
    url: str
    sent_bytes: int
    received_bytes: int
    status: int | None
    ms: float
    epsilon: float


@dataclass(frozen=True)
class Traffic:
    """One request with the very bytes that left, and those that came back if they were kept."""

    entry: TrafficEntry
    request_head: str
    request_body: bytes
    response_head: str


@dataclass(frozen=True)
class PrivacyView:
    """The whole privacy page."""

    settings: PrivacySettings
    mechanism: MechanismFacts | None
    budgets: tuple[BudgetView, ...]
    days: tuple[LedgerDay, ...]
    entries: tuple[TrafficEntry, ...]
    entries_total: int
    report: ReportPair | None
    new_clicks: int
    clicks_until_report: int
