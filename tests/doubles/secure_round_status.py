"""The public status of a secure round in each state."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from protocol.rounds import RoundStatus

OPENED = datetime(2026, 11, 21, 8, tzinfo=UTC)


def status(state: Any, **changes: Any) -> RoundStatus:
    given = {
        "round": "round-1", "system": "small_ranker/secure/median", "state": state, "stages": "sum", "release": "r1",
        "cohort": 60, "cohort_minimum": 30, "joined": 60, "uploaded": 0, "received_bytes": 0, "opened_at": OPENED,
        "closes_at": OPENED + timedelta(minutes=1),
    }  # fmt: skip
    return RoundStatus.model_validate(given | changes)
