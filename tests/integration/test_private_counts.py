"""Private counts over HTTP: real routes, coordinator, stores and trainers.

Oracle: the readers' displays and clicks, counted here from what the test wrote into the devices' stores.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import httpx
import numpy as np
import pytest
from starlette.types import Receive, Scope, Send

from backend.db.engine import reading_session
from backend.db.tables import NewsCountRow, NewsRow
from backend.federation.errors import SumStageClosed
from backend.federation.systems import COMPOSED
from backend.federation.systems.composition import SystemSpec
from backend.news.item import NewsItem
from backend.news.pool import NewsPool
from backend.popularity.store import CountRepository
from backend.releases.blobs import ReleaseDraft
from device_app.errors import BackendRefused, BackendUnreachable
from device_app.settings import PrivacySettings
from device_app.uplink.backend_client import Uplink
from protocol.ids import Problem
from protocol.protections import SecureSum
from protocol.rounds import RoundStatus
from tests.doubles.clock import StillClock
from tests.doubles.news import NOW
from tests.doubles.opened_sums import NoisyOpening, SumNoise, spent_on
from tests.doubles.round_rig import BackendRig, DeviceRig
from tests.doubles.small_world import serve_app

DEVICES, NEWS = 6, 30
ENOUGH = 12
"""More than the ten that a device with default settings wants beside it in a sum."""
ALLOWS = PrivacySettings(secure_sum="exact", smallest_sum=3, epsilon_per_day_counts=100)
SHOWN, OPENED = 12, 3


@dataclass
class CountingCohort:
    """A server over HTTP, a pool of thirty articles, and devices whose readers have not switched training on."""

    backend: BackendRig
    devices: list[DeviceRig] = field(default_factory=list)
    displays: Counter[str] = field(default_factory=Counter)
    clicks: Counter[str] = field(default_factory=Counter)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.backend.app(scope, receive, send)

    def open(self, system: str = "private_counts/exact/mean", minimum: int = 3) -> RoundStatus:
        return self.backend.coordinator.open_round(
            system, cohort=len(self.devices), cohort_minimum=minimum, seconds=60.0
        )

    def all_work(self, steps: int = 7, first: int | None = None) -> None:
        """Step all devices, or the first ones."""
        for _ in range(steps):
            for device in self.devices[:first]:
                device.trainer.step()
            self.backend.coordinator.step()

    def read(self, number: int, feed: str, rng: np.random.Generator) -> None:
        """Record what one device was shown an hour ago, and clicks on the shown articles below 12, at most OPENED."""
        device, clock = self.devices[number], self.backend.clock
        at = clock() - timedelta(hours=1)
        shown = [f"n{row}" for row in rng.choice(NEWS, size=SHOWN, replace=False)]
        opened = [news_id for news_id in shown if int(news_id[1:]) < 12][:OPENED]
        device.stores.impressions.record(feed, shown, at)
        for news_id in opened:
            device.stores.clicks.add(news_id, feed, at + timedelta(minutes=5))
        device.stores.clicks.add("n29", None, at)  # found by searching: nobody counts such displays
        self.displays.update(shown)
        self.clicks.update(opened)

    def counted(self, round_number: int) -> tuple[dict[str, float], dict[str, float]]:
        """Return displays and clicks from the server's rows."""
        with reading_session(self.backend.engine) as session:
            rows = (
                session.query(NewsRow.id, NewsCountRow.displays, NewsCountRow.clicks)
                .join(NewsCountRow, NewsCountRow.news == NewsRow.number)
                .where(NewsCountRow.round == round_number)
                .all()
            )
        return {one: shown for one, shown, _ in rows}, {one: clicked for one, _, clicked in rows}

    def status(self, number: int = 1) -> RoundStatus:
        return self.backend.coordinator.status(f"round-{number}")


