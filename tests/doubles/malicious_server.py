"""A malicious server: it offers a count, invents all members but one, and opens the one real vector.

It speaks the wire protocol without using the backend. What it can't invent (a release, for a device without one) it
forwards to an honest server.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256

import httpx
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from numpy.typing import NDArray

from protocol.ids import PROTOCOL_HEADER, PROTOCOL_VERSION
from protocol.pairing import channel_keys, close_box, open_box, pair_seed, sign_agreement, sign_keys
from protocol.popularity import CLICKED, DISPLAYED, MATERIAL, CountList
from protocol.protections import SecureSum
from protocol.releases import BlobRef
from protocol.ring import apply_masks, as_integers, ring_dtype
from protocol.rounds import OpenRounds, RoundManifest, RoundOffer, RoundStatus, UploadReceipt, sign_offer
from protocol.secagg import (
    AdvertisedKeys,
    Agreements,
    MemberSignature,
    Roster,
    RosterEntry,
    SharedKeys,
    Sharers,
    Shares,
    Survivors,
    required_threshold,
)
from protocol.shamir import SHARE_BYTES, LagrangeBasis, join_bytes


@dataclass
class InventedMember:
    """Keys whose secrets the attacker holds."""

    number: int
    context: bytes
    identity: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)
    encryption: X25519PrivateKey = field(default_factory=X25519PrivateKey.generate)
    mask: X25519PrivateKey = field(default_factory=X25519PrivateKey.generate)

    @property
    def keys(self) -> AdvertisedKeys:
        return sign_keys(
            self.context,
            self.identity,
            self.encryption.public_key().public_bytes_raw(),
            self.mask.public_key().public_bytes_raw(),
        )


@dataclass
class MaliciousServer(httpx.BaseTransport):
    """Rounds of a count in sequence, each with the required number of invented members.

    Args:
        honest: answers everything that isn't a round or a material of one.
        listed: the articles whose displays and clicks are requested.
        protection: the offered protection.
        cohort, cohort_minimum: of the offered terms.
        claimed: the number of members that its roster claims; None: as many as it names.
        named: the number of members that its roster names, including the device.
        threshold: of its roster; None: the least that a device accepts.
        key: signs its offers; None: a key of its own.
        lasts: the stated duration of its rounds.
    """

    honest: httpx.BaseTransport
    listed: CountList
    protection: SecureSum
    clock: Callable[[], datetime]
    cohort: int = 10
    cohort_minimum: int = 10
    claimed: int | None = None
    named: int = 10
    threshold: int | None = None
    key: Ed25519PrivateKey | None = None
    lasts: timedelta = timedelta(hours=1)
    number: int = 1
    stages: list[str] = field(default_factory=list)
    opened: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        self.key = self.key or Ed25519PrivateKey.generate()
        self.again()

    def again(self) -> None:
        """Start another round, with newly invented members."""
        count = len(self.listed.news)
        self.terms = self.protection.terms(
            f"round-{self.number}", cohort=self.cohort, cohort_minimum=self.cohort_minimum, coordinates=2 * count
        )
        self.material = self.listed.model_dump_json().encode()
        self.manifest = RoundManifest(
            round=self.terms.round,
            release="r1",
            system="private_counts/secure/huber",
            task="count",
            shapes={DISPLAYED: (count,), CLICKED: (count,)},
            materials={MATERIAL: BlobRef(sha256=sha256(self.material).hexdigest(), size_bytes=len(self.material))},
            protection=self.protection,
            closes_at=self.clock() + self.lasts,
            terms=self.terms,
        )
        context = self.terms.digest()
        self.invented = [InventedMember(number, context) for number in range(2, self.named + 1)]
        self.device: AdvertisedKeys | None = None
        self.shared: SharedKeys | None = None
        self.opened = None
        self.number += 1

    def offer_body(self) -> bytes:
        """Return the answer to a chosen check-in."""
        assert self.key is not None
        offer = RoundOffer(manifest=self.manifest, pseudonym=secrets.token_urlsafe(24))
        return sign_offer(offer, self.key).model_dump_json().encode()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path, body = request.url.path, request.read()
        if path == "/v1/rounds/current":
            return _json(OpenRounds(rounds=(self._status(),)).model_dump_json().encode())
        if path == "/v1/rounds/check-in":
            return _json(self.offer_body())
        if path == f"/v1/blobs/{sha256(self.material).hexdigest()}":
            return _answer(self.material, "application/octet-stream")
        if path.startswith(f"/v1/rounds/{self.terms.round}/"):
            stage = path.split("/")[4]
            return self._take(stage, body) if request.method == "PUT" else self._tell(stage)
        if path == f"/v1/rounds/{self.terms.round}":
            return _json(self._status().model_dump_json().encode())
        return self.honest.handle_request(request)

    def _take(self, stage: str, body: bytes) -> httpx.Response:
        self.stages.append(stage)
        if stage == "keys":
            self.device = AdvertisedKeys.model_validate_json(body)
        elif stage == "shares":
            self.shared = SharedKeys.model_validate_json(body)
        elif stage == "masked":
            self.opened = self._open(body)
        receipt = UploadReceipt(round=self.terms.round, sha256=sha256(body).hexdigest(), duplicate=False)
        return _json(receipt.model_dump_json().encode())

    def _tell(self, stage: str) -> httpx.Response:
        assert self.device is not None
        if stage == "keys":
            return _json(self._roster().model_dump_json().encode())
        if stage == "shares":
            junk = bytes(SHARE_BYTES)
            boxes = []
            for one in self.invented:
                _, down = channel_keys(one.context, one.encryption, self.device.encryption_key, (1, one.number))
                boxes.append(close_box(down, one.number, 1, junk, junk).model_copy(update={"member": one.number}))
            return _json(Shares(boxes=tuple(boxes)).model_dump_json().encode())
        if stage == "complaints":
            return _json(Sharers(members=tuple(range(1, self.named + 1))).model_dump_json().encode())
        if stage == "masked":
            everybody = tuple(range(1, self.named + 1))
            return _json(Survivors(members=everybody).model_dump_json().encode())
        return _json(self._agreements().model_dump_json().encode())

    def _agreements(self) -> Agreements:
        """Return agreements of all invented members to everything."""
        roster, everybody = self._roster(), tuple(range(1, self.named + 1))
        return Agreements(
            signatures=tuple(
                MemberSignature(
                    member=one.number,
                    signature=sign_agreement(one.context, roster, everybody, one.identity).signature,
                )
                for one in self.invented
            )
        )

    def _roster(self) -> Roster:
        assert self.device is not None
        least = max(2, required_threshold(self.terms, self.named))
        return Roster(
            round=self.terms.round,
            me=1,
            cohort=self.claimed or self.named,
            threshold=self.threshold or least,
            members=(
                RosterEntry(member=1, keys=self.device),
                *(RosterEntry(member=one.number, keys=one.keys) for one in self.invented),
            ),
        )

    def _open(self, masked: bytes) -> NDArray[np.float64]:
        """Return the device's vector with only its own noise share: the invented members' secrets remove all masks."""
        assert self.device is not None
        assert self.shared is not None
        context = self.terms.digest()
        boxes = {box.member: box.box for box in self.shared.boxes}
        shares = {}
        for one in self.invented:
            up, _ = channel_keys(context, one.encryption, self.device.encryption_key, (1, one.number))
            shares[one.number] = open_box(up, 1, one.number, boxes[one.number])[1]
        few = list(shares)[: self._roster().threshold]
        seed = join_bytes(LagrangeBasis.at(few), {point: shares[point] for point in few})
        assert seed is not None
        pairs = [pair_seed(context, one.mask, self.device.mask_key, (1, one.number)) for one in self.invented]
        vector = np.frombuffer(masked, dtype=ring_dtype(self.terms.bits)).copy()
        # The device is member 1, the lowest: it has added every pair mask.
        apply_masks(vector, minus=[seed, *pairs])
        opened: NDArray[np.float64] = as_integers(vector)[:-1].astype(np.float64) * 2.0**-self.terms.fraction_bits
        return opened

    def clicks(self) -> NDArray[np.float64]:
        """Return the opened numbers of clicks, in the order of the list; tensors are sorted by name."""
        assert self.opened is not None
        return self.opened[: len(self.listed.news)]

    def _status(self) -> RoundStatus:
        return RoundStatus(
            round=self.terms.round,
            system="private_counts/secure/huber",
            task="count",
            state="keys",
            stages="sum",
            release="r1",
            cohort=self.cohort,
            cohort_minimum=self.cohort_minimum,
            joined=1,
            uploaded=0,
            received_bytes=0,
            opened_at=self.clock(),
            closes_at=self.manifest.closes_at,
        )


def _json(content: bytes) -> httpx.Response:
    assert json.loads(content) is not None
    return _answer(content, "application/json")


def _answer(content: bytes, media_type: str) -> httpx.Response:
    return httpx.Response(
        200, content=content, headers={"content-type": media_type, PROTOCOL_HEADER: str(PROTOCOL_VERSION)}
    )
