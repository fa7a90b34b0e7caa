"""Rounds of groups as a server concludes them. Oracle: the experiments' FINDING on the same readers, without masks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import Engine

from backend.db.engine import writing_session
from backend.db.tables import RoundRow
from backend.federation.bounded_mean import Aggregate
from backend.federation.errors import RoundImpossible
from backend.federation.grouping import Clusters, Layers, Model, Models, TimeAndLayer, nearest, unit
from backend.federation.optimizers import Adam, Memory, MemoryOptimizer, Sgd
from backend.federation.strategies.grouped import MEMBER_SHARE, MEMBERS, MOVES, VECTORS, Grouped, divided, joined
from backend.federation.strategies.strategy import RoundContext, RoundRequest, RoundResult
from backend.federation.systems import COMPOSED
from backend.federation.systems.composition import SystemSpec
from backend.federation.systems.finding import PROTOTYPES
from backend.releases.blobs import blob_refs
from backend.releases.codebooks import first_groups, read_centroids
from backend.releases.publish import publish_changes
from backend.releases.store import ReleaseStore
from experiments.simulation.strategies.finding import Finding
from protocol.protections import SecureSum
from protocol.releases import ModelEntry
from protocol.rounds import RoundManifest
from protocol.tensors import pack
from tests.doubles.news import NOW
from tests.doubles.quadratics import LOW, TOP, Quadratics
from tests.doubles.small_release import migrated_engine, small_draft, small_store

GROUPED = COMPOSED["groups/secure/median"]
GROUPED_EXACT = COMPOSED["groups/exact/mean"]

GROUPS, DIM, READERS, COHORT = 3, 4, 24, 9
FLOAT32 = 2e-6
LAYERS = Layers(("low", "top"))
PROTECTION = SecureSum(clip=50.0, weight_limit=32, bits=64)
START = {LOW: np.array([0.4, -1.0], np.float32), TOP: np.array([1.5], np.float32)}
SPEC = SystemSpec(
    name="finding",
    task="group_gradient",
    protection=PROTECTION,
    strategy=Grouped(LAYERS, TimeAndLayer(1.05), 4, "prototypes"),
    model="ranker.finding",
    optimizer=Sgd(0.1),
)
CLUSTERING = replace(PROTOTYPES, protection=SecureSum(clip=1.0))


@dataclass
class GroupedReaders:
    """A server's store, and readers whose gradients and vectors are known."""

    engine: Engine
    store: ReleaseStore
    folder: Path
    quadratics: Quadratics
    spec: SystemSpec
    memory: Memory = field(default_factory=Memory)
    number: int = 0

    @property
    def entry(self) -> ModelEntry:
        return self.store.require_current().models["ranker.finding"]

    def context(self) -> RoundContext:
        request = RoundRequest("groups/secure/median", COHORT, 2, 60.0)
        release = self.store.require_current()
        return RoundContext(release, request, self.store, self.engine, lambda: NOW, self.folder, memory=self.memory)

    def vectors(self, weights: object) -> NDArray[np.float32]:
        rng = np.random.default_rng(5)
        low = np.asarray(weights[LOW], np.float64)  # type: ignore[index]
        return unit(rng.normal(size=(READERS, DIM)) + 0.4 * rng.normal(size=(READERS, 2)) @ low[:, None])

    def groups_now(self, *, draft: bool = False) -> NDArray[np.int64]:
        """Return the group that every reader's device would choose."""
        groups = self.entry.groups
        assert groups is not None
        centroids, vectors = (
            (groups.next_centroids, groups.next_vectors) if draft else (groups.centroids, groups.vectors)
        )
        rows = read_centroids(self.store, centroids, GROUPS)
        return nearest(rows, self.vectors(self.store.read_weights(vectors)))

    def group_models(self) -> list[dict[str, NDArray[np.float32]]]:
        groups = self.entry.groups
        assert groups is not None
        blocks = self.store.read_weights(groups.weights)
        return [{name: block[group] for name, block in blocks.items()} for group in range(GROUPS)]

    def train(self, cohort: list[int], number: int) -> RoundResult:
        """Run a round of gradients, as devices in a secure sum contribute them."""
        assert isinstance(self.spec.protection, SecureSum)
        context = self.context()
        plan = self.spec.strategy.plan(self.spec, context)
        total, labels, models = Aggregate(plan.shapes), self.groups_now(), self.group_models()
        for reader in cohort:
            group = int(labels[reader])
            update = self.quadratics.update(models[group], reader, number)
            sent = {name: np.zeros(shape, np.float32) for name, shape in plan.shapes.items()}
            for name, gradient in update.tensors.items():
                sent[name][group] = gradient
            sent[MEMBERS][group] = MEMBER_SHARE * self.spec.protection.clip
            total.add({name: update.samples * each for name, each in sent.items()})
            total.count += update.samples - 1
        return self.apply(self.spec, total, context)

    def cluster(self, cohort: list[int]) -> RoundResult:
        context = self.context()
        plan = CLUSTERING.strategy.plan(CLUSTERING, context)
        groups = self.entry.groups
        assert groups is not None
        total, old, new = Aggregate(plan.shapes), self.groups_now(), self.groups_now(draft=True)
        vectors = self.vectors(self.store.read_weights(groups.next_vectors))
        for reader in cohort:
            sent = {name: np.zeros(shape, np.float32) for name, shape in plan.shapes.items()}
            sent[VECTORS][new[reader]] = 0.5 * vectors[reader]
            sent[MOVES][old[reader], new[reader]] = 0.5
            total.add(sent)
        return self.apply(CLUSTERING, total, context)

    def apply(self, spec: SystemSpec, total: Aggregate, context: RoundContext) -> RoundResult:
        self.number += 1
        manifest = RoundManifest(
            round=f"round-{self.number}",
            release=context.release.release,
            system=spec.name,
            task=spec.task,
            model=spec.model,
            protection=spec.protection,
            closes_at=NOW + timedelta(hours=1),
            terms=spec.protection.terms(f"round-{self.number}", cohort=COHORT, cohort_minimum=2, coordinates=9),  # type: ignore[union-attr]
        )
        done = spec.strategy.conclude(spec, total, context, manifest)
        publish_changes(self.store, context.release, done.weights or {}, "a round", change=done.draft)
        with writing_session(self.engine) as session:
            session.add(
                RoundRow(
                    number=self.number,
                    system=spec.name,
                    state="applied",
                    release=1,
                    manifest=manifest.model_dump_json(),
                    cohort=COHORT,
                    cohort_minimum=2,
                    admission=1.0,
                    opened_at=NOW,
                    closes_at=NOW,
                    facts=dict(done.facts),
                    memory=None if done.memory is None else done.memory.to_bytes(),
                )
            )
        self.memory = self.memory if done.memory is None else Memory.from_bytes(done.memory.to_bytes())
        return done


