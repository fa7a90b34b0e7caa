"""Decides when a feed's host may be requested: one request at a time, with pauses, longer if the host requires them.

The pauses that hosts require are stored, so they survive a restart. They are counted from the last request, so setting
the clock back delays no host by more than its own pause.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Engine, delete, insert, select

from backend.db.engine import reading, writing
from backend.db.tables import FeedHostRow

REST_SEC = 60.0
"""How long a host rests after 429 or 503 without Retry-After; twice as long after each further refusal in a row."""
REST_LIMIT_SEC = 86_400.0
PAUSE_LIMIT_SEC = 300.0
"""The longest regular pause between requests that is derived from a host's answers."""
FORGOTTEN_AFTER = timedelta(days=1)
DOUBLED_LIMIT = 20  # 2 ** 20 minutes are beyond any limit


@dataclass(slots=True)
class _Host:
    asked_at: datetime
    rests_sec: float = 0.0
    pause_sec: float = 0.0
    refusals: int = 0
    refused_at: datetime | None = None
    busy: bool = False

    def free_in(self, now: datetime, pause_sec: float) -> float:
        since = max(0.0, (now - self.asked_at).total_seconds())
        return max(0.0, self.rests_sec, self.pause_sec, pause_sec) - since


class PoliteHosts:
    """The state of each host that was requested. Its caller serialises the calls."""

    def __init__(self, engine: Engine, pause_sec: float) -> None:
        self._engine, self._pause_sec = engine, pause_sec
        self._hosts: dict[str, _Host] = {}

    def load(self, now: datetime) -> None:
        """Load what this or another process has stored, and forget what is a day old."""
        with reading(self._engine) as connection:
            rows = connection.execute(select(*FeedHostRow.__table__.columns)).all()
        for row in rows:
            known = self._hosts.get(row.host)
            if known is None or (not known.busy and known.asked_at < row.asked_at):
                self._hosts[row.host] = _Host(row.asked_at, row.rests_sec, row.pause_sec, row.refusals, row.refused_at)
        for name, host in list(self._hosts.items()):
            if host.busy:
                continue
            asked_at = host.refused_at or host.asked_at
            if (host.refused_at is None and asked_at > now) or now - asked_at > FORGOTTEN_AFTER:
                self._forget(name)
            elif host.refused_at is not None:  # not later than now, in case the clock was ahead
                host.asked_at, host.refused_at = min(host.asked_at, now), min(host.refused_at, now)

    def free_in(self, host: str, now: datetime) -> float | None:
        """Seconds until a request may be sent to a host, 0 or less: now; None while a request is in progress."""
        known = self._hosts.get(host)
        if known is None:
            return 0.0
        return None if known.busy else known.free_in(now, self._pause_sec)

    def begin(self, host: str, now: datetime) -> None:
        """Note that a request is sent to a host."""
        known = self._hosts.setdefault(host, _Host(now))
        known.busy, known.asked_at = True, now

    def end(self, host: str, now: datetime) -> None:
        """Note that a request has ended, successfully or not."""
        known = self._hosts.setdefault(host, _Host(now))
        known.busy, known.asked_at = False, now

    def answered(self, host: str, now: datetime) -> None:
        """Note that a host has answered normally, which ends its extra pause."""
        known = self._hosts.setdefault(host, _Host(now))
        known.asked_at = now
        if known.refused_at is not None:
            known.rests_sec, known.refusals = 0.0, 0
            self._store(host, known)

    def refused(self, host: str, now: datetime, asked_sec: float, *, paces: bool) -> float:
        """Note that a host refused a request; return for how many seconds it gets none.

        asked_sec: the wait that it requested, 0 if none. paces: whether it limits the rate (429), so that its regular
        pause grows.
        """
        known = self._hosts.setdefault(host, _Host(now))
        known.asked_at = known.refused_at = now
        known.refusals += 1
        known.rests_sec = min((asked_sec or REST_SEC) * 2.0 ** min(known.refusals - 1, DOUBLED_LIMIT), REST_LIMIT_SEC)
        if paces:
            doubled = 2 * max(known.pause_sec, self._pause_sec)
            learnt = asked_sec if 0 < asked_sec <= PAUSE_LIMIT_SEC else doubled  # a longer wait is a ban, not a pace
            known.pause_sec = min(max(known.pause_sec, learnt), PAUSE_LIMIT_SEC)
        self._store(host, known)
        return known.rests_sec

    def _store(self, host: str, known: _Host) -> None:
        values = {
            name: getattr(known, name) for name in ("asked_at", "rests_sec", "pause_sec", "refusals", "refused_at")
        }
        with writing(self._engine) as connection:
            connection.execute(delete(FeedHostRow).where(FeedHostRow.host == host))
            connection.execute(insert(FeedHostRow), {"host": host, **values})

    def _forget(self, host: str) -> None:
        if self._hosts.pop(host).refused_at is None:
            return
        with writing(self._engine) as connection:
            connection.execute(delete(FeedHostRow).where(FeedHostRow.host == host))
