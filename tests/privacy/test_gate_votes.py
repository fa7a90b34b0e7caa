"""A malicious server asks for votes on a release.

What does a vote reveal about its reader, and at what cost? The server holds the release's key, invents all other
members of the sum, chooses both weights so that the sign of the gain reveals whether the reader clicks by topic, and
opens the one real vote. Oracle: the same task computed without any protection, and the distribution of the device's
noise share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from numpy.typing import NDArray
from scipy.stats import chi2

from backend.federation.systems.release_gate import RELEASE_GATE
from device_app.privacy.accounting.cost_of_sums import EPSILON_ALONE
from device_app.training.tasks.evaluate import BEFORE, EvaluateTask
from device_app.training.tasks.task import Update
from protocol.protections import SecureSum
from protocol.releases import BlobRef
from protocol.ring import SHAPES
from protocol.rounds import RoundManifest, RoundStatus
from protocol.tensors import pack
from tests.doubles.attacked_device import LIST, Meets, Victim
from tests.doubles.in_process import InProcess
from tests.doubles.malicious_server import InventedMember, MaliciousServer
from tests.doubles.news import synthetic_pool
from tests.doubles.round_rig import DIM, FEATURES, BackendRig
from tests.doubles.simulated_reader import simulated_reader

assert isinstance(RELEASE_GATE.protection, SecureSum)
GATE: SecureSum = RELEASE_GATE.protection
NUMBERS = sum(shape[0] for shape in SHAPES.values())
TRAINS = {"training": True, "epsilon_per_day_training": 8.0}
POOL = synthetic_pool(240, dim=DIM)
READERS = 4


@dataclass
class AsksForVotes(MaliciousServer):
    """Offers gates of its own choice, one after the other. changes: to the manifest that it signs."""

    changes: dict[str, Any] = field(default_factory=dict)

    def again(self) -> None:
        super().again()
        crafted = {"beta": np.array(0.0, np.float32), "feature_weights": np.zeros(len(FEATURES), np.float32)}
        crafted["feature_weights"][0] = -50.0
        self.material = pack(crafted)
        self.terms = self.protection.terms(
            self.terms.round, cohort=self.cohort, cohort_minimum=self.cohort_minimum, coordinates=NUMBERS
        )
        offered: dict[str, Any] = {
            "round": self.terms.round, "release": "r1", "system": "release_gate", "task": "evaluate",
            "model": "ranker.features", "shapes": dict(SHAPES), "protection": self.protection, "negatives": 16,
            "samples_limit": 64, "held_out": 0.5, "closes_at": self.clock() + self.lasts, "terms": self.terms,
            "materials": {BEFORE: BlobRef(sha256=sha256(self.material).hexdigest(), size_bytes=len(self.material))},
        }  # fmt: skip
        self.manifest = RoundManifest.model_validate(offered | self.changes)
        self.invented = [InventedMember(number, self.terms.digest()) for number in range(2, self.named + 1)]

    def _status(self) -> RoundStatus:
        return super()._status().model_copy(update={"system": "release_gate", "task": "evaluate"})

    def _open(self, masked: bytes) -> NDArray[np.float64]:
        opened = super()._open(masked)
        assert opened.shape == (NUMBERS,)
        return opened


Asks = Callable[..., AsksForVotes]


@pytest.fixture
def asks(backend: BackendRig, honest: InProcess) -> Asks:
    key = backend.releases._key
    assert isinstance(key, Ed25519PrivateKey)

    def make(**changes: Any) -> AsksForVotes:
        return AsksForVotes(honest, LIST, GATE, backend.clock, key=key, changes=changes)

    return make


@pytest.fixture
def voter(meets: Meets) -> Callable[..., Victim]:
    """A reader of a few topics who has switched training on."""

    def make(server: AsksForVotes, seed: int = 0, **changes: object) -> Victim:
        victim = meets(server, seed, **(TRAINS | changes))
        victim.device.read(simulated_reader(POOL, np.random.default_rng(seed)), POOL)
        return victim

    return make


@pytest.fixture
def true_votes(monkeypatch: pytest.MonkeyPatch) -> list[NDArray[np.float64]]:
    """Record the devices' votes before they are protected."""
    seen: list[NDArray[np.float64]] = []
    run = EvaluateTask.run

    def recorded(*args: Any) -> Update:
        update = run(*args)
        seen.append(np.concatenate([update.tensors[name] for name in sorted(SHAPES)]).astype(np.float64))
        return update

    monkeypatch.setattr(EvaluateTask, "run", recorded)
    return seen


