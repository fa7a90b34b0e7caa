"""Following docs/add-a-protection.md is enough: a toy protection, known only to the registries, completes a round.

The toy is one-bit randomised response (Duchi, Jordan, Wainwright 2013): of each coordinate only a noisy sign is sent,
scaled to be right on average. Oracles: the release moves by a mean of signs alone, and a device is charged epsilon for
each coordinate.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pytest
from pydantic import Field

from backend.federation import protections
from backend.federation.bounded_mean import Shapes
from backend.federation.optimizers import Sgd
from backend.federation.protections import registry as on_the_server
from backend.federation.protections.protection import LocalCost, ServerProtection, UpdateCost, WriteNumber
from backend.federation.protections.sum_bounds import UploadRules
from backend.federation.systems import COMPOSED
from device_app.errors import ProtectionTooWeak
from device_app.privacy.accounting.cost_of_sums import OneClick, SumsAlone
from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.clipping import clip_elementwise
from device_app.privacy.exact_samplers import bernoulli_exp, randomised_response
from device_app.privacy.noise_sources import NoiseSource
from device_app.privacy.protections import registry as on_the_device
from device_app.privacy.protections.local_laplace import NoisyUpdate
from device_app.privacy.protections.protection import ComputedUpdate, DeviceProtection
from device_app.privacy.sealed import SAFETENSORS, Charge, Sealed, close, digest
from device_app.privacy.secagg.messages import Contribution
from device_app.settings import PrivacySettings
from device_app.training.participant import Outcome
from protocol.ids import Message
from protocol.protections import LocalLaplace, SecureSum
from protocol.ring import RingVector, WeightedSum
from protocol.rounds import RoundManifest
from protocol.secagg import SumTerms
from protocol.tensors import pack
from protocol.union import UnionMarks
from tests.doubles.checklists import files_to_touch
from tests.doubles.clock import StillClock
from tests.doubles.in_process import InProcess
from tests.doubles.news import NOW, synthetic_pool
from tests.doubles.round_rig import BASIS, DIM, BackendRig, DeviceRig
from tests.doubles.simulated_reader import simulated_reader

DEVICES, COORDINATES, RATE = 3, 2 * BASIS * DIM, 0.05
WEAKEST = 2.0
"""The epsilon a coordinate that readers still accept from the toy."""


class NoisySigns(Message):
    """The class for protocol/protections.py: the value, and its figures for both sides."""

    kind: Literal["noisy_signs"] = "noisy_signs"
    clip: float = Field(default=0.1, gt=0)
    epsilon: float = Field(default=0.5, gt=0, description="Of one coordinate.")

    @property
    def size(self) -> float:
        """Return the size of every number sent: clip (e^eps + 1) / (e^eps - 1), so that it is right on average."""
        return self.clip / math.tanh(self.epsilon / 2)


@dataclass(frozen=True)
class NoisySignsProtection:
    """The class for device_app/privacy/protections/registry.py."""

    protection: NoisySigns

    def check(self, privacy: PrivacySettings) -> None:
        if self.protection.epsilon > WEAKEST:
            raise ProtectionTooWeak(f"epsilon {self.protection.epsilon:g} a sign; at most {WEAKEST:g} is allowed.")

    def check_again(self, manifest: RoundManifest, privacy: PrivacySettings) -> None:
        self.check(privacy)

    def price(
        self,
        manifest: RoundManifest,
        coordinates: int,
        privacy: PrivacySettings,
        alone: SumsAlone,
        one_click: OneClick | None,
    ) -> float:
        return self.protection.epsilon * coordinates

    def seal(
        self, update: ComputedUpdate, manifest: RoundManifest, *, ledger: Ledger, noise: NoiseSource
    ) -> Sealed[NoisyUpdate]:
        clipped = clip_elementwise(update.shared, self.protection.clip)
        noisy = {name: self._signs(tensor, noise) for name, tensor in clipped.tensors.items()}
        payload = pack(noisy)
        charge = Charge(
            channel=update.channel,
            mechanism=self.protection.kind,
            parameters={"clip": clipped.bound, "epsilon": self.protection.epsilon},
            epsilon=self.protection.epsilon * clipped.coordinates,
            payload_sha256=digest(payload),
            subject=manifest.round,
        )
        ledger.spend(charge)
        return close(NoisyUpdate(manifest.round, noisy), payload, SAFETENSORS, charge, "Noisy signs of an update.")

    def contribute(
        self, update: ComputedUpdate, manifest: RoundManifest, *, noise: NoiseSource, delta: float
    ) -> Contribution:
        raise ValueError("protection: noisy_signs is for single uploads, not for secure sums")

    def _signs(self, tensor: np.ndarray, noise: NoiseSource) -> np.ndarray:
        """Return signs: 1 with probability (1 + x / clip) / 2, then randomised response at epsilon."""
        chances = (1 + tensor.ravel() / self.protection.clip) / 2
        losses = np.rint(-np.log(np.maximum(chances, 1e-9)) * 2**20).astype(np.int64)
        up = bernoulli_exp(noise, losses, 2**20).astype(np.int64)
        reported = randomised_response(noise, up, 2, self.protection.epsilon)
        return ((2 * reported - 1) * self.protection.size).astype(np.float32).reshape(tensor.shape)


@dataclass(frozen=True)
class NoisySignsUpdates:
    """The class for a new file in backend/federation/protections/."""

    protection: NoisySigns
    summed: bool = False
    radius: float | None = None
    delta: float | None = None

    def terms(self, round_id: str, *, cohort: int, cohort_minimum: int, coordinates: int) -> SumTerms | None:
        return None

    def upload_rules(self, shapes: Shapes) -> UploadRules:
        return UploadRules.of(shapes, self.protection.size * (1 + 1e-6))

    def decode(self, shapes: Shapes, terms: SumTerms, total: RingVector, survivors: int) -> WeightedSum:
        raise ValueError("protection: noisy_signs has no secure sum to open")

    def check(self, sums: WeightedSum, survivors: int) -> None:
        raise ValueError("protection: noisy_signs has no secure sum to open")

    def account(self, coordinates: int, survivors: int | None) -> UpdateCost:
        mine = self.protection
        return UpdateCost(LocalCost(mine.clip, mine.size, mine.epsilon, mine.epsilon * coordinates))

    def noise_variance(self, devices: int) -> float:
        return devices * self.protection.size**2

    def describe(self, number: WriteNumber) -> str:
        return f"Of every number only a sign leaves, which is true at odds of e^{number(self.protection.epsilon)}."


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Register the toy in those of the checklist's files that a round runs through.

    These are a member of the wire's union, an entry in the device's registry, and a file that the server's registry
    finds. The classes above stand in the same three files, so the rounds below would fail if a fourth file were needed.
    Without the browser's form or the example, the wire's tests fail (`test_wire_round_trip`, `test_messages`).
    """
    assert files_to_touch("add-a-protection") == [
        "protocol/protections.py",
        "web/device/protocol/protections.ts",
        "tests/doubles/wire_messages.py",
        f"{on_the_device.__name__.replace('.', '/')}.py",
        f"{on_the_server.__name__.rpartition('.')[0].replace('.', '/')}/",
        "backend/federation/systems/composition.py",
    ]
    monkeypatch.setitem(on_the_device.PROTECTIONS, "noisy_signs", NoisySignsProtection)
    monkeypatch.setitem(on_the_server.PROTECTIONS, "noisy_signs", NoisySignsUpdates)
    field = RoundManifest.model_fields["protection"]
    before = field.annotation
    # The union is a type, so a member is added for the test by building the manifest's validator again.
    field.annotation = Annotated[LocalLaplace | SecureSum | UnionMarks | NoisySigns, Field(discriminator="kind")]
    RoundManifest.model_rebuild(force=True)
    yield
    field.annotation = before
    RoundManifest.model_rebuild(force=True)


