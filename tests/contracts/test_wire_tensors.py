"""Tensors, blobs of the pool and quantised vectors survive the wire, and data that differs from its declaration is
refused."""

from __future__ import annotations

import math
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from protocol.broadcast import (
    CARDS_LIMIT_BYTES,
    pack_book,
    pack_cards,
    pack_codes,
    pack_priors,
    unpack_book,
    unpack_cards,
    unpack_codes,
    unpack_priors,
)
from protocol.tensors import DTYPES, TensorError, TensorSpec, dequantise, pack, quantise, unpack
from tests.doubles.wire_messages import CARD


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(sorted(DTYPES)), array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5))
def test_tensors_of_any_shape_survive_packing(data: st.DataObject, dtype: str, shape: tuple[int, ...]) -> None:
    value = data.draw(
        arrays(
            DTYPES[dtype], shape, elements={"allow_nan": False, "allow_infinity": False} if "float" in dtype else None
        )
    )
    got = unpack(pack({"t": value}), {"t": TensorSpec(dtype, shape)}, limit_bytes=10_000)["t"]
    assert got.dtype == value.dtype
    assert got.shape == shape
    assert got.tobytes() == value.tobytes()


def test_blobs_of_every_kind_survive_packing() -> None:
    codes = np.arange(32, dtype=np.uint8).reshape(2, 16)
    assert (unpack_codes(pack_codes(codes), 2, 16) == codes).all()
    book = np.arange(16 * 256 * 2, dtype=np.float32).reshape(16, 256, 2)
    assert (unpack_book(pack_book(book), 16, 32) == book).all()
    assert unpack_priors(pack_priors(np.array([0.5, -3.0])), 2).tolist() == [0.5, -3.0]
    assert unpack_cards(pack_cards([CARD.model_dump_json().encode()]), 1) == (CARD,)


@pytest.mark.parametrize(
    ("blob", "words"),
    [
        (b"[]", "not compressed JSON"),
        (pack_cards([])[:-1], "cut off"),
        (pack_cards([b"{}"]), "0.id"),
        (pack_cards([]), "0 of them instead of the declared 1"),
        (zlib.compress(bytes(CARDS_LIMIT_BYTES + 1)), "more than"),
    ],
)
def test_invalid_binary_cards_are_refused(blob: bytes, words: str) -> None:
    with pytest.raises(TensorError, match=words):
        unpack_cards(blob, 1)


def test_codebook_with_indivisible_subspaces_is_refused() -> None:
    with pytest.raises(TensorError, match="16 subspaces do not divide 250 dimensions"):
        unpack_book(b"", 16, 250)


def test_packed_bytes_do_not_depend_on_tensor_order_or_memory_layout() -> None:
    one, two = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones(2, np.int8)
    assert pack({"a": one, "b": two}) == pack({"b": two, "a": np.asfortranarray(one)})


GOOD = pack({"t": np.zeros((2, 3), np.float32)})


@pytest.mark.parametrize(
    ("blob", "spec", "limit_bytes", "words"),
    [
        (GOOD, TensorSpec("float32", (2, 3)), len(GOOD) - 1, f"limit {len(GOOD) - 1}"),
        (GOOD, TensorSpec("float32", (2, 4)), 10_000, "tensor t: shape (2, 3), expected (2, 4)"),
        (GOOD, TensorSpec("float32", (None, 3), axis_limit=1), 10_000, "free axes up to 1"),
        (GOOD, TensorSpec("float16", (2, 3)), 10_000, "tensor t: dtype float32, expected float16"),
        (pack({"u": np.zeros(1, np.int8)}), TensorSpec("int8", (1,)), 10_000, "tensor t: missing"),
        (
            pack({"t": np.zeros(1, np.int8), "u": np.zeros(1, np.int8)}),
            TensorSpec("int8", (1,)),
            10_000,
            "tensor u: not",
        ),
        (pack({"t": np.full(1, math.nan, np.float32)}), TensorSpec("float32", (1,)), 10_000, "not finite"),
        (GOOD[:-1], TensorSpec("float32", (2, 3)), 10_000, "not a safetensors blob"),
        (b"", TensorSpec("float32", (2, 3)), 10_000, "not a safetensors blob"),
        (b"\xff" * 64, TensorSpec("float32", (2, 3)), 10_000, "not a safetensors blob"),
    ],
)
def test_blob_that_does_not_match_its_declaration_is_refused(
    blob: bytes, spec: TensorSpec, limit_bytes: int, words: str
) -> None:
    with pytest.raises(TensorError) as refused:
        unpack(blob, {"t": spec}, limit_bytes=limit_bytes)
    assert words in str(refused.value)


def test_unsupported_dtype_is_named_in_the_error() -> None:
    with pytest.raises(TensorError, match="tensor t: dtype float64"):
        pack({"t": np.zeros(1)})


@settings(max_examples=50, deadline=None)
@given(arrays(np.float32, st.tuples(st.integers(1, 6), st.just(16)), elements=st.floats(-100, 100, width=32)))
def test_quantised_vectors_are_within_half_a_step(vectors: np.ndarray) -> None:
    packed = quantise(vectors)
    error = np.abs(dequantise(packed["codes"], packed["scales"]) - vectors)
    assert (error <= packed["scales"][:, None] * 0.5 + 1e-5).all()
