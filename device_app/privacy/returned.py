"""Asking for the texts of a whole returned list, before anything on it is opened."""

from __future__ import annotations

from device_app.privacy.sealed import JSON, Charge, Sealed, close, json_payload
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
