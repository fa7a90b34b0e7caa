"""Python and browser devices in the same secure rounds of a real backend over HTTP.

Oracles: numpy's sum of the contributed vectors with their noise; and the displays and clicks put into the stores.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import timedelta
from hashlib import sha256
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from numpy.typing import NDArray
from starlette.types import Receive, Scope, Send

from backend.db.engine import reading_session
from backend.db.tables import NewsCountRow, NewsRow
from backend.federation.optimizers import Sgd
from backend.federation.rounds.queue import RoundQueue
from backend.federation.systems import COMPOSED
from backend.news.item import NewsItem
from backend.news.pool import NewsPool
from device_app.background import Background
from device_app.privacy.protections.registry import SecureSumProtection
from device_app.privacy.secagg.messages import Contribution
from device_app.settings import PrivacySettings
from device_app.training.due_updates import DueUpdates
from device_app.training.participant import Outcome
from exporters.architectures import architectures
from exporters.package import export_once
from exporters.parity import FULL, ONE, SOME, draw_inputs
from protocol.protections import SecureSum
from protocol.rounds import RoundStatus
from protocol.tensors import pack
from tests.conformance.browser_devices import BrowserDevices, browser_devices
from tests.doubles.clock import StillClock
from tests.doubles.graphs import shared_graphs
from tests.doubles.long_form import by_length
from tests.doubles.news import NOW, SyntheticPool, synthetic_pool
from tests.doubles.round_rig import DIM, FEATURES, BackendRig, DeviceRig
from tests.doubles.secure_cohort import Wire
from tests.doubles.simulated_reader import PlantedReader, simulated_reader
from tests.doubles.small_world import serve_app

pytestmark = pytest.mark.node

PYTHON, BROWSER = 3, 3
DEATHS = by_length(6, long=50)
MODEL, RATE = "ranker.features", 0.1
COORDINATES = 1 + len(FEATURES)
NOISY = SecureSum(clip=1.0, sigma=700, mode="active", graph="complete")
ALLOWS = PrivacySettings(
    training=True,
    secure_sum="exact",
    smallest_sum=3,
    epsilon_per_day_training=1e6,
    epsilon_per_day_counts=1e6,
    epsilon_per_sum=1e6,
    epsilon_per_sum_alone=1e6,
    epsilon_per_click_alone=1e6,
    epsilon_per_day_alone=1e6,
)
EXACT = replace(
    COMPOSED["small_ranker/exact/mean"],
    optimizer=Sgd(learning_rate=RATE),
    protection=SecureSum(clip=1.0, weight_limit=32, mode="active", graph="complete"),
)
WITH_NOISE = replace(EXACT, name="small_ranker_noisy", protection=NOISY, join=None)


@dataclass
class MixedCohort:
    """A server over HTTP, three Python devices, three browser devices, and their contributions in the clear."""

    backend: BackendRig
    pool: SyntheticPool
    python: list[DeviceRig] = field(default_factory=list)
    vectors: list[NDArray[Any]] = field(default_factory=list)
    readers: list[PlantedReader] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.backend.app(scope, receive, send)

    def open(self, system: str, minimum: int = 3) -> RoundStatus:
        return self.backend.coordinator.open_round(system, cohort=6, cohort_minimum=minimum, seconds=600.0)

    def step(self, browsers: BrowserDevices) -> list[str]:
        """Step every device, then the server; return the results of the browsers' steps."""
        for device in self.python:
            device.trainer.step()
        found = [browsers.step(number, self.backend.clock())["state"] for number in range(BROWSER)]
        self.backend.coordinator.step()
        return found

    def status(self, number: int = 1) -> RoundStatus:
        return self.backend.coordinator.status(f"round-{number}")

    def weights(self, release: str) -> NDArray[np.float64]:
        """Return the weights in the order of a vector, which is by name."""
        found = self.backend.releases.weights(self.backend.releases.manifest(release), MODEL)
        return np.concatenate([found[name].astype(np.float64).ravel() for name in sorted(found)])


