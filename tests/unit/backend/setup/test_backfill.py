"""Preparation while the server serves. Oracles: the table of rounds, and a process that reports what the test wants."""

from __future__ import annotations

import io
import json
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Engine, update

from backend.db.engine import writing_session
from backend.db.tables import FollowUpRow, RoundRow
from backend.errors import TrainingNotInstalled
from backend.federation.strategies.strategy import RoundRequest
from backend.federation.systems import reads_release
from backend.news.pool import NewsPool
from backend.releases import between_rounds
from backend.releases.between_rounds import offer_between_rounds, use_ranker
from backend.releases.blobs import ReleaseDraft
from backend.releases.errors import RankerBeingPrepared, ReleaseNotPublished, RoundsUnderWay
from backend.releases.models import initial_ranker
from backend.releases.publish import ExportedRankers, offer
from backend.releases.store import ReleaseStore
from backend.settings import BackendSettings
from backend.setup.backfill import (
    TRAINING,
    Backfill,
    BackfillTask,
    BackfillWorker,
    TrainingInstaller,
    missing_parts,
)
from backend.setup.first_start_process import StepWriter
from protocol.releases import ModelEntry, ReleaseManifest
from tests.doubles.plain_rounds import PlainRoundRig, open_round
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


def test_ranker_is_published_after_the_running_round(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = small_store(engine, tmp_path)
    open_round(PlainRoundRig(tmp_path, engine, store).coordinator())
    waits: list[float] = []

    def a_round_ends(seconds: float) -> None:
        assert store.require_current().release == "r1", "a round is under way"
        waits.append(seconds)
        end_rounds(engine)

    monkeypatch.setattr("backend.releases.between_rounds.time.sleep", a_round_ends)
    entries = exported(store)
    reported: list[str] = []
    published = offer_between_rounds(
        engine, lambda check: offer(store, entries, together_with=check), waits=lambda: reported.append("waiting")
    )
    assert (len(waits), reported) == (1, ["waiting"])
    assert (published.release, sorted(published.models)) == ("r2", ["ranker.cosine", "ranker.naml", "recall"])


def test_preparation_times_out_after_minutes_of_rounds(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = small_store(engine, tmp_path)
    open_round(PlainRoundRig(tmp_path, engine, store).coordinator())
    monkeypatch.setattr(between_rounds, "TURN_LIMIT_SEC", -1.0)
    entries = exported(store)
    with pytest.raises(RoundsUnderWay):
        offer_between_rounds(engine, lambda check: offer(store, entries, together_with=check))
    assert store.require_current().release == "r1"


def test_already_trained_model_keeps_its_weights(engine: Engine, tmp_path: Path) -> None:
    store = small_store(engine, tmp_path)
    recall = store.require_current().models["recall"]
    late = ExportedRankers({"recall": exported(store).models["ranker.naml"]}, {})
    assert offer(store, late).models["recall"] == recall


def test_round_that_reads_no_release_does_not_block_publication(engine: Engine, tmp_path: Path) -> None:
    store = small_store(engine, tmp_path)
    open_round(PlainRoundRig(tmp_path, engine, store).coordinator())
    entries = exported(store)
    published = offer_between_rounds(
        engine, lambda check: offer(store, entries, together_with=check), reads_release=lambda _: False
    )
    assert published.release == "r2"
    assert not reads_release("private_counts/secure/huber")
    assert reads_release("small_ranker/local/mean")
    assert reads_release("a system of another version")


def test_default_ranker_can_be_changed_only_between_rounds(engine: Engine, tmp_path: Path) -> None:
    """Regression: the operator could not do this, so a ranker trained by a paper's rounds ranked nobody's feed."""
    store = small_store(engine, tmp_path)
    before = offer(store, exported(store))
    open_round(PlainRoundRig(tmp_path, engine, store).coordinator())
    with pytest.raises(RoundsUnderWay):
        use_ranker(store, "ranker.naml")
    end_rounds(engine)
    for refused in (before.default_ranker, "ranker.other", "recall"):
        with pytest.raises(ReleaseNotPublished):
            use_ranker(store, refused)
    after = use_ranker(store, "ranker.naml")
    assert store.require_current() == after
    assert (after.default_ranker, after.models) == ("ranker.naml", before.models)


def test_default_ranker_cannot_be_changed_while_a_vote_is_ordered(engine: Engine, tmp_path: Path) -> None:
    """Regression: a vote that was ordered but not open was overlooked: it would have been held on the release of the
    other ranker, found no changed weights there, and undone both."""
    store = small_store(engine, tmp_path)
    offer(store, exported(store))
    open_round(PlainRoundRig(tmp_path, engine, store).coordinator())
    end_rounds(engine)
    with writing_session(engine) as session:
        session.add(FollowUpRow(after=1, request=RoundRequest("release_gate", 12, 10, 60.0).to_json()))
    with pytest.raises(RoundsUnderWay):
        use_ranker(store, "ranker.naml", reads_release)
    assert use_ranker(store, "ranker.naml", lambda _: False).default_ranker == "ranker.naml", "what waits reads none"
    with writing_session(engine) as session:
        session.execute(update(FollowUpRow).values(reason="given up"))
    assert use_ranker(store, "ranker.cosine", reads_release).default_ranker == "ranker.cosine"


def test_ranker_change_is_refused_if_a_release_intervenes(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: a release published meanwhile was replaced by the one before it."""
    store = small_store(engine, tmp_path)
    offer(store, exported(store))
    like = ReleaseDraft.like

    def published_meanwhile(current: ReleaseManifest) -> ReleaseDraft:
        monkeypatch.undo()
        store.commit(like(current), note="came between")
        return like(current)

    monkeypatch.setattr(ReleaseDraft, "like", staticmethod(published_meanwhile))
    with pytest.raises(ReleaseNotPublished, match="r3 was published meanwhile"):
        use_ranker(store, "ranker.naml")
    assert store.require_current().release == "r3"


def settings(tmp_path: Path) -> BackendSettings:
    return BackendSettings(data_dir=tmp_path)


SAYS = (
    "import json, sys; tasks = json.load(sys.stdin)['tasks']; say = lambda *told: print(json.dumps(told), flush=True);"
)


def saying(source: str) -> tuple[str, ...]:
    return (sys.executable, "-c", SAYS + source)


def wait_for_end(backfill: Backfill) -> list[BackfillTask]:
    thread = backfill._thread
    if thread is not None:
        thread.join(60)
    assert not any(each.is_under_way for each in backfill.status())
    return backfill.status()


def test_preparation_process_gets_its_tasks_and_each_ends_separately(tmp_path: Path) -> None:
    source = (
        "say('task', tasks[0]), say('done', 512, 900), say('finished'),"
        "say('task', tasks[1]), say('waiting'), say('refused', 'No.'), say('task', tasks[2]), say('finished')"
    )
    backfill = Backfill(settings(tmp_path), saying(source))
    assert backfill.status() == []
    backfill.begin(["vectors", "ranker.naml", "ranker.nrms"])
    assert wait_for_end(backfill) == [
        BackfillTask("vectors", "published", 512, 900),
        BackfillTask("ranker.naml", "failed", trouble="No."),
        BackfillTask("ranker.nrms", "published"),
    ]


def test_empty_preparation_starts_no_process(tmp_path: Path) -> None:
    backfill = Backfill(settings(tmp_path), ("no such program",))
    backfill.begin([])
    assert backfill._thread is None


def test_killed_preparation_keeps_finished_tasks_and_reports_the_rest(tmp_path: Path) -> None:
    source = (
        "say('task', tasks[0]), say('finished'), say('task', tasks[1]), print('No space is left.', file=sys.stderr)"
    )
    killed = f"{source}; import os, signal; sys.stderr.flush(); os.kill(os.getpid(), signal.SIGKILL)"
    backfill = Backfill(settings(tmp_path), saying(killed))
    backfill.begin(["vectors", "ranker.naml", "ranker.nrms"])
    assert [(each.stage, each.trouble) for each in wait_for_end(backfill)] == [
        ("published", None),
        ("failed", "No space is left."),
        ("failed", "No space is left."),
    ]
    again = Backfill(settings(tmp_path), saying("[(say('task', each), say('finished')) for each in tasks]"))
    again.begin(["ranker.naml", "ranker.nrms"])
    assert [each.stage for each in wait_for_end(again)] == ["published"] * 2, "the next start goes on"


def test_rankers_requested_later_are_prepared_after_the_running_one(tmp_path: Path) -> None:
    go = tmp_path / "go"
    waits = f"import pathlib, time; go = pathlib.Path({str(go)!r}); say('task', tasks[0])"
    source = f"{waits}\nwhile not go.exists(): time.sleep(0.01)\nfor each in tasks: say('task', each), say('finished')"
    busy = Backfill(settings(tmp_path), saying(source))
    for unknown in ("ranker.features", "ranker.none", "recall"):
        with pytest.raises(ReleaseNotPublished):
            busy.start(unknown)
    busy.begin(["vectors", "ranker.naml"])
    for known in ("ranker.naml", "ranker.nrms", "ranker.nrms"):
        if known == "ranker.naml" or known in [each.task for each in busy.status()]:
            with pytest.raises(RankerBeingPrepared):
                busy.start(known)
        else:
            busy.start(known)
    go.touch()
    assert [(each.task, each.stage) for each in wait_for_end(busy)] == [
        ("vectors", "published"),
        ("ranker.naml", "published"),
        ("ranker.nrms", "published"),
    ]
    busy.start("ranker.naml")
    assert [each.task for each in wait_for_end(busy)] == ["vectors", "ranker.nrms", "ranker.naml"]


def test_preparation_stops_with_the_server(tmp_path: Path) -> None:
    busy = Backfill(settings(tmp_path), saying("import time; time.sleep(300)"))
    busy.begin(["ranker.naml", "ranker.nrms"])
    busy.stop()
    assert busy._thread is None
    assert {each.stage for each in busy.status()} <= {"failed", "queued"}


def test_training_is_installed_by_the_configured_command_before_the_rankers(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, pool = small_store(engine, tmp_path), NewsPool(engine)
    installs = BackendSettings(data_dir=tmp_path, rankers=("naml",), install_training="make torch")
    assert missing_parts(installs, store, pool) == ["ranker.naml"], "torch is installed here"
    monkeypatch.setattr("backend.setup.backfill.training_is_installed", lambda: False)
    assert missing_parts(installs, store, pool) == [TRAINING, "ranker.naml"]
    assert missing_parts(installs.model_copy(update={"install_training": None}), store, pool) == ["ranker.naml"]
    assert missing_parts(installs.model_copy(update={"rankers": ()}), store, pool) == [], "nothing needs it"


@pytest.mark.parametrize(
    ("code", "reported"),
    [
        ("open('installed', 'w')", ["finished"]),
        ("print('Collecting'); sys.exit('No space is left.')", ["refused", "No space is left."]),
    ],
)
def test_failed_installation_reports_its_last_line(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, reported: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = io.StringIO()
    installer = TrainingInstaller(shlex.join([sys.executable, "-c", f"import sys; {code}"]))
    worker = BackfillWorker(settings(tmp_path), engine, small_store(engine, tmp_path), StepWriter(lines), installer)
    worker.run(TRAINING)
    begun, ended = map(json.loads, lines.getvalue().splitlines())
    assert begun == ["task", TRAINING]
    assert ended[0] == reported[0]
    assert ended[-1].endswith(reported[-1])
    assert (tmp_path / "installed").is_file() == (reported == ["finished"])


def test_ranker_without_torch_is_refused_in_one_line_unless_its_graphs_are_shipped(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.errors.training_is_installed", lambda: False)
    with pytest.raises(TrainingNotInstalled, match=r"ranker\.naml needs torch.* pip install 'ownfeed\[train\]'\.$"):
        initial_ranker("ranker.naml", 256, seed=7)
    assert initial_ranker("ranker.finding", 256, seed=7).architecture == "feature_ranker"
