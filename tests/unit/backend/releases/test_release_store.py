from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import text

from backend.db.engine import DatabaseDamaged, writing
from backend.db.tables import ReleaseRow
from backend.releases.blobs import ReleaseDraft, digest
from backend.releases.errors import BlobDamaged, NothingPublished, ReleaseNotPublished, UnknownBlob, UnknownRelease
from backend.releases.publish import publish_changes, roll_back
from backend.releases.store import ReleaseStore
from protocol.releases import BlobRef, ModelEntry, ReleaseManifest, SignatureRefused, verify
from tests.doubles.recall_world import settings_in
from tests.doubles.small_release import WEIGHTS, migrated_engine, small_draft, small_store


@pytest.fixture
def store(tmp_path: Path) -> ReleaseStore:
    return small_store(migrated_engine(tmp_path), tmp_path)


def test_before_the_first_release_there_is_none(tmp_path: Path) -> None:
    store = small_store(migrated_engine(tmp_path), tmp_path, publish=False)

    assert store.current() is None
    assert store.history() == []
    with pytest.raises(NothingPublished):
        store.require_current()
    with pytest.raises(NothingPublished):
        store.signed("r1")


def test_release_verifies_only_under_the_servers_key(store: ReleaseStore) -> None:
    signed = store.current()

    assert signed is not None
    assert verify(signed, signed.public_key).release == "r1"
    other = Ed25519PrivateKey.generate().public_key().public_bytes_raw()
    with pytest.raises(SignatureRefused):
        verify(signed, other)


@pytest.mark.parametrize("change", ["manifest = replace(manifest, '1.2', '1.3')", "number = 3", "signature = x'00'"])
def test_altered_release_is_reported_at_start_and_not_served(tmp_path: Path, change: str) -> None:
    engine, settings = migrated_engine(tmp_path), settings_in(tmp_path)
    store = ReleaseStore.open(engine, settings)
    store.commit(small_draft(store), note="small")
    ReleaseStore.open(engine, settings)
    with writing(engine) as connection:
        connection.execute(text(f"UPDATE releases SET {change}"))
    with pytest.raises(DatabaseDamaged, match=r"its release [13] differs from what was signed"):
        ReleaseStore.open(engine, settings)


def test_stored_weights_equal_the_published_ones(store: ReleaseStore) -> None:
    read = store.weights(store.require_current(), "recall")

    assert read.keys() == WEIGHTS.keys()
    for name, value in WEIGHTS.items():
        np.testing.assert_array_equal(read[name], value)
    assert store.weights(store.require_current(), "ranker.cosine") == {}
    with pytest.raises(ReleaseNotPublished, match="nothing"):
        store.weights(store.require_current(), "nothing")


def test_unknown_release_names_the_current_one(store: ReleaseStore) -> None:
    with pytest.raises(UnknownRelease, match="current one is r1"):
        store.manifest("r9")


def test_same_blob_stored_twice_is_one_file(store: ReleaseStore, tmp_path: Path) -> None:
    before = len(list((tmp_path / "blobs").iterdir()))
    first, second = store.add_blob(b"content"), store.add_blob(b"content")

    assert first == second == BlobRef(sha256=digest(b"content"), size_bytes=7)
    assert len(list((tmp_path / "blobs").iterdir())) == before + 1


def test_damaged_blob_is_never_served_and_is_repaired_when_added_again(store: ReleaseStore) -> None:
    ref = store.add_blob(b"content")
    path = store.blob_path(ref.sha256)
    path.write_bytes(b"CONTENT")
    os.utime(path, ns=(1, 1))

    with pytest.raises(BlobDamaged):
        store.blob_path(ref.sha256)
    with pytest.raises(BlobDamaged):
        store.read_blob(ref.sha256)
    store.add_blob(b"content")
    assert store.read_blob(ref.sha256) == b"content"


def test_altered_blob_with_the_same_size_and_time_is_detected_on_reading(store: ReleaseStore) -> None:
    ref = store.add_blob(b"content")
    path = store.blob_path(ref.sha256)
    before = path.stat()
    path.write_bytes(b"CONTENT")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    with pytest.raises(BlobDamaged):
        store.read_blob(ref.sha256)