@pytest.fixture
def cohort(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[CountingCohort]:
    (tmp_path / "backend").mkdir()
    cohort = CountingCohort(BackendRig.make(tmp_path / "backend", StillClock(NOW + timedelta(days=1))))
    news = [
        NewsItem(
            id=f"n{row}",
            title=f"Headline number {row} of its own",
            section="s",
            topic=f"t{row % 3}",
            published_at=NOW - timedelta(hours=row),
        )
        for row in range(NEWS)
    ]
    NewsPool(cohort.backend.engine).add(news, source="test")
    with ExitStack() as stack:
        url = stack.enter_context(serve_app(cohort))
        first = tmp_path / "first.sqlite"
        for number in range(getattr(request, "param", DEVICES)):
            wire = Redirected(url)
            stack.callback(wire.close)
            path = tmp_path / f"device{number}.sqlite"
            if number:
                shutil.copy(first, path)
            device = DeviceRig(path, cohort.backend.clock, wire, ALLOWS, number, blob_folder=tmp_path / "blobs")
            if not number:
                device.sync()
                device.stop()
                shutil.copy(path, first)
                device.start()
            cohort.devices.append(device)
            cohort.read(number, "feed1", np.random.default_rng(number))
        yield cohort
        for device in cohort.devices:
            device.stop()


class Redirected(httpx.BaseTransport):
    """Real HTTP to the test's server."""

    def __init__(self, url: str) -> None:
        self.url, self.inner = httpx.URL(url), httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.url = request.url.copy_with(host=self.url.host, port=self.url.port)
        return self.inner.handle_request(request)

    def close(self) -> None:
        self.inner.close()


def protection_of(system: str) -> SecureSum:
    protection = COMPOSED[system].protection
    assert isinstance(protection, SecureSum)
    return protection


def test_counts_without_noise_are_exact(cohort: CountingCohort) -> None:
    cohort.open()
    cohort.all_work()
    status = cohort.status()
    assert (status.state, status.published, status.survivors) == ("applied", None, DEVICES), status.reason
    displays, clicks = cohort.counted(1)
    assert displays == {f"n{row}": float(cohort.displays[f"n{row}"]) for row in range(NEWS)}
    assert clicks == {f"n{row}": float(cohort.clicks[f"n{row}"]) for row in range(NEWS)}
    assert sum(clicks.values()) > 10


@pytest.mark.parametrize("cohort", [ENOUGH], indirect=True)
def test_noisy_counts_are_within_the_range_of_their_noise_and_prices_agree(cohort: CountingCohort) -> None:
    cohort.open("private_counts/secure/huber", minimum=10)
    for device in cohort.devices:
        device.privacy = PrivacySettings(epsilon_per_day_counts=6)  # but for the budget as a device comes
    cohort.all_work()
    status = cohort.status()
    assert status.state == "applied", status.reason
    displays, clicks = cohort.counted(1)
    protection = protection_of("private_counts/secure/huber")
    click_sd = protection.sigma * 2.0**-protection.fraction_bits * np.sqrt(ENOUGH)
    off_clicks = np.array([clicks[f"n{row}"] - cohort.clicks[f"n{row}"] for row in range(NEWS)])
    off_displays = np.array([displays[f"n{row}"] - cohort.displays[f"n{row}"] for row in range(NEWS)])
    # Beyond six standard deviations lies one Gaussian number in 10^9; all within one is as unlikely.
    assert 1.0 < np.abs(off_clicks / click_sd).max() < 6
    assert 1.0 < np.abs(off_displays / (16 / 3 * click_sd)).max() < 6
    opening = NoisyOpening(
        SumNoise(protection.sigma, np.sqrt(2) * protection.clip * 2**protection.fraction_bits, 2 * NEWS), ENOUGH
    )
    assert status.epsilon == pytest.approx(spent_on([opening], protection.delta))
    for device in cohort.devices:
        assert device.ledger.total("counts") == pytest.approx(protection.epsilon(10, 2 * NEWS))
        assert device.ledger.total("training") == 0
        (taken,) = device.stores.counted.list()
        in_feeds = "SELECT count(*) FROM click WHERE feed_id <> ''"
        assert (taken.displayed, taken.clicked) == (SHOWN, device.stores.database.number(in_feeds))
    made = CountRepository(cohort.backend.engine, half_life_hours=24).made()[0]
    assert (made.devices, made.news) == (ENOUGH, NEWS)
    assert made.clicks_variance == pytest.approx(click_sd**2)
    assert made.displays_variance == pytest.approx((16 / 3 * click_sd) ** 2)


def test_second_count_covers_only_later_events(cohort: CountingCohort) -> None:
    cohort.open()
    cohort.all_work()
    cohort.displays.clear()
    cohort.clicks.clear()
    cohort.backend.clock.go_on(3 * 3_600)
    for number in range(DEVICES):
        cohort.read(number, "feed2", np.random.default_rng(100 + number))
    cohort.open()
    cohort.all_work()
    displays, clicks = cohort.counted(2)
    assert displays == {f"n{row}": float(cohort.displays[f"n{row}"]) for row in range(NEWS)}
    assert clicks == {f"n{row}": float(cohort.clicks[f"n{row}"]) for row in range(NEWS)}


@pytest.mark.parametrize("lost", ["uplink", "process"])
def test_paid_counts_are_never_contributed_twice(
    cohort: CountingCohort, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    cohort.open()
    cohort.all_work(steps=3)  # keys, shares and complaints are with the server
    assert cohort.status().state == "masked"
    send = Uplink.sum_message

    def unreachable(*args: object, **kwargs: object) -> object:
        if lost == "process":
            raise KeyboardInterrupt
        raise BackendUnreachable("http://backend", "the line is cut")

    monkeypatch.setattr(Uplink, "sum_message", unreachable)
    for device in cohort.devices:
        if lost == "process":
            with pytest.raises(KeyboardInterrupt):
                device.trainer.step()
            device.stop()
            device.start()
        else:
            device.trainer.step()
    monkeypatch.setattr(Uplink, "sum_message", send)
    assert all(len(device.stores.counted.list()) == 1 for device in cohort.devices), "paid for"
    cohort.backend.clock.go_on(61)
    cohort.backend.coordinator.step()
    assert cohort.status().state == "failed"
    cohort.backend.clock.go_on(120)
    cohort.open()
    cohort.all_work(steps=12)
    assert cohort.status(2).state == "applied", cohort.status(2).reason
    displays, clicks = cohort.counted(2)
    assert set(displays.values()) == set(clicks.values()) == {0.0}


def test_device_whose_keys_arrive_late_is_not_needed_and_pays_nothing(
    cohort: CountingCohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    cohort.open()
    closed = SumStageClosed("keys", "shares")
    problem = Problem(
        type=f"urn:ownfeed:problem:{closed.code}", title=closed.title, status=closed.status, detail=closed.detail
    )

    def late(*args: object, **kwargs: object) -> object:
        raise BackendRefused(problem)

    monkeypatch.setattr(Uplink, "sum_message", late)
    device = cohort.devices[0]
    for _ in range(2):
        device.trainer.step()
    mine = device.stores.participations.get("round-1")
    assert mine is not None
    assert (mine.state, mine.epsilon or 0) == ("not needed", 0)
    assert "was full before" in str(mine.detail)


def test_device_killed_before_payment_contributes_later(
    cohort: CountingCohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    cohort.open()
    cohort.all_work(steps=3)
    device = cohort.devices[0]
    taken = device.stores.counted.take

    def killed(*args: object) -> None:
        taken(*args)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    monkeypatch.setattr(type(device.stores.counted), "take", lambda self, one: killed(one))
    with pytest.raises(KeyboardInterrupt):
        device.trainer.step()
    monkeypatch.undo()
    device.stop()
    device.start()
    assert device.stores.counted.list() == []
    assert device.ledger.total("counts") == 0
    cohort.all_work()
    assert cohort.status().state == "applied", cohort.status().reason
    assert sum(cohort.counted(1)[0].values()) == sum(cohort.displays.values())


def test_reader_with_counts_off_joins_no_count(cohort: CountingCohort) -> None:
    cohort.devices[0].privacy = ALLOWS.model_copy(update={"counting": False})
    cohort.open()
    cohort.all_work(steps=2)
    cohort.backend.clock.go_on(31)
    cohort.all_work(steps=6)
    status = cohort.status()
    assert (status.state, status.survivors) == ("applied", DEVICES - 1), status.reason
    assert cohort.devices[0].stores.participations.list() == []


def test_default_device_declines_a_count_without_noise(cohort: CountingCohort) -> None:
    cohort.devices[0].privacy = PrivacySettings(smallest_sum=3)
    cohort.open()
    outcome = cohort.devices[0].trainer.step()
    assert outcome.state == "declined"
    assert "has no noise" in str(outcome.why)


def test_device_allowing_only_counts_skips_training(cohort: CountingCohort) -> None:
    cohort.backend.coordinator.open_round("small_ranker/local/mean", cohort=3, cohort_minimum=1, seconds=60)
    outcome = cohort.devices[0].trainer.step()
    assert outcome.state == "idle"
    assert "training is not switched on" in str(outcome.why)
    assert cohort.status().joined == 0


def test_all_count_systems_use_one_strategy() -> None:
    systems: list[SystemSpec] = [COMPOSED[name] for name in COMPOSED if name.startswith("private_counts/")]
    assert len(systems) >= 4
    assert len({spec.strategy for spec in systems}) == 1


def test_device_joins_two_sums_at_once_across_a_release(
    cohort: CountingCohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A training round beside the count publishes a release, which half of the devices have taken by then."""
    beside = replace(COMPOSED["private_counts/exact/mean"], name="beside", changes="release")
    monkeypatch.setitem(COMPOSED, "beside", beside)
    cohort.open()
    cohort.open("beside")
    late = DEVICES // 2
    cohort.all_work(1, late)
    cohort.backend.clock.go_on(11)
    cohort.all_work(1, late)
    assert [cohort.status(number).joined for number in (1, 2)] == [late, late]

    store = cohort.backend.releases
    store.commit(ReleaseDraft.like(store.require_current()), note="published meanwhile")
    assert all(device.sync() for device in cohort.devices)
    for _ in range(3):
        cohort.backend.clock.go_on(3)
        cohort.all_work(1)
    cohort.all_work(12)
    assert (cohort.status(1).state, cohort.status(1).survivors, cohort.status(1).release) == ("applied", DEVICES, "r1")
    displays, clicks = cohort.counted(1)
    assert clicks == {news: cohort.clicks[news] for news in clicks}
    assert displays == {news: pytest.approx(cohort.displays[news]) for news in displays}
