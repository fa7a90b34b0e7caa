"""How a round is opened, continues and ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from backend.db.engine import writing_session
from backend.db.tables import FollowUpRow, RoundRow
from backend.federation.errors import (
    IllegalTransition,
    RoundImpossible,
    RoundUnderWay,
    UnknownRound,
    UnknownSystem,
)
from backend.federation.rounds import finalize as finalising
from backend.federation.rounds.coordinator import Coordinator
from backend.federation.strategies.strategy import RoundRequest
from backend.federation.systems import COMPOSED, PRESETS, STEPS, SYSTEMS
from backend.releases.chain_file import ChainFile, NotedRelease
from backend.releases.errors import NothingPublished
from backend.releases.publish import publish_changes
from backend.releases.store import ReleaseStore
from backend.storage.object_store import LocalFolder
from protocol.tensors import pack
from tests.doubles.kills import Killed
from tests.doubles.own_loop import run_on_its_own_loop
from tests.doubles.plain_rounds import PlainRoundRig, joined, open_round, update, upload_update
from tests.doubles.small_release import WEIGHTS, migrated_engine, small_store


def test_round_with_a_complete_cohort_applies_the_mean_of_its_updates(rig: PlainRoundRig) -> None:
    coordinator = rig.coordinator()
    open_round(coordinator)
    for value in (0.01, 0.02, 0.06):
        upload_update(coordinator, value)
    ended = coordinator.step()

    assert ended is not None
    assert (ended.state, ended.published, ended.joined, ended.uploaded) == ("applied", "r2", 3, 3)
    assert ended.received_bytes == 3 * len(pack(update(0.0)))
    assert ended.finished_at == rig.clock.now
    stepped = rig.releases.weights(rig.releases.require_current(), "recall")
    for name, before in WEIGHTS.items():
        np.testing.assert_allclose(stepped[name], before - 0.05 * 0.03, rtol=0, atol=1e-6)
    assert rig.releases.history()[0].facts["updates"] == 3
    assert list((rig.folder / "rounds").iterdir()) == [], "no single update outlives its round"
    assert coordinator.step() is None


def test_round_passes_through_its_states_in_order(rig: PlainRoundRig) -> None:
    coordinator = rig.coordinator()
    open_round(coordinator)
    states = [coordinator.status("round-1").state]
    upload_update(coordinator, 0.01)
    states.append(coordinator.status("round-1").state)
    rig.clock.go_on(61)
    coordinator.step()
    states.append(coordinator.status("round-1").state)

    assert states == ["open", "updates", "failed"]


def test_deadline_applies_the_updates_received_if_enough(rig: PlainRoundRig) -> None:
    coordinator = rig.coordinator()
    open_round(coordinator, cohort=5, minimum=2)
    upload_update(coordinator, 0.02)
    upload_update(coordinator, 0.04)
    assert coordinator.step() is None
    rig.clock.go_on(60)
    ended = coordinator.step()

    assert ended is not None
    assert (ended.state, ended.uploaded, ended.published) == ("applied", 2, "r2")


@pytest.mark.parametrize("updates", [0, 1])
def test_too_few_updates_at_the_deadline_fail_the_round_with_a_reason(rig: PlainRoundRig, updates: int) -> None:
    coordinator = rig.coordinator()
    open_round(coordinator)
    for _ in range(updates):
        upload_update(coordinator, 0.01)
    rig.clock.go_on(61)
    ended = coordinator.step()

    assert ended is not None
    assert ended.state == "failed"
    assert ended.reason == f"{updates} updates arrived before the deadline; the minimum is 2"
    assert rig.releases.require_current().release == "r1"


def test_only_one_round_runs_at_a_time(rig: PlainRoundRig) -> None:
    coordinator = rig.coordinator()
    open_round(coordinator)
    with pytest.raises(RoundUnderWay, match="round-1"):
        open_round(coordinator)
    coordinator.cancel("round-1")
    open_round(coordinator)

    assert [(each.round, each.state) for each in coordinator.history()] == [("round-2", "open"), ("round-1", "failed")]
    current = coordinator.current()
    assert current is not None
    assert current.round == "round-2"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"cohort": 0}, "cohort"),
        ({"cohort_minimum": 0}, "cohort_minimum"),
        ({"cohort_minimum": 4}, "cohort_minimum"),
        ({"seconds": 0.0}, "seconds"),
        ({"seconds": float("nan")}, "seconds"),
        ({"admission": 0.0}, "admission"),
        ({"admission": 1.1}, "admission"),
    ],
)
def test_invalid_field_of_a_round_is_named_in_the_error(
    rig: PlainRoundRig, change: dict[str, float], named: str
) -> None:
    asked = {"cohort": 3, "cohort_minimum": 2, "seconds": 60.0, "admission": 1.0} | change
    with pytest.raises(RoundImpossible) as refused:
        rig.coordinator().open_round("uni_fedrec", **asked)  # type: ignore[arg-type]
    assert refused.value.field == named


def test_round_needs_a_known_system_and_a_release(rig: PlainRoundRig, tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.raises(UnknownSystem) as refused:
        rig.coordinator().open_round("oracle", cohort=1, cohort_minimum=1, seconds=1)
    assert refused.value.limit == ", ".join((*SYSTEMS, *PRESETS, *STEPS))

    folder = tmp_path_factory.mktemp("empty")
    engine = migrated_engine(folder)
    empty = Coordinator(engine, small_store(engine, folder, publish=False), COMPOSED, folder)
    with pytest.raises(NothingPublished):
        empty.open_round("uni_fedrec", cohort=1, cohort_minimum=1, seconds=1)


def test_release_without_the_model_cannot_be_trained(rig: PlainRoundRig) -> None:
    other = {"uni_fedrec": replace(COMPOSED["uni_fedrec"], architecture="two_tower")}
    coordinator = Coordinator(rig.engine, rig.releases, other, rig.folder, rig.clock)
    with pytest.raises(RoundImpossible, match="two_tower"):
        open_round(coordinator)


def test_refusal_lists_the_systems_that_can_be_trained(rig: PlainRoundRig) -> None:
    with pytest.raises(RoundImpossible, match=r"no trainable model 'ranker\.nrms'") as refused:
        rig.coordinator().open_round("nrms/local/mean", cohort=1, cohort_minimum=1, seconds=1)
    trained = ("uni_fedrec", "uni_fedrec_lstur", "uni_fedrec_naml", "uni_fedrec_fednewsrec")
    assert refused.value.limit == ", ".join(trained), "the small release has no other trainable model"


def test_cancelled_round_fails_and_its_updates_are_deleted(rig: PlainRoundRig) -> None:
    coordinator = rig.coordinator()
    open_round(coordinator)
    upload_update(coordinator, 0.01)
    status = coordinator.cancel("round-1")

    assert (status.state, status.reason) == ("failed", "cancelled by the operator")
    assert list((rig.folder / "rounds").iterdir()) == []
    with pytest.raises(IllegalTransition):
        coordinator.cancel("round-1")
    with pytest.raises(UnknownRound):
        coordinator.cancel("round-7")


def test_round_on_an_outdated_release_fails(rig: PlainRoundRig) -> None:
    coordinator = rig.coordinator()
    open_round(coordinator, cohort=1, minimum=1)
    upload_update(coordinator, 0.01)
    publish_changes(rig.releases, rig.releases.require_current(), {"recall": WEIGHTS}, "by hand")
    ended = coordinator.step()

    assert ended is not None
    assert ended.state == "failed"
    assert ended.reason == "The round was for r1, but r2 has been published since."


@pytest.fixture
def chained(rig: PlainRoundRig) -> ChainFile:
    """The rig with a chain file of its releases, as a server has."""
    chain, blobs = ChainFile(rig.folder / "chain.jsonl"), LocalFolder(rig.folder / "blobs")
    rig.releases = ReleaseStore(rig.engine, blobs, rig.releases.signing_key(), chain_file=chain)
    rig.releases.follow_chain_file()
    return chain


def died_as_it_published(rig: PlainRoundRig, chain: ChainFile) -> None:
    """Kill between writing the release's line in the chain and its commit, then start again."""

    def killed(releases: Iterable[NotedRelease]) -> None:
        ChainFile.add(chain, releases)
        raise Killed

    with pytest.MonkeyPatch.context() as dying:
        dying.setattr(chain, "add", killed)
        with pytest.raises(Killed):
            rig.coordinator().step()
    rig.releases.follow_chain_file()


