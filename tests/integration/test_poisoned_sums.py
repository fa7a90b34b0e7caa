"""Poisoned sums: one malicious client of thirteen adds what it likes to its masked vector.

Real routes, coordinator, stores, trainers and secure sums. The attacker changes bytes on its own network and knows
everything public: clip, noise, the number of participants, and the limits in this repository.
"""

from __future__ import annotations

import math
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from starlette.types import Receive, Scope, Send

from backend.db.engine import reading_session
from backend.db.tables import NewsCountRow, NewsRow
from backend.federation.protections.sum_bounds import noise_deviation, noise_length, noise_reach
from backend.federation.systems import COMPOSED
from backend.news.item import NewsItem
from backend.news.pool import NewsPool
from device_app.settings import PrivacySettings
from protocol.protections import SecureSum
from protocol.rounds import RoundStatus
from tests.doubles.clock import StillClock
from tests.doubles.in_process import InProcess
from tests.doubles.long_form import by_length
from tests.doubles.malicious_client import ForgingTransport
from tests.doubles.news import NOW, synthetic_pool
from tests.doubles.round_rig import DIM, FEATURES, BackendRig, DeviceRig
from tests.doubles.simulated_reader import simulated_reader

DEVICES, NEWS = 13, 64
MODEL = "ranker.features"
COORDINATES = 1 + len(FEATURES)
RATE = 0.1
ALLOWS = PrivacySettings(
    training=True, epsilon_per_day_training=100, epsilon_per_day_counts=100, secure_sum="exact", smallest_sum=3
)
Added = NDArray[np.int64]


@dataclass
class PoisonedRound:
    """A server and thirteen devices; the first one's network is the attacker's."""

    backend: BackendRig
    attacker: ForgingTransport
    devices: list[DeviceRig] = field(default_factory=list)
    clicks: Counter[str] = field(default_factory=Counter)

    def run(self, system: str, added: Added | None, minimum: int = 10) -> RoundStatus:
        self.attacker.added = added
        coordinator = self.backend.coordinator
        opened = coordinator.open_round(system, cohort=DEVICES, cohort_minimum=minimum, seconds=60.0)
        for _ in range(8):
            for device in self.devices:
                device.trainer.step()
            coordinator.step()
            if coordinator.current() is None:
                break
        assert self.attacker.sent == (added is not None), "the attacker's message was taken"
        return coordinator.status(opened.round)

    def weights(self, release: str) -> NDArray[np.float64]:
        found = self.backend.releases.weights(self.backend.releases.manifest(release), MODEL)
        return np.concatenate([found[name].astype(np.float64).ravel() for name in sorted(found)])

    def counted(self, column: str) -> dict[str, float]:
        with reading_session(self.backend.engine) as session:
            rows = session.query(NewsRow.id, getattr(NewsCountRow, column)).join(
                NewsCountRow, NewsCountRow.news == NewsRow.number
            )
            return {row[0]: row[1] for row in rows}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[PoisonedRound]:
    with made_world(tmp_path) as world:
        yield world


@contextmanager
def made_world(folder: Path, allows: PrivacySettings = ALLOWS) -> Iterator[PoisonedRound]:
    (folder / "backend").mkdir(parents=True)
    backend = BackendRig.make(folder / "backend", StillClock(NOW + timedelta(days=1)))
    news = [
        NewsItem(
            id=f"count{row:02}",
            title=f"Headline number {row} of its own",
            section="s",
            topic="t",
            published_at=NOW - timedelta(hours=row),
        )
        for row in range(NEWS)
    ]
    NewsPool(backend.engine).add(news, source="test")
    pool = synthetic_pool(240, dim=DIM)
    first = folder / "first.sqlite"

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        """Forward to whichever server process is running."""
        await made.backend.app(scope, receive, send)

    with ExitStack() as stack:
        network = InProcess(served)
        stack.callback(network.close)
        made = PoisonedRound(backend, ForgingTransport(network))
        for number in range(DEVICES):
            path = folder / f"device-{number}.sqlite"
            if number:
                shutil.copy(first, path)
            device = DeviceRig(
                path,
                backend.clock,
                network if number else made.attacker,
                allows,
                seed=number,
                blob_folder=folder / "blobs",
            )
            if not number:
                device.sync()
                device.stop()
                shutil.copy(path, first)
                device.start()
            stack.callback(device.stop)
            rng = np.random.default_rng(number)
            device.read(simulated_reader(pool, rng), pool)
            shown = [f"count{row:02}" for row in rng.choice(NEWS, size=20, replace=False)]
            at = backend.clock() - timedelta(hours=1)
            device.stores.impressions.record("counted", shown, at)
            for news_id in shown[:3]:
                device.stores.clicks.add(news_id, "counted", at + timedelta(minutes=5))
            made.clicks.update(shown[:3])
            made.devices.append(device)
        yield made