@pytest.fixture(scope="module")
def browsers(cohort: MixedCohort, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserDevices]:
    with serve_app(cohort) as url, browser_devices(tmp_path_factory.mktemp("node"), url) as found:
        folder = tmp_path_factory.mktemp("python")
        first = folder / "first.sqlite"
        with ExitStack() as stack:
            for number in range(PYTHON):
                wire = Wire(url)
                stack.callback(wire.close)
                path = folder / f"device{number}.sqlite"
                if number:
                    shutil.copy(first, path)
                device = DeviceRig(path, cohort.backend.clock, wire, ALLOWS, number, blob_folder=folder / "blobs")
                if not number:
                    device.sync()
                    device.stop()
                    shutil.copy(path, first)
                    device.start()
                device.read(cohort.readers[number], cohort.pool)
                stack.callback(device.stop)
                cohort.python.append(device)
            for number in range(BROWSER):
                key = sha256(f"noise {number}".encode()).digest()
                found.make(number, ALLOWS, cohort.backend.clock(), noise=key)
                found.read(number, cohort.readers[PYTHON + number], cohort.pool, NOW)
            yield found


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MixedCohort]:
    with pytest.MonkeyPatch.context() as patch:
        for system in (EXACT, WITH_NOISE):
            patch.setitem(COMPOSED, system.name, system)
        pool = synthetic_pool(240, dim=DIM)
        rng = np.random.default_rng(4)
        made = MixedCohort(
            BackendRig.make(tmp_path_factory.mktemp("backend"), StillClock(NOW + timedelta(days=1))), pool
        )
        made.readers = [simulated_reader(pool, rng) for _ in range(PYTHON + BROWSER)]
        news = [
            NewsItem(
                id=card.id, title=card.title, section=card.section, topic=card.topic, published_at=card.published_at
            )
            for card in pool.cards
        ]
        NewsPool(made.backend.engine).add(news, source="test")
        give = SecureSumProtection.contribute

        def recording(*args: Any, **kwargs: Any) -> Contribution:
            given = give(*args, **kwargs)
            made.vectors.append(given.vector)
            return given

        patch.setattr(SecureSumProtection, "contribute", recording)
        yield made


def number_of(status: RoundStatus) -> int:
    return int(status.round.removeprefix("round-"))


def run_round(
    cohort: MixedCohort, browsers: BrowserDevices, system: str
) -> tuple[RoundStatus, list[NDArray[np.int64]]]:
    """Run a whole round; return how it ended and the vectors of all six as integers."""
    before = [len(browsers.kept(number)["vectors"]) for number in range(BROWSER)]
    cohort.vectors.clear()
    number = number_of(cohort.open(system))
    for _ in range(9):
        cohort.step(browsers)
        if cohort.status(number).state in ("applied", "failed"):
            break
    theirs = [
        np.frombuffer(bytes.fromhex(vector), dtype="<u4")
        for one in range(BROWSER)
        for vector in browsers.kept(one)["vectors"][before[one] :]
    ]
    return cohort.status(number), [each.astype(np.int64) for each in (*cohort.vectors, *theirs)]


@pytest.mark.parametrize("system", [EXACT.name, WITH_NOISE.name])
def test_sum_of_a_mixed_round_is_the_sum_of_its_contributions_plus_noise(
    cohort: MixedCohort, browsers: BrowserDevices, system: str
) -> None:
    for number in range(BROWSER):
        browsers.ask("sync", number)
    for device in cohort.python:
        device.sync()
    before = cohort.python[0].release()
    status, vectors = run_round(cohort, browsers, system)
    assert (status.state, status.survivors) == ("applied", 6), status.reason
    assert len(vectors) == 6
    total = np.sum(vectors, axis=0) & 0xFFFFFFFF
    centred = total.astype(np.uint32).view(np.int32).astype(np.float64)
    protection = COMPOSED[system].protection
    assert isinstance(protection, SecureSum)
    mean = centred[:-1] * 2.0**-protection.fraction_bits / centred[-1]
    assert status.published is not None
    moved = (cohort.weights(before) - cohort.weights(status.published)) / RATE
    rounding = np.spacing(np.abs(cohort.weights(before)).astype(np.float32)).max() / RATE
    np.testing.assert_allclose(moved, mean, rtol=0, atol=2.0 ** -(protection.fraction_bits + 1) + rounding)
    assert np.abs(mean).max() > 0.01
    if protection.sigma:  # beta has no gradient: all that stands there is noise
        codes = np.array(vectors).astype(np.uint32).view(np.int32)
        assert (codes[:, 0] != 0).all()
        assert np.abs(codes[:, 0]).max() < 6 * protection.sigma
        price = protection.epsilon(3, COORDINATES)
        for number in range(BROWSER):
            charge = next(each for each in browsers.kept(number)["charges"] if each["subject"] == status.round)
            assert charge["epsilon"] == pytest.approx(price)


