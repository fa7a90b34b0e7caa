"""Prototypes from secure sums. Oracles: Lloyd's algorithm by hand, and planted groups of readers.

The rounds are real: routes, coordinator, masks and trainers in one process.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.federation.errors import RoundImpossible
from backend.federation.grouping import Drift
from backend.federation.protections.secure_sum import secure_sum_of
from backend.federation.strategies.learned_codebook import NOISE_MOST, LearnedCodebook, cohort_needed
from backend.federation.strategies.strategy import RoundRequest
from backend.federation.systems import COMPOSED
from backend.federation.systems.composition import SystemSpec
from backend.recall.served_releases import ServedReleases
from device_app.privacy.protections.protection import ComputedUpdate
from device_app.privacy.protections.registry import SecureSumProtection
from device_app.privacy.reporter import user_vector
from device_app.privacy.secagg.messages import Contribution
from device_app.settings import PrivacySettings
from protocol.releases import BlobRef, Codebook
from protocol.tensors import TensorSpec, pack, unpack
from tests.doubles.clock import StillClock
from tests.doubles.in_process import InProcess
from tests.doubles.news import NOW, synthetic_pool
from tests.doubles.round_rig import DIM, ENCODER, BackendRig, DeviceRig, hand_made_draft
from tests.doubles.simulated_reader import simulated_reader

CODEBOOK = COMPOSED["codebook/secure/mean"]
CODEBOOK_EXACT = COMPOSED["codebook/exact/mean"]

ALLOWS = PrivacySettings(training=True, epsilon_per_day_training=1e9, secure_sum="exact", smallest_sum=2)
K, DEVICES = 4, 5
assert isinstance(CODEBOOK_EXACT.strategy, LearnedCodebook)
QUICK = replace(CODEBOOK_EXACT, strategy=replace(CODEBOOK_EXACT.strategy, size=K, adopt_every=2))


def unit_rows(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


class CodebookRounds:
    def __init__(self, folder: Path, stack: ExitStack) -> None:
        (folder / "backend").mkdir()
        self.backend = BackendRig.make(folder / "backend", StillClock(NOW + timedelta(days=1)))
        store = self.backend.releases
        self.first = unit_rows(np.random.default_rng(3).normal(size=(K, DIM)))
        book = Codebook(size=K, epsilon=4.0, prototypes=store.add_blob(pack({"prototypes": self.first})))
        draft = hand_made_draft(store)
        store.commit(
            replace(draft, recall=draft.recall.model_copy(update={"codebooks": (book,)})), note="with a codebook"
        )
        network = InProcess(self.backend.app)
        stack.callback(network.close)
        pool = synthetic_pool(240, dim=DIM)
        self.devices = []
        for number in range(DEVICES):
            path = folder / f"device-{number}" / "device.sqlite"
            device = DeviceRig(path, self.backend.clock, network, ALLOWS, seed=number)
            stack.callback(device.stop)
            device.sync()
            device.read(simulated_reader(pool, np.random.default_rng(number)), pool)
            self.devices.append(device)

    def run(self, system: SystemSpec) -> dict[str, object]:
        self.backend.coordinator.open_round(system.name, cohort=DEVICES, cohort_minimum=2, seconds=60.0)
        for _ in range(10):
            for device in self.devices:
                device.trainer.step()
            self.backend.coordinator.step()
        status = self.backend.coordinator.history(1)[0]
        assert status.state == "applied", status.reason
        for device in self.devices:
            device.sync()
        return {"published": status.published, "survivors": status.survivors}

    def readers(self) -> np.ndarray:
        return np.stack([user_vector(each.trainer._reading.clicked(ENCODER)) for each in self.devices])

    def codebook(self) -> Codebook:
        found = self.backend.releases.require_current().recall.codebook(K)
        assert found is not None
        return found

    def prototypes(self) -> np.ndarray:
        content = self.backend.releases.read_blob(self.codebook().prototypes.sha256)
        spec = {"prototypes": TensorSpec("float32", (K, DIM))}
        return unpack(content, spec, limit_bytes=len(content))["prototypes"]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CodebookRounds]:
    monkeypatch.setitem(COMPOSED, QUICK.name, QUICK)
    with ExitStack() as stack:
        yield CodebookRounds(tmp_path, stack)


def test_rounds_update_the_draft_and_later_publish_the_codebook(
    world: CodebookRounds,
) -> None:
    readers, belief = world.readers(), Drift.begin(world.first)
    for _ in range(2):
        rows = np.argmax(readers @ belief.prototypes.T, axis=1)
        sums = np.zeros((K, DIM))
        np.add.at(sums, rows, readers)
        members = np.bincount(rows, minlength=K).astype(float)
        belief = belief.seen(sums, members, DEVICES, sums_variance=0.0, members_variance=0.0)

    assert world.run(QUICK) == {"published": None, "survivors": DEVICES}
    np.testing.assert_array_equal(world.prototypes(), world.first)
    assert world.run(QUICK) == {"published": "r3", "survivors": DEVICES}
    everybody = belief.shares() @ belief.means
    np.testing.assert_allclose(world.prototypes(), unit_rows(belief.means - everybody), atol=2e-3)
    np.testing.assert_allclose(world.codebook().shares, belief.shares(), atol=1e-3)
    served = ServedReleases(world.backend.releases, answered=2)
    served.refresh()
    np.testing.assert_allclose(served.current.codebooks[K].shares, world.codebook().shares)
    assert world.backend.releases.require_current().recall.codebooks[0].epsilon == 4.0


def test_codebook_published_meanwhile_restarts_the_draft(world: CodebookRounds) -> None:
    world.run(QUICK)
    store = world.backend.releases
    other = unit_rows(np.random.default_rng(9).normal(size=(K, DIM)))
    draft = hand_made_draft(store)
    book = Codebook(size=K, epsilon=4.0, prototypes=store.add_blob(pack({"prototypes": other})))
    store.commit(replace(draft, recall=draft.recall.model_copy(update={"codebooks": (book,)})), note="another encoder")
    for device in world.devices:
        device.sync()

    assert world.run(QUICK)["published"] is None
    np.testing.assert_array_equal(world.prototypes(), other)


def test_release_without_the_codebook_refuses_the_round(world: CodebookRounds) -> None:
    with pytest.raises(RoundImpossible, match="no codebook of 16"):
        world.backend.coordinator.open_round(CODEBOOK.name, cohort=5_200, cohort_minimum=2, seconds=60.0)


def test_reader_whose_clicks_are_all_muted_contributes_zeros(
    world: CodebookRounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    muted = world.devices[0]
    clicked = frozenset(click.news_id for click in muted.stores.clicks.recent(1_000))
    muted.trainer._reading._muted = lambda: clicked
    gave = list[bool]()
    contribute = SecureSumProtection.contribute

    def recording(self: SecureSumProtection, update: ComputedUpdate, *args: Any, **named: Any) -> Contribution:
        gave.append(any(each.any() for each in update.shared.tensors.values()))
        return contribute(self, update, *args, **named)

    monkeypatch.setattr(SecureSumProtection, "contribute", recording)
    world.backend.coordinator.open_round(QUICK.name, cohort=DEVICES, cohort_minimum=2, seconds=60.0)
    for _ in range(20):
        for device in world.devices:
            device.trainer.step()
        world.backend.clock.go_on(4.0)
        world.backend.coordinator.step()
    status = world.backend.coordinator.history(1)[0]

    assert (status.state, status.survivors) == ("applied", DEVICES)
    assert sorted(gave) == [False] + [True] * (DEVICES - 1)


def planted(rng: np.random.Generator, readers: int, dim: int, groups: int) -> tuple[np.ndarray, np.ndarray]:
    centres = unit_rows(rng.normal(size=(groups, dim)))
    near = centres[rng.integers(groups, size=readers)]
    return centres, unit_rows(near + 0.6 * rng.normal(size=near.shape) / np.sqrt(dim))


def follow(centres: np.ndarray, readers: np.ndarray, rounds: int, sigma: float, rng: np.random.Generator) -> np.ndarray:
    """Return the mean cosine of each true centre with its prototype after each round, from prototypes .6 away."""
    off = unit_rows(centres + 0.9 * rng.normal(size=centres.shape) / np.sqrt(centres.shape[1]))
    belief, found = Drift.begin(off), []
    for _ in range(rounds):
        found.append(float((belief.prototypes * centres).sum(axis=1).mean()))
        rows = np.argmax(readers @ belief.prototypes.T, axis=1)
        sums = np.zeros(belief.means.shape)
        np.add.at(sums, rows, readers)
        sums += sigma * rng.normal(size=sums.shape)
        members = np.bincount(rows, minlength=len(centres)) + 3 * sigma * rng.normal(size=len(centres))
        belief = belief.seen(sums, members, len(readers), sums_variance=sigma**2, members_variance=9 * sigma**2)
    return np.array(found)


def test_prototypes_improve_with_thousands_of_readers_and_do_not_get_worse_with_sixty() -> None:
    rng = np.random.default_rng(5)
    centres, readers = planted(rng, 4_000, 64, 8)
    learned = follow(centres, readers, 10, sigma=0.75 * np.sqrt(4_000), rng=rng)
    assert learned[-1] > learned[0] + 0.1
    few = follow(centres, readers[:60], 30, sigma=0.75 * np.sqrt(60), rng=rng)
    assert few.min() > few[0] - 0.02
    exact = follow(centres, readers[:60], 5, sigma=0.0, rng=rng)
    assert exact[-1] > 0.95


@given(st.lists(st.floats(-30, 90), min_size=3, max_size=3), st.floats(0, 1e4))
def test_shares_sum_to_one_and_stay_positive_under_noise(counts: list[float], variance: float) -> None:
    start = Drift.begin(unit_rows(np.eye(3, 5)))
    found = start.seen(
        np.zeros((3, 5)), np.array(counts), 60, sums_variance=variance, members_variance=variance
    ).shares()

    assert found.sum() == pytest.approx(1)
    assert found.min() >= 0.1 * 20 / (3 * max(20, *counts)) - 1e-9


def test_impossible_sums_are_refused() -> None:
    start = Drift.begin(unit_rows(np.eye(3, 5)))
    with pytest.raises(ValueError, match=r"\[3, 5\]"):
        start.seen(np.zeros((2, 5)), np.zeros(3), 9, sums_variance=0.0, members_variance=0.0)
    with pytest.raises(ValueError, match="finite"):
        start.seen(np.full((3, 5), np.nan), np.zeros(3), 9, sums_variance=0.0, members_variance=0.0)


@pytest.mark.parametrize("shares", [(0.5,), (0.5, 0.6), (1.0, 0.0)])
def test_invalid_codebook_shares_are_refused(shares: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="shares"):
        Codebook(size=2, epsilon=4.0, prototypes=BlobRef(sha256="0" * 64, size_bytes=1), shares=shares)


def test_cohort_with_mostly_noisy_drafts_is_refused_before_payment(tmp_path: Path) -> None:
    """Regression: a round of 60 cost each device 7.7 and could publish nothing, however many followed."""
    opener = BackendRig.make(tmp_path, StillClock(NOW)).coordinator._opener
    needed = r"With 60 devices .* would be noise.* Above 30 % no draft .* about 5,200 devices a round would be enough"
    for ask in (opener.open, opener.open_or_queue, opener.check):
        with pytest.raises(RoundImpossible, match=needed) as refused:
            ask(RoundRequest(CODEBOOK.name, 60, 10, 60.0))
        assert (refused.value.field, refused.value.limit) == ("cohort", "about 5,200 devices")
    opener.check(RoundRequest(CODEBOOK.name, 5_200, 10, 60.0))
    opener.check(RoundRequest(CODEBOOK_EXACT.name, 5, 2, 60.0))


def test_expected_draft_noise_matches_large_cohorts_on_mind() -> None:
    """Oracle: the record of `ownfeed evaluate codebook`. Drafts of small cohorts stay near the topics, which lie
    further apart than readers do, so less of them is noise; all of them exceed what may be published."""
    strategy = CODEBOOK.strategy
    assert isinstance(strategy, LearnedCodebook)
    share = partial(strategy.expected_noise_share, secure_sum_of(CODEBOOK.protection))
    tables = json.loads(Path("experiments/results/codebook.json").read_text(encoding="utf-8"))["tables"]
    found = {row[1]: float(row[4]) for row in tables[0]["rows"] if row[0] == CODEBOOK.name}
    assert found.keys() == {60, 300, 1_000, 2_800}
    assert all(min(share(cohort), noise) > NOISE_MOST for cohort, noise in found.items())
    for cohort in (1_000, 2_800):
        assert share(cohort) == pytest.approx(found[cohort], abs=0.04)
    enough = cohort_needed(share)
    assert share(enough) <= NOISE_MOST < share(enough - 100)
