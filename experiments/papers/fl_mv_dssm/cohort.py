"""The local training of many devices at once, with the same results as one device after the other.

`Pass` and `passes` draw what a device trains on in one pass: batches of its own films, and unseen films.

Every device trains its own copy of both towers. A copy of the item tower's first layer is 64 numbers for each of about
4,000 features; but SGD moves it only along the films that were seen: W_u = W - eta sum_f x_f d_f', with d_f the
gradient at film f's first layer. So a device stores d for its films, and computes x_f' W_u from x_f' W and the inner
products of films' features. This is exact algebra: `test_movielens_cohort.py` compares it with towers in torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from models.scoring import unit

BATCH = 20


@dataclass(frozen=True)
class Pass:
    """The s batches of one device and view.

    positives [s, 20]: the device's own films, -1 where the last batch of a pass is short. negatives [N]: unseen films
    that all positives are compared with; weights [N]: how many unseen films each of them represents.
    """

    positives: NDArray[np.int64]
    negatives: NDArray[np.int64]
    weights: NDArray[np.float64]

    @property
    def steps(self) -> int:
        return len(self.positives)


@dataclass(frozen=True)
class Films:
    """Films that devices may train on, and who has seen which.

    chances [m]: relative probability of a film as a negative; the same for every device.
    """

    seen: csr_array
    catalogue: NDArray[np.int64]
    chances: NDArray[np.float64]

    @classmethod
    def of(cls, seen: csr_array, catalogue: NDArray[np.int64]) -> Films:
        """Return films whose probabilities grow with the root of their interactions, which the server publishes."""
        return cls(seen, catalogue, np.sqrt(np.asarray(seen.sum(axis=0), dtype=np.float64).ravel() + 1))

    def own(self, user: int) -> NDArray[np.int64]:
        return self.seen.indices[self.seen.indptr[user] : self.seen.indptr[user + 1]].astype(np.int64)

    def unseen(self, user: int) -> NDArray[np.int64]:
        """Return the catalogue's films that the user has not seen."""
        return np.setdiff1d(self.catalogue, self.own(user), assume_unique=True)


Draw = Callable[[int, np.random.Generator], Pass]
"""(user, generator) -> the pass of one view."""