def test_mixed_count_matches_what_readers_saw_and_opened(cohort: MixedCohort, browsers: BrowserDevices) -> None:
    displayed: Counter[str] = Counter()
    clicked: Counter[str] = Counter()
    cohort.backend.clock.go_on(40 * 3_600)  # what the readers did before is older than a count looks
    at = cohort.backend.clock() - timedelta(minutes=30)
    ids = [card.id for card in cohort.pool.cards]
    for number in range(PYTHON + BROWSER):
        shown = ids[number * 5 : number * 5 + 12]
        reader = replace_reader(cohort.readers[number], f"count{number}", shown, shown[:2], at)
        if number < PYTHON:
            cohort.python[number].read(reader, cohort.pool)
        else:
            browsers.read(number - PYTHON, reader, cohort.pool, NOW)
        displayed.update(shown)
        clicked.update(shown[:2])
    status, _ = run_round(cohort, browsers, "private_counts/exact/mean")
    assert (status.state, status.survivors) == ("applied", 6), status.reason
    with reading_session(cohort.backend.engine) as session:
        rows = (
            session.query(NewsRow.id, NewsCountRow.displays, NewsCountRow.clicks)
            .join(NewsCountRow, NewsCountRow.news == NewsRow.number)
            .where(NewsCountRow.round == number_of(status))
            .all()
        )
    assert len(rows) > 30
    for news_id, displays, clicks in rows:
        assert (displays, clicks) == (displayed[news_id], clicked[news_id]), news_id
    for number in range(BROWSER):
        (taken,) = browsers.kept(number)["counts"]
        assert (taken["displayed"], taken["clicked"]) == (12, 2)


