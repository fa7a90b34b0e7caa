"""A malicious server withholds answers, to get a vector from a device whose reader has since chosen stricter settings.

A sum can last for days if nobody answers, including restarts. The attack: let a device join under the settings, key and
time of one day, withhold the answer, and ask for the vector on another day.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import ValidationError

from protocol.ids import PROTOCOL_HEADER, PROTOCOL_VERSION
from tests.doubles.attacked_device import HONEST, LIST, Meets, Victim
from tests.doubles.in_process import InProcess
from tests.doubles.malicious_server import MaliciousServer
from tests.doubles.round_rig import BackendRig

STAGES = ("keys", "shares", "complaints", "masked", "agree")


@dataclass
class Stalling(MaliciousServer):
    """Doesn't answer at one stage until it is released; counts the requests it gets."""

    held: str | None = "complaints"
    requests: int = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests += 1
        return super().handle_request(request)

    def _tell(self, stage: str) -> httpx.Response:
        if stage == self.held:
            return httpx.Response(204, headers={PROTOCOL_HEADER: str(PROTOCOL_VERSION)})
        return super()._tell(stage)


Stalls = Callable[..., Stalling]


@pytest.fixture
def stalls(backend: BackendRig, honest: InProcess) -> Stalls:
    def make(protection: object = HONEST, **changes: object) -> Stalling:
        given: dict[str, object] = {"key": backend.releases._key} | changes
        return Stalling(honest, LIST, protection, backend.clock, **given)  # type: ignore[arg-type]

    return make


def waiting(victim: Victim, server: Stalling) -> None:
    """Let the device join and reach the stage that the server holds back."""
    for _ in range(4):
        assert victim.device.trainer.step().state == "waiting"
    assert server.stages[-1] == server.held


def got_nothing(victim: Victim, server: Stalling) -> None:
    server.held = None
    outcome = victim.step_through()
    assert outcome.state in ("declined", "failed"), outcome
    assert server.opened is None
    assert victim.charges() == []


@pytest.mark.parametrize(
    ("sigma", "joined_by", "tightened"),
    [
        (0, {"secure_sum": "exact"}, {"secure_sum": "noisy"}),
        (None, {}, {"secure_sum": "never"}),
        (None, {}, {"smallest_sum": 20}),
        (None, {}, {"epsilon_per_sum_alone": 20.0}),
        (None, {}, {"epsilon_per_day_counts": 5.0}),
    ],
)
@pytest.mark.parametrize("restarted", [True, False])
def test_sum_delayed_by_the_server_is_checked_against_current_settings(
    stalls: Stalls,
    meets: Meets,
    sigma: int | None,
    joined_by: dict[str, object],
    tightened: dict[str, object],
    restarted: bool,
) -> None:
    server = stalls(HONEST if sigma is None else HONEST.model_copy(update={"sigma": sigma}))
    victim = meets(server, **joined_by)
    waiting(victim, server)
    victim.choose(restarted=restarted, **tightened)
    got_nothing(victim, server)


@pytest.mark.parametrize("restarted", [True, False])
def test_device_does_not_pay_for_a_sum_joined_under_a_key_it_no_longer_trusts(
    stalls: Stalls, meets: Meets, restarted: bool
) -> None:
    """The thief of a key lets devices join, and asks for their vectors after the key was rotated."""
    server = stalls()
    victim = meets(server)
    waiting(victim, server)
    victim.device.trusted_key = Ed25519PrivateKey.generate().public_key().public_bytes_raw()
    victim.choose(restarted=restarted)
    server.held = None
    outcome = victim.step_through()
    assert (outcome.state, server.opened, victim.charges()) == ("declined", None, [])
    assert "not signed by the key that this device trusts" in str(outcome.why)


def test_device_does_not_pay_for_a_stored_offer_without_its_signature(stalls: Stalls, meets: Meets) -> None:
    """An offer whose signature can't be checked again is not used, and nothing is charged or sent for it."""
    server = stalls()
    victim = meets(server)
    waiting(victim, server)
    database = victim.device.stores.database
    with database.transaction():
        kept = database.write(
            "UPDATE sum_part SET offer = json_object('manifest', json(json_extract(offer, '$.manifest')),"
            " 'pseudonym', json_extract(offer, '$.pseudonym'))"
        )
    assert kept.rowcount == 1
    server.held = None
    with pytest.raises(ValidationError):
        victim.step_through()
    assert (server.opened, victim.charges()) == (None, [])


@pytest.mark.parametrize("late_sec", [1.0, 61.0, 30 * 24 * 3_600.0])
def test_device_sends_nothing_to_a_round_past_its_deadline(
    stalls: Stalls, meets: Meets, backend: BackendRig, late_sec: float
) -> None:
    server = stalls()
    victim = meets(server)
    waiting(victim, server)
    backend.clock.go_on(server.lasts.total_seconds() + late_sec)
    got_nothing(victim, server)


