"""Updates are clipped, noised, charged their true price, and sent again only if paid for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from device_app.errors import BudgetSpent, ProtectionTooWeak
from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.clipping import Clipped, clip_elementwise
from device_app.privacy.noise_sources import SeededNoise, SystemNoise, laplace
from device_app.privacy.protections.local_laplace import LaplaceProtection, reseal
from device_app.privacy.protections.protection import ComputedUpdate
from device_app.privacy.protections.registry import LocalLaplaceProtection
from device_app.privacy.requests import COMMON, seal_common, seal_returned
from device_app.settings import PrivacySettings
from device_app.store.database import Database
from device_app.store.participations import Outbox, OutboxItem
from protocol.protections import SAMPLES, LocalLaplace
from protocol.recall import RecallAnswer
from protocol.tensors import TensorSpec, unpack
from tests.doubles.sealing import allowing
from tests.doubles.sharing import shared
from tests.doubles.wire_messages import ROUND

PROTECTION = LocalLaplace(clip=0.1, scale=0.01)
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def update(rows: int = 4) -> dict[str, np.ndarray]:
    return {
        "g.keys": np.linspace(-1, 1, rows * 5, dtype=np.float32).reshape(rows, 5),
        "g.beta": np.array([0.05], np.float32),
    }


@given(arrays(np.float64, st.integers(1, 30), elements=st.floats(-1e6, 1e6)), st.floats(1e-6, 1e3))
def test_clipping_bounds_every_coordinate_and_keeps_small_ones(values: np.ndarray, theta: float) -> None:
    (clipped,) = clip_elementwise(shared({"g": values}), theta).tensors.values()
    assert (np.abs(clipped.astype(np.float64)) <= theta).all()
    inside = np.abs(values) < theta * (1 - 1e-6)
    np.testing.assert_array_equal(clipped[inside], values[inside].astype(np.float32))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_clipping_refuses_a_non_finite_update(bad: float) -> None:
    with pytest.raises(ValueError, match=r"tensor g: has values that are not finite"):
        clip_elementwise(shared({"g": np.array([0.0, bad])}), 0.1)


def test_unclipped_update_cannot_claim_a_bound() -> None:
    with pytest.raises(ValueError, match=r"beyond 0\.1"):
        Clipped(shared({"g": np.array([0.2], np.float32)}), 0.1)
    with pytest.raises(ValueError, match="not finite"):
        Clipped(shared({"g": np.array([np.nan], np.float32)}), 0.1)
    with pytest.raises(ValueError, match="theta must be positive"):
        clip_elementwise(shared({"g": np.zeros(1)}), 0)
    with pytest.raises(ValueError, match="at least one tensor"):
        Clipped(shared({}), 0.1)


def test_upload_carries_clipped_values_plus_noise_and_is_charged_in_full(ledger: Ledger) -> None:
    clipped = clip_elementwise(shared(update()), 0.1)
    sealed = LaplaceProtection(PROTECTION).seal(clipped, round_id="round-1", ledger=ledger, noise=SeededNoise(5))
    tensors = unpack(
        sealed.payload,
        {"g.keys": TensorSpec("float32", (4, 5)), "g.beta": TensorSpec("float32", (1,))},
        limit_bytes=10_000,
    )
    stream = SeededNoise(5)
    for name in ("g.keys", "g.beta"):
        drawn = laplace(stream, 0.01, clipped.tensors[name].shape)
        np.testing.assert_allclose(tensors[name], clipped.tensors[name] + drawn, atol=1e-7)
    # 2 theta / lambda = 20 a coordinate, 21 coordinates.
    assert sealed.charge.epsilon == pytest.approx(420)
    assert ledger.total("training") == pytest.approx(PROTECTION.epsilon_per_upload(21))
    assert ledger.repository.entries().rows[0].payload_sha256 == sealed.sha256


def test_scalar_parameter_stays_a_scalar_through_clip_and_noise(ledger: Ledger) -> None:
    clipped = clip_elementwise(shared({"g.beta": np.array(0.5, np.float32)}), 0.1)
    sealed = LaplaceProtection(PROTECTION).seal(clipped, round_id="round-1", ledger=ledger, noise=SystemNoise())
    assert clipped.tensors["g.beta"].shape == ()
    assert sealed.message.tensors["g.beta"].shape == ()
    assert sealed.message.tensors["g.beta"].dtype == np.float32
    assert sealed.charge.epsilon == pytest.approx(20)


def test_upload_under_the_papers_noise_costs_epsilon_4_9_million() -> None:
    clipped = Clipped(shared({"g": np.zeros(244_993, np.float32)}), 0.1)
    assert LaplaceProtection(PROTECTION).epsilon_of(clipped) == pytest.approx(4_899_860)


def test_upload_beyond_the_budget_or_clipped_too_loosely_is_refused(ledger: Ledger) -> None:
    protection = LaplaceProtection(PROTECTION)
    with pytest.raises(BudgetSpent, match="training"):
        protection.seal(
            Clipped(shared({"g": np.zeros(600_000, np.float32)}), 0.1),
            round_id="round-1",
            ledger=ledger,
            noise=SystemNoise(),
        )
    with pytest.raises(ValueError, match=r"clipped at 0\.2, the round's limit is 0\.1"):
        protection.seal(clip_elementwise(shared(update()), 0.2), round_id="round-1", ledger=ledger, noise=SystemNoise())
    assert ledger.repository.entries().total == 0


def test_only_bytes_that_were_paid_for_can_be_sealed_again(ledger: Ledger, database: Database) -> None:
    sealed = LaplaceProtection(PROTECTION).seal(
        clip_elementwise(shared(update()), 0.1), round_id="round-1", ledger=ledger, noise=SystemNoise()
    )
    outbox = Outbox(database)

    def put(subject: str, payload: bytes) -> None:
        outbox.put(
            subject=subject,
            method="PUT",
            path="/v1/rounds/round-1/updates/x",
            content_type=sealed.content_type,
            payload=payload,
            words=sealed.words,
            at=NOW,
            expires_at=NOW + timedelta(hours=1),
        )

    put("round-1", sealed.payload)
    put("round-2", sealed.payload)
    put("round-3", b"raw clicks")
    paid, other_round, unpaid = outbox.due(NOW)
    again = reseal(paid, ledger, PrivacySettings())
    assert again.payload == sealed.payload
    assert again.charge.epsilon == 0
    for item in (other_round, unpaid):
        with pytest.raises(ValueError, match="the ledger has no charge"):
            reseal(item, ledger, PrivacySettings())
    assert ledger.repository.entries().total == 1


def kept_upload(ledger: Ledger, database: Database, channel: str) -> OutboxItem:
    sealed = LaplaceProtection(PROTECTION).seal(
        clip_elementwise(shared(update()), 0.1), round_id="round-1", ledger=ledger, noise=SystemNoise(), channel=channel
    )
    outbox = Outbox(database)
    about = {"method": "PUT", "path": "/x", "content_type": sealed.content_type, "words": sealed.words}
    outbox.put(subject="round-1", payload=sealed.payload, at=NOW, expires_at=NOW + timedelta(hours=1), **about)
    return outbox.due(NOW)[0]


@pytest.mark.parametrize("channel", ["training", "counts"])
def test_upload_above_the_current_limit_of_its_channel_is_not_sent_again(
    ledger: Ledger, database: Database, channel: str
) -> None:
    generous = {"epsilon_per_day_training": 1e9, "epsilon_per_day_counts": 1e9}
    ledger = Ledger(ledger.repository, allowing(PrivacySettings().with_overrides(generous)), ledger.now)
    item = kept_upload(ledger, database, channel)
    assert reseal(item, ledger, PrivacySettings()).payload == item.payload
    less = PrivacySettings().with_overrides(generous | {f"epsilon_per_day_{channel}": 1.0})
    ledger = Ledger(ledger.repository, allowing(less), ledger.now)
    with pytest.raises(BudgetSpent, match=channel):
        reseal(item, ledger, PrivacySettings())


def test_upload_charged_by_another_protection_is_not_sent_again(ledger: Ledger, database: Database) -> None:
    """No other protection has single uploads, so its charge can't be checked against the present settings."""
    item = kept_upload(ledger, database, "training")
    with database.transaction():
        database.write("UPDATE charge SET mechanism = 'secure_sum'")
    with pytest.raises(ValueError, match="charges round-1 as secure_sum"):
        reseal(item, ledger, PrivacySettings())


