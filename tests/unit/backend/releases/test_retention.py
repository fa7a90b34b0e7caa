"""Disk use of releases over thirty rounds. Oracle: the folder's size, and a roll back that still serves."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from backend.db.engine import reading_session, writing_session
from backend.db.tables import FollowUpRow, ReleaseRow, RoundRow
from backend.embedding.state_store import StateStore
from backend.errors import OwnfeedError
from backend.federation.optimizers import Memory
from backend.news.pool import NewsPool
from backend.releases.blobs import ReleaseDraft
from backend.releases.errors import ReleaseNotKept, UnknownBlob
from backend.releases.publish import publish_changes, roll_back
from backend.releases.retention import MEMORIES_KEPT, Retention
from backend.releases.store import ReleaseStore
from backend.settings import BackendSettings
from protocol.tensors import pack
from tests.doubles.migrated import migrated
from tests.doubles.news import NOW
from tests.doubles.round_rig import hand_made_draft

ROUNDS, KEPT = 30, 5
WEIGHTS_BYTES = 8_000


class RetainedReleases:
    """A data folder whose releases delete unused files, whatever their age."""

    def __init__(self, folder: Path) -> None:
        self.settings = BackendSettings(data_dir=folder, releases_kept=KEPT, releases_answered=2)
        folder.mkdir()
        self.engine = migrated(self.settings.database_url)
        self.store = ReleaseStore.open(self.engine, self.settings)
        pool = NewsPool(self.engine)
        self.retention = Retention(self.engine, self.store, pool, self.settings, lambda: NOW, older_than_sec=0.0)
        self.store.tidy = self.retention.apply
        self.store.commit(hand_made_draft(self.store), note="first")

    def round(self, number: int) -> None:
        """Leave what a round of Efficient-FedRec leaves: an encoder, weights, materials, token states and optimizer
        memory."""
        encoder = f"encoder{number:04d}"
        folder = self.settings.encoder_dir / "trained" / encoder
        folder.mkdir(parents=True)
        (folder / "head.safetensors").write_bytes(os.urandom(WEIGHTS_BYTES))
        store = StateStore(self.settings.encoder_dir / "states" / "below-0")
        store.put([f"a title of round {number}"], [np.ones((4, 500), np.float32)])
        self.store.add_blob(os.urandom(WEIGHTS_BYTES))  # vectors of the union
        before = self.store.require_current()
        with writing_session(self.engine) as session:
            session.add(
                RoundRow(
                    number=number,
                    system="news_head/exact/mean",
                    state="applied",
                    release=number,
                    manifest="{}",
                    cohort=1,
                    cohort_minimum=1,
                    admission=1.0,
                    opened_at=NOW,
                    closes_at=NOW + timedelta(hours=1),
                    finished_at=NOW,
                    memory=Memory(number, {"m.w": np.random.default_rng(number).normal(size=1_000)}).to_bytes(),
                )
            )
        values = {name: each + number for name, each in self.store.weights(before, "recall").items()}

        def draft(like: ReleaseDraft) -> ReleaseDraft:
            return ReleaseDraft(**{**{name: getattr(like, name) for name in like.__dataclass_fields__},
                                   "encoder": encoder})  # fmt: skip

        publish_changes(self.store, before, {"recall": values}, f"round-{number}", change=draft)

    def size_bytes(self) -> int:
        """Return the size of all files except the database, which holds optimizer memory, and the chain, a line per
        release."""
        files = [path for path in self.settings.data_dir.rglob("*") if path.is_file()]
        grows = ("sqlite", "chain")
        return sum(path.stat().st_size for path in files if not any(name in path.name for name in grows))

    def memories(self) -> list[int]:
        with reading_session(self.engine) as session:
            return [row.number for row in session.query(RoundRow).order_by(RoundRow.number) if row.memory is not None]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[RetainedReleases]:
    made = RetainedReleases(tmp_path / "backend")
    yield made
    made.engine.dispose()


def test_disk_use_is_bounded_over_thirty_rounds_and_roll_back_works(world: RetainedReleases) -> None:
    sizes = []
    for number in range(1, ROUNDS + 1):
        world.round(number)
        sizes.append(world.size_bytes())
    assert len(set(sizes[KEPT:])) <= 3, "equal but for a digit more in names"
    assert max(sizes[KEPT:]) - min(sizes[KEPT:]) < 200
    assert sizes[KEPT] > sizes[0], "it grew until then"
    assert world.memories() == list(range(ROUNDS - MEMORIES_KEPT + 1, ROUNDS + 1))

    kept = world.store.kept()
    assert [each.release for each in kept] == [f"r{ROUNDS + 1 - back}" for back in range(KEPT)]
    for manifest in kept:
        assert (world.settings.encoder_dir / "trained" / manifest.encoder / "head.safetensors").is_file()
        assert world.store.weights(manifest, "recall")
    again = roll_back(world.store, kept[-1].release)
    assert (again.models, again.encoder) == (kept[-1].models, kept[-1].encoder)
    assert world.store.weights(again, "recall"), "its own release names them from now on"


def test_release_states_how_many_releases_are_answered(world: RetainedReleases) -> None:
    assert world.store.require_current().releases_answered == world.settings.releases_answered == 2


def test_release_with_deleted_parts_cannot_be_rolled_back_to(world: RetainedReleases) -> None:
    for number in range(1, KEPT + 2):
        world.round(number)
    with pytest.raises(ReleaseNotKept, match="r3 is the oldest") as refused:
        roll_back(world.store, "r2")
    assert (refused.value.status, refused.value.field) == (409, "release")
    assert [each.kept for each in world.store.history()] == [True] * KEPT + [False, False]
    assert world.store.manifest("r1").release == "r1", "its row is history and stays"


def test_blobs_for_an_ordered_round_are_kept_until_it_opens(world: RetainedReleases) -> None:
    opened, other = world.store.add_blob(b"opened ids"), world.store.add_blob(b"of nobody")
    world.round(1)
    with pytest.raises(UnknownBlob):
        world.store.blob_path(opened.sha256)
    opened = world.store.add_blob(b"opened ids")
    with writing_session(world.engine) as session:
        session.get_one(RoundRow, 1).facts = {"opened": opened.model_dump(), "news": 3}
        session.add(FollowUpRow(after=1, request="{}"))
    world.store.add_blob(b"of nobody")
    assert world.retention.apply().blobs == 1
    assert world.store.read_blob(opened.sha256) == b"opened ids"
    with pytest.raises(UnknownBlob):
        world.store.blob_path(other.sha256)
    with writing_session(world.engine) as session:
        session.get_one(FollowUpRow, 1).reason = "given up"
    assert world.retention.apply().blobs == 1


def test_recent_files_are_kept_for_a_release_in_preparation(world: RetainedReleases) -> None:
    patient = Retention(world.engine, world.store, NewsPool(world.engine), world.settings, lambda: NOW)
    step = world.settings.data_dir / "news-step-killed"
    step.mkdir()
    folder = world.settings.encoder_dir / "trained" / "encoder0099"
    folder.mkdir(parents=True)
    world.store.add_blob(pack({"x": np.ones(3, np.float32)}))
    StateStore(world.settings.encoder_dir / "states" / "below-0").put(["unknown"], [np.ones((2, 3), np.float32)])
    assert sum(vars(patient.apply()).values()) == 0
    assert step.is_dir()
    for path in (*world.settings.data_dir.rglob("*"),):
        os.utime(path, (time.time() - 10_000,) * 2)
    swept = patient.apply()
    assert (swept.blobs, swept.encoders, swept.states) == (1, 1, 1)
    assert not step.exists()


def test_failed_cleanup_is_logged_without_affecting_the_release(
    world: RetainedReleases, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> None:
        raise OwnfeedError("the disk is busy")

    world.store.tidy = broken
    world.round(1)
    assert world.store.require_current().release == "r2"
    assert "could not be tidied away" in caplog.text
    with reading_session(world.engine) as session:
        assert session.query(ReleaseRow).count() == 2
