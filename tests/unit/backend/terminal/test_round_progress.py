"""What `ownfeed round --watch` shows. Oracle: the statuses of a round, played one after the other."""

from __future__ import annotations

import io
from datetime import datetime, timedelta

import pytest
from rich.console import Console

from backend.terminal.round_progress import RoundProgress, watched
from backend.terminal.rounds import why_failed
from tests.doubles.secure_round_status import OPENED, status


def drawn(watch: RoundProgress, now: datetime) -> str:
    console = Console(file=io.StringIO(), width=100, force_terminal=False)
    console.print(watch.shown(now))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_each_stage_has_its_seconds_and_what_comes_is_marked_as_coming() -> None:
    watch = RoundProgress()
    for after, state in ((0, "open"), (4, "shares"), (7, "masked")):
        watch.seen(status(state, uploaded=12, received_bytes=2_400_000), OPENED + timedelta(seconds=after))
    lines = drawn(watch, OPENED + timedelta(seconds=9)).splitlines()

    assert lines[0].strip() == "round-1 · small_ranker_secure"
    assert [" ".join(line.split()) for line in lines[1:5]] == [
        "✓ keys advertised 4.0 s",
        "✓ shares of keys exchanged 3.0 s",
        "› masked vectors added 2.0 s",
        "· sum opened",
    ]
    assert lines[5].strip() == "60 joined, 12 of 60 in (at least 30), 2.40 MB, 9.0 s, masked"


def test_a_round_is_watched_to_its_end_and_its_survivors_are_told() -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=False)
    ended = status("applied", survivors=58, uploaded=58, finished_at=OPENED + timedelta(seconds=12))
    assert watched([status("open"), status("unmask"), ended], console) is ended
    assert isinstance(console.file, io.StringIO)
    console.print("what comes next")
    last = console.file.getvalue().splitlines()[-2:]
    assert last[0].endswith("58 of 60 in (at least 30), 58 survivors, 0.00 MB, 12.0 s, applied")
    assert last[1] == "what comes next", "on a line of its own, also where the output is piped"


def test_updates_under_local_noise_have_two_stages() -> None:
    watch = RoundProgress()
    watch.seen(status("updates", stages="updates", system="uni_fedrec"), OPENED)
    assert "updates coming in" in drawn(watch, OPENED)
    assert "keys" not in drawn(watch, OPENED)


@pytest.mark.parametrize(
    ("reason", "says", "words"),
    [
        (None, None, "the server gives no reason"),
        ("Too few came.", None, "Too few came."),
        ("A member lied.", "It is opened again once.", "A member lied. It is opened again once."),
    ],
)
def test_a_failed_round_says_why_and_what_follows(reason: str | None, says: str | None, words: str) -> None:
    assert why_failed(status("failed", reason=reason, says=says)) == words