def answer(ids: list[str]) -> RecallAnswer:
    card = {
        "title": "t",
        "abstract": "",
        "url": "https://n.example",
        "publisher": "p",
        "section": "s",
        "topic": "t",
        "published_at": NOW,
        "weight": 0.5,
    }
    return RecallAnswer.model_validate(
        {"release": "r1", "encoder": "e", "candidates": [card | {"id": one} for one in ids], "vectors": b""}
    )


def test_texts_are_requested_for_the_whole_returned_list_in_order() -> None:
    sealed = seal_returned(answer(["B", "A", "B", "C"]))
    assert sealed.payload == b'{"ids":["B","A","C"]}'
    assert sealed.charge.epsilon == 0
    with pytest.raises(ValueError, match="0 candidates"):
        seal_returned(answer([]))
    with pytest.raises(ValueError, match="1001 candidates"):
        seal_returned(answer([f"N{number}" for number in range(1_001)]))


def test_default_list_texts_are_requested_with_the_same_bytes_by_all() -> None:
    listed = answer(["B", "A", "C"])
    sealed = seal_common(listed)
    assert sealed.payload == seal_returned(listed).payload
    assert (sealed.charge.mechanism, sealed.charge.epsilon) == (COMMON, 0)
    assert sealed.words == "Download of the texts of the 3 stories that everyone gets"
    with pytest.raises(ValueError, match="0 candidates"):
        seal_common(answer([]))