def test_vote_of_the_only_real_member_is_protected_by_its_own_noise(
    asks: Asks, voter: Callable[..., Victim], true_votes: list[NDArray[np.float64]]
) -> None:
    noise = []
    for seed in range(READERS):
        server = asks()
        victim = voter(server, seed)
        victim.step_through()
        assert server.opened is not None, "it works: nothing tells invented voters from real ones"
        noise.append(server.opened - true_votes[-1])
        (charge,) = victim.charges()
        assert charge["epsilon"] == pytest.approx(3.62, abs=0.01)
        assert charge[EPSILON_ALONE] == pytest.approx(13.7, abs=0.1)
    assert len({vote.tobytes() for vote in true_votes}) == READERS, "without noise it would tell them apart"
    share = GATE.sigma * 2.0**-GATE.fraction_bits
    drawn = np.concatenate(noise) / share
    assert chi2.ppf(1e-6, len(drawn)) <= float(drawn @ drawn) <= chi2.isf(1e-6, len(drawn))


def test_repeated_votes_on_the_same_weights_are_each_charged(asks: Asks, voter: Callable[..., Victim]) -> None:
    server = asks()
    victim = voter(server)
    votes = []
    for _ in range(4):
        outcome = victim.step_through()
        votes.append(server.opened is not None)
        server.again()
    assert votes == [True, True, False, False], "8 a day pay for two of 3.62"
    assert outcome.state == "declined"
    assert sum(charge["epsilon"] for charge in victim.charges()) <= 8


def test_gate_offered_again_under_the_same_number_gets_no_second_vote(asks: Asks, voter: Callable[..., Victim]) -> None:
    server = asks()
    victim = voter(server, epsilon_per_day_training=1e9, epsilon_per_day_alone=1e9)
    victim.step_through()
    assert server.opened is not None
    for _ in range(3):
        server.number -= 1
        server.again()
        server.stages.clear()
        victim.device.stop()
        victim.device.start()
        victim.step_through()
        assert server.opened is None
        assert server.stages == []
    assert len(victim.charges()) == 1


def other_weights() -> dict[str, Any]:
    wrong = pack({"beta": np.array(1.0, np.float32)})
    return {"materials": {BEFORE: BlobRef(sha256=sha256(wrong).hexdigest(), size_bytes=len(wrong))}}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"release": "r9"}, id="on a release that it doesn't hold"),
        pytest.param({"release": "r0"}, id="on a release before the first"),
        pytest.param({"model": "ranker.nowhere"}, id="on a model that there isn't"),
        pytest.param({"model": "recall"}, id="on a model that ranks nothing"),
        pytest.param({"model": None}, id="on no model"),
        pytest.param({"materials": {}}, id="without the previous weights"),
        pytest.param(other_weights(), id="with previous weights that are missing"),
        pytest.param({"shapes": {"gain": (2,), "level": (1,)}}, id="in another form"),
        pytest.param({"protection": GATE.model_copy(update={"sigma": 6_100})}, id="under a tenth of the noise"),
        pytest.param({"protection": GATE.model_copy(update={"clip": 5.0})}, id="with room for more than a vote"),
        pytest.param({"task": "full_gradient"}, id="that is a gradient"),
    ],
)
def test_malformed_vote_request_is_declined_without_charge_or_computation(
    asks: Asks, voter: Callable[..., Victim], true_votes: list[NDArray[np.float64]], changes: dict[str, Any]
) -> None:
    server = asks(**changes)
    victim = voter(server)
    outcome = victim.step_through()
    assert (outcome.state, server.stages, server.opened) in (("declined", [], None), ("idle", [], None)), outcome
    assert victim.charges() == []
    assert true_votes == []


def test_device_without_held_out_clicks_votes_too(
    asks: Asks, voter: Callable[..., Victim], true_votes: list[NDArray[np.float64]]
) -> None:
    """The server chooses the held-out share: at 0 no device can vote, and who has clicks stays unknown."""
    server = asks(held_out=0.0)
    victim = voter(server)
    victim.step_through()
    assert server.opened is not None
    assert true_votes == []
    assert [charge["epsilon"] for charge in victim.charges()] == [pytest.approx(3.62, abs=0.01)]
