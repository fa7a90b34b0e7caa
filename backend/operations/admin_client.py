"""The operator's client: opens rounds over the admin API and follows them to their end."""

import json
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import httpx
from pydantic import TypeAdapter

from backend.errors import OwnfeedError
from backend.server.address import ServerAddress
from backend.settings import BackendSettings, url_of
from protocol.ids import Problem, RoundId
from protocol.rounds import QueuedRound, RoundStatus

POLL_SEC = 0.2
TIMEOUT_SEC = 10.0
OPENING_SEC = 120.0
"""How long a round may take to open: it is planned within the request, and a system's first round needs all its
preparation.
"""
TURN_SEC = 600.0
"""Default time that a round may wait in the queue before it is removed again."""
GRACE_SEC = 60.0
"""How long past its deadline a round may take to be applied before the client stops waiting."""

_STATUSES = TypeAdapter(list[RoundStatus])
_QUEUE = TypeAdapter(list[QueuedRound])
_OPENED: TypeAdapter[RoundStatus | QueuedRound] = TypeAdapter(RoundStatus | QueuedRound)


@cache
def _certificates() -> ssl.SSLContext:
    """The trusted certificates: loaded once, as it takes 40 ms of CPU, and a waiting client polls five times a
    second."""
    return httpx.create_ssl_context()


class OperatorRefused(OwnfeedError):
    """The server refused or did not answer; the message is one line."""

    code, status, title = "operator-refused", 500, "The backend did not do it"


def address_of(settings: BackendSettings) -> str:
    """The address of a data folder's server: the one it has recorded if it runs, else the one in the settings."""
    return ServerAddress(settings.servers_dir).known() or url_of(settings.host, settings.port)


