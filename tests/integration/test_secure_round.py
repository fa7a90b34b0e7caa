"""Secure rounds of the small ranker over HTTP.

Real routes, coordinator, stores and trainers, kills on either side. The oracle of every opened sum is the weighted mean
of the devices' own clipped gradients, computed here in float64 from what their tasks returned and never sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest

from backend.federation.systems import COMPOSED
from device_app.privacy.protections.secure_sum import contribute
from device_app.privacy.sealed import digest
from device_app.privacy.secagg.messages import Contribution
from device_app.settings import PrivacySettings
from protocol.protections import SecureSum
from tests.doubles.opened_sums import NoisyOpening, SumNoise, spent_on
from tests.doubles.secure_cohort import (
    COORDINATES,
    DEVICES,
    EXACT,
    STAGES,
    SecureCohort,
    check_exact,
    clipped_gradient,
    running_sums,
    secure_cohort,
    sent_masked,
    wire_of,
)


@pytest.fixture
def cohort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SecureCohort]:
    with secure_cohort(tmp_path, monkeypatch) as made:
        yield made


def test_opened_mean_equals_the_plain_mean_of_clipped_gradients(cohort: SecureCohort) -> None:
    assert cohort.open().state == "open"
    for stage in ("shares", "shares", "masked", "agree", "unmask"):  # the second time they may complain
        assert {outcome.state for outcome in cohort.steps()} == {"waiting"}
        assert cohort.status().state == stage
    assert {outcome.state for outcome in cohort.steps()} == {"uploaded"}
    status = cohort.status()
    assert (status.state, status.published, status.survivors, status.uploaded) == ("applied", "r2", DEVICES, DEVICES)
    assert (status.epsilon, status.delta) == (None, None)
    check_exact(cohort, range(DEVICES))
    assert running_sums(cohort) == [], "removed with its round, not at the next start"
    assert len({update.samples for update in cohort.clear.values()}) > 1, "the weights differ"
    for device in cohort.devices:
        assert device.stores.database.number("SELECT count(*) FROM sum_part") == 0, "keys are forgotten"
        charge = device.stores.ledger_entries.charged(digest(sent_masked(device, cohort)))
        assert charge is not None
        assert (charge.mechanism, charge.epsilon) == ("secure_sum", 0.0)
        device.trainer.step()
        mine = device.stores.participations.get("round-1")
        assert mine is not None
        assert mine.state == "applied"
        assert mine.sent_bytes == sum(len(body) for _, path, body in wire_of(device, cohort).sent if "round-1/" in path)


def test_survivors_sum_is_exact_despite_dropouts(cohort: SecureCohort) -> None:
    cohort.open(minimum=4)
    cohort.steps()
    cohort.steps()
    cohort.steps()  # every device has sent its shares and could open the others'
    alive = [number for number in range(DEVICES) if number != 1]
    cohort.steps(alive)  # device 1 died before its masked vector
    assert cohort.status().state == "masked"
    cohort.late()
    assert cohort.status().state == "agree"
    cohort.steps(alive)
    last = [number for number in alive if number != 4]
    assert {outcome.state for outcome in cohort.steps(last)} == {"uploaded"}  # device 4 died after its own
    status = cohort.status()
    assert (status.state, status.survivors) == ("applied", 6), status.reason
    check_exact(cohort, alive)

    late = cohort.devices[1].trainer.step()
    assert late.state == "failed", "it comes too late, and leaves"
    assert cohort.devices[1].stores.ledger_entries.total("training") == 0
    assert cohort.devices[4].trainer.step().state == "uploaded", "its vector is in the sum"


def test_round_below_the_threshold_fails_and_publishes_nothing(cohort: SecureCohort) -> None:
    cohort.open(minimum=5)
    cohort.steps()
    cohort.steps()
    cohort.steps()
    cohort.steps([0, 1, 2])
    cohort.late()
    status = cohort.status()
    assert (status.state, status.published, status.survivors) == ("failed", None, None)
    assert status.reason == "3 members sent a masked vector; 5 are needed."
    assert cohort.backend.releases.require_current().release == "r1"
    outcome = cohort.devices[0].trainer.step()
    assert outcome.state == "uploaded"
    cohort.devices[0].trainer.step()
    mine = cohort.devices[0].stores.participations.get("round-1")
    assert mine is not None
    assert (mine.state, mine.detail) == ("failed", status.reason)
    assert running_sums(cohort) == []
    assert list((cohort.backend.folder / "rounds").iterdir()) == [], "no single update was ever kept"


def test_status_says_how_many_updates_the_sum_needs_of_those_who_joined(cohort: SecureCohort) -> None:
    """Oracle: the number in the sum's own reason, by Bonawitz's floor(2n/3) + 1 of seven devices."""
    assert cohort.open(minimum=4).cohort_minimum == 4, "nobody has joined"
    for _ in range(3):
        cohort.steps()
    assert cohort.status().cohort_minimum == 5
    cohort.steps([0, 1, 2, 3])
    cohort.late()
    status = cohort.status()
    assert status.reason == "4 members sent a masked vector; 5 are needed."
    assert (status.uploaded, status.cohort_minimum) == (4, 5)


def test_repeated_masked_upload_is_accepted_and_an_altered_one_refused(cohort: SecureCohort) -> None:
    cohort.open(minimum=DEVICES)
    cohort.steps()
    cohort.steps()
    cohort.steps()
    cohort.devices[0].trainer.step()
    path, body = next((path, body) for _, path, body in cohort.wires[0].sent if "/masked/" in path)
    kind = {"Content-Type": "application/octet-stream"}
    again = httpx.put(cohort.url + path, content=body, headers=kind)
    assert again.status_code == 200
    assert again.json() == {"round": "round-1", "sha256": digest(body), "duplicate": True}
    altered = bytes([body[0] ^ 1]) + body[1:]
    refused = httpx.put(cohort.url + path, content=altered, headers=kind)
    assert (refused.status_code, refused.json()["type"]) == (409, "urn:ownfeed:problem:sum-message-conflict")
    long = httpx.put(cohort.url + path, content=body + b"x", headers=kind)
    assert (long.status_code, long.json()["limit"]) == (413, f"{len(body)} bytes")
    nonmember = httpx.put(cohort.url + path.rsplit("/", 1)[0] + "/" + "s" * 32, content=body, headers=kind)
    assert nonmember.status_code == 403
    early = httpx.get(cohort.url + path)
    assert (early.status_code, early.headers["retry-after"]) == (204, "1")
    kind = {"Content-Type": "application/vnd.safetensors"}
    clear = httpx.put(cohort.url + path.replace("/masked/", "/updates/"), content=b"", headers=kind)
    assert (clear.status_code, clear.json()["type"]) == (409, "urn:ownfeed:problem:round-closed")
    for _ in ("masked", "agree", "unmask"):
        cohort.steps()
    assert cohort.status().state == "applied"
    check_exact(cohort, range(DEVICES))


def test_only_sealed_messages_without_clear_vectors_leave(cohort: SecureCohort) -> None:
    cohort.open(minimum=DEVICES)
    for _ in STAGES:
        cohort.steps()
    assert isinstance(EXACT, SecureSum)
    terms = EXACT.terms("round-1", cohort=DEVICES, cohort_minimum=DEVICES, coordinates=COORDINATES)
    for number, wire in enumerate(cohort.wires):
        update = cohort.clear[number]
        layout = EXACT.layout({name: each.shape for name, each in update.tensors.items()}, terms)
        vector = layout.encode(clipped_gradient(update), update.samples)
        puts = [(path.split("/")[4], body) for method, path, body in wire.sent if method == "PUT"]
        assert [stage for stage, _ in puts] == list(STAGES)
        masked = dict(puts)["masked"]
        assert len(masked) == vector.nbytes
        # Each element is masked by itself: one that came through equal has a chance of 2^-32.
        assert (np.frombuffer(masked, dtype=vector.dtype) != vector).all()
        every = b"".join(body for _, _, body in wire.sent)
        for name, tensor in update.tensors.items():
            assert tensor.tobytes() not in every, name
        for element in vector[np.abs(vector.astype(np.int32)) > 65_536]:
            assert element.tobytes() not in masked
        logged = cohort.devices[number].stores.byte_log.entries().rows
        bodies = {entry.body_sha256 for entry in logged if entry.body_bytes}
        assert bodies == {digest(body) for _, _, body in wire.sent if body}
        assert {entry.mechanism for entry in logged if entry.method == "PUT"} == {"secure_sum"}
        polls = [entry for entry in logged if entry.method == "GET" and "/rounds/round-1/" in entry.url]
        assert {entry.mechanism for entry in polls} == {"presence"}, "a pseudonym goes out sealed, also without a body"
    folder = cohort.backend.folder
    kept = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    for update in cohort.clear.values():
        for tensor in update.tensors.values():
            if tensor.size > 1:
                assert tensor.tobytes() not in kept


def test_noisy_sum_charges_devices_as_for_the_fewest_possible_survivors(cohort: SecureCohort) -> None:
    for device in cohort.devices:
        device.privacy = PrivacySettings(
            training=True, epsilon_per_day_training=100, smallest_sum=3, epsilon_per_sum=20
        )
        device.stop()
        device.start()
    cohort.open("small_ranker/secure/median", minimum=4)
    for _ in STAGES:
        cohort.steps()
    status = cohort.status()
    assert (status.state, status.survivors) == ("applied", DEVICES), status.reason
    protection = COMPOSED["small_ranker/secure/median"].protection
    assert isinstance(protection, SecureSum)
    noise = SumNoise(protection.sigma, 2 * protection.clip * 2**protection.fraction_bits, COORDINATES)
    assert status.epsilon == pytest.approx(spent_on([NoisyOpening(noise, DEVICES)], protection.delta))
    for device in cohort.devices:
        paid = device.stores.ledger_entries.total("training")
        assert paid == pytest.approx(protection.epsilon(4, COORDINATES))
        assert status.epsilon is not None
        assert status.epsilon < paid
    # Devices count alike. The mean's noise has a standard deviation of sigma / sqrt(7) steps; six of them are allowed.
    reach = 6 * protection.sigma * 2.0**-protection.fraction_bits / DEVICES**0.5
    moved = cohort.moved()
    for name in moved:
        means = []
        for number in range(DEVICES):
            flat = np.concatenate([each.astype(np.float64).ravel() for each in cohort.clear[number].tensors.values()])
            means.append(cohort.clear[number].tensors[name] * min(1.0, protection.clip / float(np.linalg.norm(flat))))
        np.testing.assert_allclose(moved[name], np.mean(means, axis=0), rtol=0, atol=reach)


@pytest.mark.parametrize(
    ("privacy", "words"),
    [
        ({"secure_sum": "noisy"}, "has no noise"),
        ({"secure_sum": "never"}, "no secure sums"),
        ({"secure_sum": "exact", "smallest_sum": 4}, "the settings require at least 4"),
    ],
)
def test_round_below_the_readers_requirements_is_declined_with_a_reason(
    cohort: SecureCohort, privacy: dict[str, object], words: str
) -> None:
    cohort.open(minimum=3)
    device = cohort.devices[0]
    device.privacy = PrivacySettings.model_validate({"training": True, "epsilon_per_day_training": 1.0} | privacy)
    device.stop()
    device.start()
    outcome = device.trainer.step()
    assert outcome.state == "declined"
    assert words in (outcome.why or "")
    assert not [path for method, path, _ in cohort.wires[0].sent if method == "PUT"]


def test_reader_pausing_before_the_masked_vector_pays_and_sends_nothing(cohort: SecureCohort) -> None:
    cohort.open(minimum=3)
    cohort.steps()
    cohort.steps()
    cohort.steps()
    cohort.devices[3].paused = True
    outcome = cohort.devices[3].trainer.step()
    assert outcome.state == "declined"
    assert "paused" in (outcome.why or "")
    assert cohort.devices[3].stores.ledger_entries.total("training") == 0
    assert not [path for _, path, _ in cohort.wires[3].sent if "/masked/" in path]
    others = [number for number in range(DEVICES) if number != 3]
    cohort.steps(others)
    cohort.late()
    cohort.steps(others)
    cohort.steps(others)
    status = cohort.status()
    assert (status.state, status.survivors) == ("applied", 6), status.reason
    check_exact(cohort, others)


def test_cancelled_secure_round_deletes_its_running_sum(cohort: SecureCohort) -> None:
    cohort.open(minimum=3)
    cohort.steps()
    cohort.steps()
    cohort.steps()
    cohort.steps()
    assert len(running_sums(cohort)) == 1
    assert cohort.coordinator.cancel("round-1").state == "failed"
    assert running_sums(cohort) == []
    cohort.coordinator.step()
    assert cohort.backend.releases.require_current().release == "r1"
    cohort.open(minimum=3)
    assert cohort.coordinator.status("round-2").state == "open"


def test_oversized_contribution_fails_the_round_and_keeps_the_release(
    cohort: SecureCohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forged(*args: object, **rest: object) -> Contribution:
        honest = contribute(*args, **rest)  # type: ignore[arg-type]
        vector = honest.vector.copy()
        vector[0] = 2**30
        return replace(honest, vector=vector)

    cohort.open(minimum=DEVICES)
    cohort.steps()
    cohort.steps()
    cohort.steps()
    cohort.steps(range(1, DEVICES))
    monkeypatch.setattr("device_app.privacy.protections.registry.contribute", forged)
    cohort.steps([0])
    monkeypatch.undo()
    cohort.steps()
    cohort.steps()
    status = cohort.status()
    assert (status.state, status.published, status.survivors) == ("failed", None, None)
    assert "some device violated the round's limits" in (status.reason or "")
    assert cohort.backend.releases.require_current().release == "r1"