@dataclass
class BackendAndDevices:
    backend: BackendRig
    devices: list[DeviceRig]

    def run(self, protection: NoisySigns, monkeypatch: pytest.MonkeyPatch) -> list[Outcome]:
        spec = replace(COMPOSED["uni_fedrec"], name="toy", optimizer=Sgd(RATE), protection=protection)  # type: ignore[arg-type]
        monkeypatch.setitem(COMPOSED, "toy", spec)
        self.backend.coordinator.open_round("toy", cohort=DEVICES, cohort_minimum=2, seconds=60.0)
        outcomes = [device.trainer.step() for device in self.devices]
        self.backend.coordinator.step()
        return outcomes


@pytest.fixture
def world(tmp_path: Path) -> Iterator[BackendAndDevices]:
    (tmp_path / "backend").mkdir()
    backend = BackendRig.make(tmp_path / "backend", StillClock(NOW + timedelta(days=1)))
    network, pool, rng = InProcess(backend.app), synthetic_pool(240, dim=DIM), np.random.default_rng(2)
    devices = []
    for number in range(DEVICES):
        device = DeviceRig(tmp_path / f"device{number}.sqlite", backend.clock, network, seed=number)
        device.sync()
        device.read(simulated_reader(pool, rng), pool)
        devices.append(device)
    yield BackendAndDevices(backend, devices)
    for device in devices:
        device.stop()
    network.close()