def test_full_disk_leaves_no_partial_blob(store: ReleaseStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sorted((tmp_path / "blobs").iterdir())

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        store.add_blob(b"too much")
    assert sorted((tmp_path / "blobs").iterdir()) == before


def test_release_naming_a_missing_blob_is_not_published(store: ReleaseStore) -> None:
    draft = small_draft(store)
    ghost = BlobRef(sha256="0" * 64, size_bytes=1)
    models = draft.models | {"ranker.x": ModelEntry(architecture="x", role="ranker", graphs={"score": ghost})}

    with pytest.raises(UnknownBlob):
        store.commit(ReleaseDraft.like(store.require_current(), models=models), note="ghost")
    assert store.require_current().release == "r1"


def test_release_with_a_failed_transaction_stays_invisible(store: ReleaseStore) -> None:
    def break_off(session: object, manifest: ReleaseManifest) -> None:
        assert manifest.release == "r2"
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        store.commit(small_draft(store), note="second", together_with=break_off)
    assert [each.release for each in store.history()] == ["r1"]
    assert store.commit(small_draft(store), note="second").release == "r2"


def test_cleanup_deletes_only_unreferenced_blobs(store: ReleaseStore, tmp_path: Path) -> None:
    orphan = store.add_blob(b"of a release that never was")
    (tmp_path / "blobs" / "half.123.part").write_bytes(b"ha")

    assert store.sweep(older_than_sec=3_600) == 0, "young files may belong to a release being made"
    assert store.sweep(older_than_sec=0) == 2
    with pytest.raises(UnknownBlob):
        store.blob_path(orphan.sha256)
    assert store.weights(store.require_current(), "recall").keys() == WEIGHTS.keys()


def test_new_weights_keep_the_graphs(store: ReleaseStore) -> None:
    first = store.require_current()
    weights = {name: value + 1 for name, value in WEIGHTS.items()}
    second = publish_changes(store, first, {"recall": weights}, "stepped", facts={"updates": 3})

    assert (second.release, second.previous) == ("r2", "r1")
    assert second.models["recall"].graphs == first.models["recall"].graphs
    assert second.models["ranker.cosine"] == first.models["ranker.cosine"]
    np.testing.assert_array_equal(store.weights(second, "recall")["keys"], weights["keys"])
    newest, oldest = store.history()
    assert (newest.release, newest.note, newest.facts, newest.current) == ("r2", "stepped", {"updates": 3}, True)
    assert (oldest.release, oldest.current) == ("r1", False)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"keys": np.zeros((3, 2), np.float32)}, "keys"),
        ({"keys": np.full((2, 3), np.nan, np.float32)}, "keys"),
        ({"values": np.zeros(4, np.float64)}, "values"),
        ({"extra": np.zeros(4, np.float32)}, "extra"),
    ],
    ids=["shape", "nan", "dtype", "unknown name"],
)
def test_weights_that_do_not_match_the_graphs_are_not_published(
    store: ReleaseStore, change: dict[str, np.ndarray], named: str
) -> None:
    with pytest.raises(ReleaseNotPublished) as refused:
        publish_changes(store, store.require_current(), {"recall": WEIGHTS | change}, "bad")
    assert refused.value.field == named
    assert store.require_current().release == "r1"


def test_roll_back_publishes_old_content_under_a_new_number(store: ReleaseStore) -> None:
    first = store.require_current()
    publish_changes(store, first, {"recall": {n: v + 1 for n, v in WEIGHTS.items()}}, "worse")
    third = roll_back(store, "r1")

    assert (third.release, third.previous) == ("r3", "r2")
    assert third.models == first.models
    assert store.history()[0].note == "back to r1"
    with pytest.raises(UnknownRelease):
        roll_back(store, "r8")


def test_release_numbers_are_not_assigned_by_the_database(store: ReleaseStore) -> None:
    numbers = ReleaseRow.__table__.c.number
    assert not numbers.autoincrement, "numbers are given in one transaction with the manifest that holds them"
