"""FINDING over real routes, masks, coordinator and trainers.

Oracles: gradients by hand, and equation 8. The ranker is hand-made (two parameters), so that no torch is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from backend.federation.grouping import Constant, Layers, unit
from backend.federation.optimizers import Sgd
from backend.federation.strategies.grouped import Clustering, Grouped, GroupMoves
from backend.federation.systems import COMPOSED
from backend.federation.systems.finding import PROTOTYPES
from backend.releases.codebooks import first_groups, put_centroids
from device_app.errors import ReleaseRefused
from device_app.feed.model_cache import ModelCache
from device_app.ranking.groups import GroupChoice, GroupRanker, OwnGroup
from device_app.settings import PrivacySettings
from device_app.sync.installed_release import Release, current_release
from device_app.training.gradients import OnnxGradients
from device_app.training.tasks.full_gradient import FullGradientTask
from protocol.protections import SecureSum
from protocol.tensors import pack
from tests.doubles.clock import StillClock
from tests.doubles.in_process import InProcess
from tests.doubles.news import NOW, synthetic_pool
from tests.doubles.round_rig import DIM, ENCODER, FEATURES, BackendRig, DeviceRig, hand_made_draft
from tests.doubles.simulated_reader import simulated_reader

GROUPS_EXACT = COMPOSED["groups/exact/mean"]

ALLOWS = PrivacySettings(training=True, epsilon_per_day_training=1e9, secure_sum="exact", smallest_sum=2)
MODEL, K, DEVICES, LAMBDA, RATE = "ranker.features", 2, 5, 0.25, 0.5
VOTES = replace(PROTOTYPES, name="votes", model=MODEL, strategy=Clustering())
LIVE = replace(
    GROUPS_EXACT,
    name="live",
    model=MODEL,
    protection=SecureSum(clip=50.0, weight_limit=32, bits=64, fraction_bits=24),
    strategy=Grouped(Layers(("beta", "feature_weights")), Constant(LAMBDA), 2, "votes"),
    optimizer=Sgd(learning_rate=RATE),
)


class GroupedRounds:
    def __init__(self, folder: Path, stack: ExitStack) -> None:
        (folder / "backend").mkdir()
        self.backend = BackendRig.make(folder / "backend", StillClock(NOW + timedelta(days=1)))
        store = self.backend.releases
        pool = synthetic_pool(240, dim=DIM)
        readers = [simulated_reader(pool, np.random.default_rng(40 + number)) for number in range(DEVICES)]
        row = {card.id: number for number, card in enumerate(pool.cards)}
        user_preferences = unit(
            np.stack([pool.vectors[[row[each.news_id] for each in one.clicks]].mean(axis=0) for one in readers])
        )
        apart = np.unravel_index(np.argmin(user_preferences @ user_preferences.T), (DEVICES, DEVICES))
        draft = hand_made_draft(store)
        entry = first_groups(store, draft.models[MODEL], draft.models["recall"], size=K, seed=1)
        assert entry.groups is not None
        centroids = put_centroids(store, user_preferences[list(apart)])
        entry = entry.model_copy(
            update={"groups": entry.groups.model_copy(update={"centroids": centroids, "next_centroids": centroids})}
        )
        store.commit(replace(draft, models={**draft.models, MODEL: entry}, default_ranker=MODEL), note="with groups")
        network = InProcess(self.backend.app)
        stack.callback(network.close)
        self.devices = []
        for number, reader in enumerate(readers):
            path = folder / f"device-{number}" / "device.sqlite"
            device = DeviceRig(path, self.backend.clock, network, ALLOWS, seed=number)
            stack.callback(device.stop)
            device.sync()
            device.read(reader, pool)
            self.devices.append(device)

    def run(self, system: str) -> None:
        self.backend.coordinator.open_round(system, cohort=DEVICES, cohort_minimum=2, seconds=60.0)
        self.finish()

    def finish(self) -> None:
        """Step everything until no round is running."""
        for _ in range(40):
            for device in self.devices:
                device.trainer.step()
            self.backend.coordinator.step()
            for device in self.devices:
                device.sync()
            if self.backend.coordinator.current() is None:
                break
        assert {each.state for each in self.backend.coordinator.history()} == {"applied"}

    def release(self) -> Release:
        return current_release(self.devices[0].stores.releases)

    def choice(self) -> GroupChoice:
        release = self.release()
        return GroupChoice(release.graph(MODEL, "score"), release.groups(MODEL), features=len(FEATURES))

    def clicked(self) -> list[NDArray[np.float32]]:
        return [device.trainer._reading.clicked(ENCODER) for device in self.devices]

    def gradients(self, groups: list[int]) -> list[tuple[int, dict[str, NDArray[np.float64]]]]:
        """Return each device's n_u and gradient at its group's model, for the samples that the rig's seeds draw."""
        release = self.release()
        graph, models = release.graph(MODEL, "gradient"), release.groups(MODEL)
        found = []
        for number, (device, group) in enumerate(zip(self.devices, groups, strict=True)):
            update = FullGradientTask(LIVE.negatives, LIVE.samples_limit, FEATURES).run(
                models.of(group),
                device.trainer._reading.samples(ENCODER),
                OnnxGradients(graph),
                np.random.default_rng(number),
            )
            tensors = {name.removeprefix("g."): each.astype(np.float64) for name, each in update.tensors.items()}
            found.append((update.samples, tensors))
        return found


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GroupedRounds]:
    for spec in (VOTES, LIVE):
        monkeypatch.setitem(COMPOSED, spec.name, spec)
    with ExitStack() as stack:
        yield GroupedRounds(tmp_path, stack)