def make_world(folder: Path, optimizer: MemoryOptimizer, spec: SystemSpec = SPEC) -> GroupedReaders:
    engine = migrated_engine(folder)
    store = small_store(engine, folder, publish=False)
    draft = small_draft(store)
    directions = np.random.default_rng(2).normal(size=(8, DIM)).astype(np.float32)
    recall = draft.models["recall"].model_copy(update={"weights": store.add_blob(pack({"basis_values": directions}))})
    ranker = draft.models["ranker.cosine"].model_copy(update={"weights": store.add_blob(pack(START))})
    grouped = first_groups(store, ranker, recall, size=GROUPS, seed=3)
    models = {**draft.models, "recall": recall, "ranker.finding": grouped}
    store.commit(replace(draft, models=models, dimensions=DIM), note="with groups")
    quadratics = Quadratics.some(READERS)
    return GroupedReaders(engine, store, folder, quadratics, replace(spec, optimizer=optimizer))


def cohort(number: int) -> list[int]:
    return [int(reader) for reader in np.random.default_rng((1, number)).choice(READERS, COHORT, replace=False)]


def test_groups_start_with_one_model_and_article_topics_as_centroids(tmp_path: Path) -> None:
    world = make_world(tmp_path, Sgd(0.1))
    groups = world.entry.groups
    assert groups is not None
    for model in world.group_models():
        for name, value in START.items():
            np.testing.assert_array_equal(model[name], value)
    rows = read_centroids(world.store, groups.centroids, GROUPS)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    assert {ref.sha256 for ref in groups.blobs} <= {ref.sha256 for ref in blob_refs(world.store.require_current())}


@pytest.mark.parametrize("optimizer", [Sgd(0.1), Adam(0.05)])
def test_server_rounds_match_findings_rounds(tmp_path: Path, optimizer: MemoryOptimizer) -> None:
    """Eleven rounds with two clusterings, compared with the experiments' FINDING with the same groups."""
    world = make_world(tmp_path, optimizer)
    labels = world.groups_now()
    everybody = list(range(READERS))
    kept: list[NDArray[np.int64]] = [labels]

    def clustering(vectors: NDArray[np.float32]) -> Clusters:
        return Clusters(np.eye(GROUPS, DIM, dtype=np.float32), kept[-1])

    start = {name: value.astype(np.float64) for name, value in START.items()}
    oracle = Finding(
        world.quadratics,
        start,
        optimizer,
        groups=GROUPS,
        personalisation=TimeAndLayer(1.05),
        layers=LAYERS,
        recluster_every=1_000,
        vectors_at=world.vectors,
        clustering=clustering,
    )
    for number in range(11):
        done = world.train(cohort(number), number)
        oracle.run_round(number, cohort(number))
        assert (done.next is not None) == ((number + 1) % 4 == 0)
        if done.next is not None:
            assert done.next.system == "prototypes"
            old, new = world.groups_now(), world.groups_now(draft=True)
            concluded = world.cluster(everybody)
            np.testing.assert_array_equal(world.groups_now(), new)  # what was drafted is in force
            np.testing.assert_array_equal(
                concluded.facts[MOVES], [[int(((old == i) & (new == j)).sum()) for j in range(3)] for i in range(3)]
            )
            oracle.models = oracle.models.reinitialised(np.array(concluded.facts[MOVES]))
            oracle.clusters = Clusters(oracle.clusters.centroids, new)
        chosen = oracle.known(np.arange(READERS))
        ours = world.group_models()
        for reader, group in enumerate(world.groups_now()):
            for name in (LOW, TOP):
                np.testing.assert_allclose(
                    ours[group][name], chosen.models[chosen.which[reader]][name], rtol=0, atol=FLOAT32 * 20
                )
        shared = world.store.weights(world.store.require_current(), "ranker.finding")
        np.testing.assert_allclose(shared[LOW], oracle.models.shared.weights[LOW], rtol=0, atol=FLOAT32 * 20)
    models = world.group_models()
    assert max(float(np.abs(model[TOP] - models[0][TOP]).max()) for model in models) > 0.005


