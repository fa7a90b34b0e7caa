"""The batched simulation of a cohort.

Oracles: towers in torch on whole feature rows, one device after another, with SGD and the device's own clip; and the
device's ONNX gradient.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, random_array
from torch import Tensor, nn

from device_app.privacy.local_aggregate import clip_l2, l2_norm, mean_of
from device_app.training.gradients import GRADIENT_PREFIX
from experiments.papers.fl_mv_dssm.cohort import BATCH, Films, ItemSpace, LocalSgd, Pass, adapt, descend, passes
from exporters.signature import GraphInput
from models.builders.dssm import dssm_tower
from models.dssm import Tower
from models.scoring import cosines, info_nce
from tests.doubles.engines import onnx_engine

USERS, FILMS, FEATURES, D, NEGATIVES = 24, 120, 90, 7, 12
SGD = LocalSgd(0.2, 5.0)


def interactions(seed: int = 0) -> csr_array:
    rng = np.random.default_rng(seed)
    seen = np.zeros((USERS, FILMS), dtype=np.float32)
    for row in seen:
        row[rng.permutation(FILMS)[: rng.integers(1, 70)]] = 1
    return csr_array(seen)


@pytest.fixture(scope="module")
def films() -> csr_array:
    drawn = random_array((FILMS, FEATURES), density=0.1, rng=np.random.default_rng(3), dtype=np.float32)
    return csr_array((drawn.toarray() > 0).astype(np.float32))


def towers() -> tuple[Tower, list[Tower], Tensor]:
    torch.manual_seed(5)
    users = [dssm_tower(D) for _ in range(USERS)]
    return dssm_tower(FEATURES), users, torch.randn(USERS, D)


def named_weights(tower: Tower) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in tower.named_parameters()}


def stacked(users: list[Tower]) -> dict[str, Tensor]:
    return {name: torch.stack([dict(each.named_parameters())[name].detach() for each in users])
            for name in named_weights(users[0])}  # fmt: skip


class Dssm(nn.Module):
    """One view: gamma cos(y_u, y_d) and its loss (eqs. 4 to 6)."""

    def __init__(self, user_tower: Tower, item_tower: Tower) -> None:
        super().__init__()
        self.user_tower, self.item_tower = user_tower, item_tower

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        return SGD.gamma * cosines(self.user_tower(users), self.item_tower(items))

    def loss(self, users: Tensor, items: Tensor) -> Tensor:
        return info_nce(self(users, items))


def one_device(item: Tower, user: Tower, features: Tensor, films: Tensor, drawn: Pass) -> tuple[Tower, Tower, float]:
    """Make the pass as a device does: every positive against all negatives, with torch's SGD."""
    item, user = copy.deepcopy(item), copy.deepcopy(user)
    model, losses = Dssm(user, item), []
    descent = torch.optim.SGD(model.parameters(), lr=SGD.rate)
    for batch in drawn.positives:
        own = batch[batch >= 0]
        rows = np.concatenate([own[:, None], np.tile(drawn.negatives, (len(own), 1))], axis=1)
        scores = model(features.expand(len(own), -1), films[rows])
        loss = info_nce(
            torch.cat([scores[:, :1], scores[:, 1:] + torch.from_numpy(np.log(drawn.weights)).float()], dim=1)
        )
        descent.zero_grad()
        loss.backward()
        descent.step()
        losses.append(loss.item())
    return item, user, float(np.mean(losses))


def difference(before: Tower, after: Tower) -> dict[str, NDArray[np.float64]]:
    ends = dict(after.named_parameters())
    return {name: (value - ends[name]).detach().numpy().astype(np.float64) for name, value in before.named_parameters()}


