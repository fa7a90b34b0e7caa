"""This version beside the last one, of which a recording is kept: its requests, its answers, its wire, and its folders
in the middle of a secure round.

Oracle: what the last version answered, and opened of that round itself; and its own wire, run by a process of its own.

At a release, when the version before it is the last one no more, record that:
`python -m tests.integration.version_skew --old REVISION --record`, and run the long form, the same command without
`--record`. A test that is red after a change of the wire says that devices or backends out there can't read it: leave
the field out where it has its usual value, or raise the protocol's version.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from sqlalchemy import text

from backend.db.engine import open_engine, writing
from backend.federation.strategies.counting import Counting
from backend.settings import BackendSettings
from device_app.composition import build_device
from device_app.device import Device
from device_app.settings import DeviceSettings, PerformanceSettings, PrivacySettings
from device_app.store.participations import Participation
from device_app.wire.popularity import CLICKED, DISPLAYED
from device_app.wire.releases import SignedManifest
from tests.contracts.test_wire_golden import made
from tests.doubles.clock import StillClock
from tests.doubles.last_version import LastVersion, RecordedBackend, RecordedExchange, message_of
from tests.doubles.small_world import START_WITHIN_SEC, SmallWorld
from tests.doubles.wire_messages import EXAMPLES

UNKNOWN_TO_IT = {"PictureList", "PictureShard"}
"""Messages that the last version didn't have; its devices never ask for them."""
CHANGED_SINCE: dict[str, str] = {}
"""Golden messages of the last version that this one writes otherwise, and why its devices read them still."""
LONG = timedelta(hours=1)


@pytest.fixture(scope="module")
def last(tmp_path_factory: pytest.TempPathFactory) -> LastVersion:
    return LastVersion.unpacked(tmp_path_factory.mktemp("last-version"))


@pytest.fixture(scope="module")
def world(last: LastVersion) -> Iterator[SmallWorld]:
    """This version's backend on the folder of the last one, whose round has an hour left."""
    settings = BackendSettings(
        data_dir=last.folder / "backend", round_tick_sec=0.02, pool_poll_sec=0.2, news_lifetime_days=3_650.0,
        counts_every_minutes=0, gate=False, unbounded_addresses=("127.0.0.0/8",),
    )  # fmt: skip
    engine, now = open_engine(settings.database_url), datetime.now(UTC)
    with writing(engine) as connection:
        ends = {"now": f"{now:%Y-%m-%d %H:%M:%S.%f}", "then": f"{now + LONG:%Y-%m-%d %H:%M:%S.%f}"}
        connection.execute(text("UPDATE rounds SET opened_at = :now, closes_at = :then"), ends)
        connection.execute(text("UPDATE secure_sums SET stage_sec = 3600, closes_at = :then"), {"then": ends["then"]})
    engine.dispose()
    world = SmallWorld(last.folder, settings)
    with world.backend():
        yield world


def replayed(http: httpx.Client, each: RecordedExchange) -> httpx.Response:
    return http.request(each.method, each.target, headers=each.headers, content=each.body)


def test_every_message_of_the_last_version_is_read_and_written_as_it_was(last: LastVersion) -> None:
    golden, now = last.golden(), made()
    kinds = {type(example).__name__: type(example) for example in EXAMPLES}
    for name, text_then in golden["messages"].items():
        kind = name.partition(" ")[0]
        assert kinds[kind].model_validate_json(text_then).model_dump_json() == text_then or name in CHANGED_SINCE, name
    assert {name: now["binary"].get(name) for name in golden["binary"]} == golden["binary"]


def test_the_wire_of_the_last_version_reads_every_message_of_this_one(last: LastVersion) -> None:
    written = [(type(example).__name__, example.model_dump_json()) for example in EXAMPLES]
    written += [("SumTerms", '{"no": "terms"}'), ("Problem", '{"type": "t", "one field more": 1}')]
    refused = last.refused(written)
    assert {each.partition(":")[0] for each, why in refused.items() if why == "unknown"} <= UNKNOWN_TO_IT
    others = [each for each, why in refused.items() if why != "unknown"]
    assert [each[:20] for each in others] == ['SumTerms: {"no": "te', 'Problem: {"type": "t'], "the two that are wrong"


def test_requests_of_the_last_versions_devices_are_answered_as_they_were(last: LastVersion, world: SmallWorld) -> None:
    answered: list[tuple[str, str]] = []
    modes = {each.report for each in last.exchanges} - {None}
    assert modes == {"code", "subset", "topics", "direction", "basis_l1", "basis_laplace"}
    with httpx.Client(base_url=world.url) as http:
        for each in last.exchanges:
            answer = replayed(http, each)
            wanted = {304: (200, 304), 404: (200, 404)}.get(each.status, (each.status,))
            if each.path.startswith("/v1/blobs/") and not (last.folder / "backend" / each.path[4:]).exists():
                wanted = 200, 404  # of the pool's codes, which go by the time
            if each.path.startswith("/v1/rounds/"):
                wanted = 200, 204  # the round has gone on
            assert answer.status_code in wanted, (each.method, each.target, answer.text)
            name = message_of(each.method, each.path, answer.status_code)
            if name is not None and name not in UNKNOWN_TO_IT:
                answered.append((name, answer.text))
            if each.path.startswith("/v1/blobs/") and answer.status_code == 200:
                assert sha256(answer.content).hexdigest() == each.path.rpartition("/")[2]
            if name in ("SignedManifest", "BodiesAnswer", "ShardList") and each.status == answer.status_code:
                assert answer.content == each.answer
            if name == "SignedManifest":
                answered.append(("ReleaseManifest", SignedManifest.model_validate_json(answer.text).manifest))
    assert len({name for name, _ in answered}) >= 9
    assert last.refused(answered) == {}