def test_round_on_a_release_republished_after_a_kill_is_applied(rig: PlainRoundRig, chained: ChainFile) -> None:
    """Regression: a start published r1 again after the release that nobody had seen, and it was taken for another."""
    open_round(rig.coordinator(), cohort=1, minimum=1)
    upload_update(rig.coordinator(), 0.02)
    died_as_it_published(rig, chained)
    died_as_it_published(rig, chained)
    ended = rig.coordinator().step()

    assert ended is not None
    assert (ended.state, ended.published, ended.reason) == ("applied", "r6", None)
    assert [each.release for each in rig.releases.history()] == ["r6", "r5", "r3", "r1"]
    stepped = rig.releases.weights(rig.releases.require_current(), "recall")
    np.testing.assert_allclose(stepped["values"], 0.5 - 0.05 * 0.02, atol=1e-7)


def test_round_on_a_republished_release_that_was_superseded_fails(rig: PlainRoundRig, chained: ChainFile) -> None:
    open_round(rig.coordinator(), cohort=1, minimum=1)
    upload_update(rig.coordinator(), 0.02)
    died_as_it_published(rig, chained)
    publish_changes(rig.releases, rig.releases.require_current(), {"recall": WEIGHTS}, "by hand")
    ended = rig.coordinator().step()

    assert ended is not None
    assert (ended.state, ended.reason) == ("failed", "The round was for r1, but r4 has been published since.")


