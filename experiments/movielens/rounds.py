"""Rounds of FL-MV-DSSM: Algorithm 1 of the paper in FedAvg's form, and Algorithm 2.

A round: each device of the cohort makes a pass of SGD in every view, on its own copy of the towers; its update of the
item tower is w - w_u, clipped and made noisy view by view, and the mean of its views; the server takes the mean of the
cohort for a gradient and makes a step of Adam. User towers go the same way, or stay (SEMI).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from backend.federation.optimizers import Adam, Carried
from experiments.movielens.cohort import ItemSpace, LocalSgd, Moved, adapt, descend, user_vectors
from experiments.movielens.draws import Draw, Films, passes
from experiments.movielens.protocols import MovieLensSplit
from experiments.movielens.systems import VIEWS, Choices, System, View
from models.builders.dssm import dssm_tower

Parameters = dict[str, Tensor]
AfterRound = Callable[[int, "Towers"], None]
"""Called with the rounds done and where the towers are."""


@dataclass(frozen=True)
class Features:
    """What towers see: each view's users [n, d], and the films."""

    users: Mapping[View, NDArray[np.float32]]
    films: ItemSpace


@dataclass(frozen=True)
class Towers:
    """The item tower, and a user tower a view: shared, or personal with a leading axis of all n users."""

    item: Parameters
    users: dict[View, Parameters]
    personal: bool

    def of(self, view: View, cohort: NDArray[np.int64]) -> Parameters:
        """The user towers as the cohort's devices hold them: a leading axis of devices."""
        if self.personal:
            return {name: value[cohort] for name, value in self.users[view].items()}
        return {name: value.expand(len(cohort), *value.shape) for name, value in self.users[view].items()}


def first_towers(system: System, features: Features, seed: int) -> Towers:
    """The server's initial towers, the same for every device (Xavier). A view starts alike in all systems of a seed."""
    users: dict[View, Parameters] = {}
    for view in system.views:
        given = features.users[view]
        tower = _drawn(given.shape[1], (seed, 1 + VIEWS.index(view)))
        if system.personal:
            tower = {name: value.expand(len(given), *value.shape).clone() for name, value in tower.items()}
        users[view] = tower
    return Towers(_drawn(features.films.features, (seed, 0)), users, system.personal)


def train(
    system: System,
    features: Features,
    split: MovieLensSplit,
    choices: Choices,
    seed: int,
    *,
    after_round: AfterRound | None = None,
) -> Towers:
    """All rounds. Only users of `split.trained` are ever asked."""
    towers = first_towers(system, features, seed)
    draw = passes(Films.of(split.train, split.catalogue), choices.negatives, choices.batches)
    servers = {name: Carried(_adam(choices, 0)) for name in ("item", *system.views)}
    for round_number in range(choices.rounds):
        rng = np.random.default_rng((seed, round_number))
        cohort = np.sort(rng.choice(split.trained, size=min(choices.cohort, len(split.trained)), replace=False))
        moved = {
            view: _local_passes(view, towers, features, cohort, draw, choices, (seed, round_number))
            for view in system.views
        }
        gradient = aggregate(list(moved.values()), len(cohort), choices, rng)
        for server in servers.values():
            server.optimizer = _adam(choices, round_number)
        users = {view: _users_after(towers, view, cohort, moved[view], servers[view]) for view in system.views}
        towers = Towers(_stepped(servers["item"], towers.item, gradient), users, system.personal)
        if after_round is not None:
            after_round(round_number + 1, towers)
    return towers


def aggregate(
    views: list[Moved], devices: int, choices: Choices, rng: np.random.Generator
) -> dict[str, NDArray[np.float64]]:
    """The mean over devices of local_secure_aggregate's mean over views.

    Every view of every device adds N(0, (sigma C)^2) of its own; of that only the sum matters here, so it is drawn at
    once, with the distribution of the sum.

    Formal guarantees: none, as the generator is seeded; `device_app.privacy.local_aggregate` has the mechanism's.
    """
    count = len(views) * devices
    total = {name: np.sum([view.item[name] for view in views], axis=0) for name in views[0].item}
    if choices.sigma:
        spread = choices.sigma * choices.clip * np.sqrt(count)
        total = {name: each + rng.normal(scale=spread, size=each.shape) for name, each in total.items()}
    return {name: each / count for name, each in total.items()}