@pytest.mark.usefixtures("registered")
def test_registering_a_protection_is_enough_to_offer_charge_and_sum_it(
    world: BackendAndDevices, monkeypatch: pytest.MonkeyPatch
) -> None:
    signs = NoisySigns(clip=0.1, epsilon=0.5)
    world.run(signs, monkeypatch)

    status = world.backend.coordinator.status("round-1")
    assert (status.state, status.uploaded, status.published) == ("applied", DEVICES, "r2"), status.reason
    before, after = (
        world.backend.releases.weights(world.backend.releases.manifest(each), "recall") for each in ("r1", "r2")
    )
    for name in before:
        reported = (before[name] - after[name]) / RATE / signs.size * DEVICES
        odd = np.rint((reported - 1) / 2) * 2 + 1  # three signs add up to -3, -1, 1 or 3
        np.testing.assert_allclose(reported, odd, atol=1e-3)
        assert np.abs(odd).max() <= DEVICES
        assert len(np.unique(odd)) > 1
    for device in world.devices:
        (charge,) = device.stores.ledger_entries.entries().rows
        assert (charge.channel, charge.mechanism) == ("training", "noisy_signs")
        assert charge.epsilon == pytest.approx(0.5 * COORDINATES)


@pytest.mark.usefixtures("registered")
def test_device_declines_a_too_weak_protection_and_pays_nothing(
    world: BackendAndDevices, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = world.run(NoisySigns(epsilon=3.0), monkeypatch)
    assert {each.state for each in outcomes} == {"declined"}
    assert all("at most 2" in str(each.why) for each in outcomes)
    assert world.backend.coordinator.status("round-1").uploaded == 0
    for device in world.devices:
        assert device.stores.ledger_entries.entries().rows == ()


def test_server_discovers_protections_by_file_and_refuses_duplicate_kinds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protections, "__path__", [*protections.__path__, str(tmp_path)])
    text = f"from {__name__} import NoisySignsUpdates\nPROTECTIONS = {{'noisy_signs': NoisySignsUpdates}}\n"
    for file in ("noisy_signs_file", "second_noisy_signs_file"):
        monkeypatch.delitem(sys.modules, f"{protections.__name__}.{file}", raising=False)
    (tmp_path / "noisy_signs_file.py").write_text(text)
    assert on_the_server.discovered() == on_the_server.PROTECTIONS | {"noisy_signs": NoisySignsUpdates}
    (tmp_path / "second_noisy_signs_file.py").write_text(text)
    with pytest.raises(ValueError, match="second_noisy_signs_file: PROTECTIONS has noisy_signs"):
        on_the_server.discovered()


def test_toy_protection_implements_both_the_device_and_the_server_interface() -> None:
    device: DeviceProtection = NoisySignsProtection(NoisySigns())
    server: ServerProtection = NoisySignsUpdates(NoisySigns())
    local = server.account(10, None).local
    assert local is not None
    assert local.upload == pytest.approx(5.0)
    device.check(PrivacySettings())
