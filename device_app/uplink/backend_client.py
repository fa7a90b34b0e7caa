"""Send sealed messages about the reader, and parse and check the answers.

Most cards of an answer were parsed before, so `KnownCards` reuses them; `read_vectors` reads the vectors of candidates.
"""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError, ValidatorFunctionWrapHandler

from device_app.errors import AnswerMalformed
from device_app.privacy.protections.local_laplace import NoisyUpdate
from device_app.privacy.sealed import Sealed
from device_app.store.participations import OutboxItem
from device_app.uplink.http import Answer, HttpClient
from protocol.ids import SHORT_RELEASES, Message, RoundId, short_release
from protocol.news import BodiesAnswer, BodiesRequest, NewsCard
from protocol.recall import RecallAnswer, RecallRequest
from protocol.rounds import (
    CheckIn,
    OpenRounds,
    RoundOffer,
    RoundStatus,
    SignedOffer,
    SumStage,
    UploadReceipt,
)
from protocol.secagg import Agreements, Roster, Sharers, Shares, Survivors
from protocol.server_timing import Stopwatch, parse_server_timing
from protocol.tensors import TensorError, TensorSpec, dequantise, unpack
from protocol.text_catalogue import TextCatalogue

CARDS_KEPT = 8_000


class KnownCards:
    """Caches parsed cards by their JSON (cards are frozen); a changed card is parsed again.

    The cache is emptied when it exceeds CARDS_KEPT. Not thread-safe.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[dict[str, Any], NewsCard]] = {}

    def card(self, raw: Any, read: ValidatorFunctionWrapHandler) -> NewsCard:
        """Return the card of a JSON value. Raises the errors of `read`."""
        news_id = raw.get("id") if isinstance(raw, dict) else None
        if isinstance(news_id, str):
            known = self._known.get(news_id)
            if known is not None and known[0] == raw:
                return known[1]
        card: NewsCard = read(raw)
        if len(self._known) >= CARDS_KEPT:
            self._known.clear()
        self._known[card.id] = (raw, card)
        return card

    def forget(self) -> None:
        """Empty the cache."""
        self._known.clear()


VECTORS_LIMIT_BYTES = 8 * 1024 * 1024
SCALE_LIMIT = 1e6
"""Article vectors have a length of about 1; squares and products of numbers this large still fit a float32."""


def read_vectors(answer: RecallAnswer, dimensions: int) -> NDArray[np.float32]:
    """Return float32 [R, D], one row per candidate, in the answer's order. Raises AnswerMalformed."""
    return read_codes(answer.vectors, len(answer.candidates), dimensions, "recall", VECTORS_LIMIT_BYTES)


def read_codes(blob: bytes, rows: int, dimensions: int, what: str, limit_bytes: int) -> NDArray[np.float32]:
    """Return float32 [rows, dimensions] from a blob of `codes` and `scales`. Raises AnswerMalformed."""
    specs = {"codes": TensorSpec("int8", (rows, dimensions)), "scales": TensorSpec("float32", (rows,))}
    try:
        tensors = unpack(blob, specs, limit_bytes=limit_bytes)
    except TensorError as broken:
        raise AnswerMalformed(what, str(broken)) from broken
    if rows and (largest := float(np.abs(tensors["scales"]).max())) > SCALE_LIMIT:
        raise AnswerMalformed(what, f"tensor scales: at most {SCALE_LIMIT:g}, got {largest:g}")
    return dequantise(tensors["codes"], tensors["scales"])


REQUESTS = TextCatalogue("device_app.uplink", "requests.toml")

T = TypeVar("T", bound=Message)

BODIES_ANSWER_LIMIT_BYTES = 64 * 1024 * 1024
ANSWERS: dict[SumStage, type[Roster] | type[Shares] | type[Sharers] | type[Survivors] | type[Agreements]] = {
    "keys": Roster,
    "shares": Shares,
    "complaints": Sharers,
    "masked": Survivors,
    "agree": Agreements,
}


