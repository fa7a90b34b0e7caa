"""Both runtimes accept the same shards of pictures and refuse the others with the same message."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from protocol.pictures import Pictured, PictureError, pack_pictures, unpack_pictures
from tests.conformance.node_end import ask_node
from tests.conformance.test_binary_forms import Question, is_refusal, is_value
from tests.doubles.picture_files import bare_picture

RNG = Random("conformance of pictures")

pytestmark = pytest.mark.node


def pictures() -> list[Question]:
    """Return whole shards, and shards with a byte changed, left out or inserted."""
    fine = pack_pictures([Pictured(f"n:{n}", 2 * n, bare_picture(bytes(2 * n), (480, 300 + n))) for n in range(3)])
    found: list[Question] = [
        ("pictures", {"blob": fine.hex(), "count": count}, expected_result(fine, count)) for count in (3, 2)
    ]
    one, size = bare_picture(b""), len(bare_picture(b""))
    for written, why in (
        (f'[["a",0,{size}.0]]', "shortest form"),
        (f'[["a",0,{size / 100}e2]]', "shortest form"),
        (f'[["a",0, {size}]]', "shortest form"),
        (f'[["\\u0061",0,{size}]]', "shortest form"),
        (f'\ufeff[["a",0,{size}]]', "shortest form"),
        ('[["a",0,-0]]', "shortest form"),
        (f'[["a",0,{2**53}]]', "shortest form"),
        (f'[["a",0,{2**53 - 1}]]', "a size must be from 1"),
        (f'[["a",-1,{size}]]', "a place must be from 0"),
        (f'[["a",5,{size}]]', "a place must be from 0"),
        (f'[["a",{size}]]', "shortest form"),
    ):
        head = written.encode()
        blob = len(head).to_bytes(4, "little") + head + one
        with pytest.raises(PictureError, match=why):
            unpack_pictures(blob, 1)
        found.append(("pictures", {"blob": blob.hex(), "count": 1}, expected_result(blob, 1)))
    for _ in range(400):
        at, changed = RNG.randrange(120), bytearray(fine)
        changed[at : at + RNG.choice((0, 1, 1))] = RNG.choice((b"", b"\0", b"[", b"1", bytes([RNG.randrange(256)])))
        found.append(("pictures", {"blob": changed.hex(), "count": 3}, expected_result(bytes(changed), 3)))
    return found


def expected_result(blob: bytes, count: int) -> Callable[[Any], bool]:
    """Return what Python reads from a shard, or why it refuses it."""
    try:
        return is_value([[news_id, place, content.hex()] for news_id, place, content in unpack_pictures(blob, count)])
    except PictureError as wrong:
        return is_refusal(str(wrong))


def test_both_runtimes_judge_picture_shards_with_the_same_message() -> None:
    questions = pictures()
    answers = ask_node([(what, given) for what, given, _ in questions])
    for (what, given, fits), answer in zip(questions, answers, strict=True):
        assert fits(answer), (what, given, answer)
