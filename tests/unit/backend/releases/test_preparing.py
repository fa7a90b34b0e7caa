"""A ranker added to the releases while the server serves. Oracles: the rounds' own table, and a process that says what
the test wants."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Engine, update

from backend.db.engine import writing_session
from backend.db.tables_federation import RoundRow
from backend.releases import preparing
from backend.releases.errors import RankerBeingPrepared, ReleaseNotPublished, RoundsUnderWay
from backend.releases.preparing import RankerPreparation, offer_between_rounds
from backend.releases.publish import ExportedRankers, offer
from backend.releases.store import ReleaseStore
from backend.settings import BackendSettings
from device_app.wire.releases import ModelEntry
from tests.doubles.plain_rounds import PlainRoundRig, opened
from tests.doubles.small_release import migrated_engine, small_store


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return migrated_engine(tmp_path)


def exported(store: ReleaseStore) -> ExportedRankers:
    entry = ModelEntry(architecture="naml", role="ranker", graphs={"score": store.add_blob(b"graph")})
    return ExportedRankers({"ranker.naml": entry}, {"ranker.naml": {"score": 1e-7}})


def end_rounds(engine: Engine) -> None:
    with writing_session(engine) as session:
        session.execute(update(RoundRow).values(state="failed", finished_at=datetime.now(UTC)))


def test_a_ranker_is_published_once_the_round_under_way_has_ended(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = small_store(engine, tmp_path)
    opened(PlainRoundRig(tmp_path, engine, store).coordinator())
    waits: list[float] = []

    def a_round_ends(seconds: float) -> None:
        assert store.require_current().release == "r1", "a round is under way"
        waits.append(seconds)
        end_rounds(engine)

    monkeypatch.setattr("backend.releases.preparing.time.sleep", a_round_ends)
    entries = exported(store)
    published = offer_between_rounds(engine, lambda check: offer(store, entries, together_with=check))
    assert len(waits) == 1
    assert capsys.readouterr().out == "waiting\n"
    assert (published.release, sorted(published.models)) == ("r2", ["ranker.cosine", "ranker.naml", "recall"])


def test_it_gives_up_after_minutes_of_rounds(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = small_store(engine, tmp_path)
    opened(PlainRoundRig(tmp_path, engine, store).coordinator())
    monkeypatch.setattr(preparing, "TURN_LIMIT_SEC", -1.0)
    entries = exported(store)
    with pytest.raises(RoundsUnderWay):
        offer_between_rounds(engine, lambda check: offer(store, entries, together_with=check))
    assert store.require_current().release == "r1"


def test_a_model_that_is_trained_by_now_keeps_its_weights(engine: Engine, tmp_path: Path) -> None:
    store = small_store(engine, tmp_path)
    recall = store.require_current().models["recall"]
    late = ExportedRankers({"recall": exported(store).models["ranker.naml"]}, {})
    assert offer(store, late).models["recall"] == recall


def settings(tmp_path: Path) -> BackendSettings:
    return BackendSettings(data_dir=tmp_path)


def saying(source: str) -> tuple[str, ...]:
    return (sys.executable, "-c", f"import json, sys; order = json.load(sys.stdin); {source}")


def ended(preparation: RankerPreparation) -> tuple[str, str | None]:
    assert preparation._thread is not None
    preparation._thread.join(60)
    status = preparation.status()
    assert status is not None
    assert not status.is_under_way
    return status.stage, status.trouble


def test_the_process_is_told_what_to_do_and_its_end_is_told(tmp_path: Path) -> None:
    well = RankerPreparation(settings(tmp_path), saying("assert order['ranker'] == 'ranker.naml', order"))
    assert well.status() is None
    well.start("ranker.naml")
    assert ended(well) == ("published", None)
    ill = RankerPreparation(settings(tmp_path), saying("print('one', file=sys.stderr); sys.exit('No space is left.')"))
    ill.start("ranker.naml")
    assert ended(ill) == ("failed", "No space is left.")


def test_one_is_prepared_at_a_time_and_only_what_the_rankers_name(tmp_path: Path) -> None:
    busy = RankerPreparation(settings(tmp_path), saying("import time; time.sleep(300)"))
    for unknown in ("ranker.features", "ranker.none", "recall"):
        with pytest.raises(ReleaseNotPublished):
            busy.start(unknown)
    busy.start("ranker.naml")
    with pytest.raises(RankerBeingPrepared):
        busy.start("ranker.nrms")
    busy.stop()
    status = busy.status()
    assert status is not None
    assert status.stage == "failed", "stopped with the server"