class Operator:
    """Talks to one server with the operator's token."""

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

    def open_round(
        self,
        system: str,
        *,
        protection: str | None = None,
        aggregation: str | None = None,
        cohort: int | None = None,
        participation: float | None = None,
        cohort_minimum: int | None = None,
        seconds: float,
        turn_sec: float = TURN_SEC,
        waits: Callable[[QueuedRound], None] | None = None,
    ) -> RoundStatus:
        """Open a round, after those that change the same models.

        protection, aggregation: those of the system; None: the default. cohort: wanted number of updates.
        participation: in its place, the share of the waiting devices; without both, the system decides. turn_sec: how
        long it may wait in the queue; after that, or if this is interrupted, it is removed again. waits: called with
        its place in the queue whenever that changes.

        Raises OperatorRefused, also if it can't run when it is next in the queue.
        """
        size = {"cohort": cohort, "participation": participation, "cohort_minimum": cohort_minimum}
        axes = {"protection": protection, "aggregation": aggregation}
        body = {"system": system, **axes, "seconds": seconds, **size}
        found = _OPENED.validate_json(self._send("POST", "/v1/admin/rounds", body, OPENING_SEC))
        if isinstance(found, RoundStatus):
            return found
        opened = None
        try:
            opened = self._turn(found, time.monotonic() + turn_sec, waits)
        finally:
            if opened is None:
                with suppress(OperatorRefused):  # it has just opened, or left the queue
                    self._send("POST", f"/v1/admin/queue/{found.number}/cancel", None)
        return self.status(opened)

    def _turn(self, queued: QueuedRound, give_up: float, waits: Callable[[QueuedRound], None] | None) -> RoundId:
        shown: QueuedRound | None = None
        while queued.opened is None:
            if queued.reason is not None:
                raise OperatorRefused(f"The queued round of {queued.system} did not open: {queued.reason}")
            if time.monotonic() >= give_up:
                raise OperatorRefused(
                    f"A round of {queued.system} is still number {queued.place} in the queue; it was removed."
                )
            if waits is not None and queued != shown:
                waits(queued)
                shown = queued
            time.sleep(POLL_SEC)
            queued = QueuedRound.model_validate_json(self._send("GET", f"/v1/admin/queue/{queued.number}", None))
        return queued.opened

    def queue(self) -> list[QueuedRound]:
        """Rounds waiting in the queue, oldest first."""
        return _QUEUE.validate_json(self._send("GET", "/v1/admin/queue", None))

    def take_out(self, number: int) -> QueuedRound:
        """Remove a waiting round from the queue. Raises OperatorRefused if it no longer waits."""
        return QueuedRound.model_validate_json(self._send("POST", f"/v1/admin/queue/{number}/cancel", None))

    def backfill(self) -> list[dict[str, Any]]:
        """What is prepared in the background: task, stage, done, total and trouble of each."""
        found: list[dict[str, Any]] = json.loads(self._send("GET", "/v1/admin/preparation", None))
        return found

    def follow(self, status: RoundStatus) -> Iterator[RoundStatus]:
        """Yield the round's status as it changes.

        The last one is applied or failed, with what follows from it.

        A failed sum is reported before the server has closed its round.
        """
        give_up = time.monotonic() + (status.closes_at - status.opened_at).total_seconds() + GRACE_SEC
        yield status
        while status.finished_at is None:
            if time.monotonic() > give_up:
                raise OperatorRefused(f"{status.round} is past its deadline and still {status.state}.")
            time.sleep(POLL_SEC)
            now = self.status(status.round)
            if now != status:
                yield now
            status = now

    def following(self, status: RoundStatus) -> RoundStatus | None:
        """Return the round that this one's conclusion requested, once it is open; None if there is none.

        Raises OperatorRefused if it isn't opened within a minute, for instance while rounds are paused.
        """
        give_up = time.monotonic() + GRACE_SEC
        while status.orders is not None:
            if status.followed_by is not None:
                return self.status(status.followed_by)
            if time.monotonic() > give_up:
                raise OperatorRefused(f"{status.round} started a round of {status.orders}, which has not opened.")
            time.sleep(POLL_SEC)
            status = self.status(status.round)
        return None

    def status(self, round_id: RoundId) -> RoundStatus:
        """The state of a round, with the received updates and its cost."""
        return RoundStatus.model_validate_json(self._send("GET", f"/v1/rounds/{round_id}", None))

    def rounds(self) -> list[RoundStatus]:
        """The last hundred rounds, newest first."""
        return _STATUSES.validate_json(self._send("GET", "/v1/admin/rounds", None))

    def cancel(self, round_id: RoundId) -> RoundStatus:
        """Cancel a round in progress; nothing is opened. Raises OperatorRefused if it has ended."""
        return RoundStatus.model_validate_json(self._send("POST", f"/v1/admin/rounds/{round_id}/cancel", None))

    def round_schedule(self) -> dict[str, Any]:
        """The members paused, schedule, last, trouble, and the estimated number of waiting devices."""
        return self._schedule_status("GET", "", None)

    def pause(self) -> dict[str, Any]:
        """Open no more rounds. Returns the resulting schedule, like the next three methods."""
        return self._schedule_status("POST", "/pause", None)

    def resume(self) -> dict[str, Any]:
        """Let rounds open again."""
        return self._schedule_status("POST", "/resume", None)

    def schedule(
        self,
        system: str,
        *,
        protection: str | None = None,
        aggregation: str | None = None,
        cohort: int,
        cohort_minimum: int | None = None,
        seconds: float,
        every_minutes: float | None,
        waiting: int | None,
    ) -> dict[str, Any]:
        """Open rounds at an interval, when enough devices wait, or when both hold."""
        body = {
            "system": system,
            "protection": protection,
            "aggregation": aggregation,
            "cohort": cohort,
            "cohort_minimum": cohort_minimum,
            "seconds": seconds,
            "every_minutes": every_minutes,
            "waiting": waiting,
        }
        return self._schedule_status("PUT", "/schedule", body)

    def unschedule(self) -> dict[str, Any]:
        """Delete the schedule."""
        return self._schedule_status("DELETE", "/schedule", None)

    def _schedule_status(self, method: str, path: str, body: object) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._send(method, f"/v1/admin/timetable{path}", body))
        return found

    def _send(self, method: str, path: str, body: object, timeout_sec: float = TIMEOUT_SEC) -> bytes:
        try:
            answer = httpx.request(
                method, self._url + path, headers=self._headers, json=body, timeout=timeout_sec, verify=_certificates()
            )
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