def test_clustering_round_drafts_a_lloyd_step_without_changing_global_weights(tmp_path: Path) -> None:
    world = make_world(tmp_path, Sgd(0.1))
    world.train(cohort(0), 0)
    before = world.entry
    assert before.groups is not None
    new = world.groups_now(draft=True)
    vectors = world.vectors(world.store.read_weights(before.groups.next_vectors))
    world.cluster(list(range(READERS)))
    after = world.entry
    assert after.groups is not None
    assert after.weights == before.weights
    assert after.groups.centroids == before.groups.next_centroids
    assert after.groups.vectors == before.groups.next_vectors
    assert after.groups.next_vectors == before.weights
    drafted = read_centroids(world.store, after.groups.next_centroids, GROUPS)
    for group in set(new.tolist()):
        mean = vectors[new == group].sum(axis=0)
        np.testing.assert_allclose(drafted[group], mean / np.linalg.norm(mean), atol=1e-5)


def test_group_that_no_reader_chose_gets_the_global_model(tmp_path: Path) -> None:
    world = make_world(tmp_path, Sgd(0.1))
    for number in range(3):
        world.train(cohort(number), number)
    new = world.groups_now(draft=True)
    gone = int(new[0])
    world.cluster([reader for reader in range(READERS) if new[reader] != gone])
    shared = world.store.weights(world.store.require_current(), "ranker.finding")
    np.testing.assert_array_equal(world.group_models()[gone][LOW], shared[LOW])


def test_noisy_count_near_zero_makes_no_large_step(tmp_path: Path) -> None:
    world = make_world(tmp_path, Sgd(1.0))
    protection = SecureSum(clip=1.0, sigma=4_900)
    spec = replace(world.spec, protection=protection)
    context = world.context()
    plan = spec.strategy.plan(spec, context)
    total = Aggregate(plan.shapes)
    total.count = 60
    total._sums[MEMBERS][:] = MEMBER_SHARE * np.array([-3.0, 0.01, 62.0])
    total._sums["g." + TOP][:] = 5.0
    world.apply(spec, total, context)
    law_of_round_2 = TimeAndLayer(1.05).coefficients(2, LAYERS)[1]
    shared = float(START[TOP][0]) - 15 / 60
    for group, divisor in ((0, 10), (1, 10), (2, 60)):
        own = float(START[TOP][0]) - 5 / divisor
        expected = law_of_round_2 * own + (1 - law_of_round_2) * shared
        assert float(world.group_models()[group][TOP][0]) == pytest.approx(expected, abs=1e-5)


def test_ranker_without_groups_is_refused_with_a_reason(tmp_path: Path) -> None:
    world = make_world(tmp_path, Sgd(0.1))
    for spec in (replace(world.spec, model="ranker.cosine"), replace(CLUSTERING, model="ranker.cosine")):
        with pytest.raises(RoundImpossible, match=r"'ranker\.cosine' has no groups"):
            spec.strategy.plan(spec, world.context())


def test_optimizer_memories_of_all_models_are_joined_and_split() -> None:
    shared = Model({}, Memory(7, {"m.low.w": np.array([1.0, 2.0])}))
    groups = (Model({}, Memory(7, {"m.low.w": np.array([3.0, 4.0])})), Model({}, Memory(5)))
    found = divided(Memory.from_bytes(joined(Models(shared, groups)).to_bytes()), 2)
    assert found.shared.memory.steps == 7
    assert [group.memory.steps for group in found.groups] == [7, 5]
    np.testing.assert_array_equal(found.groups[0].memory.tensors["m.low.w"], [3.0, 4.0])
    assert not found.groups[1].memory.tensors
    assert [group.memory.steps for group in divided(Memory(), 2).groups] == [0, 0]


def test_live_systems_train_the_default_ranker_by_groups() -> None:
    from models.builders.rankers import feature_ranker

    for spec in (GROUPED, GROUPED_EXACT):
        assert isinstance(spec.strategy, Grouped)
        places = {name: spec.strategy.layers.place(name) for name, _ in feature_ranker().named_parameters()}
        assert places == {"matching.metric": 0, "matching.beta": 1, "matching.sharpness": 2, "feature_weights": 3}
        assert spec.strategy.clustering == PROTOTYPES.name
    assert isinstance(GROUPED.protection, SecureSum)
    assert GROUPED.protection.epsilon(60, 4 * 263) == pytest.approx(1.62, abs=0.02)
