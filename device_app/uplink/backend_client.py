"""The device's client of the backend for whatever is about its reader: sealed messages out, checked answers back."""

from __future__ import annotations

from typing import TypeVar

from pydantic import ValidationError

from device_app.errors import AnswerMalformed
from device_app.privacy.protections.local_laplace import NoisyUpdate
from device_app.privacy.sealed import JSON, Sealed
from device_app.prose import Prose
from device_app.store.outbox import OutboxItem
from device_app.uplink.answers import KnownCards
from device_app.uplink.http import Answer, HttpClient
from device_app.wire.ids import SHORT_RELEASES, Message, RoundId, short_release
from device_app.wire.news import BodiesAnswer, BodiesRequest
from device_app.wire.offers import SignedOffer
from device_app.wire.recall import RecallAnswer, RecallRequest
from device_app.wire.rounds import (
    OPEN_ROUNDS,
    CheckIn,
    OpenRounds,
    RoundOffer,
    RoundStatus,
    SumStage,
    UploadReceipt,
)
from device_app.wire.secagg import Agreements, Roster, Sharers, Shares, Survivors
from device_app.wire.server_timing import Stopwatch, parse_server_timing

REQUESTS = Prose("device_app.uplink", "requests.toml")

T = TypeVar("T", bound=Message)

BODIES_ANSWER_LIMIT_BYTES = 64 * 1024 * 1024
ANSWERS: dict[SumStage, type[Roster] | type[Shares] | type[Sharers] | type[Survivors] | type[Agreements]] = {
    "keys": Roster,
    "shares": Shares,
    "complaints": Sharers,
    "masked": Survivors,
    "agree": Agreements,
}
READER_WAITS_SEC = 4.0
"""A reader waits for a page: a server that is silent for so long counts as unreachable, which is said within 5 s."""


