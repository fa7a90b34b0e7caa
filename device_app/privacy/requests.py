"""Requests made of nothing that clicks tell: check-ins, polls of a sum, and texts of a whole list."""

from __future__ import annotations

from device_app.figures import plural
from device_app.privacy.sealed import JSON, Charge, Sealed, close, json_payload
from device_app.prose import Prose
from device_app.store.pool_codes import BLOCK, PoolBlock
from device_app.wire.ids import SHORT_RELEASES
from device_app.wire.news import BODIES_PER_REQUEST, BodiesRequest
from device_app.wire.recall import RecallAnswer
from device_app.wire.rounds import CheckIn, RoundOffer, SumStage

COMMON = "public_list"
"""The mechanism of a request that is made of what every device is given alike."""

WORDS = Prose("device_app.privacy", "words.toml")


def seal_returned(answer: RecallAnswer) -> Sealed[BodiesRequest]:
    """Ask for the texts of every candidate of an answer, in the answer's order.

    The whole list is asked for, also what the feed left out and what is already here: any choice among the candidates
    would come from the reader's clicks. Raises ValueError for an answer without candidates or with more than 1,000.

    Formal guarantees: the request is a function of the server's own answer, so it's post-processing of a report that
    was paid for: epsilon 0. It takes the answer, not a list of ids, so that nothing else can be asked for.
    """
    request = _whole(answer)
    words = WORDS("texts_of_list", count=len(request.ids))
    return close(request, json_payload(request), JSON, Charge("none", "post_processing"), words)


def seal_common(listed: RecallAnswer) -> Sealed[BodiesRequest]:
    """Ask for the texts of the list that every device gets, in its order. Raises ValueError as `seal_returned` does.

    Formal guarantees: the request is a function of a public list, the same for every device that has it: epsilon 0.
    """
    request = _whole(listed)
    words = WORDS("texts_of_common", stories=plural(len(request.ids), "story", "stories"))
    return close(request, json_payload(request), JSON, Charge("none", COMMON), words)


def _whole(answer: RecallAnswer) -> BodiesRequest:
    ids = tuple(dict.fromkeys(card.id for card in answer.candidates))
    if not 1 <= len(ids) <= BODIES_PER_REQUEST:
        raise ValueError(f"the answer has {len(ids)} candidates; texts are asked for 1 to {BODIES_PER_REQUEST}")
    return BodiesRequest(ids=ids)


def seal_block(block: PoolBlock) -> Sealed[BodiesRequest]:
    """Ask for the texts of a whole block of the pool, one of which was opened after it was found on this device.

    Formal guarantees: epsilon 0 is charged for the report that isn't made, and none is claimed for this: it tells that
    one of the block's stories (neighbours by id, not by topic) was opened now, and not which. Blocks are cut alike on
    every device. Nothing smaller than BLOCK distinct stories can be asked for. What the stories of the pool are is the
    server's choice: one that fills it with news that nobody would open learns which was opened.

    Raises ValueError for a block of fewer, or of more than can be asked for at once.
    """
    if not BLOCK <= len(set(block.ids)) <= BODIES_PER_REQUEST:
        raise ValueError(
            f"the block has {len(set(block.ids))} stories; texts are asked for {BLOCK} to {BODIES_PER_REQUEST}"
        )
    words = WORDS("texts_of_block", count=len(block.ids))
    request = BodiesRequest(ids=block.ids)
    return close(request, json_payload(request), JSON, Charge("none", "block"), words)


def seal_check_in(check_in: CheckIn) -> Sealed[CheckIn]:
    """Seal a check-in: protocol version, the release's number modulo 16 and the tasks this program knows.

    Formal guarantees: nothing in it is computed from clicks: epsilon 0. That a device checks in at all shows that its
    reader switched training on and has clicks enough to train; no number bounds that.
    """
    charge = Charge("none", "presence", subject=f"release {check_in.release} modulo {SHORT_RELEASES}")
    return close(check_in, json_payload(check_in), JSON, charge, WORDS("check_in"))


def seal_poll(offer: RoundOffer, stage: SumStage) -> Sealed[RoundOffer]:
    """Seal a look at what a stage of a secure sum came to; it has no body, its address holds the round's pseudonym.

    Formal guarantees: nothing in it is computed from clicks: epsilon 0. That the device of this pseudonym is still
    there shows, as it does in every message of the round.
    """
    words = WORDS("poll", stage=stage)
    return close(offer, b"", JSON, Charge("none", "presence", subject=offer.manifest.round), words)
