"""Vectors and a step of the news model by the nodes of a Ray cluster. Oracle: this process with one thread, bitwise.

Two nodes on this machine. Skipped where Ray isn't installed: it is the extra `ray`.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ray", reason="Ray is not installed: pip install -c constraints.txt '.[ray]'")

from backend.embedding.batch_executor import ClusterUnavailable, ExecutorSettings
from backend.embedding.embedder import OnnxEmbedder, state_store
from backend.embedding.initial_encoder import make_initial_encoder
from backend.embedding.ray_executor import ClusterTaskFailed, RayExecutor
from backend.federation.optimizers import Memory
from backend.federation.split.process import SplitStepResult, StepDelayed, VectorGradients, run_step
from backend.settings import BackendSettings, load_settings
from tests.doubles.batch_tasks import DivideTask, MeetsAnother
from tests.doubles.ray_nodes import ray_nodes
from tests.doubles.small_world import free_port

TEAMS, SCORES = ("Ajax", "Celtic", "Lyon", "Porto", "Gent"), ("1-0", "3-2", "0-0", "2-2")
TIMES = ("early", "late", "very late in a long and windy second half", "disputed")
TITLES = [f"{one} {score} {two} after a {when} goal" for one, two, score, when in
          itertools.product(TEAMS, TEAMS[::-1], SCORES, TIMES)]  # fmt: skip
RATE = 5e-4


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> BackendSettings:
    """A folder with the real encoder, and no states of titles."""
    made = load_settings(data_dir=tmp_path_factory.mktemp("backend"))
    make_initial_encoder(made, lambda: TITLES)
    shutil.rmtree(made.encoder_dir / "states", ignore_errors=True)
    return made


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    with ray_nodes(2) as address:
        yield address


def test_both_nodes_compute_and_results_keep_batch_order(cluster: str, tmp_path: Path) -> None:
    executor = RayExecutor(cluster)
    try:
        found = list(executor.map(MeetsAnother(tmp_path), iter(range(12))))
        assert [square for _, _, square in found] == [each * each for each in range(12)]
        assert len({node for node, _, _ in found}) == 2
        assert {threads for _, threads, _ in found} == {1}
        with pytest.raises(ClusterTaskFailed, match="division by zero"):
            list(executor.map(DivideTask(), [4.0, 0.0, 2.0]))
        assert list(executor.map(DivideTask(), [4.0, 2.0])) == [0.25, 0.5], "what failed is no longer under way"
    finally:
        executor.close()


def test_two_nodes_give_the_vectors_of_one_process(settings: BackendSettings, cluster: str) -> None:
    made = {}
    for name, executor in (("here", ExecutorSettings()), ("ray", ExecutorSettings(cluster=cluster))):
        store = state_store(settings.encoder_dir / name)
        vectors = OnnxEmbedder(settings.encoder_dir, threads=1, store=store, executor=executor.open(1)).encode(TITLES)
        states = [(batch.rows.tobytes(), batch.states.tobytes()) for batch in store.batches(TITLES, 64)]
        made[name] = vectors.tobytes(), states
    assert made["ray"] == made["here"]
    assert len(TITLES) > 4 * 64, "several batches"


def stepped(settings: BackendSettings, folder: Path, executor: ExecutorSettings) -> SplitStepResult:
    """Return the result of one step of a copy of the encoder, from titles without states."""
    shutil.copytree(settings.encoder_dir, folder / "encoder", ignore=shutil.ignore_patterns("states", "trained"))
    (folder / "job").mkdir()
    slopes = np.random.default_rng(3).normal(size=(300, settings.news_dimensions))
    return run_step(
        folder / "job",
        encoder_dir=folder / "encoder",
        encoder=OnnxEmbedder(settings.encoder_dir, threads=1).digest,
        titles=TITLES,
        gradient=VectorGradients(range(50, 350), slopes),
        memory=Memory(),
        learning_rate=RATE,
        niceness=0,
        executor=executor,
    )


def test_two_nodes_give_the_news_model_step_of_one_process(
    settings: BackendSettings, cluster: str, tmp_path: Path
) -> None:
    here = stepped(settings, tmp_path / "here", ExecutorSettings())
    there = stepped(settings, tmp_path / "ray", ExecutorSettings(cluster=cluster))
    assert there.done.encoder == here.done.encoder, "named by its weights"
    assert there.vectors.tobytes() == here.vectors.tobytes()
    assert there.memory.to_bytes() == here.memory.to_bytes()
    assert there.done.states_made == here.done.states_made == len(TITLES)


def test_missing_cluster_is_reported_by_its_setting_without_a_fallback(
    settings: BackendSettings, tmp_path: Path
) -> None:
    nobody = ExecutorSettings(cluster=f"127.0.0.1:{free_port()}")
    with pytest.raises(ClusterUnavailable, match=r"Setting embed_cluster: the Ray cluster at 127\.0\.0\.1:.*refused"):
        OnnxEmbedder(settings.encoder_dir, threads=1, executor=nobody.open(1)).encode(TITLES[:3])
    with pytest.raises(StepDelayed, match="Setting embed_cluster"):
        stepped(settings, tmp_path, nobody)


def test_cluster_without_cpus_is_refused(settings: BackendSettings) -> None:
    with (
        ray_nodes(1, cpus=0) as address,
        pytest.raises(ClusterUnavailable, match="no CPU"),
    ):
        OnnxEmbedder(settings.encoder_dir, threads=1, executor=ExecutorSettings(cluster=address).open(1)).encode(
            TITLES[:3]
        )


def test_local_fallback_continues_at_the_batch_where_the_cluster_failed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    executor = ExecutorSettings(cluster=f"127.0.0.1:{free_port()}", without="here").open(4)
    assert list(executor.map(DivideTask(), iter([4.0, 2.0, 8.0]))) == [0.25, 0.5, 0.125]
    assert "this machine computes meanwhile" in caplog.text
