"""The display of `ownfeed round --watch`. Oracle: the statuses of a round, played one after the other."""

from __future__ import annotations

import io
from datetime import datetime, timedelta
from unittest.mock import create_autospec

import pytest
from rich.console import Console

from backend.operations.admin_client import Operator
from backend.terminal.rounds import RoundProgress, follow_all, show_rounds, watched, why_failed
from tests.doubles.secure_round_status import OPENED, status


def rendered(watch: RoundProgress, now: datetime) -> str:
    console = Console(file=io.StringIO(), width=100, force_terminal=False)
    console.print(watch.shown(now))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_each_stage_shows_its_seconds_and_later_ones_are_pending() -> None:
    watch = RoundProgress()
    for after, state in ((0, "open"), (4, "shares"), (7, "masked")):
        watch.seen(status(state, uploaded=12, received_bytes=2_400_000), OPENED + timedelta(seconds=after))
    lines = rendered(watch, OPENED + timedelta(seconds=9)).splitlines()

    assert lines[0].strip() == "round-1 · small_ranker/secure/median"
    assert [" ".join(line.split()) for line in lines[1:5]] == [
        "✓ keys advertised 4.0 s",
        "✓ shares of keys exchanged 3.0 s",
        "› masked vectors added 2.0 s",
        "· sum opened",
    ]
    assert lines[5].strip() == "60 joined, 12 of 60 in (at least 30), 2.4 MB, 9.0 s, masked"


def test_progress_of_a_round_is_shown_to_its_end_with_its_survivors() -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=False)
    ended = status("applied", survivors=58, uploaded=58, finished_at=OPENED + timedelta(seconds=12))
    assert watched([status("open"), status("unmask"), ended], console) is ended
    assert isinstance(console.file, io.StringIO)
    console.print("what comes next")
    last = console.file.getvalue().splitlines()[-2:]
    assert last[0].endswith("58 of 60 in (at least 30), 58 survivors, 0 B, 12.0 s, applied")
    assert last[1] == "what comes next", "on a line of its own, also where the output is piped"


def test_progress_shows_the_sum_of_survivors_and_not_the_smallest_group() -> None:
    watch = RoundProgress()
    ended = status("applied", survivors=12, uploaded=60, finished_at=OPENED + timedelta(seconds=12))
    watch.seen(ended, OPENED)
    assert "60 of 60 in (at least 30), in groups of at least 12, 0 B" in rendered(watch, OPENED)


def test_stage_of_a_failed_round_is_not_marked_done() -> None:
    watch = RoundProgress()
    watch.seen(status("open", joined=0), OPENED)
    watch.seen(status("failed", joined=0, reason="Too few came."), OPENED + timedelta(seconds=60))
    lines = rendered(watch, OPENED + timedelta(seconds=61)).splitlines()
    assert [" ".join(line.split()) for line in lines[1:-1]] == ["✗ keys advertised 60.0 s"]
    assert lines[-1].strip() == "0 joined, 0 of 60 in (at least 30), 0 B, 61.0 s, failed"

    later = RoundProgress()
    for after, state in ((0, "open"), (4, "shares"), (9, "failed")):
        later.seen(status(state), OPENED + timedelta(seconds=after))
    assert [" ".join(line.split()) for line in rendered(later, OPENED + timedelta(seconds=9)).splitlines()[1:-1]] == [
        "✓ keys advertised 4.0 s",
        "✗ shares of keys exchanged 5.0 s",
    ]


def test_updates_under_local_noise_have_two_stages() -> None:
    watch = RoundProgress()
    watch.seen(status("updates", stages="updates", system="uni_fedrec"), OPENED)
    assert "updates coming in" in rendered(watch, OPENED)
    assert "keys" not in rendered(watch, OPENED)


@pytest.mark.parametrize("terminal", [False, True])
def test_list_of_rounds_is_not_truncated_and_has_one_line_per_round_when_piped(terminal: bool) -> None:
    why = "Too few devices came: 3 of the 30 that were needed had answered when its time was up, and nobody has paid."
    operator = create_autospec(Operator, instance=True)
    operator.rounds.return_value = [status("failed", reason=why)]
    operator.round_schedule.return_value = {"schedule": None, "paused": False, "trouble": None}
    shown = io.StringIO()
    show_rounds(operator, False, Console(file=shown, width=100, force_terminal=terminal, soft_wrap=True))
    lines = shown.getvalue().splitlines()
    assert (why in lines[1]) is not terminal
    if terminal:
        assert " ".join(line[70:].strip() for line in lines[1:-1]).strip().endswith("and nobody has paid.")


@pytest.mark.parametrize(
    ("reason", "says", "words"),
    [
        (None, None, "the server gives no reason"),
        ("Too few came.", None, "Too few came."),
        ("A member lied.", "It is opened again once.", "A member lied. It is opened again once."),
    ],
)
def test_failed_round_shows_why_and_what_follows(reason: str | None, says: str | None, words: str) -> None:
    assert why_failed(status("failed", reason=reason, summary=says)) == words


@pytest.mark.parametrize("retry", ["applied", "failed", None], ids=["retry applied", "retry failed", "no retry"])
def test_retried_round_is_followed_to_the_end_of_the_retry(retry: str | None) -> None:
    first = status("failed", reason="Too many left.", orders=None if retry is None else "small_ranker/secure/median")
    second = status(retry or "failed", round="round-2", reason="Again." if retry == "failed" else None)
    operator = create_autospec(Operator, instance=True)
    operator.follow.side_effect = lambda followed: iter([followed])
    operator.following.side_effect = lambda ended: second if ended.orders else None
    shown = io.StringIO()
    console = Console(file=shown, width=200)
    assert follow_all(operator, first, watch=True, as_json=False, console=console) is (retry == "applied")
    reported = shown.getvalue()
    assert "round-1 failed: Too many left." in reported
    assert ("round-2 applied" in reported) is (retry == "applied")
    assert ("round-2 failed: Again." in reported) is (retry == "failed")
