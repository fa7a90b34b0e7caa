"""The participant without any I/O: each test is a script of calls and their results."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import cast

import numpy as np
import pytest

from device_app.errors import BackendRefused, BackendUnreachable, BudgetSpent, OfferRefused
from device_app.privacy.private_parameters import SharedUpdate
from device_app.privacy.protections.protection import ComputedUpdate
from device_app.settings import PrivacySettings
from device_app.training.eligibility import Readiness, Terms, check_offer
from device_app.training.participant import Outcome, RoundWork, finish, participate
from device_app.training.tasks import TASKS
from protocol.ids import PROTOCOL_VERSION, Problem
from protocol.protections import LocalLaplace
from protocol.rounds import CheckIn, RoundManifest, RoundOffer, RoundStatus, UploadReceipt

NOW = datetime(2026, 11, 20, 8, tzinfo=UTC)
READY = Readiness(switched_on=True, paused=False, release="r1", epsilon_left=1e9)
SHAPES: dict[str, tuple[int, ...]] = {"g.weights": (100,)}
STATUS = RoundStatus(
    round="round-1",
    system="uni_fedrec",
    task="recall",
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
        system="uni_fedrec",
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

Script = list[tuple[str, object]]
WHOLE: Script = [
    ("poll_rounds", (STATUS,)),
    ("may_have_part", False),
    ("ask_for_place", OFFER),
    ("check_offer", TERMS),
    ("join", None),
    ("update", UPDATE),
    ("send", RECEIPT),
]


class Scripted:
    """A `RoundWork` that answers call by call, and records its arguments."""

    def __init__(self, script: Script) -> None:
        self.script, self.calls = list(script), list[tuple[object, ...]]()

    def __getattr__(self, name: str) -> Callable[..., object]:
        def call(*given: object) -> object:
            expected, answer = self.script[len(self.calls)]
            assert name == expected
            self.calls.append((name, *given))
            if isinstance(answer, Exception):
                raise answer
            if isinstance(answer, Terms):
                check_offer(OFFER.manifest, answer)
            return answer

        return call


def play(script: Script, readiness: Readiness = READY) -> tuple[Outcome, list[tuple[object, ...]]]:
    """Take part, and finish what was joined; the participant must end exactly where the script ends."""
    scripted = Scripted(script)
    work = cast(RoundWork, scripted)
    outcome = participate(work, readiness)
    if outcome.state == "waiting":
        outcome = finish(work, OFFER)
    assert len(scripted.calls) == len(script)
    return outcome, scripted.calls


def script_until(name: str, answer: object) -> Script:
    """Return the script up to this call, which gets another answer."""
    place = [each for each, _ in WHOLE].index(name)
    return [*WHOLE[:place], (name, answer)]


def test_complete_participation_ends_in_the_state_uploaded() -> None:
    outcome, calls = play(WHOLE)

    assert outcome == Outcome("uploaded", None, OFFER)
    assert calls[2] == (
        "ask_for_place",
        CheckIn(protocol=PROTOCOL_VERSION, release=1, tasks=tuple(TASKS), round="round-1"),
    )
    assert calls[6] == ("send", OFFER, UPDATE)


def test_device_not_allowed_to_train_sends_no_request() -> None:
    outcome, calls = play([], Readiness(False, False, "r1", 1e9))

    assert (outcome.state, calls) == ("idle", [])
    assert "training is not switched on" in str(outcome.why)
    assert outcome.hindrance == "off"


@pytest.mark.parametrize(
    ("name", "answer", "state", "why", "hindrance"),
    [
        ("poll_rounds", (), "idle", "No round", None),
        ("poll_rounds", (STATUS.model_copy(update={"release": "r2"}),), "idle", "for release r2", "old"),
        ("poll_rounds", (STATUS.model_copy(update={"state": "applied"}),), "idle", "is applied", "late"),
        ("poll_rounds", (STATUS.model_copy(update={"uploaded": 3}),), "idle", "all its updates", "full"),
        ("poll_rounds", GONE, "idle", "does not answer", "unreachable"),
        ("may_have_part", True, "idle", "has already taken part", None),
        ("ask_for_place", None, "idle", "no place", "full"),
        ("ask_for_place", GONE, "idle", "does not answer", "unreachable"),
        ("ask_for_place", OfferRefused("signed by nobody"), "declined", "signed by nobody", "unfit"),
        (
            "check_offer",
            Terms(PrivacySettings(), "r1", (), (), SHAPES, 1e9, NOW),
            "declined",
            "does not know the task",
            "old",
        ),
        (
            "check_offer",
            Terms(PrivacySettings(weakest_scale_to_clip=1.0), "r1", ("recall",), ("recall",), SHAPES, 1e9, NOW),
            "declined",
            "weaker than the settings require",
            "protection",
        ),
        (
            "check_offer",
            Terms(PrivacySettings(), "r1", ("recall",), ("recall",), SHAPES, 1999.0, NOW),
            "declined",
            "2000",
            "spent",
        ),
        ("send", BudgetSpent("training", 2000, 0), "declined", "2000", "spent"),
        ("send", GONE, "waiting", "does not answer", None),
        ("send", BROKEN, "waiting", "sorry", None),
        ("send", REFUSED, "failed", "late", "late"),
        ("send", COMPLETE, "not needed", "complete", "full"),
    ],
)
def test_every_way_to_leave_a_round_ends_in_its_expected_state(
    name: str, answer: object, state: str, why: str, hindrance: str | None
) -> None:
    outcome, _ = play(script_until(name, answer))

    assert outcome.state == state
    assert why in str(outcome.why)
    assert outcome.hindrances.get("round-1", outcome.hindrance) == hindrance


def test_device_joins_the_oldest_suitable_round_by_its_id() -> None:
    beside = STATUS.model_copy(update={"round": "round-2"})
    other_release = STATUS.model_copy(update={"round": "round-3", "release": "r2"})
    full = STATUS.model_copy(update={"round": "round-4"})
    script: Script = [
        ("poll_rounds", (beside, other_release, full, STATUS)),
        ("may_have_part", True),  # round-2
        ("may_have_part", False),  # round-4
        ("ask_for_place", None),
        ("may_have_part", False),  # round-1
        *WHOLE[2:],
    ]
    outcome, calls = play(script)
    assert outcome.state == "uploaded"
    messages = [call[1] for call in calls if call[0] == "ask_for_place"]
    assert [each.round for each in messages if isinstance(each, CheckIn)] == ["round-4", "round-1"]


def test_unknown_task_is_not_joined() -> None:
    outcome, calls = play([("poll_rounds", (STATUS.model_copy(update={"task": "divination"}),))])
    assert (outcome.state, outcome.hindrances, len(calls)) == ("idle", {"round-1": "old"}, 1)


def test_device_that_suits_no_round_gives_the_reason_of_the_oldest() -> None:
    rounds = (STATUS, STATUS.model_copy(update={"round": "round-2", "release": "r2"}))
    outcome, _ = play([("poll_rounds", rounds), ("may_have_part", True)])
    assert str(outcome.why).startswith("This device has already taken part in round-1")
    assert outcome == Outcome("idle", outcome.why, hindrances={"round-2": "old"})


@pytest.mark.parametrize("name", ["poll_rounds", "ask_for_place"])
@pytest.mark.parametrize(("status", "asked"), [(503, 1.0), (429, 300.0), (503, None)])
def test_server_cannot_shorten_the_poll_interval(name: str, status: int, asked: float | None) -> None:
    """The server's Retry-After is a minimum; a longer usual pause stays."""
    problem = Problem(type="urn:ownfeed:problem:busy", title="Busy", status=status, detail="later")
    outcome, _ = play(script_until(name, BackendRefused(problem, asked)))
    assert (outcome.state, outcome.again_sec, outcome.not_before_sec) == ("idle", None, asked or 0.0)


def test_device_error_is_raised_not_reported_as_an_outcome() -> None:
    with pytest.raises(ZeroDivisionError):
        play(script_until("update", ZeroDivisionError()))


def test_participant_waits_for_an_update_that_is_not_yet_due() -> None:
    outcome, _ = play(script_until("update", None))
    assert (outcome.state, outcome.offer) == ("waiting", OFFER)
    assert outcome.again_sec is not None
