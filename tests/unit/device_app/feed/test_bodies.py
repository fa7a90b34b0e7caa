"""The queue of lists whose texts are fetched: a refused list doesn't delay the others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from device_app.errors import BackendRefused, BackendUnreachable
from device_app.feed.bodies import LISTS_WAITING, TRIES, Bodies
from device_app.privacy.sealed import Sealed
from device_app.store.pool_codes import BLOCK, PoolBlock
from protocol.ids import Problem
from protocol.news import BodiesAnswer, BodiesRequest
from protocol.recall import RecallAnswer
from tests.doubles.news import NOW
from tests.doubles.wire_messages import CARD


class AnsweringUplink:
    """Answers requests for texts, except those for `refused`, which raise its trouble."""

    def __init__(self, refused: str, trouble: Exception) -> None:
        self.refused, self.trouble = refused, trouble
        self.asked: list[str] = []

    def bodies(self, sealed: Sealed[BodiesRequest]) -> BodiesAnswer:
        first = sealed.message.ids[0]
        self.asked.append(first)
        if first == self.refused:
            raise self.trouble
        return BodiesAnswer(bodies=())


def refusal(status: int) -> BackendRefused:
    return BackendRefused(Problem(type="urn:ownfeed:problem:x", title="No", status=status, detail="No."))


def queue(uplink: AnsweringUplink, *ids: str) -> Bodies:
    store: Any = SimpleNamespace(put_bodies=lambda texts: None)
    bodies = Bodies(uplink, store, lambda: NOW)  # type: ignore[arg-type]
    for one in ids:
        bodies.want_block(PoolBlock((one, *(f"{one}-{at}" for at in range(1, BLOCK)))))
    return bodies


def work(bodies: Bodies, trouble: type[Exception]) -> int:
    """Step until nothing waits, or ten times; return how often a step failed."""
    failed = 0
    for _ in range(10):
        try:
            if not bodies.step():
                break
        except trouble:
            failed += 1
    return failed


@pytest.mark.parametrize("trouble", [refusal(404), refusal(422), ValueError("of our own")])
def test_refused_list_of_texts_is_retried_after_the_others_and_then_dropped(trouble: Exception) -> None:
    uplink = AnsweringUplink("n1", trouble)
    bodies = queue(uplink, "n1", "n2", "n3")
    assert work(bodies, type(trouble)) == TRIES
    assert uplink.asked == ["n1", "n2", "n3", "n1", "n1"]
    assert not bodies.step()


@pytest.mark.parametrize("dropped_by", ["refusals", "newer lists"])
def test_default_list_whose_texts_were_given_up_is_noted_once(dropped_by: str) -> None:
    uplink = AnsweringUplink("n1" if dropped_by == "refusals" else "", refusal(404))
    bodies = queue(uplink)
    store: Any = bodies._store
    store.put = lambda *given: None
    lists = 1 if dropped_by == "refusals" else LISTS_WAITING + 1
    for at in range(1, lists + 1):
        news = (CARD.model_copy(update={"id": f"n{at}"}),)
        answer = RecallAnswer(release="r1", encoder="e", candidates=news, vectors=b"")
        bodies.want(answer, np.ones((1, 4), np.float32), common=True)
    assert not bodies.lost_some() or dropped_by == "newer lists"
    assert work(bodies, BackendRefused) == (TRIES if dropped_by == "refusals" else 0)
    assert bodies.lost_some() == (dropped_by == "refusals")
    assert not bodies.lost_some()


@pytest.mark.parametrize("trouble", [BackendUnreachable("http://backend", "ConnectError"), refusal(503), refusal(429)])
def test_list_of_texts_stays_first_while_the_backend_is_busy_or_unreachable(trouble: Exception) -> None:
    uplink = AnsweringUplink("n1", trouble)
    bodies = queue(uplink, "n1", "n2")
    assert work(bodies, type(trouble)) == 10
    assert set(uplink.asked) == {"n1"}
    uplink.refused = ""
    assert work(bodies, type(trouble)) == 0
    assert uplink.asked[-2:] == ["n1", "n2"]
