"""Rounds of FL-MV-DSSM: Algorithm 1 of the paper in FedAvg's form, and Algorithm 2.

FL-MV-DSSM, SEMI-FL-MV-DSSM and FL-DSSM are values of `ViewSystem`; `Choices` holds what the paper leaves open.

In a round each device makes one pass of SGD in every view, on its own copy of the towers. Its update of the item tower
is w - w_u, clipped and noised view by view, averaged over its views; the server takes the cohort's mean as a gradient
and makes an Adam step. User towers go the same way, or stay on the device (SEMI).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from backend.federation.optimizers import Adam, StatefulOptimizer
from experiments.papers.fl_mv_dssm.cohort import (
    Draw,
    Films,
    ItemSpace,
    LocalSgd,
    Moved,
    adapt,
    descend,
    passes,
    user_vectors,
)
from experiments.papers.fl_mv_dssm.protocols import MovieLensSplit
from models.builders.dssm import dssm_tower

View = Literal["view_1", "view_2"]
VIEWS: tuple[View, ...] = ("view_1", "view_2")
ROUNDS, COHORT, CLIP = 100, 100, 0.5


@dataclass(frozen=True)
class ViewSystem:
    """views: those a device holds. personal: user towers never leave it (`aggregate_user_submodel` is off)."""

    views: tuple[View, ...]
    personal: bool


SYSTEMS: dict[str, ViewSystem] = {
    "FL-DSSM View-1": ViewSystem(("view_1",), personal=False),
    "FL-DSSM View-2": ViewSystem(("view_2",), personal=False),
    "FL-MV-DSSM": ViewSystem(VIEWS, personal=False),
    "SEMI-FL-MV-DSSM": ViewSystem(VIEWS, personal=True),
}


@dataclass(frozen=True)
class Choices:
    """How a system is trained.

    Given by the paper: rounds, cohort, batches of 20, local_rate, clip C. Not given, and chosen on a validation split
    of the training interactions (docs/decisions/032): gamma; negatives, N of a pass; batches, the most a device
    takes in a round; server_rate and server_tau, the peak of a half cosine that ends at 0 and the tau of Adam (the
    paper: .001 throughout); settling, passes of a personal user tower alone before prediction.

    sigma: the noise multiplier of each view, 0 for none (the paper: 1).
    """

    rounds: int = ROUNDS
    cohort: int = COHORT
    local_rate: float = 0.2
    clip: float = CLIP
    sigma: float = 0.0
    gamma: float = 5.0
    negatives: int = 150
    batches: int = 4
    server_rate: float = 0.015
    server_tau: float = 3e-4
    settling: int = 2

    def __post_init__(self) -> None:
        for name in (
            "rounds",
            "cohort",
            "local_rate",
            "clip",
            "gamma",
            "negatives",
            "batches",
            "server_rate",
            "server_tau",
        ):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")
        if self.sigma < 0 or self.settling < 0:
            raise ValueError(f"sigma and settling must be 0 or more, got {self.sigma} and {self.settling}")
        if self.sigma and math.isinf(self.clip):
            raise ValueError("clip must be finite where there is noise, whose size it sets")

    def server_rate_of(self, round_number: int) -> float:
        """Return the server's rate in a round; rounds count from 0."""
        return self.server_rate * (1 + math.cos(math.pi * round_number / self.rounds)) / 2


Parameters = dict[str, Tensor]


@dataclass(frozen=True)
class Features:
    """The towers' inputs: each view's users [n, d], and the films."""

    users: Mapping[View, NDArray[np.float32]]
    films: ItemSpace


@dataclass(frozen=True)
class Towers:
    """The item tower, and one user tower per view: shared, or personal with a leading axis of all n users."""

    item: Parameters
    users: dict[View, Parameters]
    personal: bool

    def of(self, view: View, cohort: NDArray[np.int64]) -> Parameters:
        """Return the user towers as the cohort's devices hold them, with a leading axis of devices."""
        if self.personal:
            return {name: value[cohort] for name, value in self.users[view].items()}
        return {name: value.expand(len(cohort), *value.shape) for name, value in self.users[view].items()}


def first_towers(system: ViewSystem, features: Features, seed: int) -> Towers:
    """Return the server's initial towers, the same for every device (Xavier).

    With the same seed, a view's initial tower is the same in all systems.
    """
    users: dict[View, Parameters] = {}
    for view in system.views:
        view_features = features.users[view]
        tower = _drawn(view_features.shape[1], (seed, 1 + VIEWS.index(view)))
        if system.personal:
            tower = {name: value.expand(len(view_features), *value.shape).clone() for name, value in tower.items()}
        users[view] = tower
    return Towers(_drawn(features.films.features, (seed, 0)), users, system.personal)


def train(
    system: ViewSystem,
    features: Features,
    split: MovieLensSplit,
    choices: Choices,
    seed: int,
    after_round: Callable[[int, Towers], None] = lambda done, towers: None,
) -> Towers:
    """Run all rounds. Only users of `split.trained` ever take part.

    after_round: called with the number of finished rounds and the towers.
    """
    towers = first_towers(system, features, seed)
    draw = passes(Films.of(split.train, split.catalogue), choices.negatives, choices.batches)
    servers = {name: StatefulOptimizer(_adam(choices, 0)) for name in ("item", *system.views)}
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
        after_round(round_number + 1, towers)
    return towers


def aggregate(
    views: list[Moved], devices: int, choices: Choices, rng: np.random.Generator
) -> dict[str, NDArray[np.float64]]:
    """Return the mean over devices of local_secure_aggregate's mean over views.

    Every view of every device adds its own N(0, (sigma C)^2). Only the sum of this noise matters here, so it is drawn
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
    """Train personal user towers alone before they predict.

    A device may do so at any time, and nothing leaves it. The paper evaluates where each user tower "will fit to user
    local data fast". Shared towers stay unchanged.
    """
    if not towers.personal:
        return towers
    films = features.films.embed(towers.item)
    draw = passes(Films.of(split.train, split.catalogue), choices.negatives, choices.batches)
    users = dict(towers.users)
    for view, view_features in features.users.items():
        rows = torch.from_numpy(view_features[split.trained])
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
    """Algorithm 2: return the mean over views of P(film | user), softmax over all films: [n, m].

    The component that averages them is trusted and adds no noise. deviation: of the noise that each view adds to each
    of its probabilities (of about 1 / 1,682), to measure how much of the ranking remains. Raises ValueError for a
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
    view_features = torch.from_numpy(features.users[view][cohort])
    sgd = LocalSgd(choices.local_rate, choices.gamma)
    return descend(features.films, towers.item, towers.of(view, cohort), view_features, drawn, sgd, choices.clip)


def _users_after(
    towers: Towers, view: View, cohort: NDArray[np.int64], moved: Moved, server: StatefulOptimizer
) -> Parameters:
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


def _stepped(server: StatefulOptimizer, weights: Parameters, gradient: Mapping[str, NDArray[np.float64]]) -> Parameters:
    stepped = server.step({name: value.numpy() for name, value in weights.items()}, gradient)
    return {name: torch.from_numpy(value) for name, value in stepped.items()}


def _adam(choices: Choices, round_number: int) -> Adam:
    return Adam(choices.server_rate_of(round_number), tau=choices.server_tau)


def _drawn(features: int, seed: tuple[int, int]) -> Parameters:
    with torch.random.fork_rng():
        torch.manual_seed(int(np.random.default_rng(seed).integers(2**31)))
        return {name: value.detach().clone() for name, value in dssm_tower(features).named_parameters()}
