"""Seal requests that don't depend on the reader's clicks.

They are check-ins, polls of a sum, and requests for the texts of a whole list.
"""

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

    The whole list is requested, including articles that the feed left out or that are already stored: any choice among
    the candidates would depend on the reader's clicks. Raises ValueError for an answer without candidates or with more
    than 1,000.

    Formal guarantees: the request is a function of the server's own answer, so it is post-processing of a report that
    was paid for: epsilon 0. The function takes the answer, not a list of ids, so nothing else can be requested.
    """
    request = _whole(answer)
    words = WORDS("texts_of_list", count=len(request.ids))
    return close(request, json_payload(request), JSON, Charge("none", "post_processing"), words)


def seal_common(listed: RecallAnswer) -> Sealed[BodiesRequest]:
    """Request the texts of the default list, in its order.

    Raises ValueError like `seal_returned`.

    Formal guarantees: the request is a function of a public list, the same for every device that has it: epsilon 0.
    """
    request = _whole(listed)
    words = WORDS("texts_of_common", stories=plural(len(request.ids), "story", "stories"))
    return close(request, json_payload(request), JSON, Charge("none", COMMON), words)


def _whole(answer: RecallAnswer) -> BodiesRequest:
    ids = tuple(dict.fromkeys(card.id for card in answer.candidates))
    if not 1 <= len(ids) <= BODIES_PER_REQUEST:
        raise ValueError(
            f"the answer has {len(ids)} candidates; one request may ask for the texts of 1 to {BODIES_PER_REQUEST}"
        )
    return BodiesRequest(ids=ids)


def seal_block(block: PoolBlock) -> Sealed[BodiesRequest]:
    """Request the texts of a whole block of the pool.

    Used when an article of the block was found on this device and opened.

    Formal guarantees: no epsilon is claimed or charged. The request reveals that one of the block's articles
    (neighbours by id, not by topic) was opened now, but not which. Every device cuts the same blocks, and a request has
    at least BLOCK distinct articles. The server chooses the articles of the pool: if it fills the pool with articles
    that no reader would open, it learns which was opened.

    Raises ValueError for a block with fewer articles, or with more than can be requested at once.
    """
    if not BLOCK <= len(set(block.ids)) <= BODIES_PER_REQUEST:
        raise ValueError(
            f"the block has {len(set(block.ids))} stories; one request may ask for the texts of {BLOCK} to "
            f"{BODIES_PER_REQUEST}"
        )
    words = WORDS("texts_of_block", count=len(block.ids))
    request = BodiesRequest(ids=block.ids)
    return close(request, json_payload(request), JSON, Charge("none", "block"), words)


def seal_check_in(check_in: CheckIn) -> Sealed[CheckIn]:
    """Seal a check-in.

    It holds the protocol version, the release's number modulo 16 and the tasks of this program.

    Formal guarantees: nothing in it is computed from clicks: epsilon 0. It reveals that the reader has switched on what
    the check-in is for; no epsilon bounds that.
    """
    charge = Charge("none", "presence", subject=f"release {check_in.release} modulo {SHORT_RELEASES}")
    return close(check_in, json_payload(check_in), JSON, charge, WORDS("check_in"))


def seal_poll(offer: RoundOffer, stage: SumStage) -> Sealed[RoundOffer]:
    """Seal a poll for the result of a stage of a secure sum.

    It has no body; its path contains the round's pseudonym.

    Formal guarantees: nothing in it is computed from clicks: epsilon 0. It reveals that the device with this pseudonym
    is still online, as every message of the round does.
    """
    words = WORDS("poll", stage=stage)
    return close(offer, b"", JSON, Charge("none", "presence", subject=offer.manifest.round), words)


HERE = "own_server"
"""Mechanism of requests that stay on this machine."""


def is_this_machine(url: str) -> bool:
    """Return whether a URL's host is a loopback IP address; a host name could resolve to anything."""
    try:
        return ip_address(urlsplit(url).hostname or "").is_loopback
    except ValueError:
        return False


def seal_for_own_server(message: OwnMessage, url: str, words: str) -> Sealed[OwnMessage]:
    """Seal a request about feeds for the reader's own server.

    Raises ValueError unless its address is a loopback one.

    Formal guarantees: it leaves the device's process, but not this machine: epsilon 0. It contains nothing about what
    is read. It says which feeds the reader wants; their publishers learn that anyway from the requests for the feeds.
    """
    if not is_this_machine(url):
        raise ValueError(f"{url} is not on this machine, so nothing about this reader's feeds is sent there")
    return close(message, json_payload(message), JSON, Charge("none", HERE), words)