class Uplink:
    """Each call raises BackendUnreachable, BackendRefused or AnswerMalformed. Called from worker threads."""

    def __init__(self, client: HttpClient) -> None:
        self.client = client
        self._known_cards = KnownCards()
        self._last: tuple[bytes, RecallAnswer] | None = None

    def forget(self) -> None:
        """Drop the answers that are kept in memory to be read faster when they come again."""
        self._known_cards.forget()
        self._last = None

    def recall(
        self, sealed: Sealed[RecallRequest], watch: Stopwatch | None = None
    ) -> tuple[RecallAnswer, dict[str, float]]:
        """Candidates for a report, and the server's milliseconds by stage.

        The same bytes as last time are the same object. watch gets this end's stages: store (the byte log), encode,
        network (first byte out to last byte in), decode.
        """
        watch = watch or Stopwatch()
        answer = self.client.deliver(sealed, "/v1/recall", purpose="recall", watch=watch, wait_sec=READER_WAITS_SEC)
        with watch.stage("decode"):
            found = self._read(answer)
        if short_release(found.release) != sealed.message.release:
            asked = f"number {sealed.message.release} modulo {SHORT_RELEASES}"
            raise AnswerMalformed("recall", f"it is for release {found.release}, asked was one of {asked}")
        if len(found.candidates) > sealed.message.limit:
            raise AnswerMalformed("recall", f"{len(found.candidates)} candidates, asked were {sealed.message.limit}")
        return found, parse_server_timing(answer.headers.get("server-timing", ""))

    def bodies(self, sealed: Sealed[BodiesRequest]) -> BodiesAnswer:
        """Texts of a whole returned list; texts that were not asked for are refused."""
        answer = self.client.deliver(sealed, "/v1/news/bodies", purpose="bodies", limit_bytes=BODIES_ANSWER_LIMIT_BYTES)
        found = parsed(BodiesAnswer, answer, "bodies")
        if unasked := {body.id for body in found.bodies} - set(sealed.message.ids):
            raise AnswerMalformed("bodies", f"{min(unasked)} was not asked for")
        return found

    def check_in(self, sealed: Sealed[CheckIn]) -> SignedOffer | None:
        """A round to take part in, not yet verified, or None: not now."""
        answer = self.client.deliver(sealed, "/v1/rounds/check-in", purpose="training")
        return None if answer.status == 204 else parsed(SignedOffer, answer, "check-in")

    def upload(self, offer: RoundOffer, sealed: Sealed[NoisyUpdate]) -> UploadReceipt:
        """Hand in an update; handing in the same bytes again gets the same receipt. Checks the receipt's hash."""
        if sealed.message.round != offer.manifest.round:
            raise ValueError(f"the update is for {sealed.message.round}, the offer for {offer.manifest.round}")
        return self._hand_in(sealed, upload_path(offer), "PUT", offer.manifest.round)

    def resend(self, sealed: Sealed[OutboxItem]) -> UploadReceipt:
        """Hand in an upload of the outbox once more, byte for byte (see privacy.protections.local_laplace.reseal)."""
        return self._hand_in(sealed, sealed.message.path, sealed.message.method, sealed.message.subject)

    def sum_message(self, offer: RoundOffer, stage: SumStage, sealed: Sealed[object]) -> UploadReceipt:
        """Hand in a message of a secure sum; the same bytes again get the same receipt."""
        return self._hand_in(sealed, stage_path(offer, stage), "PUT", offer.manifest.round)

    def sum_answer(
        self, sealed: Sealed[RoundOffer], stage: SumStage
    ) -> Roster | Shares | Sharers | Survivors | Agreements | None:
        """What a stage came to for this device, or None while it isn't closed."""
        path = stage_path(sealed.message, stage)
        answer = self.client.deliver(sealed, path, purpose="training", method="GET")
        return None if answer.status == 204 else parsed(ANSWERS[stage], answer, f"stage {stage}")

    def round_status(self, round_id: RoundId) -> RoundStatus:
        """How a round stands; the same for everybody."""
        answer = self.client.get(
            f"/v1/rounds/{round_id}", words=REQUESTS("round_status", round=round_id), purpose="progress"
        )
        return parsed(RoundStatus, answer, "round status")

    def open_rounds(self) -> OpenRounds | RoundStatus | None:
        """The rounds under way, or None; a server of an earlier version tells one, whatever is accepted."""
        answer = self.client.get(
            "/v1/rounds/current",
            words=REQUESTS("current_round"),
            purpose="progress",
            accept=f"{OPEN_ROUNDS}, {JSON}",
        )
        if answer.status == 204:
            return None
        several = answer.headers.get("content-type", "").startswith(OPEN_ROUNDS)
        return parsed(OpenRounds, answer, "open rounds") if several else parsed(RoundStatus, answer, "current round")

    def current_round(self) -> RoundStatus | None:
        """The oldest round under way, or None."""
        found = self.open_rounds()
        return next(iter(found.rounds), None) if isinstance(found, OpenRounds) else found

    def _read(self, answer: Answer) -> RecallAnswer:
        last = self._last
        if last is None or last[0] != answer.body:
            last = self._last = (answer.body, parsed(RecallAnswer, answer, "recall", self._known_cards))
        return last[1]

    def _hand_in(
        self, sealed: Sealed[NoisyUpdate] | Sealed[OutboxItem] | Sealed[object], path: str, method: str, name: str
    ) -> UploadReceipt:
        receipt = parsed(UploadReceipt, self.client.deliver(sealed, path, purpose="training", method=method), "upload")
        if receipt.sha256 != sealed.sha256 or receipt.round != name:
            raise AnswerMalformed("upload", "its receipt is for other bytes or another round")
        return receipt


def upload_path(offer: RoundOffer) -> str:
    """Where the update of an offer goes."""
    return f"/v1/rounds/{offer.manifest.round}/updates/{offer.pseudonym}"


def stage_path(offer: RoundOffer, stage: SumStage) -> str:
    """Where the messages of a secure sum go, and their answers come from."""
    return f"/v1/rounds/{offer.manifest.round}/{stage}/{offer.pseudonym}"


def parsed(kind: type[T], answer: Answer, what: str, context: object = None) -> T:
    """The answer as a message of the wire; raises AnswerMalformed naming the first field that breaks it."""
    try:
        return kind.model_validate_json(answer.body, context=context)
    except ValidationError as broken:
        first = broken.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "body"
        raise AnswerMalformed(what, f"{where}: {first['msg']}") from broken
