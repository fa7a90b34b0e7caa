"""Tracks which rounds each member of a fleet takes part in, and with what outcome."""

import time
from collections import Counter
from collections.abc import Iterable

from device_app.fleet.fleet import Fleet, Member, train
from device_app.training.participant import Outcome
from device_app.uplink.faulty_transport import Crashed


class FleetParticipation:
    """Drives every member of a fleet through the current rounds, which may overlap."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._open: set[str] = set()
        self._waits: set[int] = set()
        self._done: dict[int, set[str]] = {}
        self._not_before: dict[int, float] = {}
        self._crashes = 0
        self._became: dict[str, dict[int, str]] = {}

    def begin(self, rounds: Iterable[str]) -> None:
        """Let every member try to join rounds that have opened."""
        for each in rounds:
            self._open.add(each)
            self._became[each] = {}
        self.go_on()

    def go_on(self) -> None:
        """Run a step for each member that is waiting in a sum or hasn't tried an open round."""
        self._fleet.run(self._step)

    def ended(self, round_id: str) -> dict[str, int]:
        """Return how many members took part in a finished round, and why the others didn't.

        Those that took part are counted as `sent`. The release may have changed, so all open rounds are tried again.
        """
        self._open.discard(round_id)
        self._done.clear()
        ways = (member.device.parts.stores.participations.get(round_id) for member in self._fleet.members)
        return dict(Counter("idle" if each is None else each.state for each in ways))

    def became(self, round_id: str) -> dict[str, int]:
        """Return how many members took part in a finished round (`sent`), and why the others didn't.

        The reasons are those of `Outcome`, `late` for members that began but didn't finish, and `absent` for those that
        never checked in.
        """
        kept, found = self._became.get(round_id, {}), Counter[str]()
        for member in self._fleet.members:
            began = member.device.parts.stores.participations.get(round_id) is not None
            found[kept.get(id(member), "late" if began else "absent")] += 1
        return dict(found)

    def struck(self) -> Counter[str]:
        """Return how many members each fault has hit so far."""
        struck = Counter(
            member.injected.fault
            for member in self._fleet.members
            if member.injected is not None and member.network is not None and member.network.struck
        )
        return struck + Counter({"crash": self._crashes})

    def _step(self, member: Member) -> None:
        key = id(member)
        done = self._done.setdefault(key, set())
        if time.monotonic() < self._not_before.get(key, 0.0) or not (key in self._waits or self._open - done):
            return
        try:
            outcome = train(member)
        except Crashed:
            self._crashes += 1
            self._waits.add(key)
            self._fleet.start_again(member)
            return
        self._note(key, outcome, self._open - done)
        if outcome.state == "waiting" or (outcome.state == "idle" and outcome.again_sec is not None):
            self._waits.add(key)
            if outcome.state == "idle" and outcome.again_sec is not None:
                self._not_before[key] = time.monotonic() + outcome.again_sec
            return
        self._waits.discard(key)
        done.update(self._open if outcome.offer is None else {outcome.offer.manifest.round})

    def _note(self, key: int, outcome: Outcome, tried: Iterable[str]) -> None:
        """Record why a member is out of each round so far; once it has sent, that stays."""
        ways: dict[str, str] = dict(outcome.hindrances)
        if outcome.hindrance is not None:
            ways = dict.fromkeys(tried, outcome.hindrance) | ways
        if outcome.state == "uploaded" and outcome.offer is not None:
            ways[outcome.offer.manifest.round] = "sent"
        for round_id, way in ways.items():
            kept = self._became.get(round_id)
            if kept is not None and kept.get(key) != "sent":
                kept[key] = way
