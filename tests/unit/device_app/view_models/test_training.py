"""The cost of an update on the training page. Oracle: the paper's rule worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from device_app.errors import ReleaseRefused
from device_app.sync.installed_release import Release
from device_app.view_models.training import update_facts


class SomeRelease:
    """A release of four models, one of which can't be trained; damaged on request."""

    def __init__(self, *, damaged: bool = False) -> None:
        self.damaged = damaged
        models = dict.fromkeys(("recall", "ranker.cosine", "ranker.finding", "ranker.features"), 0)
        self.manifest = SimpleNamespace(models=models, default_ranker="ranker.features")

    def has_graph(self, model: str, purpose: str) -> bool:
        return purpose == "gradient" and model != "ranker.cosine"

    def weights(self, model: str) -> dict[str, Any]:
        if self.damaged:
            raise ReleaseRefused("r1", "its weights are damaged")
        return {"w": np.zeros((3, 4)), "b": np.zeros(988 if model == "recall" else 250)}


def test_every_trainable_model_is_listed_with_its_price_and_the_default_ranker_first() -> None:
    found = update_facts(cast(Release, SomeRelease()))
    assert [(one.model, one.default, one.coordinates) for one in found] == [
        ("ranker.features", True, 262),
        ("ranker.finding", False, 262),
        ("recall", False, 1_000),
    ]
    # 2 theta / lambda: 2 * 0.01 / 0.1 for the default ranker, 2 * 0.1 / 0.01 for the recall model; FINDING: sums only.
    assert found[0].epsilon_per_upload == pytest.approx(0.2 * 262)
    assert (found[1].noise, found[1].epsilon_per_upload) == (None, None)
    assert found[2].epsilon_per_upload == pytest.approx(20 * 1_000)


def test_damaged_release_lists_no_models() -> None:
    assert update_facts(cast(Release, SomeRelease(damaged=True))) == ()
