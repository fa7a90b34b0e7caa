"""The wire's bytes are those recorded at the last intended change: of every message, and of what keys and seeds make.

Another runtime reads the same file (`data/wire.json`). An intended difference needs a new protocol version if an older
device can't read it; then write the file again: `python -m tests.contracts.test_wire_golden`.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from protocol.broadcast import pack_book, pack_codes, pack_priors
from protocol.chain import next_head
from protocol.ids import PROTOCOL_VERSION
from protocol.pairing import close_box, pair_seed, seed_commitment, sign_keys
from protocol.pictures import Pictured, pack_pictures
from protocol.ring import FixedPoint, UpdateLayout, expand
from protocol.shamir import LagrangeBasis, join_bytes, split_bytes
from protocol.tensors import pack
from tests.doubles.picture_files import bare_picture
from tests.doubles.wire_messages import EXAMPLES

GOLDEN = Path(__file__).with_name("data") / "wire.json"
CONTEXT = b"round-1 of a golden file"
SEED = bytes(range(32))


def binary_forms() -> dict[str, bytes]:
    """Return what isn't JSON on the wire, each from fixed inputs."""
    signing = Ed25519PrivateKey.from_private_bytes(SEED)
    mine, theirs = X25519PrivateKey.from_private_bytes(SEED), X25519PrivateKey.from_private_bytes(SEED[::-1])
    public, other = mine.public_key().public_bytes_raw(), theirs.public_key().public_bytes_raw()
    values = np.linspace(-1, 1, 7)
    ring = FixedPoint(bits=32, fraction_bits=16, bound=10.0, contributors=50)
    layout = UpdateLayout(shapes={"a": (2,), "b": (2, 2)}, fixed=ring, samples_limit=64)
    update = {"a": np.array([0.5, -0.25]), "b": np.array([[1.0, 0.0], [-1.0, 0.125]])}
    shares = split_bytes(SEED, 3, (1, 2, 3, 4, 5))
    joined = join_bytes(LagrangeBasis.at((1, 3, 5)), {at: shares[at] for at in (1, 3, 5)})
    assert joined is not None
    return {
        "tensors": pack({"b": np.arange(6, dtype=np.float32).reshape(2, 3), "a": np.arange(3, dtype=np.int64)}),
        "codes": pack_codes(np.arange(8, dtype=np.uint8).reshape(2, 4)),
        "book": pack_book(np.ones((1, 256, 2), dtype=np.float32)),
        "priors": pack_priors(np.array([-1.5, 0.0, 2.0])),
        "pictures": pack_pictures(
            [Pictured("n:1", 0, bare_picture(b"one.")), Pictured("n:1", 2, bare_picture(b"second", (800, 600)))]
        ),
        "mask, 32 bits": expand(SEED, 9, 32).tobytes(),
        "mask, 64 bits": expand(SEED, 9, 64).tobytes(),
        "fixed point": ring.encode(values).tobytes(),
        "weighted update": layout.encode(update, 3).tobytes(),
        "signed keys": sign_keys(CONTEXT, signing, public, other).model_dump_json().encode(),
        "pair seed": pair_seed(CONTEXT, mine, other, (1, 2)),
        "box": close_box(SEED, 1, 2, b"k" * 33, b"s" * 33).model_dump_json().encode(),
        "seed commitment": seed_commitment(CONTEXT, 3, SEED),
        "head of the chain": next_head(None, "r1", sha256(b"manifest").hexdigest()).encode(),
        "joined shares": joined,
    }


def all_forms() -> dict[str, dict[str, str]]:
    messages: dict[str, str] = {}
    for example in EXAMPLES:
        name = type(example).__name__
        place = sum(each.split(" ")[0] == name for each in messages)
        messages[f"{name} {place}"] = example.model_dump_json()
    return {"messages": messages, "binary": {name: data.hex() for name, data in binary_forms().items()}}


def test_every_wire_form_has_the_recorded_bytes() -> None:
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert golden["protocol"] == PROTOCOL_VERSION
    now = all_forms()
    assert now["messages"] == golden["messages"]
    assert now["binary"] == golden["binary"]


def test_three_shares_reconstruct_a_secret() -> None:
    assert bytes.fromhex(all_forms()["binary"]["joined shares"]) == SEED


if __name__ == "__main__":
    GOLDEN.parent.mkdir(exist_ok=True)
    text = json.dumps({"protocol": PROTOCOL_VERSION, **all_forms()}, indent=1, ensure_ascii=False)
    GOLDEN.write_text(text + "\n", encoding="utf-8")
