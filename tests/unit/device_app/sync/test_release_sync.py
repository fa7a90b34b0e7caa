"""A release that fails a check is never used, and the one in use stays intact."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from device_app.errors import AnswerMalformed, BackendUnreachable, NoRelease, ReleaseRefused
from device_app.ranking.session import GraphSession
from device_app.store.byte_log import ByteLog
from device_app.store.database import Database
from device_app.store.releases import InstalledReleases
from device_app.sync.installed_release import current_release
from device_app.sync.release_sync import ReleaseSync
from device_app.uplink.http import HttpClient
from protocol.releases import BlobRef
from protocol.tensors import pack
from tests.unit.device_app.sync.conftest import FakeReleases


@pytest.fixture
def store(database: Database) -> InstalledReleases:
    return InstalledReleases(database)


@pytest.fixture
def sync(client: HttpClient, store: InstalledReleases, now: datetime) -> ReleaseSync:
    return ReleaseSync(client, store, lambda: now)


def test_first_release_is_verified_and_installed_and_its_key_pinned(
    sync: ReleaseSync, store: InstalledReleases, backend: FakeReleases
) -> None:
    with pytest.raises(NoRelease):
        current_release(store)
    backend.publish("r1", scale=3.0)
    assert sync.refresh()
    release = current_release(store)
    assert release.id == "r1"
    np.testing.assert_array_equal(release.weights("recall")["keys"], np.full(4, 3, np.float32))
    assert not release.weights("recall")["keys"].flags.writeable
    session = GraphSession(release.graph("ranker.cosine", "score"), release.weights("ranker.cosine"))
    np.testing.assert_array_equal(session(x=np.ones(4, np.float32))["y"], np.full(4, 3, np.float32))
    assert store.pinned_key() == backend.key.public_key().public_bytes_raw()
    assert release.has_graph("recall", "context")
    assert not release.has_graph("recall", "gradient")
    with pytest.raises(ReleaseRefused, match="no 'gradient' graph"):
        release.graph("recall", "gradient")


def test_unchanged_release_costs_one_request_that_does_not_identify_the_device(
    sync: ReleaseSync,
    backend: FakeReleases,
    database: Database,
) -> None:
    backend.publish("r1")
    sync.refresh()
    backend.asked.clear()
    assert not sync.refresh()
    assert backend.asked == ["/v1/releases/current", "/v1/releases/chain"]
    heads = b"".join(row.head for row in ByteLog(database).entries().rows)
    assert b'if-none-match: "1"' in heads
    assert b"mark-of-this-device" not in heads


def test_new_release_downloads_only_changes_and_logs_every_request(
    sync: ReleaseSync,
    store: InstalledReleases,
    backend: FakeReleases,
    database: Database,
) -> None:
    backend.publish("r1")
    sync.refresh()
    backend.asked.clear()
    manifest = backend.publish("r2", scale=2.0, previous="r1")
    assert sync.refresh()
    weights = manifest.models["recall"].weights
    assert weights is not None
    assert backend.asked == ["/v1/releases/current", f"/v1/blobs/{weights.sha256}"]
    assert [kept.manifest.release for kept in store.history()] == ["r2", "r1"]
    assert ByteLog(database).entries().total == 1 + 2 + 2


def test_key_other_than_the_pinned_one_is_refused(
    sync: ReleaseSync, store: InstalledReleases, backend: FakeReleases
) -> None:
    backend.publish("r1")
    sync.refresh()
    backend.key = Ed25519PrivateKey.generate()
    backend.publish("r2", scale=2.0)
    with pytest.raises(ReleaseRefused, match="not signed by the pinned key"):
        sync.refresh()
    assert current_release(store).id == "r1"


def test_key_from_the_settings_is_used_instead_of_pinning_the_first_one(
    client: HttpClient, store: InstalledReleases, backend: FakeReleases, now: datetime
) -> None:
    backend.publish("r1")
    other = Ed25519PrivateKey.generate().public_key().public_bytes_raw()
    with pytest.raises(ReleaseRefused, match="not signed by"):
        ReleaseSync(client, store, lambda: now, pinned_key=other).refresh()
    assert store.current() is None
    assert ReleaseSync(client, store, lambda: now, pinned_key=backend.key.public_key().public_bytes_raw()).refresh()
    assert store.pinned_key() is None


def test_manifest_changed_in_transit_is_refused_and_no_key_is_pinned(
    sync: ReleaseSync,
    store: InstalledReleases,
    backend: FakeReleases,
) -> None:
    backend.publish("r1")
    signed = backend.signed
    assert signed is not None
    backend.signed = signed.model_copy(update={"manifest": signed.manifest.replace("1.2", "0.2")})
    with pytest.raises(ReleaseRefused, match="signature does not match"):
        sync.refresh()
    assert store.current() is None
    assert store.pinned_key() is None


def test_graph_with_a_wrong_hash_is_refused_and_the_old_release_stays(
    sync: ReleaseSync,
    store: InstalledReleases,
    backend: FakeReleases,
) -> None:
    backend.publish("r1")
    sync.refresh()
    manifest = backend.publish("r2", scale=2.0)
    weights = manifest.models["recall"].weights
    assert weights is not None
    real = backend.blobs[weights.sha256]
    for spoiled, why in (
        (real[:-1] + b"!", "its hash differs from the declared one"),
        (real[:-1], "bytes, declared"),
        (real + b"!", "longer than"),
    ):
        backend.spoiled = {f"/v1/blobs/{weights.sha256}": spoiled}
        with pytest.raises((ReleaseRefused, AnswerMalformed), match=why):
            sync.refresh()
        assert current_release(store).id == "r1"
        assert not store.blobs.has(weights.sha256)
    backend.spoiled = {}
    assert sync.refresh()
    assert current_release(store).id == "r2"


def test_lost_connection_keeps_the_old_release_and_resumes_later(
    sync: ReleaseSync,
    store: InstalledReleases,
    backend: FakeReleases,
) -> None:
    manifest = backend.publish("r1")
    weights = manifest.models["recall"].weights
    assert weights is not None
    backend.down = {f"/v1/blobs/{weights.sha256}"}
    with pytest.raises(BackendUnreachable):
        sync.refresh()
    assert store.current() is None
    backend.down, backend.asked = set(), []
    assert sync.refresh()
    assert backend.asked == ["/v1/releases/current", f"/v1/blobs/{weights.sha256}"]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"graph_blob": b"no graph"}, "graph 'context' of recall"),
        ({"weights": b"no tensors"}, "weights of recall: not a safetensors blob"),
        ({"weights": pack({"keys": np.ones(3, np.float32)})}, "parameter keys: shape"),
        ({"weights": pack({"other": np.ones(4, np.float32)})}, "parameter keys: declared"),
        ({"weights": pack({"keys": np.full(4, np.nan, np.float32)})}, "keys is not finite float32"),
        ({"weights": pack({"keys": np.ones(4, np.int32)})}, "keys is not finite float32"),
        ({"noise": 0.0}, "carry no noise"),
        ({"default_ranker": "ranker.none"}, "has no model 'ranker.none'"),
        ({"default_ranker": "recall"}, "model recall is not a ranker"),
    ],
)
def test_correctly_signed_release_that_cannot_be_used_is_refused(
    sync: ReleaseSync,
    store: InstalledReleases,
    backend: FakeReleases,
    changes: dict[str, Any],
    why: str,
) -> None:
    backend.publish("r1", **changes)
    with pytest.raises(ReleaseRefused, match=why):
        sync.refresh()
    assert store.current() is None
    backend.publish("r2")
    assert sync.refresh()


def test_oversized_release_is_refused_before_downloading(sync: ReleaseSync, backend: FakeReleases) -> None:
    manifest = backend.publish("r1")
    huge = {
        name: model.model_copy(update={"weights": BlobRef(sha256=f"{number:064x}", size_bytes=200 * 1024 * 1024)})
        for number, (name, model) in enumerate(manifest.models.items())
    }
    backend.publish("r1", models=huge)
    with pytest.raises(ReleaseRefused, match="the limit is"):
        sync.refresh()
    assert backend.asked == ["/v1/releases/current"]


def test_damaged_file_is_detected_and_fetched_again(
    sync: ReleaseSync, store: InstalledReleases, backend: FakeReleases
) -> None:
    manifest = backend.publish("r1")
    sync.refresh()
    weights = manifest.models["recall"].weights
    assert weights is not None
    store.blobs.path(weights.sha256).write_bytes(b"rotten")
    with pytest.raises(ReleaseRefused, match="missing or damaged"):
        current_release(store).weights("recall")
    assert sync.refresh()
    assert current_release(store).weights("recall")["keys"].shape == (4,)
    assert len(store.history()) == 1


def test_release_survives_a_restart(
    sync: ReleaseSync, store: InstalledReleases, backend: FakeReleases, database: Database
) -> None:
    backend.publish("r1")
    sync.refresh()
    again = Database(database.path)
    assert current_release(InstalledReleases(again)).manifest == current_release(store).manifest
    again.close()


def test_default_ranker_needing_an_unknown_feature_is_refused(sync: ReleaseSync, backend: FakeReleases) -> None:
    manifest = backend.publish("r1")
    weather = manifest.models["ranker.cosine"].model_copy(update={"features": ("recency", "weather")})
    backend.publish("r1", models=manifest.models | {"ranker.cosine": weather})
    with pytest.raises(ReleaseRefused, match="needs the feature 'weather', unknown to this program"):
        sync.refresh()