def test_round_lasting_over_a_week_is_not_joined(stalls: Stalls, meets: Meets) -> None:
    server = stalls(lasts=timedelta(days=8, seconds=1))
    victim = meets(server)
    outcome = victim.device.trainer.step()
    assert (outcome.state, server.stages) == ("declined", [])
    assert "more than a week from now" in str(outcome.why)


@pytest.mark.parametrize("off", [{"counting": False}, {"paused": True}])
@pytest.mark.parametrize("held", STAGES)
def test_switching_off_or_pausing_stops_every_message_of_a_sum(
    stalls: Stalls, meets: Meets, held: str, off: dict[str, bool]
) -> None:
    server = stalls(held=held)
    victim = meets(server)
    waiting(victim, server)
    paid, before = victim.charges(), server.requests
    assert len(paid) == (held in ("masked", "agree"))
    victim.device.paused = bool(off.get("paused"))
    victim.choose(**{name: value for name, value in off.items() if name != "paused"})
    server.held = None
    outcome = victim.device.trainer.step()
    assert outcome.state == ("uploaded" if paid else "declined")
    for _ in range(3):
        victim.device.trainer.step()
    assert server.requests == before, "switched off: nothing more leaves"
    assert victim.charges() == paid
    assert victim.device.stores.database.number("SELECT count(*) FROM sum_part") == 0, "its keys are forgotten"


def test_paid_unsent_vector_is_dropped_when_counts_are_switched_off(stalls: Stalls, meets: Meets) -> None:
    class HangsUpOnVectors(Stalling):
        def _take(self, stage: str, body: bytes) -> httpx.Response:
            if stage == "masked":
                raise httpx.ConnectError("nobody listens")
            return super()._take(stage, body)

    honest = stalls(held=None)
    server = HangsUpOnVectors(honest.honest, LIST, HONEST, honest.clock, key=honest.key, held=None)
    victim = meets(server)
    assert victim.device.trainer.step().state == "waiting"
    assert victim.device.trainer.step().state == "waiting"
    (charge,) = victim.charges()
    victim.choose(counting=False)
    before = server.requests
    outcome = victim.device.trainer.step()
    assert (outcome.state, server.requests) == ("declined", before)
    assert victim.charges() == [charge], "it may have arrived unheard: what was spent stays spent"


@dataclass
class RefusesVectors(Stalling):
    """Closes the connection on masked vectors until it is set to accept them."""

    held: str | None = None
    refuses: bool = True

    def _take(self, stage: str, body: bytes) -> httpx.Response:
        if stage == "masked" and self.refuses:
            raise httpx.ConnectError("nobody listens")
        return super()._take(stage, body)


TIGHTENED_AFTER_PAYMENT = pytest.mark.parametrize(
    ("sigma", "joined_by", "tightened"),
    [
        (0, {"secure_sum": "exact"}, {"secure_sum": "noisy"}),
        (0, {"secure_sum": "exact"}, {"secure_sum": "never"}),
        (None, {}, {"secure_sum": "never"}),
        (None, {}, {"epsilon_per_sum_alone": 1.0}),
        (None, {}, {"smallest_sum": 20}),
    ],
)


def protection_of(sigma: int | None) -> object:
    return HONEST if sigma is None else HONEST.model_copy(update={"sigma": sigma})


@TIGHTENED_AFTER_PAYMENT
@pytest.mark.parametrize("restarted", [True, False])
def test_paid_unsent_vector_is_dropped_when_settings_forbid_the_sum(
    backend: BackendRig,
    honest: InProcess,
    meets: Meets,
    sigma: int | None,
    joined_by: dict[str, object],
    tightened: dict[str, object],
    restarted: bool,
) -> None:
    server = RefusesVectors(honest, LIST, protection_of(sigma), backend.clock, key=backend.releases._key)  # type: ignore[arg-type]
    victim = meets(server, **joined_by)
    while not victim.charges():
        assert victim.device.trainer.step().state == "waiting"
    victim.choose(restarted=restarted, **tightened)
    server.refuses = False
    assert victim.step_through().state == "declined"
    assert server.opened is None
    assert "masked" not in server.stages


@TIGHTENED_AFTER_PAYMENT
@pytest.mark.parametrize("held", ["masked", "agree"])
def test_secret_shares_are_withheld_once_settings_forbid_the_sum(
    stalls: Stalls,
    meets: Meets,
    sigma: int | None,
    joined_by: dict[str, object],
    tightened: dict[str, object],
    held: str,
) -> None:
    server = stalls(protection_of(sigma), held=held)
    victim = meets(server, **joined_by)
    waiting(victim, server)
    victim.choose(restarted=False, **tightened)
    server.held = None
    server.stages.clear()
    victim.step_through()
    assert "unmask" not in server.stages
    # A server that holds all other members' keys has opened the vector by then; honest members' sum stays shut.