def test_each_group_model_is_updated_by_its_group_and_the_global_model_by_everyone(world: GroupedRounds) -> None:
    choice, before = world.choice(), world.release().groups(MODEL)
    groups = [choice.in_force(clicks) for clicks in world.clicked()]
    assert set(groups) == {0, 1}, "the pool's readers are to fall into both groups, or this tests little"
    start = world.release().weights(MODEL)
    gradients = world.gradients(groups)
    world.run("live")

    after, shared = world.release().groups(MODEL), world.release().weights(MODEL)
    everybody = sum(count for count, _ in gradients)
    for name in start:
        mean = sum(count * each[name] for count, each in gradients) / everybody
        np.testing.assert_allclose(shared[name], start[name] - RATE * mean, atol=2e-6)
        for group in range(K):
            own = [found for found, place in zip(gradients, groups, strict=True) if place == group]
            mean = sum(count * each[name] for count, each in own) / sum(count for count, _ in own)
            stepped = before.weights[name][group] - RATE * mean
            expected = LAMBDA * stepped + (1 - LAMBDA) * shared[name]
            np.testing.assert_allclose(after.weights[name][group], expected, atol=2e-6)
    assert world.release().id == "r3"


def test_groups_are_clustered_again_after_enough_rounds(world: GroupedRounds) -> None:
    world.run("live")
    drafted = world.choice()
    votes = [drafted.drafted(clicks) for clicks in world.clicked()]
    world.run("live")

    rounds = [(each.system, each.state) for each in world.backend.coordinator.history()]
    assert rounds == [("votes", "applied"), ("live", "applied"), ("live", "applied")]
    groups = world.release().groups(MODEL)
    (reported,) = world.backend.coordinator.group_moves(4)
    went = [[0] * K for _ in range(K)]
    for before, (after, _) in zip([drafted.in_force(clicks) for clicks in world.clicked()], votes, strict=True):
        went[before][after] += 1
    assert reported == GroupMoves("round-3", "votes", "r5", tuple(map(tuple, went))), "what the console draws"
    sums = np.zeros((K, DIM))
    for group, vector in votes:
        sums[group] += vector
    for group in {group for group, _ in votes}:
        np.testing.assert_allclose(groups.next_centroids[group], sums[group] / np.linalg.norm(sums[group]), atol=1e-3)


def test_device_ranks_with_the_model_of_its_group(world: GroupedRounds) -> None:
    world.run("live")
    release = world.release()
    ranker = ModelCache().models(release).ranker
    assert isinstance(ranker, GroupRanker)
    assert (ranker.groups, ranker.features) == (K, FEATURES)
    for clicks in world.clicked():
        assert ranker.group(clicks) == world.choice().in_force(clicks)
    assert ranker.group(np.empty((0, DIM), np.float32)) == 0


def test_device_shows_its_reader_the_chosen_group(world: GroupedRounds) -> None:
    found = [device.trainer.own_groups() for device in world.devices]
    assert found == [(OwnGroup(MODEL, world.choice().in_force(clicks), K),) for clicks in world.clicked()]
    assert len({each[0].group for each in found}) == K


def test_messages_do_not_reveal_the_devices_group(world: GroupedRounds) -> None:
    """Everything that two devices of different groups send in clear has the same form and length."""
    groups = [world.choice().in_force(clicks) for clicks in world.clicked()]
    one, other = groups.index(0), groups.index(1)
    world.run("live")

    def lengths(device: DeviceRig) -> list[int]:
        found = device.stores.participations.get("round-1")
        assert found is not None
        return [found.sent_bytes]

    assert lengths(world.devices[one]) == pytest.approx(lengths(world.devices[other]), abs=64)


def test_release_with_mismatched_groups_and_ranker_is_refused(world: GroupedRounds) -> None:
    store = world.backend.releases
    release = store.require_current()
    entry = release.models[MODEL]
    assert entry.groups is not None
    odd = store.add_blob(pack({"beta": np.ones(K, np.float32), "feature_weights": np.ones((K, 9), np.float32)}))
    broken = entry.model_copy(update={"groups": entry.groups.model_copy(update={"weights": odd})})
    draft = replace(hand_made_draft(store), models={**release.models, MODEL: broken})
    store.commit(draft, note="odd groups")
    with pytest.raises(ReleaseRefused, match=r"groups of ranker\.features"):
        world.devices[0].sync()
    assert world.devices[0].release() == "r2"
