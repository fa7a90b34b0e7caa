"""The preset `fl_mv_dssm` from two views' samples to the server's step.

Oracle: eqs. 3 to 7 and Algorithm 1 in NumPy, in float64 (`tests.doubles.fl_mv_dssm_paper`), with the Gaussian noise
that the views drew, and Adam as Kingma and Ba publish it. Each view draws its own noise, where eq. 7 draws once for the
sum.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from scipy.special import ndtri

from backend.federation.bounded_mean import Aggregate
from backend.federation.optimizers import Adam, Memory
from backend.federation.strategies.fedavg import MultiView
from backend.federation.systems import COMPOSED
from device_app.privacy.noise_sources import SeededNoise
from device_app.training.multiview.job import ViewTerms
from device_app.training.multiview.view import SearchedSamples
from device_app.training.samples import SampleSource, StoredSamples
from protocol.protections import SecureSum
from tests.doubles.fl_mv_dssm_paper import Floats, clipped, tower_of, view_gradient
from tests.doubles.secure_sums import cohort, run_sum
from tests.doubles.two_view_device import DIM, ENCODER, TwoViewDevice
from tests.doubles.view_graph import towers_of_views

PUBLISHED = COMPOSED["fl_mv_dssm"]
C, SIGMA, ETA, BATCH, N, GAMMA = 0.5, 1.0, 0.001, 20, 4, 10.0
"""Section V-A; N and gamma are not in the paper."""
VIEWS = ("reading", "searches")
DEVICES = 3


@dataclass
class KeptNoise:
    """A simulated stream of noise that records its draws."""

    seed: int
    given: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stream = SeededNoise(self.seed)

    def uniform_bits(self, n: int) -> bytes:
        self.given.append(self._stream.uniform_bits(n))
        return self.given[-1]

    def gaussian(self) -> Floats:
        """Return N(0, sigma^2 C^2) by its inverse distribution function, from the recorded draws."""
        words = np.frombuffer(b"".join(self.given), dtype="<u8")
        halves = ((words >> np.uint64(11)).astype(np.float64) + 1) / 2.0**54
        return np.where(words & np.uint64(1), 1.0, -1.0) * SIGMA * C * ndtri(halves)


def samples_of(home: TwoViewDevice) -> dict[str, SampleSource]:
    """Return each view's own samples, for views that have any."""
    stores, pool = home.stores, home.pool
    items = tuple(card.id for card in pool.cards), pool.vectors
    reading = StoredSamples(stores.clicks, stores.impressions, stores.news, half_life_hours=48.0)
    found: dict[str, SampleSource] = {"reading": reading.samples(ENCODER)}
    if stores.search_database.known() is not None:
        found["searches"] = SearchedSamples(stores.searches, stores.stances, ENCODER, items)
    return found


def paper_update(
    home: TwoViewDevice, weights: dict[str, Floats], order: list[str], seed: int, noise: Floats
) -> dict[str, Floats]:
    """Return lines 3 to 7 of Algorithm 1 on one device, by name in a release.

    order: names in the order in which noise is added. A view without data gives zeros under its noise.
    """
    seeds, at = np.random.default_rng(seed), 0
    found = {name: np.zeros_like(each) for name, each in weights.items()}
    given = samples_of(home)
    for view in VIEWS:
        own = f"user_towers.{view}."
        mine = [name for name in order if name.startswith(("item_tower.", own))]
        bounded = {name: np.zeros_like(weights[name]) for name in mine}
        if view in given:
            drawn = given[view].draw(negatives=N, limit=BATCH, rng=np.random.default_rng(int(seeds.integers(2**63))))
            assert len(drawn) <= BATCH
            samples = []
            for clicks, mask, candidates in zip(drawn.clicks, drawn.click_mask, drawn.candidates, strict=True):
                query, items = clicks[mask > 0].astype(np.float64).sum(axis=0), candidates.astype(np.float64)
                samples.append((query / np.linalg.norm(query), items / np.linalg.norm(items, axis=1, keepdims=True)))
            towers = tower_of(weights, own), tower_of(weights, "item_tower.")
            gradient = {
                f"{prefix}layers.{i}.{part}": each
                for prefix, layers in zip((own, "item_tower."), view_gradient(*towers, samples, GAMMA), strict=True)
                for i, layer in enumerate(layers)
                for part, each in zip(("weight", "bias"), layer, strict=True)
            }
            assert np.sqrt(sum((each**2).sum() for each in gradient.values())) > C, "or clipping would not show"
            bounded = clipped(gradient, C)
        for name in mine:
            size, shape = bounded[name].size, bounded[name].shape
            noisy = bounded[name] + noise[at : at + size].reshape(shape)
            at += size
            found[name] += noisy / (len(VIEWS) if name.startswith("item_tower.") else 1)
    assert at == len(noise)
    return found