def test_update_is_charged_to_its_tasks_channel(ledger: Ledger) -> None:
    mild = LocalLaplace(clip=0.1, scale=0.1)
    counted = ComputedUpdate(shared({"g.count": np.array([0.05, 0.0], np.float32)}), samples=1, channel="counts")
    manifest = ROUND.model_copy(update={"round": "round-1", "protection": mild})
    sealed = LocalLaplaceProtection(mild).seal(counted, manifest, ledger=ledger, noise=SeededNoise(5))
    assert sealed.charge.channel == "counts"
    assert ledger.total("counts") == pytest.approx(mild.epsilon_per_upload(2))
    assert ledger.total("training") == 0


def test_number_of_samples_is_not_sent_without_the_permission_for_exact_sums() -> None:
    """A server asks for n_u in clear, with noise as strong as it likes: no noise hides n_u."""
    asking = LocalLaplaceProtection(LocalLaplace(clip=0.005, scale=100.0, weight_limit=2))
    allowing_all = {"weakest_scale_to_clip": 0.01}
    for less in ({}, {"secure_sum": "noisy"}):
        with pytest.raises(ProtectionTooWeak, match="how many samples"):
            asking.check(PrivacySettings().with_overrides(allowing_all | less))
    asking.check(PrivacySettings().with_overrides(allowing_all | {"secure_sum": "exact"}))


def test_number_of_samples_is_sent_only_if_the_protection_weights_by_it(ledger: Ledger) -> None:
    sent = {}
    for limit in (1, 3):
        protection = LaplaceProtection(LocalLaplace(clip=0.1, scale=0.1, weight_limit=limit))
        clipped = clip_elementwise(shared({"w": np.array([0.05, 0.0], np.float32)}), 0.1)
        sealed = protection.seal(clipped, round_id=f"round-{limit}", ledger=ledger, noise=SeededNoise(5), samples=7)
        sent[limit] = sealed
    assert b"samples" not in sent[1].payload.lower()
    assert "samples" not in sent[1].words
    shapes = {"w": TensorSpec("float32", (2,)), SAMPLES: TensorSpec("float32", (1,))}
    assert unpack(sent[3].payload, shapes, limit_bytes=10_000)[SAMPLES].tolist() == [3.0], "cut at the limit"
    assert sent[3].charge.parameters["weight_limit"] == 3.0