def fit_personal_towers(
    towers: Towers, features: Features, split: MovieLensSplit, choices: Choices, seed: int
) -> Towers:
    """Personal user towers go on alone before they predict: what a device may do at any time, and nothing leaves it.

    The paper evaluates where each user tower "will fit to user local data fast". Shared towers are left as they are.
    """
    if not towers.personal:
        return towers
    films = features.films.embed(towers.item)
    draw = passes(Films.of(split.train, split.catalogue), choices.negatives, choices.batches)
    users = dict(towers.users)
    for view, given in features.users.items():
        rows = torch.from_numpy(given[split.trained])
        own = towers.of(view, split.trained)
        for turn in range(choices.settling):
            drawn = [
                draw(int(user), np.random.default_rng((seed, choices.rounds + turn, int(user), VIEWS.index(view))))
                for user in split.trained
            ]
            own = adapt(films, own, rows, drawn, LocalSgd(choices.local_rate, choices.gamma))
        users[view] = {name: value.clone() for name, value in towers.users[view].items()}
        for name, value in own.items():
            users[view][name][split.trained] = value
    return Towers(towers.item, users, True)


def predict(
    towers: Towers, features: Features, gamma: float, *, deviation: float = 0.0, rng: np.random.Generator | None = None
) -> NDArray[np.float32]:
    """Algorithm 2: the mean over views of P(film | user), softmax over all films: [n, m].

    The component that adds them up is trusted, and draws no noise; a deviation is that of the noise which each view
    adds to each of its probabilities (of some 1 / 1,682), to see what is left of the ranking. Raises ValueError for a
    deviation without a generator.
    """
    if deviation and rng is None:
        raise ValueError("rng must be given where there is noise")
    films = features.films.embed(towers.item)
    total = np.zeros((len(next(iter(features.users.values()))), len(films)), dtype=np.float64)
    for view, tower in towers.users.items():
        relevance = user_vectors(tower, torch.from_numpy(features.users[view])) @ films.T
        total += (gamma * relevance).double().softmax(dim=-1).numpy()
        if rng is not None:
            total += rng.normal(scale=deviation, size=total.shape)
    return (total / len(towers.users)).astype(np.float32)


def _local_passes(
    view: View,
    towers: Towers,
    features: Features,
    cohort: NDArray[np.int64],
    draw: Draw,
    choices: Choices,
    seed: tuple[int, int],
) -> Moved:
    drawn = [draw(int(user), np.random.default_rng((*seed, int(user), VIEWS.index(view)))) for user in cohort]
    given = torch.from_numpy(features.users[view][cohort])
    sgd = LocalSgd(choices.local_rate, choices.gamma)
    return descend(features.films, towers.item, towers.of(view, cohort), given, drawn, sgd, choices.clip)


def _users_after(towers: Towers, view: View, cohort: NDArray[np.int64], moved: Moved, server: Carried) -> Parameters:
    before = towers.users[view]
    if towers.personal:
        own = {name: value.clone() for name, value in before.items()}
        for name, value in moved.users.items():
            own[name][cohort] = value
        return own
    gradient = {
        name: (value - moved.users[name].double().mean(dim=0)).numpy().astype(np.float64)
        for name, value in before.items()
    }
    return _stepped(server, before, gradient)


def _stepped(server: Carried, weights: Parameters, gradient: Mapping[str, NDArray[np.float64]]) -> Parameters:
    stepped = server.step({name: value.numpy() for name, value in weights.items()}, gradient)
    return {name: torch.from_numpy(value) for name, value in stepped.items()}


def _adam(choices: Choices, round_number: int) -> Adam:
    return Adam(choices.server_rate_of(round_number), tau=choices.server_tau)


def _drawn(features: int, seed: tuple[int, int]) -> Parameters:
    with torch.random.fork_rng():
        torch.manual_seed(int(np.random.default_rng(seed).integers(2**31)))
        return {name: value.detach().clone() for name, value in dssm_tower(features).named_parameters()}
