"""Tensors, ring elements, masks, shares, boxes, signatures and chains have the same bytes in both runtimes.

Everything is drawn from a fixed seed and made by the Python wire. The browser's end makes it from the same inputs, with
the browser's elliptic curves (`web`) and with those in JavaScript (`noble`).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from random import Random
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from device_app.privacy.noise_sources import SeededNoise
from protocol.broadcast import pack_book, pack_cards, pack_codes, pack_priors, unpack_priors
from protocol.chain import (
    ChainedRelease,
    KeyHistory,
    KeyRotation,
    ReleaseChain,
    fingerprint,
    follow,
    head_after,
    readable,
    sign_rotation,
)
from protocol.pairing import channel_keys, close_box, pair_seed, seed_commitment, sign_agreement, sign_keys
from protocol.releases import SignedManifest
from protocol.ring import FixedPoint, UpdateLayout, expand, masked_bytes, ring_dtype
from protocol.rounds import RoundOffer, SignedOffer, sign_offer
from protocol.secagg import AdvertisedKeys, Roster, RosterEntry, SumTerms, choose_neighbourhood
from protocol.shamir import PRIME, split
from protocol.tensors import DTYPES, dequantise, pack, quantise
from tests.conformance.node_end import ask_node
from tests.doubles.wire_messages import CARD, EXAMPLES, ROUND

RNG = Random("conformance of binary forms")
Question = tuple[str, Any, Callable[[Any], bool]]
CURVES = ("web", "noble")
LOW_ORDER = (
    bytes(32),
    bytes([1, *bytes(31)]),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
)

pytestmark = pytest.mark.node


def is_value(value: Any) -> Callable[[Any], bool]:
    return lambda answer: bool(answer == value)


def is_refusal(word: str) -> Callable[[Any], bool]:
    return lambda answer: isinstance(answer, dict) and word in answer.get("refused", "")


def stream_key(seed: str) -> str:
    """Return the key of `SeededNoise(seed)`."""
    return sha256(f"ownfeed simulated noise {seed}".encode()).hexdigest()


def randbelow(source: SeededNoise, bound: int) -> int:
    """Draw as `secrets.randbelow` does, from these bits."""
    width = bound.bit_length()
    size = (width + 7) // 8
    while (drawn := int.from_bytes(source.uniform_bits(size), "big") >> (8 * size - width)) >= bound:
        pass
    return drawn


def tensors() -> list[Question]:
    found: list[Question] = []
    for _ in range(300):
        made = {}
        for place in range(RNG.randint(0, 5)):
            dtype = RNG.choice(list(DTYPES))
            shape = tuple(RNG.randint(0, 4) for _ in range(RNG.randint(0, 3)))
            numbers = np.random.default_rng(place).integers(-100, 100, size=shape)
            made[f"{RNG.choice('abAB_é')}{place}"] = np.asarray(numbers).astype(DTYPES[dtype])
        blob = pack(made)
        given = {
            name: {"dtype": each.dtype.name, "shape": each.shape, "data": each.tobytes().hex()}
            for name, each in made.items()
        }
        specs = {name: {"dtype": each.dtype.name, "shape": each.shape} for name, each in made.items()}
        asked = {"blob": blob.hex(), "specs": specs, "limit": 10_000}
        found += [
            ("pack", given, is_value(blob.hex())),
            ("unpack", asked, is_value({name: each.tobytes().hex() for name, each in made.items()})),
        ]
    return found


def wrong_tensors() -> list[Question]:
    good = pack({"a": np.arange(6, dtype=np.float32).reshape(2, 3)})
    spec = {"a": {"dtype": "float32", "shape": [2, None], "axisLimit": 3}}
    ask = partial(lambda blob, specs, limit: {"blob": blob.hex(), "specs": specs, "limit": limit})
    holed = good.replace(b"[0,24]", b"[1,25]") + b"\0"
    infinite = pack({"a": np.array([[1, np.inf, 0]] * 2, dtype=np.float32)})
    half = pack({"a": np.array([[1, np.nan, 0]] * 2, dtype=np.float16)})
    return [
        ("unpack", ask(good, spec, len(good)), is_value({"a": np.arange(6, dtype=np.float32).tobytes().hex()})),
        ("unpack", ask(good, spec, len(good) - 1), is_refusal("limit")),
        ("unpack", ask(good, {"b": spec["a"], **spec}, 999), is_refusal("tensor b: missing")),
        ("unpack", ask(good, {}, 999), is_refusal("tensor a: not expected here")),
        ("unpack", ask(good, {"a": {**spec["a"], "dtype": "int32"}}, 999), is_refusal("tensor a: dtype")),
        ("unpack", ask(good, {"a": {**spec["a"], "axisLimit": 2}}, 999), is_refusal("tensor a: shape")),
        ("unpack", ask(good, {"a": {**spec["a"], "shape": [3, 2]}}, 999), is_refusal("tensor a: shape")),
        ("unpack", ask(infinite, spec, 999), is_refusal("not finite")),
        ("unpack", ask(half, {"a": {"dtype": "float16", "shape": [2, 3]}}, 999), is_refusal("not finite")),
        *(
            ("unpack", ask(blob, spec, 999), is_refusal("safetensors"))
            for blob in (b"", good[:-1], good + b"\0", holed, b"\xff" * 40)
        ),
    ]


def blobs() -> list[Question]:
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    finite = halves[np.isfinite(halves)]
    vectors = np.random.default_rng(5).normal(size=(7, 16)).astype(np.float32)
    quantised = quantise(vectors)
    codes = np.random.default_rng(6).integers(0, 256, size=(3, 4), dtype=np.uint8)
    book = np.random.default_rng(7).normal(size=(4, 256, 2)).astype(np.float32)
    priors = np.array([-1.5, 0.1, 2.0])
    card = CARD.model_dump_json()
    cards = pack_cards([card.encode()] * 3)
    pool = {
        "codes": pack_codes(codes).hex(), "book": pack_book(book).hex(), "priors": pack_priors(priors).hex(),
        "cards": cards.hex(), "count": 3, "subspaces": 4, "dimensions": 8,
    }  # fmt: skip
    same = {
        "codes": codes.tobytes().hex(), "book": book.tobytes().hex(),
        "priors": unpack_priors(pack_priors(priors), 3).tobytes().hex(), "cards": [card] * 3,
    }  # fmt: skip
    scaled = {"codes": quantised["codes"].tobytes().hex(), "scales": quantised["scales"].tobytes().hex()}
    bomb = zlib.compress(b"[" + b" " * (33 << 20) + b"]")
    return [
        ("halves", finite.tobytes().hex(), is_value(finite.astype(np.float32).tobytes().hex())),
        ("dequantise", scaled, is_value(dequantise(quantised["codes"], quantised["scales"]).tobytes().hex())),
        ("pool", pool, is_value(same)),
        *(
            ("cards", {"cards": blob.hex(), "count": 3}, is_refusal("cards: "))
            for blob in (b"", cards[:-3], b"[]", bomb)
        ),
        ("cards", {"cards": cards.hex(), "count": 2}, is_refusal("cards: 3 of them instead of the declared 2")),
    ]


def ring() -> list[Question]:
    found: list[Question] = []
    for _ in range(300):
        bits, fraction = RNG.choice(((8, 2), (16, 6), (32, 16), (64, 30), (64, 45)))
        fixed = FixedPoint(bits, fraction, RNG.choice((0.25, 1.0, 3.0)), RNG.randint(1, 5), RNG.choice((0.0, 2.5)))
        given = {name: getattr(fixed, name) for name in ("bits", "fraction_bits", "bound", "contributors", "headroom")}
        ties = [(RNG.randint(-9, 9) + 0.5) * fixed.step for _ in range(4)]
        values = [*ties, *(RNG.uniform(-4, 4) for _ in range(6)), 0.0, -0.0, 5e-324]
        array = np.array(values)
        total = np.frombuffer(RNG.randbytes(bits), dtype=ring_dtype(bits))
        found += [
            ("encode", {"fixed": given, "values": values}, is_value(fixed.encode(array).tobytes().hex())),
            ("decode", {"fixed": given, "total": total.tobytes().hex()}, is_value(fixed.decode(total).tobytes().hex())),
        ]
        update = {f"{RNG.choice('bBé😀ﬀ')}{axis}": np.array([[RNG.uniform(-1, 1)] * 3] * axis) for axis in range(1, 4)}
        if bits >= 32:
            layout = UpdateLayout({name: each.shape for name, each in update.items()}, fixed, 8)
            reported = {name: {"shape": each.shape, "values": each.ravel().tolist()} for name, each in update.items()}
            asked = {"fixed": given, "update": reported, "samples": 3, "limit": 8}
            found.append(("layout", asked, is_value(layout.encode(update, 3).tobytes().hex())))
    wide = {"bits": 32, "fraction_bits": 16, "bound": 100.0, "contributors": 400, "headroom": 0.0}
    return [*found, ("encode", {"fixed": wide, "values": []}, is_refusal("overflow"))]


def masks() -> list[Question]:
    found: list[Question] = []
    for place in range(120):
        bits, seed = (8, 16, 32, 64)[place % 4], RNG.randbytes(32)
        length = 70_000 if place < 4 else RNG.choice((0, 1, 3, 15, 17, 1_000))  # the first are longer than a chunk
        asked = {"seed": seed.hex(), "length": length, "bits": bits}
        found.append(("expand", asked, is_value(expand(seed, length, bits).tobytes().hex())))
        vector = np.frombuffer(RNG.randbytes(length * bits // 8), dtype=ring_dtype(bits))
        plus, minus = ([RNG.randbytes(32) for _ in range(RNG.randint(0, 3))] for _ in range(2))
        signed = {"plus": [each.hex() for each in plus], "minus": [each.hex() for each in minus]}
        made = masked_bytes(vector, plus, minus).hex()
        found.append(("masked", {"vector": vector.tobytes().hex(), "bits": bits, **signed}, is_value(made)))
    return found


def shares() -> list[Question]:
    found: list[Question] = []
    for place in range(150):
        points = sorted(RNG.sample(range(1, 10_001), RNG.randint(1, 12)))
        threshold, secret = RNG.randint(1, len(points)), RNG.randbytes(32)
        noise = SeededNoise(f"shares {place}")
        made = split(int.from_bytes(secret, "big"), threshold, points, draw=partial(randbelow, noise))
        reported = [[point, share.to_bytes(33, "big").hex()] for point, share in made.items()]
        asked = {"secret": secret.hex(), "threshold": threshold, "points": points, "key": stream_key(f"shares {place}")}
        found.append(("split", asked, is_value(reported)))
    few = {"secret": bytes(32).hex(), "threshold": 3, "points": [1, 2], "key": "00" * 32}
    sizes = [*range(99, 130), 200, 1_000, 2_500]
    return [
        *found,
        ("split", few, is_refusal("threshold: 1 to the 2 holders")),
        ("split", {**few, "points": [1, 1, 2]}, is_refusal("points: must be distinct")),
        *(
            ("neighbourhood", n, is_value(None if (due := choose_neighbourhood(n)) is None else vars(due)))
            for n in sizes
        ),
    ]


def curves() -> list[Question]:
    found: list[Question] = []
    for _ in range(60):
        secret, other, content = RNG.randbytes(32), RNG.randbytes(32), RNG.randbytes(RNG.randint(0, 200))
        mine, signing = X25519PrivateKey.from_private_bytes(secret), Ed25519PrivateKey.from_private_bytes(secret)
        theirs = X25519PrivateKey.from_private_bytes(other).public_key().public_bytes_raw()
        agreed = {
            "mine": mine.public_key().public_bytes_raw().hex(),
            "shared": mine.exchange(X25519PublicKey.from_public_bytes(theirs)).hex(),
        }
        key, signature = signing.public_key().public_bytes_raw(), signing.sign(content)
        signed = {"key": key.hex(), "signature": signature.hex(), "sha256": sha256(content).hexdigest()}
        size = RNG.choice((32, 64))
        stretched = HKDF(hashes.SHA256(), size, None, content).derive(other).hex()
        for curve in CURVES:
            checked = {"curves": curve, "key": key.hex(), "signature": signature.hex(), "content": content.hex()}
            found += [
                ("agree", {"curves": curve, "secret": secret.hex(), "theirs": theirs.hex()}, is_value(agreed)),
                ("sign", {"curves": curve, "secret": secret.hex(), "content": content.hex()}, is_value(signed)),
                (
                    "hkdf",
                    {"curves": curve, "secret": other.hex(), "info": content.hex(), "size": size},
                    is_value(stretched),
                ),
                ("verify", checked, is_value(True)),
                ("verify", {**checked, "content": content.hex() + "00"}, is_value(False)),
                ("verify", {**checked, "key": other.hex()}, is_value(False)),
                ("verify", {**checked, "signature": signature.hex()[:-2]}, is_value(False)),
            ]
    low = [
        ("agree", {"curves": curve, "secret": "42" * 32, "theirs": each.hex()}, lambda answer: answer["shared"] is None)
        for curve in CURVES
        for each in LOW_ORDER
    ]
    return [*found, *low, ("chosen", None, is_value("web"))]


def keys_of(seed: bytes) -> AdvertisedKeys:
    return AdvertisedKeys(
        encryption_key=seed, mask_key=sha256(seed).digest(), verify_key=seed[::-1], signature=seed * 2
    )


def pairs() -> list[Question]:
    found: list[Question] = []
    terms = next(each for each in EXAMPLES if isinstance(each, SumTerms))
    for _ in range(60):
        context, secret, other = (RNG.randbytes(32) for _ in range(3))
        identity, mine = Ed25519PrivateKey.from_private_bytes(other), X25519PrivateKey.from_private_bytes(secret)
        theirs = X25519PrivateKey.from_private_bytes(other).public_key().public_bytes_raw()
        low, high = sorted(RNG.sample(range(1, 10_001), 2))
        reported = Roster(
            round="round-7", me=high, cohort=2, threshold=2,
            members=tuple(RosterEntry(member=each, keys=keys_of(RNG.randbytes(32))) for each in (low, high)),
        )  # fmt: skip
        element = RNG.randrange(PRIME).to_bytes(33, "big")
        up, down = channel_keys(context, mine, theirs, (low, high))
        box = close_box(up, low, high, element, bytes(33)).box
        made = {
            "keys": sign_keys(context, identity, secret, theirs).model_dump_json(),
            "seed": pair_seed(context, mine, theirs, (high, low)).hex(),
            "channels": [up.hex(), down.hex()],
            "box": box.hex(),
            "opened": [element.hex(), bytes(33).hex()],
            "commitment": seed_commitment(context, low, secret).hex(),
            "terms": terms.digest().hex(),
            "roster": reported.digest().hex(),
            "agreement": sign_agreement(context, reported, (low, high), identity).signature.hex(),
        }
        given = {
            "context": context.hex(), "identity": other.hex(), "mine": secret.hex(), "encryption": secret.hex(),
            "mask": theirs.hex(), "theirs": theirs.hex(), "members": [low, high], "roster": reported.model_dump_json(),
            "terms": terms.model_dump_json(), "survivors": [low, high], "key_share": element.hex(),
            "seed_share": bytes(33).hex(),
        }  # fmt: skip
        found += [("pairing", {**given, "curves": curve}, is_value(made)) for curve in CURVES]
        opening = {"key": up.hex(), "sender": low, "receiver": high, "box": box.hex()}
        changed = bytearray(box)
        changed[RNG.randrange(len(box))] ^= 1 << RNG.randrange(8)
        found += [
            ("open_box", {**opening, "box": changed.hex()}, is_refusal("was altered")),
            ("open_box", {**opening, "receiver": high + 1}, is_refusal("was altered")),
            (
                "open_box",
                {**opening, "box": close_box(up, low, high, b"\xff" * 33, element).box.hex()},
                is_refusal("field"),
            ),
        ]
    return found


def signed_chains() -> list[Question]:
    keys = [Ed25519PrivateKey.from_private_bytes(bytes([place]) * 32) for place in range(5)]
    raw = [key.public_key().public_bytes_raw() for key in keys]
    at = datetime(2026, 11, 23, 8, 30, tzinfo=UTC)
    chain = ReleaseChain(
        releases=tuple(
            ChainedRelease(release=f"r{n}", manifest_sha256=RNG.randbytes(32).hex(), published_at=at)
            for n in range(8, 30)
        )
    )
    head = head_after(None, chain.releases)
    assert head is not None
    rotations = [
        KeyRotation(number=n, old_key=raw[n - 1], new_key=raw[n], rotated_at=at + timedelta(days=n))
        for n in range(1, 5)
    ]
    statements = tuple(sign_rotation(each, *keys[each.number - 1 : each.number + 1]) for each in rotations)
    history = KeyHistory(public_key=raw[4], rotations=statements)
    forged = statements[1].model_copy(update={"by_new_key": bytes(64)})
    attacker = history.model_copy(update={"rotations": (statements[0], forged)})
    manifest = next(each for each in EXAMPLES if type(each).__name__ == "ReleaseManifest").model_dump_json()
    signed = SignedManifest(manifest=manifest, signature=keys[0].sign(manifest.encode()), public_key=raw[0])
    offer = sign_offer(RoundOffer(manifest=ROUND, pseudonym="a-b_" * 6), keys[0])
    crossed = SignedOffer(
        manifest=offer.manifest, signature=keys[0].sign(offer.manifest.encode()), public_key=raw[0], pseudonym="a" * 22
    )

    def followed(trusted: int, after: int) -> Question:
        key, last = follow(history, raw[trusted], after)
        asked = {"history": history.model_dump_json(), "key": raw[trusted].hex(), "after": after}
        return "follow", asked, is_value([key.hex(), last, fingerprint(key)])

    def opened(what: str, message: SignedManifest | SignedOffer, key: bytes, wanted: Callable[[Any], bool]) -> Question:
        return what, {"signed": message.model_dump_json(), "key": key.hex()}, wanted

    return [
        ("head", chain.model_dump_json(), is_value([head, readable(head)])),
        *(followed(trusted, after) for trusted in range(5) for after in range(5)),
        (
            "follow",
            {"history": attacker.model_dump_json(), "key": raw[0].hex(), "after": 0},
            is_refusal("by its new key"),
        ),
        opened("release", signed, raw[0], is_value("r2")),
        opened("release", signed, raw[1], is_refusal("not signed by")),
        opened(
            "release",
            signed.model_copy(update={"manifest": manifest + " "}),
            raw[0],
            is_refusal("does not match its bytes"),
        ),
        opened("offer", offer, raw[0], is_value("round-1")),
        opened("offer", offer, raw[2], is_refusal("not signed by")),
        opened("offer", crossed, raw[0], is_refusal("does not match its bytes")),
    ]


def test_binary_forms_and_refusals_match_in_both_runtimes() -> None:
    groups = (tensors, wrong_tensors, blobs, ring, masks, shares, curves, pairs, signed_chains)
    questions = [question for group in groups for question in group()]
    answers = ask_node([(what, given) for what, given, _ in questions])
    assert len(questions) > 2_000
    for (what, given, fits), answer in zip(questions, answers, strict=True):
        assert fits(answer), (what, str(given)[:1_500], str(answer)[:1_500])
