"""Seal requests that don't depend on the reader's clicks.

These are check-ins, polls of a sum, and requests for the texts of a whole list.
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from device_app.privacy.sealed import JSON, Charge, Sealed, close, json_payload
from device_app.store.pool_codes import BLOCK, PoolBlock
from protocol.formatting import plural
from protocol.ids import SHORT_RELEASES
from protocol.news import BODIES_PER_REQUEST, BodiesRequest
from protocol.own_feeds import OwnMessage
from protocol.recall import RecallAnswer
from protocol.rounds import CheckIn, RoundOffer, SumStage
from protocol.text_catalogue import TextCatalogue

COMMON = "public_list"
"""The mechanism of a request made only from data that every device gets."""

WORDS = TextCatalogue("device_app.privacy", "words.toml")


def seal_returned(answer: RecallAnswer) -> Sealed[BodiesRequest]:
    """Request the texts of every candidate of an answer, in the answer's order.

    The whole list is requested, including what the feed left out and what is already stored: any choice among the
    candidates would come from the reader's clicks. Raises ValueError for an answer without candidates or with more than
    1,000.

    Formal guarantees: the request is a function of the server's own answer, so it's post-processing of a report that
    was paid for: epsilon 0. It takes the answer, not a list of ids, so that nothing else can be requested.
    """
    request = _whole(answer)
    words = WORDS("texts_of_list", count=len(request.ids))
    return close(request, json_payload(request), JSON, Charge("none", "post_processing"), words)


def seal_common(listed: RecallAnswer) -> Sealed[BodiesRequest]:
    """Request the texts of the default list, in its order.

    Raises ValueError as `seal_returned` does.

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
    """Request the texts of a whole block of the pool.

    One of its articles was opened after it was found on this device.

    Formal guarantees: epsilon 0 is charged for the report that isn't made, and none is claimed for this: it reveals
    that one of the block's articles (neighbours by id, not by topic) was opened now, and not which. Blocks are cut
    alike on every device. Nothing smaller than BLOCK distinct articles can be requested. The server chooses the
    articles of the pool: one that fills it with articles that no reader would open learns which was opened.

    Raises ValueError for a block with fewer articles, or with more than can be requested at once.
    """
    if not BLOCK <= len(set(block.ids)) <= BODIES_PER_REQUEST:
        raise ValueError(
            f"the block has {len(set(block.ids))} stories; texts are asked for {BLOCK} to {BODIES_PER_REQUEST}"
        )
    words = WORDS("texts_of_block", count=len(block.ids))
    request = BodiesRequest(ids=block.ids)
    return close(request, json_payload(request), JSON, Charge("none", "block"), words)


def seal_check_in(check_in: CheckIn) -> Sealed[CheckIn]:
    """Seal a check-in.

    It holds the protocol version, the release's number modulo 16 and the tasks of this program.

    Formal guarantees: nothing in it is computed from clicks: epsilon 0. It reveals that the reader has switched on what
    the check-in is for; no number bounds that.
    """
    charge = Charge("none", "presence", subject=f"release {check_in.release} modulo {SHORT_RELEASES}")
    return close(check_in, json_payload(check_in), JSON, charge, WORDS("check_in"))


def seal_poll(offer: RoundOffer, stage: SumStage) -> Sealed[RoundOffer]:
    """Seal a poll for the result of a stage of a secure sum.

    It has no body, and its path holds the round's pseudonym.

    Formal guarantees: nothing in it is computed from clicks: epsilon 0. It reveals that the device of this pseudonym is
    still there, as every message of the round does.
    """
    words = WORDS("poll", stage=stage)
    return close(offer, b"", JSON, Charge("none", "presence", subject=offer.manifest.round), words)


HERE = "own_server"
"""The mechanism of a request that stays on this machine."""


def is_this_machine(url: str) -> bool:
    """Return whether an address is a loopback one, by its number: a name could lead anywhere."""
    try:
        return ip_address(urlsplit(url).hostname or "").is_loopback
    except ValueError:
        return False


def seal_for_own_server(message: OwnMessage, url: str, words: str) -> Sealed[OwnMessage]:
    """Seal a request about feeds for the reader's own server.

    Raises ValueError unless its address is a loopback one.

    Formal guarantees: it leaves the device's process, but not this machine: epsilon 0. Nothing that is read enters it;
    it says which feeds the reader wants, which their publishers learn from the requests for them.
    """
    if not is_this_machine(url):
        raise ValueError(f"{url} is not on this machine, so nothing about this reader's feeds is sent there")
    return close(message, json_payload(message), JSON, Charge("none", HERE), words)