def opened_later(monkeypatch: pytest.MonkeyPatch) -> list[list[float]]:
    """What the server opens of counts from now on."""
    opened: list[list[float]] = []
    conclude = Counting.conclude

    def concluded(strategy: Counting, system: Any, total: Any, *others: Any) -> Any:
        sums = total.sums()
        opened.append(np.concatenate([sums[CLICKED], sums[DISPLAYED]]).tolist())
        return conclude(strategy, system, total, *others)

    monkeypatch.setattr(Counting, "conclude", concluded)
    return opened


def reopened(last: LastVersion, world: SmallWorld) -> Device:
    """The last version's device, as this one's program finds it."""
    home = last.folder / "devices" / last.facts["profile"]
    if not home.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        (last.folder / "device").rename(home)
    settings = DeviceSettings(
        data_dir=last.folder, profile=last.facts["profile"], backend_url=world.url,
        privacy=PrivacySettings(mode="none", training=False),
    )  # fmt: skip
    return build_device(settings, blob_folder=last.folder / "backend" / "blobs", clock=StillClock(last.at))


def test_a_round_that_the_last_version_began_is_ended_by_this_one_with_the_very_sum(
    last: LastVersion, world: SmallWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but one of its members send what they sent to the last version's backend; one is that version's device,
    opened by this one's program after it had sent its masked vector."""
    opened, round_id, own = opened_later(monkeypatch), last.facts["round"], last.facts["pseudonym"]
    others = [each for each in last.of_the_round if not each.path.endswith(f"/{own}")]
    with httpx.Client(base_url=world.url) as http, closing(reopened(last, world)) as device:
        assert 0 < http.get(f"/v1/rounds/{round_id}").json()["uploaded"] < last.facts["devices"]
        answered: list[tuple[str, str]] = []
        until = time.monotonic() + START_WITHIN_SEC
        for each in others:
            while True:
                answer = replayed(http, each)
                if not (each.status == 200 and answer.status_code == 204):
                    break
                assert time.monotonic() < until, f"{each.target} is never answered"
                device.train_step()  # the stage waits for it
            assert answer.status_code in (each.status, 200, 204), (each.target, answer.text)
            if answer.status_code == 200 and (name := message_of(each.method, each.path, 200)) is not None:
                answered.append((name, answer.text))
        while (state := http.get(f"/v1/rounds/{round_id}").json()["state"]) not in ("applied", "failed"):
            assert time.monotonic() < until, f"the round stays at {state}"
            device.train_step()
        device.train_step()
        mine = device.parts.stores.participations.get(round_id)
        charges = device.parts.stores.ledger_entries.entries().rows
    assert state == "applied"
    assert opened == [last.facts["opened"]]
    assert isinstance(mine, Participation)
    assert mine.state == "applied"
    assert [each.channel for each in charges].count("counts") == 1
    assert {name for name, _ in answered} >= {"UploadReceipt", "Survivors"}
    assert last.refused(answered) == {}


def test_this_versions_device_reads_the_answers_of_the_last_versions_backend(last: LastVersion, tmp_path: Path) -> None:
    for number, mode in enumerate(last.facts["modes"]):
        backend = RecordedBackend(last)
        device = build_device(
            DeviceSettings(
                data_dir=tmp_path, profile=f"reader-{number}", backend_url="http://backend",
                privacy=PrivacySettings(mode=mode, epsilon_per_day_reports=1e3, epsilon_lifetime_reports=None),
                performance=PerformanceSettings(recall_max_age_sec=0, default_list_limit=200, bodies_wait_sec=0.01),
            ),
            transport=backend, clock=StillClock(last.at + timedelta(minutes=1)),
        )  # fmt: skip
        with closing(device):
            device.sync()
            release, front = device.release(), device.feed()
            assert release is not None
            assert release.manifest.release == "r1"
            for item in front.items[:4]:
                device.open(item.card.id, front.feed_id)
            feed = device.feed(refresh=True)
            assert len(feed.items) == 30, feed.notice
            reported = [each for each in backend.asked if each == "POST /v1/recall"]
            assert len(reported) == (mode in {each.report for each in last.exchanges}), mode
            assert device.alerts.now() == ()
            assert "GET /v1/pictures" in backend.asked, "asked for, refused, and nobody is told"