@pytest.mark.parametrize(("clip", "batches"), [(0.5, 99), (np.inf, 2)])
def test_batched_cohort_matches_its_devices_one_by_one(films: csr_array, clip: float, batches: int) -> None:
    item, users, features = towers()
    seen = interactions()
    draw = passes(Films.of(seen, np.arange(FILMS)), NEGATIVES, batches)
    drawn = [draw(user, np.random.default_rng((9, user))) for user in range(USERS)]
    assert len({one.steps for one in drawn}) > 1
    moved = descend(ItemSpace(films), named_weights(item), stacked(users), features, drawn, SGD, clip)
    rows = torch.from_numpy(films.toarray())
    total = {name: np.zeros(tuple(value.shape)) for name, value in item.named_parameters()}
    for place, (user, one) in enumerate(zip(users, drawn, strict=True)):
        after, own, loss = one_device(item, user, features[place], rows, one)
        update = difference(item, after)
        assert moved.norms[place] == pytest.approx(l2_norm(update), rel=1e-4)
        assert moved.losses[place] == pytest.approx(loss, rel=1e-4)
        kept = clip_l2(update, clip).tensors if np.isfinite(clip) else update
        for name, value in kept.items():
            total[name] += value
        for name, parameter in own.named_parameters():
            np.testing.assert_allclose(moved.users[name][place].numpy(), parameter.detach().numpy(), atol=1e-5)
    for name, value in total.items():
        np.testing.assert_allclose(moved.item[name] / USERS, value / USERS, atol=1e-5)


def test_one_batch_of_one_device_matches_its_onnx_gradient_step(films: csr_array) -> None:
    item, users, features = towers()
    seen = interactions()
    drawn = passes(Films.of(seen, np.arange(FILMS)), NEGATIVES, 1)(3, np.random.default_rng(1))
    drawn = replace(drawn, weights=np.ones(NEGATIVES))  # as the model's own loss has it
    own = drawn.positives[0][drawn.positives[0] >= 0]
    model = Dssm(users[3], item)
    inputs = (GraphInput("users", ("batch", D)), GraphInput("items", ("batch", 1 + NEGATIVES, FEATURES)))
    rows = np.concatenate([own[:, None], np.tile(drawn.negatives, (len(own), 1))], axis=1)
    batch = {"users": features[3].expand(len(own), -1).numpy(), "items": films.toarray()[rows]}
    params = {name: value.detach().numpy() for name, value in model.named_parameters()}
    found = onnx_engine(model, inputs)(params, batch)
    alone = {name: value[3:4] for name, value in stacked(users).items()}
    moved = descend(ItemSpace(films), named_weights(item), alone, features[3:4], [drawn], SGD, np.inf)
    assert moved.losses[0] == pytest.approx(found.loss, abs=1e-5)
    for name, value in moved.item.items():
        slope = found.tensors[f"{GRADIENT_PREFIX}item_tower.{name}"]
        np.testing.assert_allclose(value, SGD.rate * slope, atol=1e-5)


def test_training_only_user_towers_equals_training_with_a_frozen_item_tower(films: csr_array) -> None:
    item, users, features = towers()
    draw = passes(Films.of(interactions(), np.arange(FILMS)), NEGATIVES, 99)
    drawn = [draw(user, np.random.default_rng((4, user))) for user in range(USERS)]
    space, rows = ItemSpace(films), torch.from_numpy(films.toarray())
    found = adapt(space.embed(named_weights(item)), stacked(users), features, drawn, SGD)
    for parameter in item.parameters():
        parameter.requires_grad_(False)
    for place in (0, 7, USERS - 1):
        _, own, _ = one_device(item, users[place], features[place], rows, drawn[place])
        for name, value in own.named_parameters():
            np.testing.assert_allclose(found[name][place].numpy(), value.detach().numpy(), atol=1e-5)


def test_mean_over_views_matches_local_secure_aggregate() -> None:
    first, second = clip_l2({"w": np.array([0.6, 0.8])}, 0.5).tensors, clip_l2({"w": np.array([0.3, 0.0])}, 0.5).tensors
    assert mean_of([first, second])["w"] == pytest.approx([0.3, 0.2])


def test_training_pass_has_each_of_a_users_films_once_and_only_unseen_negatives() -> None:
    seen = interactions()
    held = np.arange(FILMS)[::10]
    catalogue = np.setdiff1d(np.arange(FILMS), held)
    shown = csr_array(seen.toarray() * np.isin(np.arange(FILMS), catalogue).astype(np.float32))
    draw = passes(Films.of(shown, catalogue), NEGATIVES, 99)
    for user in range(USERS):
        own = np.flatnonzero(shown[[user]].toarray()[0])
        if not len(own):
            continue
        drawn = draw(user, np.random.default_rng(user))
        found = drawn.positives[drawn.positives >= 0]
        assert sorted(found.tolist()) == own.tolist()
        assert drawn.positives.shape == (-(-len(own) // BATCH), BATCH)
        assert not set(drawn.negatives.tolist()) & (set(own.tolist()) | set(held.tolist()))