def test_tick_does_not_block_the_event_loop(rig: PlainRoundRig, monkeypatch: pytest.MonkeyPatch) -> None:
    coordinator = rig.coordinator()
    open_round(coordinator, cohort=1, minimum=1)
    upload_update(coordinator, 0.02)
    entered, go_on = threading.Event(), threading.Event()
    publish = vars(finalising)["publish_changes"]

    def slow(*args: object, **kwargs: object) -> object:
        entered.set()
        assert go_on.wait(10)
        return publish(*args, **kwargs)

    monkeypatch.setattr(finalising, "publish_changes", slow)

    async def main() -> None:
        ticking = asyncio.create_task(coordinator.tick())
        while not entered.is_set():
            await asyncio.sleep(0.01)
        await coordinator.tick()  # a second tick meanwhile does nothing
        go_on.set()
        await ticking

    run_on_its_own_loop(main)
    assert coordinator.status("round-1").state == "applied"
    assert [each.release for each in rig.releases.history()] == ["r2", "r1"]


def test_many_threads_join_and_upload_at_once(rig: PlainRoundRig) -> None:
    coordinator = rig.coordinator()
    open_round(coordinator, cohort=24, minimum=24)
    failures: list[BaseException] = []

    def device(number: int) -> None:
        try:
            offer = joined(coordinator)
            content = pack(update(number / 1_000))
            coordinator.plain.accept("round-1", offer.pseudonym, content)
            assert coordinator.plain.accept("round-1", offer.pseudonym, content).duplicate
        except BaseException as failed:
            failures.append(failed)

    threads = [threading.Thread(target=device, args=(number,)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ended = coordinator.step()

    assert failures == []
    assert ended is not None
    assert (ended.state, ended.uploaded) == ("applied", 24)


def test_follow_up_ordered_while_another_round_is_planned_opens_first(
    rig: PlainRoundRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = rig.coordinator()
    open_round(coordinator)
    coordinator.cancel("round-1")
    strategy = type(COMPOSED["uni_fedrec"].strategy)
    plan = strategy.plan

    def ordered_meanwhile(self: Any, spec: Any, context: Any) -> Any:
        with writing_session(rig.engine) as session:
            session.add(FollowUpRow(after=1, request=RoundRequest("uni_fedrec", 3, 2, 60.0).to_json()))
        return plan(self, spec, context)

    monkeypatch.setattr(strategy, "plan", ordered_meanwhile)
    with pytest.raises(RoundUnderWay, match="round-1"):
        open_round(coordinator)
    monkeypatch.undo()
    waiting = coordinator._opener.open_waiting()
    assert waiting is not None
    assert (waiting.round, waiting.state) == ("round-2", "open")


def test_text_longer_than_its_column_is_cut(rig: PlainRoundRig) -> None:
    coordinator = rig.coordinator()
    open_round(coordinator)
    with writing_session(rig.engine) as session:
        row = session.get_one(RoundRow, 1)
        row.summary, row.reason = "s" * 501, "r" * 500
    reported = coordinator.status("round-1")
    assert (reported.summary, reported.reason) == ("s" * 499 + "…", "r" * 500)