def passes(films: Films, negatives: int, batches: int) -> Draw:
    """Return the user's films in a new order, in at most `batches` batches of 20, and N unseen films for the pass.

    Negatives are drawn by their probabilities, with replacement, and weighted by 1 / (N probability). The sum over them
    is an unbiased estimate of the sum over all unseen films (eq. 5 with D the whole catalogue), with less variance than
    a uniform draw, because popular films make up most of the sum. Deviation from DSSM (eq. 6), which draws N for each
    positive, uniformly: on a device all positives have the same user and can share one draw.
    """
    pools: dict[int, tuple[NDArray[np.int64], NDArray[np.float64]]] = {}

    def draw(user: int, rng: np.random.Generator) -> Pass:
        own = films.own(user)
        if user not in pools:
            unseen = films.unseen(user)
            pools[user] = unseen, films.chances[unseen] / films.chances[unseen].sum()
        unseen, chances = pools[user]
        positives = np.full(-(-len(own) // BATCH) * BATCH, -1)
        positives[: len(own)] = rng.permutation(own)
        drawn = rng.choice(len(unseen), negatives, p=chances)
        return Pass(positives.reshape(-1, BATCH)[:batches], unseen[drawn], 1 / (negatives * chances[drawn]))

    return draw


FIRST = "layers.0.weight"
LAYERS = 3
CHUNK = 20
"""Number of devices computed together: enough to fill a matrix product, few enough to have similar lengths."""

TowerTensors = Mapping[str, Tensor]
"""A tower's parameters by name; for b devices with a leading axis of b."""


class ItemSpace:
    """Films' features X [m, F] and their inner products XX' [m, m]."""

    def __init__(self, features: csr_array) -> None:
        self._X = features.astype(np.float32)
        self.features: int = features.shape[1]
        self.products = torch.from_numpy(np.asarray((self._X @ self._X.T).todense(), dtype=np.float32))

    def first_layer(self, weight: Tensor) -> Tensor:
        """X W' without bias: weight [64, F] -> [m, 64]."""
        return torch.from_numpy(np.asarray(self._X @ weight.numpy().T))

    def back(self, slopes: NDArray[np.float32]) -> NDArray[np.float32]:
        """Compute the first layer's weight gradient from the gradients at its output: d'X, [m, 64] -> [64, F]."""
        found: NDArray[np.float32] = np.ascontiguousarray((self._X.T @ slopes).T)
        return found

    def embed(self, tower: TowerTensors) -> Tensor:
        """Map all films through the item tower, to length 1: [m, 16]."""
        return unit(upper_layers(tower, self.first_layer(tower[FIRST]) + tower["layers.0.bias"]))


def upper_layers(tower: TowerTensors, before: Tensor) -> Tensor:
    """Return the output y [..., k, 16] from the first layer's sum [..., k, 64]; parameters may have the same leading
    axes.
    """
    y = before.tanh()
    for place in range(1, LAYERS):
        weight, bias = tower[f"layers.{place}.weight"], tower[f"layers.{place}.bias"]
        y = (y @ weight.mT + bias.unsqueeze(-2)).tanh()
    return y


def user_vectors(tower: TowerTensors, features: Tensor) -> Tensor:
    """Map users through their towers, to length 1.

    features [b, d]; parameters [...] shared, or [b, ...] -> [b, 16].
    """
    rows = features.unsqueeze(-2) if tower[FIRST].ndim == 3 else features
    y = upper_layers(tower, rows @ tower[FIRST].mT + tower["layers.0.bias"].unsqueeze(-2))
    return unit(y.squeeze(-2) if tower[FIRST].ndim == 3 else y)


@dataclass(frozen=True)
class Moved:
    """The results of a cohort's passes of one view.

    item: sum over devices of each clipped w - w_u, by parameter. users: the user towers after the pass, with a leading
    axis of devices. norms: L2 length of each device's item update before clipping. losses: means.
    """

    item: dict[str, NDArray[np.float64]]
    users: dict[str, Tensor]
    norms: NDArray[np.float64]
    losses: NDArray[np.float64]


@dataclass(frozen=True)
class LocalSgd:
    """Settings of local SGD: rate, and gamma of the softmax."""

    rate: float
    gamma: float


def descend(
    space: ItemSpace,
    item: TowerTensors,
    users: TowerTensors,
    features: Tensor,
    drawn: Sequence[Pass],
    sgd: LocalSgd,
    clip: float,
) -> Moved:
    """Run one view's passes on all devices of a cohort.

    Args:
        item: the item tower that all start from.
        users: each device's user tower, with a leading axis of b devices.
        features: the view's features of its users, [b, d].
        drawn: each device's batches.
        clip: C of local_secure_aggregate; infinity for none.
    """
    start = space.first_layer(item[FIRST])
    slopes = torch.zeros_like(start)
    total = {name: np.zeros(tuple(value.shape)) for name, value in item.items()}
    ended = {name: value.clone() for name, value in users.items()}
    norms, losses = np.zeros(len(drawn)), np.zeros(len(drawn))
    order = sorted(range(len(drawn)), key=lambda place: -drawn[place].steps)
    for at in range(0, len(order), CHUNK):
        rows = order[at : at + CHUNK]
        chunk = _Chunk(space, start, item, {name: value[rows] for name, value in users.items()}, features[rows],
                       [drawn[row] for row in rows])  # fmt: skip
        losses[rows] = chunk.run(sgd)
        norms[rows], lengths = (found := chunk.norms(sgd.rate)), np.maximum(found, 1e-30)
        kept = np.minimum(1.0, clip / lengths)
        chunk.add_to(total, slopes, kept, sgd.rate)
        for name, value in chunk.users.items():
            ended[name][rows] = value
    total[FIRST] = space.back(slopes.numpy()).astype(np.float64)
    return Moved(total, ended, norms, losses)


class _Chunk:
    """A few devices, those with the longest passes first."""

    def __init__(
        self,
        space: ItemSpace,
        start: Tensor,
        item: TowerTensors,
        users: Mapping[str, Tensor],
        features: Tensor,
        drawn: Sequence[Pass],
    ) -> None:
        self._drawn = drawn
        self._features = features
        self.users = {name: value.clone() for name, value in users.items()}
        self._item = {name: value for name, value in item.items() if name != FIRST}
        self._own = {name: value.expand(len(drawn), *value.shape).clone() for name, value in self._item.items()}
        self._negatives = len(drawn[0].negatives)
        own = [np.unique(one.positives[one.positives >= 0]) for one in drawn]
        widest = self._negatives + max(map(len, own))
        self._real = np.arange(widest) < np.array([[self._negatives + len(films)] for films in own])
        self._films = np.zeros((len(drawn), widest), dtype=np.int64)  # negatives, then own films, then padding
        for row, (one, films) in enumerate(zip(drawn, own, strict=True)):
            self._films[row, self._real[row]] = np.concatenate([one.negatives, films])
        names = torch.from_numpy(self._films)
        self._products = torch.empty(len(drawn), widest, widest)  # [b, T, T]
        for row in range(len(drawn)):
            torch.index_select(space.products.index_select(0, names[row]), 1, names[row], out=self._products[row])
        self._start = start[names]  # [b, T, 64]
        self._slopes = torch.zeros_like(self._start)  # sum of d_f, without the rate
        self._moved = False
        self._weights = _weights(drawn)
        self._batches = [self._batch(step, own) for step in range(drawn[0].steps)]

    def _batch(self, step: int, own: Sequence[NDArray[np.int64]]) -> tuple[Tensor, Tensor]:
        """Return indices in `films` of the batch's positives, and a mask of real ones: [a, 20] each."""
        named = np.stack([one.positives[step] for one in self._drawn if one.steps > step])
        places = [np.searchsorted(films, np.maximum(batch, films[0])) for films, batch in zip(own, named, strict=False)]
        return torch.from_numpy(self._negatives + np.stack(places)), torch.from_numpy(named >= 0)

    def run(self, sgd: LocalSgd) -> NDArray[np.float64]:
        """Run all steps; return each device's mean loss."""
        losses = np.zeros(len(self._drawn))
        for places, real in self._batches:
            losses[: len(places)] += self._step(places, real, sgd)
        return losses / [one.steps for one in self._drawn]

    def _step(self, places: Tensor, real: Tensor, sgd: LocalSgd) -> NDArray[np.float64]:
        active, N = len(real), self._negatives
        films = self._start.shape[1]
        flat = (places + films * torch.arange(active).unsqueeze(-1)).flatten()
        before = self._looked(self._start, flat, active)  # [a, N + 20, 64]
        if self._moved:
            slopes = self._slopes[:active]
            rows = self._products.flatten(0, 1).index_select(0, flat).view(active, -1, films)  # [a, 20, T]
            along = torch.cat([self._products[:active, :N] @ slopes, rows @ slopes], dim=1)
            before -= sgd.rate * along
        before.requires_grad_(True)
        own = {name: value[:active].detach().requires_grad_(True) for name, value in self._own.items()}
        users = {name: value[:active].detach().requires_grad_(True) for name, value in self.users.items()}
        items = unit(upper_layers(own, before + own["layers.0.bias"].unsqueeze(-2)))  # [a, N + 20, 16]
        vectors = user_vectors(users, self._features[:active])
        loss = softmax_loss(vectors, items[:, N:], items[:, :N], real, self._weights[:active], sgd.gamma)
        slope, *found = torch.autograd.grad(loss.sum(), [before, *own.values(), *users.values()])
        self._slopes[:active, :N] += slope[:, :N]
        self._slopes.flatten(0, 1).index_add_(0, flat, slope[:, N:].flatten(0, 1))
        self._moved = True
        for (name, value), gradient in zip([*own.items(), *users.items()], found, strict=True):
            (self._own if value is own.get(name) else self.users)[name][:active] -= sgd.rate * gradient
        return loss.detach().numpy().astype(np.float64)

    def _looked(self, table: Tensor, flat: Tensor, active: int) -> Tensor:
        """Return rows of the negatives, then those at `flat`: [b, T, 64] -> [a, N + 20, 64]."""
        own = table.flatten(0, 1).index_select(0, flat).view(active, -1, table.shape[-1])
        return torch.cat([table[:active, : self._negatives], own], dim=1)

    def norms(self, rate: float) -> NDArray[np.float64]:
        """Return ||w - w_u||_2 over all parameters of the item tower."""
        spread = (self._slopes * (self._products @ self._slopes)).sum(dim=(1, 2)).clamp_min(0) * rate**2
        for name, value in self._own.items():
            spread = spread + (value - self._item[name]).square().flatten(1).sum(dim=1)
        return spread.sqrt().numpy().astype(np.float64)

    def add_to(
        self,
        total: dict[str, NDArray[np.float64]],
        slopes: Tensor,
        kept: NDArray[np.float64],
        rate: float,
    ) -> None:
        """Add each device's update, scaled by `kept`, to the sums."""
        scale = torch.from_numpy(kept.astype(np.float32))
        for name, value in self._own.items():
            total[name] += torch.tensordot(scale, self._item[name] - value, dims=1).numpy()
        weighted = rate * scale[:, None, None] * self._slopes  # padding has no slope
        slopes.index_add_(0, torch.from_numpy(self._films).flatten(), weighted.flatten(0, 1))


def adapt(
    films: Tensor, users: TowerTensors, features: Tensor, drawn: Sequence[Pass], sgd: LocalSgd
) -> dict[str, Tensor]:
    """Train only the user towers; the item tower, and so the film vectors [m, 16], is frozen.

    users: with a leading axis of b devices; features [b, d]. Returns the towers after the pass.
    """
    order = sorted(range(len(drawn)), key=lambda place: -drawn[place].steps)
    moved = {name: value[order] for name, value in users.items()}
    rows = features[order]
    unseen = films[torch.from_numpy(np.stack([drawn[place].negatives for place in order]))]  # [b, N, 16]
    weights = _weights([drawn[place] for place in order])
    for step in range(drawn[order[0]].steps):
        named = torch.from_numpy(np.stack([drawn[at].positives[step] for at in order if drawn[at].steps > step]))
        active, real = len(named), named >= 0
        own = {name: value[:active].detach().requires_grad_(True) for name, value in moved.items()}
        loss = softmax_loss(
            user_vectors(own, rows[:active]),
            films[named.clamp_min(0)],
            unseen[:active],
            real,
            weights[:active],
            sgd.gamma,
        )
        for value, gradient in zip(moved.values(), torch.autograd.grad(loss.sum(), list(own.values())), strict=True):
            value[:active] -= sgd.rate * gradient
    back = torch.from_numpy(np.argsort(order))
    return {name: value[back] for name, value in moved.items()}


def softmax_loss(
    vectors: Tensor, positives: Tensor, negatives: Tensor, real: Tensor, weights: Tensor, gamma: float
) -> Tensor:
    """-log P(d+ | u), mean over real positives; negatives are shared, and each counts by its weight.

    vectors [a, 16], positives [a, 20, 16], negatives [a, N, 16], real [a, 20], weights [a, N] -> [a].
    """
    scores = gamma * (positives @ vectors.unsqueeze(-1)).squeeze(-1)
    others = gamma * (negatives @ vectors.unsqueeze(-1)).squeeze(-1) + weights.log()
    against = others.logsumexp(dim=-1, keepdim=True)
    each = (torch.logaddexp(scores, against) - scores) * real
    return each.sum(dim=-1) / real.sum(dim=-1)


def _weights(drawn: Sequence[Pass]) -> Tensor:
    return torch.from_numpy(np.stack([one.weights for one in drawn]).astype(np.float32))
