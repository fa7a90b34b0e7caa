"""Asking for the texts of a whole returned list, before anything on it is opened."""

from __future__ import annotations

from device_app.privacy.sealed import JSON, Charge, Sealed, close, json_payload
from device_app.store.pool import PoolBlock
from device_app.wire.news import BODIES_PER_REQUEST, BodiesRequest
from device_app.wire.recall import RecallAnswer


def seal_returned(answer: RecallAnswer) -> Sealed[BodiesRequest]:
    """Ask for the texts of every candidate of an answer, in the answer's order.

    The whole list is asked for, also what the feed left out and what is already here: any choice among the candidates
    would come from the reader's clicks. Raises ValueError for an answer without candidates or with more than 1,000.

    Formal guarantees: the request is a function of the server's own answer, so it's post-processing of a report that
    was paid for: epsilon 0. It takes the answer, not a list of ids, so that nothing else can be asked for.
    """
    ids = tuple(dict.fromkeys(card.id for card in answer.candidates))
    if not 1 <= len(ids) <= BODIES_PER_REQUEST:
        raise ValueError(f"the answer has {len(ids)} candidates; texts are asked for 1 to {BODIES_PER_REQUEST}")
    words = f"A request for the texts of all {len(ids)} stories that were returned, opened or not."
    request = BodiesRequest(ids=ids)
    return close(request, json_payload(request), JSON, Charge("none", "post_processing"), words)


def seal_block(block: PoolBlock) -> Sealed[BodiesRequest]:
    """Ask for the texts of a whole block of the pool, one of which was opened after it was found on this device.

    Formal guarantees: epsilon 0 is charged for the report that isn't made, and none is claimed for this: it tells that
    one of the block's stories (neighbours by time of publication, not by topic) was opened now, and not which. Blocks
    are cut alike on every device. Nothing smaller than a block can be asked for.
    """
    if not 1 <= len(block.ids) <= BODIES_PER_REQUEST:
        raise ValueError(f"the block has {len(block.ids)} stories; texts are asked for 1 to {BODIES_PER_REQUEST}")
    words = f"A request for the texts of {len(block.ids)} neighbours in the pool; one of them was opened."
    request = BodiesRequest(ids=block.ids)
    return close(request, json_payload(request), JSON, Charge("none", "block"), words)