def test_round_follows_algorithm_1_from_samples_to_the_servers_step(tmp_path: Path) -> None:
    """The sum has a finer fixed point than the preset's 2^-12, so that its rounding hides no other difference."""
    strategy, optimizer = PUBLISHED.strategy, PUBLISHED.optimizer
    assert isinstance(strategy, MultiView)
    assert isinstance(PUBLISHED.protection, SecureSum)
    assert optimizer is not None
    terms, released = ViewTerms.model_validate_json(strategy.terms()), towers_of_views(DIM)
    weights = {name: each.astype(np.float64) for name, each in released.items()}
    shapes = {f"g.{name}": each.shape for name, each in released.items()}
    protection = SecureSum(clip=PUBLISHED.protection.clip, bits=64, fraction_bits=34)
    sum_terms = protection.terms(
        "round-1", cohort=DEVICES, cohort_minimum=2, coordinates=sum(each.size for each in released.values())
    )
    layout = protection.layout(shapes, sum_terms)
    server, members = cohort(sum_terms)
    wanted = {name: np.zeros_like(each) for name, each in weights.items()}
    for seed, member in enumerate(members):
        home, noise = TwoViewDevice.make(tmp_path / str(seed), searches=seed > 0, semi=False), KeptNoise(seed)
        task = replace(home.task(noise, terms), negatives=PUBLISHED.negatives, samples_limit=PUBLISHED.samples_limit)
        update = task.run(released, None, None, np.random.default_rng(seed))  # type: ignore[arg-type]
        mine = paper_update(home, weights, list(released), seed, noise.gaussian())
        for name, each in mine.items():
            np.testing.assert_allclose(update.tensors[f"g.{name}"], each, rtol=0, atol=1e-6, err_msg=f"{name}, {seed}")
            wanted[name] += each / DEVICES
        length = np.sqrt(sum((each**2).sum() for each in update.tensors.values()))
        assert length < PUBLISHED.protection.clip, "the sum scales nothing"
        member.vector = layout.encode(update.tensors, update.samples)
        home.stores.close()

    total = Aggregate.of_opened(layout.sums(run_sum(server, members, {}).vector))
    gradient = strategy.gradient(total)
    for name, each in wanted.items():
        np.testing.assert_allclose(gradient[name], each, rtol=0, atol=1e-6, err_msg=f"lines 8 and 11, {name}")
    after, memory = dict(released), Memory()
    for _ in range(2):
        after, memory = optimizer.advance(after, gradient, memory)
    for name, w in weights.items():
        g, m, v = wanted[name], np.zeros_like(w), np.zeros_like(w)
        for k in (1, 2):
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
            w = w - ETA * (m / (1 - 0.9**k)) / (np.sqrt(v / (1 - 0.999**k)) + 1e-8)
        np.testing.assert_allclose(after[name], w, rtol=0, atol=1e-6, err_msg=name)


def test_settings_are_those_of_section_v_a() -> None:
    """Oracle: the paper's text. C = 0.5, sigma = 1, |B| = N, Adam at 0.001 on the server, batches of 20, two views."""
    strategy = PUBLISHED.strategy
    assert isinstance(strategy, MultiView)
    assert json.loads(strategy.terms()) == {
        "views": list(VIEWS),
        "clip": C,
        "sigma": SIGMA,
        "tower_rate": strategy.tower_rate,
    }
    assert (PUBLISHED.optimizer, PUBLISHED.samples_limit, PUBLISHED.negatives) == (Adam(ETA), BATCH, N)
