"""Secure rounds of the small ranker over HTTP: real routes, coordinator, stores and trainers, kills of either side.

The oracle of every opened sum is the weighted mean of the devices' own clipped gradients, computed here in float64 from
what their task returned and never sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest

from backend.federation.systems import SYSTEMS
from device_app.privacy.protections.secure_sum import contribute
from device_app.privacy.sealed import digest
from device_app.privacy.secagg.contribution import Contribution
from device_app.settings import PrivacySettings
from device_app.wire.protections import SecureSum
from tests.doubles.openings import NoisyOpening, SumNoise, spent_on
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


def test_the_opened_mean_is_the_plain_weighted_mean_of_the_devices_clipped_gradients(cohort: SecureCohort) -> None:
    assert cohort.open().state == "open"
    for stage in ("shares", "shares", "masked", "unmask"):  # the second time they may complain
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


def test_free_pages_are_given_back_after_messages_and_not_at_every_look(
    cohort: SecureCohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red while each look at a round did so: a look over all arenas takes milliseconds."""
    given: list[None] = []
    monkeypatch.setattr("backend.federation.rounds.secure.give_free_pages_back", lambda: given.append(None))
    cohort.open()
    for _ in range(3):
        cohort.coordinator.step()
    assert given == [], "nothing has come"
    cohort.steps([0])
    for _ in range(3):
        cohort.coordinator.step()
    assert len(given) == 1


def test_the_sum_of_the_survivors_is_exact_when_devices_die_after_shares_and_after_masked(cohort: SecureCohort) -> None:
    cohort.open(minimum=4)
    cohort.steps()
    cohort.steps()
    cohort.steps()  # every device has sent its shares and could open the others'
    alive = [number for number in range(DEVICES) if number != 1]
    cohort.steps(alive)  # device 1 died before its masked vector
    assert cohort.status().state == "masked"
    cohort.late()
    assert cohort.status().state == "unmask"
    last = [number for number in alive if number != 4]
    assert {outcome.state for outcome in cohort.steps(last)} == {"uploaded"}  # device 4 died after its own
    cohort.late()
    status = cohort.status()
    assert (status.state, status.survivors) == ("applied", 5), status.reason
    check_exact(cohort, alive)

    late = cohort.devices[1].trainer.step()
    assert late.state == "failed", "it comes too late, and leaves"
    assert cohort.devices[1].stores.ledger_entries.total("training") == 0
    assert cohort.devices[4].trainer.step().state == "uploaded", "its vector is in the sum"


def test_where_devices_agree_on_the_survivors_one_of_six_may_die_before_its_masked_vector(cohort: SecureCohort) -> None:
    cohort.open("small_ranker_active", minimum=4)
    cohort.steps()
    cohort.steps()
    cohort.steps()  # every device has sent its shares and could open the others'
    alive = [number for number in range(DEVICES) if number != 1]
    cohort.steps(alive)
    cohort.late()
    assert cohort.status().state == "agree"
    cohort.steps(alive)
    cohort.steps(alive)
    status = cohort.status()
    assert (status.state, status.survivors) == ("applied", 5), status.reason
    check_exact(cohort, alive)


def test_below_the_threshold_the_round_fails_with_its_reason_and_nothing_is_published(cohort: SecureCohort) -> None:
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


def test_a_repeated_masked_upload_changes_nothing_and_an_altered_one_is_refused(cohort: SecureCohort) -> None:
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
    cohort.steps()
    cohort.steps()
    assert cohort.status().state == "applied"
    check_exact(cohort, range(DEVICES))


def test_only_sealed_messages_leave_and_no_clear_vector_is_in_any_of_them(cohort: SecureCohort) -> None:
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


def test_a_noisy_sum_costs_what_the_survivors_make_of_it_and_a_device_pays_for_the_fewest(cohort: SecureCohort) -> None:
    for device in cohort.devices:
        device.privacy = PrivacySettings(
            training=True, epsilon_per_day_training=100, smallest_sum=3, epsilon_per_sum=20
        )
        device.stop()
        device.start()
    cohort.open("small_ranker_secure", minimum=4)
    for _ in ("keys", "shares", "complaints", "masked", "agree", "unmask"):
        cohort.steps()
    status = cohort.status()
    assert (status.state, status.survivors) == ("applied", DEVICES), status.reason
    protection = SYSTEMS["small_ranker_secure"].protection
    assert isinstance(protection, SecureSum)
    noise = SumNoise(protection.sigma, 2 * protection.clip * 2**protection.fraction_bits, COORDINATES)
    assert status.epsilon == pytest.approx(spent_on([NoisyOpening(noise, DEVICES)], protection.delta))
    for device in cohort.devices:
        paid = device.stores.ledger_entries.total("training")
        assert paid == pytest.approx(protection.epsilon(4, COORDINATES))
        assert status.epsilon is not None
        assert status.epsilon < paid
    # Devices count alike. The mean's noise has a standard deviation of sigma / sqrt(6) steps; six of them are allowed.
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
        ({"secure_sum": "noisy"}, "no noise in it"),
        ({"secure_sum": "never"}, "no secure sums"),
        ({"secure_sum": "exact", "smallest_sum": 4}, "at least 4 are asked for"),
    ],
)
def test_a_round_below_what_the_reader_accepts_is_declined_with_its_reason(
    cohort: SecureCohort, privacy: dict[str, object], words: str
) -> None:
    cohort.open(minimum=3)
    device = cohort.devices[0]
    device.privacy = PrivacySettings.model_validate(
        {"training": True, "epsilon_per_day_training": 1.0, "secure_sum_mode": "semi_honest"} | privacy
    )
    device.stop()
    device.start()
    outcome = device.trainer.step()
    assert outcome.state == "declined"
    assert words in (outcome.why or "")
    assert not [path for method, path, _ in cohort.wires[0].sent if method == "PUT"]


def test_a_reader_who_pauses_before_the_masked_vector_has_paid_and_sent_nothing(cohort: SecureCohort) -> None:
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
    status = cohort.status()
    assert (status.state, status.survivors) == ("applied", 5), status.reason
    check_exact(cohort, others)


def test_a_cancelled_secure_round_opens_nothing(cohort: SecureCohort) -> None:
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


def test_a_device_that_adds_more_than_a_clipped_update_costs_the_round_and_the_release_stays(
    cohort: SecureCohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lie(*args: object, **rest: object) -> Contribution:
        honest = contribute(*args, **rest)  # type: ignore[arg-type]
        vector = honest.vector.copy()
        vector[0] = 2**30
        return replace(honest, vector=vector)

    cohort.open(minimum=DEVICES)
    cohort.steps()
    cohort.steps()
    cohort.steps()
    cohort.steps(range(1, DEVICES))
    monkeypatch.setattr("device_app.privacy.protections.registry.contribute", lie)
    cohort.steps([0])
    monkeypatch.undo()
    cohort.steps()
    status = cohort.status()
    assert (status.state, status.published, status.survivors) == ("failed", None, None)
    assert "some device has broken the terms" in (status.reason or "")
    assert cohort.backend.releases.require_current().release == "r1"
