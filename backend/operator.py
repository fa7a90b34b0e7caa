"""The operator's own client: opens rounds over the admin API and follows them to their end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import httpx

from backend.errors import OwnfeedError
from device_app.wire.ids import RoundId
from device_app.wire.problems import Problem
from device_app.wire.rounds import RoundStatus

POLL_SEC = 0.2
TIMEOUT_SEC = 10.0
GRACE_SEC = 60.0
"""How long past its deadline a round may take to be applied before we stop waiting for it."""


class OperatorRefused(OwnfeedError):
    """The backend refused or did not answer; the message is one line."""

    code, status, title = "operator-refused", 500, "The backend did not do it"


class Operator:
    """Talks to one backend with the admin token."""

    def __init__(self, url: str, token_file: Path) -> None:
        try:
            token = token_file.read_text(encoding="utf-8").strip()
        except OSError as missing:
            raise OperatorRefused(
                f"No admin token at {token_file} ({missing.strerror}); is this the backend's folder?",
                field="token_file",
            ) from missing
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"}

    def open_round(self, system: str, *, cohort: int, cohort_minimum: int, seconds: float) -> RoundStatus:
        """Open a round. Raises OperatorRefused, for example while another one runs."""
        wish = {"system": system, "cohort": cohort, "cohort_minimum": cohort_minimum, "seconds": seconds}
        return RoundStatus.model_validate_json(self._send("POST", "/v1/admin/rounds", wish))

    def follow(self, status: RoundStatus) -> Iterator[RoundStatus]:
        """Yield the round's status as it changes, the last one applied or failed."""
        give_up = time.time() + (status.closes_at - status.opened_at).total_seconds() + GRACE_SEC
        yield status
        while status.state not in ("applied", "failed"):
            if time.time() > give_up:
                raise OperatorRefused(f"{status.round} is past its deadline and still {status.state}.")
            time.sleep(POLL_SEC)
            now = self.status(status.round)
            if now != status:
                yield now
            status = now

    def following(self, status: RoundStatus) -> RoundStatus | None:
        """The round that the conclusion of this one has ordered, once it's open; None if there is none.

        Raises OperatorRefused if it isn't opened within a minute: while rounds are paused, say.
        """
        give_up = time.time() + GRACE_SEC
        while status.orders is not None:
            if status.followed_by is not None:
                return self.status(status.followed_by)
            if time.time() > give_up:
                raise OperatorRefused(f"{status.round} has ordered a round of {status.orders}, which isn't opened.")
            time.sleep(POLL_SEC)
            status = self.status(status.round)
        return None

    def status(self, round_id: RoundId) -> RoundStatus:
        """How a round stands."""
        return RoundStatus.model_validate_json(self._send("GET", f"/v1/rounds/{round_id}", None))

    def _send(self, method: str, path: str, body: object) -> bytes:
        try:
            answer = httpx.request(method, self._url + path, headers=self._headers, json=body, timeout=TIMEOUT_SEC)
        except httpx.TransportError as failed:
            raise OperatorRefused(f"The backend at {self._url} does not answer ({type(failed).__name__}).") from failed
        if answer.is_error:
            try:
                problem = Problem.model_validate_json(answer.content)
            except ValueError:
                raise OperatorRefused(f"The backend answered {answer.status_code} to {method} {path}.") from None
            allowed = f" Allowed: {problem.limit}." if problem.limit and problem.limit not in problem.detail else ""
            raise OperatorRefused(
                f"{problem.title}: {problem.detail}{allowed}", field=problem.field, limit=problem.limit
            )
        return answer.content
