"""Scopes are declared by class and looked up by parameter, and private parameters are never shared."""

from __future__ import annotations

import subprocess
import sys
import typing
from collections.abc import Mapping
from typing import ClassVar

import pytest
from torch import nn

from models.builders.rankers import feature_ranker, nrms_user
from models.builders.user import fednewsrec, lstur, naml
from models.shapes import Scope, private_names, scopes


class GroupHeads(nn.Module):
    """A reader's model with a head for its group; its inner vector is private by its own class."""

    SCOPES: ClassVar[Mapping[str, Scope]] = {"head": "group", "user": "group"}

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(2, 2)
        self.head = nn.Linear(2, 1)
        self.user = lstur("ini", dim=2)


def test_undeclared_parameters_are_shared() -> None:
    for model in (
        nrms_user(),
        feature_ranker(4),
        naml(dim=4, attention_dim=2),
        fednewsrec(heads=1, head_dim=4, attention_dim=2),
    ):
        assert set(scopes(model).values()) == {"shared"}
        assert scopes(model).keys() == {name for name, _ in model.named_parameters()}


@pytest.mark.parametrize("form", ["ini", "con"])
def test_lsturs_reader_vector_is_private_and_all_else_shared(form: typing.Literal["ini", "con"]) -> None:
    found = scopes(lstur(form, dim=4))
    assert found.pop("user_embedding") == "private"
    assert set(found.values()) == {"shared"}


def test_scope_declared_by_a_child_applies_below_it_and_overrides_its_parents() -> None:
    found = scopes(GroupHeads())
    assert found["base.weight"] == "shared"
    assert found["head.weight"] == found["head.bias"] == found["user.gru.input.weight"] == "group"
    assert found["user.user_embedding"] == "private"
    assert private_names(GroupHeads()) == ("user.user_embedding",)


def test_scope_declaration_that_matches_no_parameter_raises_an_error() -> None:
    class Misspelt(nn.Linear):
        SCOPES: ClassVar[Mapping[str, Scope]] = {"wieght": "private"}

    class Unknown(nn.Linear):
        SCOPES: ClassVar[Mapping[str, str]] = {"weight": "secret"}

    with pytest.raises(ValueError, match=r"Misspelt\.SCOPES names 'wieght', which has no parameters"):
        scopes(Misspelt(2, 2))
    with pytest.raises(ValueError, match=r"Unknown\.SCOPES\['weight'\] must be one of"):
        scopes(Unknown(2, 2))


def test_device_knows_the_reader_vectors_name_without_torch() -> None:
    """The device has no torch and so no scopes; it withholds that name whatever a release says."""
    from device_app.privacy.private_parameters import ALWAYS_PRIVATE

    assert {name.rsplit(".", 1)[-1] for name in private_names(GroupHeads())} == ALWAYS_PRIVATE
    check = "import sys; import device_app.privacy.private_parameters; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", check], check=True)
