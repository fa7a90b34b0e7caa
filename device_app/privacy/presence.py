"""Telling the backend that this device could train now."""

from __future__ import annotations

from device_app.privacy.sealed import JSON, Charge, Sealed, close, json_payload
from device_app.wire.rounds import CheckIn, RoundOffer, SumStage


def seal_check_in(check_in: CheckIn) -> Sealed[CheckIn]:
    """Seal a check-in: protocol version, release and the tasks this program knows.

    Formal guarantees: nothing in it is computed from clicks: epsilon 0. That a device checks in at all shows that its
    reader switched training on and has clicks enough to train; no number bounds that.
    """
    words = "An offer to take part in a training round, with the release this device holds. Nothing about you is in it."
    return close(check_in, json_payload(check_in), JSON, Charge("none", "presence", subject=check_in.release), words)


def seal_poll(offer: RoundOffer, stage: SumStage) -> Sealed[RoundOffer]:
    """Seal a look at what a stage of a secure sum came to; it has no body, its address holds the round's pseudonym.

    Formal guarantees: nothing in it is computed from clicks: epsilon 0. That the device of this pseudonym is still
    there shows, as it does in every message of the round.
    """
    words = f"A look at how the stage '{stage}' of a secure sum stands, under this round's pseudonym."
    return close(offer, b"", JSON, Charge("none", "presence", subject=offer.manifest.round), words)
