"""A private parameter is in no upload: by type, by name, and whatever a release says."""

from __future__ import annotations

import typing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_app.privacy.clipping import Clipped, clip_elementwise
from device_app.privacy.private_parameters import PrivateParameterShared, SharedUpdate, divide, shared_part
from device_app.privacy.protections.local_laplace import LaplaceProtection
from protocol.releases import ModelEntry

LSTUR = ModelEntry(architecture="lstur", role="ranker", graphs={}, private=("own.bias",))
SILENT = ModelEntry(architecture="lstur", role="ranker", graphs={})


def gradients(*names: str) -> dict[str, np.ndarray]:
    return {f"g.{name}": np.ones(2, np.float32) for name in names}


def test_private_parameter_in_an_update_is_named_in_the_error() -> None:
    with pytest.raises(PrivateParameterShared, match=r"tensor g\.own\.bias: a private parameter stays on this device"):
        SharedUpdate(gradients("gru.weight", "own.bias"), LSTUR)


def test_reader_embedding_is_withheld_even_when_undeclared() -> None:
    for name in ("user_embedding", "user.user_embedding"):
        with pytest.raises(PrivateParameterShared, match=rf"g\.{name}"):
            SharedUpdate(gradients(name), SILENT)


@given(st.sets(st.sampled_from(["a", "b.weight", "own.bias", "user_embedding", "x.user_embedding"])))
def test_shared_part_is_the_update_without_private_parameters(names: set[str]) -> None:
    part = shared_part(gradients(*names), LSTUR)
    assert set(part.tensors) == {f"g.{name}" for name in names & {"a", "b.weight"}}


@given(st.sets(st.sampled_from(["a", "b.weight", "own.bias", "user_embedding", "x.user_embedding"])))
def test_dividing_an_update_into_shared_and_private_parts_loses_nothing(names: set[str]) -> None:
    tensors = gradients(*names)
    part, own = divide(tensors, LSTUR)
    assert set(own) == names - {"a", "b.weight"}
    assert {*part.tensors, *(f"g.{name}" for name in own)} == set(tensors)
    assert all(own[name] is tensors[f"g.{name}"] for name in own)


def test_clipping_a_shared_update_keeps_its_model_entry() -> None:
    clipped = clip_elementwise(shared_part(gradients("a", "own.bias"), LSTUR), 0.5)
    assert set(clipped.tensors) == {"g.a"}
    assert clipped.update.model == LSTUR


def test_noise_is_added_only_to_a_shared_update() -> None:
    """By type: seal takes a Clipped, a Clipped holds a SharedUpdate, and clipping takes nothing else."""
    assert typing.get_type_hints(LaplaceProtection.seal)["clipped"] is Clipped
    assert typing.get_type_hints(Clipped)["update"] is SharedUpdate
    assert typing.get_type_hints(clip_elementwise)["update"] is SharedUpdate
