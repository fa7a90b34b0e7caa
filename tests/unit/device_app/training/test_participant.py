"""The participant without any I/O: each test is a script of what it wants and what it is told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from device_app.errors import BackendRefused, BackendUnreachable, BudgetSpent, OfferRefused
from device_app.privacy.private_parameters import SharedUpdate
from device_app.privacy.protections.protection import ComputedUpdate
from device_app.settings import PrivacySettings
from device_app.training.eligibility import Readiness, Terms
from device_app.training.participant import (
    AskForPlace,
    AskIfJoined,
    Compute,
    Effect,
    Gather,
    HandIn,
    Outcome,
    PollRounds,
    Reply,
    StateTerms,
    participate,
)
from device_app.wire.ids import PROTOCOL_VERSION
from device_app.wire.problem import Problem
from device_app.wire.protections import LocalLaplace
from device_app.wire.rounds import CheckIn, OpenRounds, RoundManifest, RoundOffer, RoundStatus, UploadReceipt

NOW = datetime(2026, 11, 20, 8, tzinfo=UTC)
READY = Readiness(switched_on=True, paused=False, release="r1", clicks=9, epsilon_left=1e9)
SHAPES: dict[str, tuple[int, ...]] = {"g.weights": (100,)}
STATUS = RoundStatus(
    round="round-1",
    system="uni_fedrec_as_printed",
    state="open",
    release="r1",
    cohort=3,
    cohort_minimum=2,
    joined=0,
    uploaded=0,
    received_bytes=0,
    opened_at=NOW,
    closes_at=NOW + timedelta(minutes=1),
)
OFFER = RoundOffer(
    manifest=RoundManifest(
        round="round-1",
        release="r1",
        system="uni_fedrec_as_printed",
        task="recall",
        model="recall",
        shapes=SHAPES,
        protection=LocalLaplace(),
        negatives=4,
        samples_limit=32,
        closes_at=NOW + timedelta(minutes=1),
    ),
    pseudonym="p" * 32,
)
TERMS = Terms(PrivacySettings(), "r1", ("recall",), ("recall",), SHAPES, 1e9, NOW)
UPDATE = ComputedUpdate(SharedUpdate({"g.a": np.zeros(2, np.float32)}, None), samples=3)
RECEIPT = UploadReceipt(round="round-1", sha256="0" * 64, duplicate=False)
REFUSED = BackendRefused(Problem(type="urn:ownfeed:problem:round-closed", title="Over", status=409, detail="late"))
COMPLETE = BackendRefused(
    Problem(type="urn:ownfeed:problem:round-closed", title="Over", status=409, detail="is complete", field="cohort")
)
BROKEN = BackendRefused(Problem(type="urn:ownfeed:problem:unexpected", title="Broken", status=500, detail="sorry"))
GONE = BackendUnreachable("http://backend", "no answer")

Script = list[tuple[type[Effect], Reply | Exception]]
WHOLE: Script = [
    (PollRounds, STATUS),
    (AskIfJoined, False),
    (Gather, 4),
    (AskForPlace, OFFER),
    (StateTerms, TERMS),
    (Compute, UPDATE),
    (HandIn, RECEIPT),
]


def play(
    script: list[tuple[type[Effect], Reply | Exception]], readiness: Readiness = READY
) -> tuple[Outcome, list[Effect]]:
    """Answer each effect by the script; the participant must end exactly where the script ends."""
    attempt = participate(readiness, ("recall",))
    queries: list[Effect] = []
    try:
        effect = next(attempt)
        for expected, answer in script:
            assert type(effect) is expected
            queries.append(effect)
            effect = attempt.throw(answer) if isinstance(answer, Exception) else attempt.send(answer)
    except StopIteration as end:
        assert len(queries) == len(script)
        return end.value, queries
    raise AssertionError(f"the script ended, the participant still wants {effect}")


def until(kind: type[Effect], answer: Reply | Exception) -> Script:
    """The whole script up to the effect of this kind, which gets another answer."""
    place = [each for each, _ in WHOLE].index(kind)
    return [*WHOLE[:place], (kind, answer)]


def test_a_whole_part_ends_uploaded() -> None:
    outcome, queries = play(WHOLE)

    assert outcome == Outcome("uploaded", None, OFFER)
    assert queries[3] == AskForPlace(CheckIn(protocol=PROTOCOL_VERSION, release=1, tasks=("recall",)))
    assert queries[6] == HandIn(OFFER, UPDATE)


def test_a_device_that_may_not_train_asks_for_nothing() -> None:
    outcome, queries = play([], Readiness(False, False, "r1", 9, 1e9))

    assert (outcome.state, queries) == ("idle", [])
    assert "switched training on" in str(outcome.why)
    assert outcome.hindrance == "off"


@pytest.mark.parametrize(
    ("kind", "answer", "state", "why", "hindrance"),
    [
        (PollRounds, None, "idle", "No round", None),
        (PollRounds, STATUS.model_copy(update={"release": "r2"}), "idle", "for release r2", "old"),
        (PollRounds, STATUS.model_copy(update={"state": "applied"}), "idle", "is applied", "late"),
        (PollRounds, STATUS.model_copy(update={"uploaded": 3}), "idle", "all its updates", "full"),
        (PollRounds, GONE, "idle", "does not answer", "unreachable"),
        (AskIfJoined, True, "idle", "has had its part", None),
        (Gather, 0, "idle", "none of its clicks", "few"),
        (AskForPlace, None, "idle", "no place", "full"),
        (AskForPlace, GONE, "idle", "does not answer", "unreachable"),
        (AskForPlace, OfferRefused("signed by nobody"), "declined", "signed by nobody", "unfit"),
        (
            StateTerms,
            Terms(PrivacySettings(), "r1", (), (), SHAPES, 1e9, NOW),
            "declined",
            "does not know the task",
            "old",
        ),
        (
            StateTerms,
            Terms(PrivacySettings(weakest_scale_to_clip=1.0), "r1", ("recall",), ("recall",), SHAPES, 1e9, NOW),
            "declined",
            "weaker than this reader accepts",
            "protection",
        ),
        (
            StateTerms,
            Terms(PrivacySettings(), "r1", ("recall",), ("recall",), SHAPES, 1999.0, NOW),
            "declined",
            "2000",
            "spent",
        ),
        (HandIn, BudgetSpent("training", 2000, 0), "declined", "2000", "spent"),
        (HandIn, GONE, "waiting", "does not answer", None),
        (HandIn, BROKEN, "waiting", "sorry", None),
        (HandIn, REFUSED, "failed", "late", "late"),
        (HandIn, COMPLETE, "not needed", "complete", "full"),
    ],
)
def test_every_way_out_ends_where_it_should(
    kind: type[Effect], answer: Reply | Exception, state: str, why: str, hindrance: str | None
) -> None:
    outcome, _ = play(until(kind, answer))

    assert outcome.state == state
    assert why in str(outcome.why)
    assert outcome.hindrances.get("round-1", outcome.hindrance) == hindrance


def test_of_several_rounds_the_oldest_that_takes_this_device_is_joined_and_named() -> None:
    beside = STATUS.model_copy(update={"round": "round-2"})
    other_release = STATUS.model_copy(update={"round": "round-3", "release": "r2"})
    full = STATUS.model_copy(update={"round": "round-4"})
    rounds = OpenRounds(rounds=(beside, other_release, full, STATUS))
    script: Script = [
        (PollRounds, rounds),
        (AskIfJoined, True),  # round-2
        (AskIfJoined, False),  # round-4
        (Gather, 4),
        (AskForPlace, None),
        (AskIfJoined, False),  # round-1
        (Gather, 4),
        *WHOLE[3:],
    ]
    outcome, queries = play(script)
    assert outcome.state == "uploaded"
    assert [each.message.round for each in queries if isinstance(each, AskForPlace)] == ["round-4", "round-1"]


def test_a_device_that_no_round_takes_says_why_of_the_oldest() -> None:
    rounds = OpenRounds(rounds=(STATUS, STATUS.model_copy(update={"round": "round-2", "release": "r2"})))
    outcome, _ = play([(PollRounds, rounds), (AskIfJoined, True)])
    assert str(outcome.why).startswith("This device has had its part in round-1")
    assert outcome == Outcome("idle", outcome.why, hindrances={"round-2": "old"})


def test_a_server_that_tells_one_round_is_sent_the_check_in_it_knows() -> None:
    """Byte for byte: an earlier server refuses fields that it doesn't know."""
    (message,) = [each.message for each in play(WHOLE)[1] if isinstance(each, AskForPlace)]
    assert message.model_dump_json() == '{"protocol":3,"release":1,"tasks":["recall"]}'


def test_a_fault_of_the_device_is_not_taken_for_an_outcome() -> None:
    with pytest.raises(ZeroDivisionError):
        play(until(Compute, ZeroDivisionError()))


def test_nothing_is_computed_before_the_terms_are_agreed() -> None:
    kinds = [kind for kind, _ in WHOLE]

    assert kinds.index(StateTerms) < kinds.index(Compute) < kinds.index(HandIn)