def protection_of(system: str) -> SecureSum:
    protection = COMPOSED[system].protection
    assert isinstance(protection, SecureSum)
    return protection


def forged_weights(length: float, direction: NDArray[np.float64]) -> Added:
    """Return a false vector of this length in the numbers' own unit; the count at the end stays."""
    steps = np.rint(
        direction
        / np.linalg.norm(direction)
        * length
        * 2.0 ** protection_of("small_ranker/secure/median").fraction_bits
    )
    return np.append(steps.astype(np.int64), 0)


LENGTHS: dict[str, Callable[[], float]] = {
    "a step of noise": lambda: noise_deviation(protection_of("small_ranker/secure/median"), DEVICES),
    "within ten times the noise": lambda: 4.0,
    "all that the ring has": lambda: 32_000.0,
}


@pytest.mark.long_form
@pytest.mark.parametrize("length", list(LENGTHS)[: by_length(2, long=3)])
def test_forged_vector_moves_weights_no_further_than_the_rate_times_the_clip(world: PoisonedRound, length: str) -> None:
    """Regression: a false 4 in a sum of 13 passed, since ten times the noise's length was accepted."""
    direction = np.array([0.0, -1.0, 1.0])
    status = world.run("small_ranker/secure/median", forged_weights(LENGTHS[length](), direction))

    protection = protection_of("small_ranker/secure/median")
    moved = np.linalg.norm(world.weights(world.backend.releases.require_current().release) - world.weights("r1"))
    assert moved <= RATE * protection.clip * (1 + 1e-5), "a step is at most the rate times the clip"
    if status.state == "failed":
        assert "honest updates allow" in (status.reason or "")
        assert moved == 0
    else:
        assert LENGTHS[length]() <= protection.clip * DEVICES + 2 * noise_length(
            noise_deviation(protection, DEVICES), COORDINATES
        ), "what can't be noise is refused"


def test_honest_sum_of_the_default_ranker_is_accepted(world: PoisonedRound) -> None:
    status = world.run("small_ranker/secure/median", None)
    assert (status.state, status.survivors) == ("applied", DEVICES), status.reason


COUNT_LIES: dict[str, Callable[[float, float], tuple[int, float]]] = {
    # Of how many news, and how many clicks each; from the noise's deviation and its tail. The short form has the first
    # three: one that is accepted, and the two that once were.
    "clicks for one": lambda deviation, tail: (1, tail * 0.8),
    "three hundred for one": lambda deviation, tail: (1, 300.0),
    "thirty for each": lambda deviation, tail: (NEWS, 30.0),
    "some for each": lambda deviation, tail: (NEWS, 0.9 * deviation),
    "minus three hundred for one": lambda deviation, tail: (1, -300.0),
}


@pytest.mark.long_form
@pytest.mark.parametrize("name", list(COUNT_LIES)[: by_length(3, long=5)])
def test_forged_clicks_are_bounded_by_one_devices_share_and_the_noise(world: PoisonedRound, name: str) -> None:
    """Regression: 300 clicks on one article were counted, and 30 on each of 64: 1,920."""
    protection = protection_of("private_counts/secure/huber")
    deviation = noise_deviation(protection, DEVICES)
    tail = noise_reach(deviation, 2 * NEWS)
    few, clicks = COUNT_LIES[name](deviation, tail)
    added = np.zeros(2 * NEWS + 1, dtype=np.int64)
    added[:few] = round(clicks * 2**protection.fraction_bits)  # 'clicked' stands before 'displayed'
    status = world.run("private_counts/secure/huber", added)

    if status.state == "failed":
        assert "honest updates allow" in (status.reason or "")
        assert world.counted("clicks") == {}
        return
    counted = world.counted("clicks")
    forged = np.array([counted[f"count{row:02}"] - world.clicks[f"count{row:02}"] for row in range(NEWS)])
    assert np.abs(forged).max() <= 1 + tail, "one device gives one click for a piece of news"
    honest_total = DEVICES * 5
    assert abs(forged.sum()) <= honest_total + 6.2 * deviation * math.sqrt(NEWS), "and five in all"
