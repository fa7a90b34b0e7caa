"""What the training page says an update costs: the paper's rule worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from device_app.errors import ReleaseRefused
from device_app.pages.training_view import update_facts
from device_app.sync.release import Release


class SomeRelease:
    """A release of three models, of which one can't be trained; damaged if asked to be."""

    def __init__(self, *, damaged: bool = False) -> None:
        self.damaged = damaged
        self.manifest = SimpleNamespace(models={"recall": 0, "ranker.nrms": 0, "small": 0}, default_ranker="small")

    def has_graph(self, model: str, purpose: str) -> bool:
        return purpose == "gradient" and model != "ranker.nrms"

    def weights(self, model: str) -> dict[str, Any]:
        if self.damaged:
            raise ReleaseRefused("r1", "its weights are damaged")
        return {"w": np.zeros((3, 4)), "b": np.zeros(2 if model == "small" else 988)}


def test_every_trainable_model_is_listed_with_its_numbers_times_a_fifth_or_twenty_epsilon_the_usual_ranker_first() -> (
    None
):
    found = update_facts(cast(Release, SomeRelease()))
    assert [(one.model, one.default, one.coordinates, one.epsilon_per_upload) for one in found] == [
        ("small", True, 14, pytest.approx(2.8)),
        ("recall", False, 1_000, 20_000.0),
    ]


def test_a_damaged_release_lists_nothing() -> None:
    assert update_facts(cast(Release, SomeRelease(damaged=True))) == ()