def test_events_in_one_count_are_zeros_in_a_concurrent_count(
    cohort: MixedCohort, browsers: BrowserDevices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server opens two counts at once, and both are computed before the first is charged.

    Regression: each device failed and left the second count when it came to pay, unless it gave zeros for another
    reason.
    """
    clock, numbers = cohort.backend.clock, range(20, 20 + BROWSER)
    clock.go_on(40 * 3_600)
    at = clock() - timedelta(minutes=30)
    shown = [card.id for card in cohort.pool.cards][:12]
    for device in cohort.python:
        device.sync()
        device.read(replace_reader(cohort.readers[0], "two counts", shown, shown[:2], at), cohort.pool)
        monkeypatch.setattr(device.trainer, "_updates", DueUpdates(clock, 30.0, Random(0)))
    for number in numbers:
        browsers.make(number, ALLOWS, clock(), noise=sha256(f"noise {number}".encode()).digest(), send_sec=30.0)
        browsers.read(number, replace_reader(cohort.readers[0], "two counts", shown, shown[:2], at), cohort.pool, NOW)
    cohort.vectors.clear()
    monkeypatch.setattr(RoundQueue, "held_by", lambda *_, **__: None)  # an honest server opens one count at a time
    rounds = [cohort.open("private_counts/exact/mean").round for _ in range(2)]
    for _ in range(24):
        for device in cohort.python:
            device.trainer.step()
            for update in device.trainer._due.values():
                assert update._done.wait(60)
        for number in numbers:
            browsers.step(number, clock())
            browsers.ask("computed", number)
        clock.go_on(5.0)
        cohort.backend.coordinator.step()
    kept = [browsers.kept(number) for number in numbers]
    for round_id in rounds:
        stands = [device.stores.participations.get(round_id) for device in cohort.python]
        states = [each and each.state for each in stands]
        states += [each["state"] for one in kept for each in one["rounds"] if each["round"] == round_id]
        assert states == ["applied"] * 6
    given = [np.frombuffer(bytes.fromhex(vector), "<u4") for one in kept for vector in one["vectors"]]
    assert sorted(bool(vector[:-1].any()) for vector in (*cohort.vectors, *given)) == [False] * 6 + [True] * 6
    taken = [(each["displayed"], each["clicked"]) for one in kept for each in one["counts"]]
    taken += [(each.displayed, each.clicked) for device in cohort.python for each in device.stores.counted.list(1)]
    assert taken == [(12, 2)] * 6


def replace_reader(reader: PlantedReader, feed: str, shown: list[str], clicked: list[str], at: Any) -> PlantedReader:
    """Return the same reader with one feed alone."""
    one = replace(reader.feeds[0], feed_id=feed, at=at, shown=tuple(shown), clicked=tuple(clicked))
    clicks = tuple(replace(reader.clicks[0], news_id=each, feed_id=feed, at=at) for each in clicked)
    return PlantedReader((one,), clicks)


@pytest.mark.long_form
def test_killed_browser_device_is_charged_once_and_logs_every_request(
    cohort: MixedCohort, browsers: BrowserDevices
) -> None:
    rng = np.random.default_rng(11)
    for number in range(BROWSER):
        browsers.ask("sync", number)
    for device in cohort.python:
        device.sync()
    deaths, rounds, survived = 0, set[str](), 0
    while deaths < DEATHS:
        opened = cohort.open(WITH_NOISE.name)
        rounds.add(opened.round)
        assert len(rounds) < 12
        while cohort.status(number_of(opened)).state not in ("applied", "failed"):
            for device in cohort.python:
                device.trainer.step()
            for number in range(BROWSER):
                for _ in range(2):
                    left = int(rng.integers(1, 50))
                    deaths += browsers.step(number, cohort.backend.clock(), left=left)["killed"]
            cohort.backend.clock.go_on(2)
            cohort.backend.coordinator.step()
    for number in range(BROWSER):
        kept = browsers.kept(number)
        charged = {each["subject"]: each["payload_sha256"] for each in kept["charges"] if each["subject"] in rounds}
        assert len(charged) == sum(each["subject"] in rounds for each in kept["charges"])  # once a round
        assert charged == {each["round"]: each["payload_sha256"] for each in kept["uploads"] if each["round"] in rounds}
        assert not Counter(map(tuple, kept["sent"])) - Counter((each["method"], each["url"]) for each in kept["logged"])
        for each in kept["logged"]:
            if each["method"] == "PUT" and "/masked/" in each["url"]:
                of = each["url"].split("/rounds/")[1].split("/")[0]
                assert of not in rounds or each["body_sha256"] == charged[of]
        survived += sum(each["state"] in ("uploaded", "applied") for each in kept["rounds"] if each["round"] in rounds)
    assert survived, "some vectors of devices that were killed arrived all the same"


def test_browser_request_times_do_not_depend_on_reading(cohort: MixedCohort, browsers: BrowserDevices) -> None:
    """The attacker is the server.

    Regression: a device checked in only while its reader was idle and had five clicks, and sent its vector as soon as
    it was computed.
    """
    rest, reads, never = range(BROWSER, BROWSER + 3)
    clock = cohort.backend.clock
    for number in (rest, reads, never):
        browsers.make(number, ALLOWS, clock(), noise=sha256(f"noise {number}".encode()).digest(), send_sec=4.0)
        if number != never:
            browsers.read(number, cohort.readers[number - BROWSER], cohort.pool, NOW)
    for device in cohort.python:
        device.sync()
    opened = cohort.open(EXACT.name)
    seen: dict[int, list[list[tuple[str, str]]]] = {number: [] for number in (rest, reads, never)}
    for _ in range(20):
        for device in cohort.python:
            device.trainer.step()
        for number, steps in seen.items():
            if number == reads:
                card = cohort.pool.cards[len(steps)]
                one = {"id": f"now {len(steps)}", "shown": [card.id], "at": clock().timestamp() * 1_000}
                click = {"news": card.id, "feed": one["id"], "at": one["at"]}
                nothing = {"cards": [], "vectors": "", "width": DIM, "now": one["at"]}
                browsers.ask("read", {"number": number, "feeds": [one], "clicks": [click], **nothing})
            before = len(browsers.kept(number)["sent"])
            browsers.step(number, clock())
            if number == rest:
                browsers.ask("computed", number)
            sent = browsers.kept(number)["sent"][before:]
            steps.append([(method, "/".join(url.split("/")[3:7])) for method, url in sent])
        clock.go_on(1.0)
        cohort.backend.coordinator.step()
    assert cohort.status(number_of(opened)).state == "applied"
    assert seen[rest] == seen[reads] == seen[never]
    stages = ["/".join(each).split("/")[-1] for step in seen[rest] for each in step]
    assert {"check-in", "keys", "shares", "masked", "agree", "unmask"} <= set(stages)
    joined, masked = (
        next(
            at
            for at, step in enumerate(seen[rest])
            if any(method == "PUT" and path.endswith(stage) for method, path in step)
        )
        for stage in ("keys", "masked")
    )
    assert masked - joined == 4, "its moment, whatever the computation takes"
    vectors = {number: np.frombuffer(bytes.fromhex(browsers.kept(number)["vectors"][0]), "<u4") for number in seen}
    assert vectors[rest].any()
    assert not vectors[never].any(), "zeros that weigh nothing"


def test_browser_pauses_match_the_python_device(browsers: BrowserDevices) -> None:
    """Both have the same draws and the same durations of steps. A server can only lengthen the pauses."""
    ends: tuple[dict[str, float] | None, ...] = (
        None,
        {},
        {"notBeforeSec": 1.0},
        {"notBeforeSec": 100.0},
        {"againSec": 1.0},
        {"againSec": 1.0, "notBeforeSec": 9.0},
    )
    chances = np.random.default_rng(8).random(1 + 2 * len(ends)).tolist()
    found = browsers.ask("pauses", {"ends": ends, "chances": chances, "everySec": 15.0})

    drawn = iter(chances)
    chance = SimpleNamespace(uniform=lambda low, high: low + (high - low) * next(drawn), random=lambda: next(drawn))
    performance = SimpleNamespace(training_poll_sec=15.0)
    host = SimpleNamespace(
        settings=SimpleNamespace(performance=performance), parts=SimpleNamespace(watch=None), sync=None, copy_step=None
    )
    background = Background(host, chance)  # type: ignore[arg-type]
    due = [15.0 * chance.random()]
    for end in ends:
        reported = end or {}
        background._outcome = (
            None
            if end is None
            else Outcome("idle", again_sec=reported.get("againSec"), not_before_sec=reported.get("notBeforeSec", 0.0))
        )
        due.append(background._until_next_step(15.0))
    assert found == pytest.approx(due)
    assert all(pause >= 7.5 for pause in due[1:5])


def test_wasm_gradient_of_the_default_ranker_matches_the_native_one(browsers: BrowserDevices) -> None:
    name = "feature_ranker"
    kind = architectures()[name]
    model = kind.build()
    specs = kind.graphs(model)
    exported = export_once(name, kind.kind, model, specs, shared_graphs())
    spec = next(each for each in specs if each.purpose == "gradient")
    drawn = draw_inputs(spec, (FULL, SOME, ONE), torch.Generator().manual_seed(3))
    inputs = {each: np.ascontiguousarray(value.numpy()) for each, value in drawn.items()}
    session = onnxruntime.InferenceSession(exported.graphs["gradient"], providers=["CPUExecutionProvider"])
    weights = {f"p.{each}": value for each, value in exported.weights.items()}
    names = [output.name for output in session.get_outputs()]
    declared = [each.name for each in session.get_inputs()]
    given = {each: value for each, value in (weights | inputs).items() if each in declared}
    native = dict(zip(names, session.run(names, given), strict=True))
    asked = {"graph": exported.graphs["gradient"], "weights": pack(exported.weights), "inputs": pack(inputs)}
    found = browsers.ask("gradient", {each: value.hex() for each, value in asked.items()})
    assert set(found) == set(native)
    assert sum(value.size for value in native.values()) == 1 + 262
    for each, value in native.items():
        np.testing.assert_allclose(found[each], value.ravel(), rtol=0, atol=1e-5)
    assert max(np.abs(value).max() for value in native.values()) > 1e-3
