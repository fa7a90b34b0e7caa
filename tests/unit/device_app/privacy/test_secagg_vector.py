"""A device's vector in a secure sum is masked once, charged, and the same after a kill. Oracle: the plain sum."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from device_app.errors import BudgetSpent, SumAborted
from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.sealed import OCTETS, Charge
from device_app.privacy.secagg.messages import Contribution, MaskedInput, begin_sum
from device_app.privacy.secagg.transitions import SumParticipant
from protocol.secagg import (
    Complaints,
    SharedKeys,
)
from tests.doubles.secure_sums import (
    STAGES,
    answer,
    cohort,
    deliver,
    plain_sum,
    random_vector,
    run_sum,
    run_until,
    terms,
)


@pytest.mark.parametrize("mode", ["semi_honest", "active"])
def test_devices_killed_at_every_stage_resend_and_the_sum_is_exact(mode: str) -> None:
    server, devices = cohort(terms(4, mode=mode, length=33))
    stages = [one for one in STAGES if one != "agree" or mode == "active"]
    for at, stage in enumerate(stages):
        for place, device in enumerate(devices):
            device.start() if at == 0 else device.receive(answer(server, device))
            assert device.step is not None
            again = device.revived()
            assert again.step is not None
            assert again.step.sealed.payload == device.step.sealed.payload
            assert deliver(server, device) is False
            assert deliver(server, again) is True
            devices[place] = again
        if stage != "unmask":
            server.close()
    assert (server.open().vector == plain_sum(devices, range(4))).all()


def test_device_that_lost_its_masked_vector_leaves() -> None:
    server, devices = run_until("masked", "semi_honest")
    device = devices[0]
    device.payload = None
    with pytest.raises(SumAborted, match="second one must not be made"):
        device.revived()
    device.payload = bytes(16)
    with pytest.raises(SumAborted, match="second one must not be made"):
        device.revived()
    assert server.messages.count("masked") == 4


def test_messages_before_the_masked_vector_are_independent_of_clicks() -> None:
    server, devices = cohort(terms(4, length=7))
    for device in devices:
        step = device.start()
        assert step.sealed.charge.channel == "none"
        deliver(server, device)
    server.close()
    for _ in ("shares", "complaints"):
        for device in devices:
            device.receive(answer(server, device))
            assert device.ledger.charges == []
            deliver(server, device)
        server.close()
    step = devices[0].receive(answer(server, devices[0]))
    assert isinstance(step.sealed.message, MaskedInput)
    assert (step.sealed.content_type, len(step.sealed.payload)) == (OCTETS, 7 * 4)
    assert [charge.mechanism for charge in devices[0].ledger.charges] == ["secure_sum"]
    assert devices[0].ledger.charges[0].payload_sha256 == step.sealed.sha256


def test_masked_vector_does_not_leave_without_budget(ledger: Ledger) -> None:
    server, devices = run_until("keys")
    part = SumParticipant(
        devices[0].state, Contribution(devices[0].vector, Charge("training", "secure_sum", epsilon=1e9)), ledger
    )
    step = part.receive(answer(server, devices[0]))
    server.share(devices[0].pseudonym, SharedKeys.model_validate_json(step.sealed.payload))
    for device in devices[1:]:
        device.receive(answer(server, device))
        deliver(server, device)
    server.close()
    step = part.receive(server.members.shares(devices[0].pseudonym))
    server.complain(devices[0].pseudonym, Complaints.model_validate_json(step.sealed.payload))
    for device in devices[1:]:
        device.receive(answer(server, device))
        deliver(server, device)
    server.close()
    with pytest.raises(BudgetSpent):
        part.receive(server.members.sharers_answer(devices[0].pseudonym))


def test_vector_that_does_not_match_the_terms_is_refused() -> None:
    server, devices = run_until("complaints")
    for wrong in (random_vector(5), random_vector(4, bits=64)):
        devices[0].vector = wrong
        with pytest.raises(ValueError, match="the terms say 4 of 32 bits"):
            devices[0].revived().receive(answer(server, devices[0]))


def test_masked_vector_of_zeros_is_uniform_by_chi_square() -> None:
    # 400,000 bytes in 256 bins; a true uniform fails once in a million runs.
    server, devices = run_until("complaints", "semi_honest", length=100_000)
    devices[0].vector = np.zeros(100_000, dtype="<u4")
    device = devices[0].revived()
    device.receive(answer(server, device))
    counts = np.bincount(np.frombuffer(device.payload or b"", dtype=np.uint8), minlength=256)
    expected = 400_000 / 256
    assert float(((counts - expected) ** 2 / expected).sum()) < chi2.isf(1e-6, 255)


def test_masks_differ_between_rounds_and_retries() -> None:
    first, second = cohort(terms(4)), cohort(terms(4))
    for server, devices in (first, second):
        for device in devices:
            device.vector = np.zeros(4, dtype="<u4")
        run_sum(server, devices)
    payloads = [device.payload for _, devices in (first, second) for device in devices]
    assert len(set(payloads)) == 8
    one = begin_sum(terms(4))
    assert one.mask_secret != begin_sum(terms(4)).mask_secret