class Uplink:
    """Sends messages about the reader.

    Each call raises BackendUnreachable, BackendRefused or AnswerMalformed. Called from worker threads.
    """

    def __init__(self, client: HttpClient) -> None:
        self.client = client
        self._known_cards = KnownCards()
        self._last: tuple[bytes, RecallAnswer] | None = None

    def forget(self) -> None:
        """Drop cached answers."""
        self._known_cards.forget()
        self._last = None

    def recall(
        self, sealed: Sealed[RecallRequest], watch: Stopwatch | None = None
    ) -> tuple[RecallAnswer, dict[str, float]]:
        """Return the candidates for a report, and the server's milliseconds by stage.

        The same bytes as last time return the same object. watch receives this device's stages: store (the byte log),
        encode, network (first byte out to last byte in), decode.
        """
        watch = watch or Stopwatch()
        answer = self.client.deliver(sealed, "/v1/recall", purpose="recall", watch=watch)
        with watch.stage("decode"):
            found = self._read(answer)
        if short_release(found.release) != sealed.message.release:
            expected = f"number {sealed.message.release} modulo {SHORT_RELEASES}"
            raise AnswerMalformed("recall", f"it is for release {found.release}, expected one of {expected}")
        if len(found.candidates) > sealed.message.limit:
            raise AnswerMalformed(
                "recall", f"{len(found.candidates)} candidates, at most {sealed.message.limit} were requested"
            )
        return found, parse_server_timing(answer.headers.get("server-timing", ""))

    def bodies(self, sealed: Sealed[BodiesRequest]) -> BodiesAnswer:
        """Return the texts of a whole list; texts that were not requested are refused."""
        answer = self.client.deliver(sealed, "/v1/news/bodies", purpose="bodies", limit_bytes=BODIES_ANSWER_LIMIT_BYTES)
        found = parsed(BodiesAnswer, answer, "bodies")
        if unasked := {body.id for body in found.bodies} - set(sealed.message.ids):
            raise AnswerMalformed("bodies", f"{min(unasked)} was not requested")
        return found

    def check_in(self, sealed: Sealed[CheckIn]) -> SignedOffer | None:
        """Check in to a round; return its offer, not yet verified, or None if there is no place."""
        answer = self.client.deliver(sealed, "/v1/rounds/check-in", purpose="training")
        return None if answer.status == 204 else parsed(SignedOffer, answer, "check-in")

    def upload(self, offer: RoundOffer, sealed: Sealed[NoisyUpdate]) -> UploadReceipt:
        """Upload an update and check the receipt's hash.

        Repeating the same bytes gets the same receipt.
        """
        if sealed.message.round != offer.manifest.round:
            raise ValueError(f"the update is for {sealed.message.round}, the offer for {offer.manifest.round}")
        return self._hand_in(sealed, upload_path(offer), "PUT", offer.manifest.round)

    def resend(self, sealed: Sealed[OutboxItem]) -> UploadReceipt:
        """Send a stored upload again, byte for byte (see `local_laplace.reseal`)."""
        return self._hand_in(sealed, sealed.message.path, sealed.message.method, sealed.message.subject)

    def sum_message(self, offer: RoundOffer, stage: SumStage, sealed: Sealed[object]) -> UploadReceipt:
        """Send a message of a secure sum; repeating the same bytes gets the same receipt."""
        return self._hand_in(sealed, stage_path(offer, stage), "PUT", offer.manifest.round)

    def sum_answer(
        self, sealed: Sealed[RoundOffer], stage: SumStage
    ) -> Roster | Shares | Sharers | Survivors | Agreements | None:
        """Return the result of a stage for this device, or None while it isn't closed."""
        path = stage_path(sealed.message, stage)
        answer = self.client.deliver(sealed, path, purpose="training", method="GET")
        return None if answer.status == 204 else parsed(ANSWERS[stage], answer, f"stage {stage}")

    def round_status(self, round_id: RoundId) -> RoundStatus:
        """Return the status of a round; the same for every device."""
        answer = self.client.get(
            f"/v1/rounds/{round_id}", words=REQUESTS("round_status", round=round_id), purpose="progress"
        )
        return parsed(RoundStatus, answer, "round status")

    def open_rounds(self) -> tuple[RoundStatus, ...]:
        """Return the running rounds, oldest first."""
        answer = self.client.get("/v1/rounds/current", words=REQUESTS("current_round"), purpose="progress")
        return () if answer.status == 204 else parsed(OpenRounds, answer, "open rounds").rounds

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
    """Return the path that an offer's update is sent to."""
    return f"/v1/rounds/{offer.manifest.round}/updates/{offer.pseudonym}"


def stage_path(offer: RoundOffer, stage: SumStage) -> str:
    """Return the path of a stage's messages and answers in a secure sum."""
    return f"/v1/rounds/{offer.manifest.round}/{stage}/{offer.pseudonym}"


def parsed(kind: type[T], answer: Answer, what: str, context: object = None) -> T:
    """Return the answer as a message of the wire.

    Raises AnswerMalformed naming the first invalid field.
    """
    try:
        return kind.model_validate_json(answer.body, context=context)
    except ValidationError as broken:
        first = broken.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "body"
        raise AnswerMalformed(what, f"{where}: {first['msg']}") from broken
