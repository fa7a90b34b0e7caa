"""Check the members that the server names: their number, identities and keys."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from device_app.privacy.secagg.state import HeldShares
from protocol.pairing import check_distinct, check_keys
from protocol.secagg import (
    AdvertisedKeys,
    Roster,
    SecaggError,
    Sharers,
    SumTerms,
    choose_neighbourhood,
    required_threshold,
)


@dataclass(frozen=True)
class RosterRules:
    """The conditions that a sum's members must meet.

    directory: verify keys of all devices that may be members, if there is such a list. smallest: the fewest members,
    including this device, with whom it shares its masks and lets its vector be opened.

    Formal guarantees: none by itself; that at least t honest members are needed to open a vector, as `take_part` says,
    rests on these checks of threshold and members.
    """

    terms: SumTerms
    directory: Collection[bytes] | None
    smallest: int

    def check(self, keys: AdvertisedKeys, roster: Roster) -> None:
        """Raise SecaggError unless the terms allow this roster.

        It must show these keys for this device.
        """
        terms, holders, context = self.terms, len(roster.members), self.terms.digest()
        if roster.round != terms.round:
            raise SecaggError(f"the roster is of {roster.round}")
        if not terms.cohort_minimum <= roster.cohort <= terms.cohort:
            raise SecaggError(f"{roster.cohort} members, the terms say {terms.cohort_minimum} to {terms.cohort}")
        due = choose_neighbourhood(roster.cohort) if terms.graph == "sparse" else None
        wanted = roster.cohort if due is None else due.degree + 1
        if holders != wanted:
            raise SecaggError(f"the roster names {holders} members, of a cohort of {roster.cohort} it must be {wanted}")
        if (last := roster.numbers[-1]) > roster.cohort:
            raise SecaggError(f"member {last} is beyond a cohort of {roster.cohort}")
        if holders < self.smallest:
            raise SecaggError(f"the roster names {holders} members, at least {self.smallest} are asked for")
        least, most = (max(2, required_threshold(terms, holders)), holders) if due is None else (due.threshold,) * 2
        if not least <= roster.threshold <= most:
            raise SecaggError(f"the threshold is {roster.threshold}, this device accepts {least} to {most}")
        check_distinct(tuple(entry.keys for entry in roster.members))
        mine = next(entry.keys for entry in roster.members if entry.member == roster.me)
        if mine != keys:
            raise SecaggError("the roster shows other keys for this device than it sent")
        for entry in roster.members:
            if self.directory is not None and entry.keys.verify_key not in self.directory:
                raise SecaggError(f"member {entry.member} is not in the directory")
            if terms.mode == "active":
                check_keys(context, entry.keys)

    def check_sharers(self, held: Sequence[HeldShares], roster: Roster, sharers: Sharers) -> None:
        """Raise SecaggError unless this device and enough others are in the sum.

        This device must hold shares of all of them.
        """
        if roster.me not in sharers.members:
            raise SecaggError("the server has left this device out: it has complained of another, or another of it")
        if unknown := sorted(set(sharers.members) - {one.member for one in held}):
            raise SecaggError(f"member {unknown[0]} is to be in the sum, and this device holds no share of its keys")
        if len(sharers.members) < (least := self.least_sharers(roster)):
            raise SecaggError(f"{len(sharers.members)} members are in the sum, at least {least} are needed")

    def least(self, roster: Roster) -> int:
        """Return the fewest members of the roster with whom this device continues.

        It counts itself. In the sparse form it sees its neighbours only; only the server can count the whole cohort.
        """
        return max(roster.threshold, self.smallest, self.terms.cohort_minimum if roster.is_whole else 0)

    def least_sharers(self, roster: Roster) -> int:
        """Return the fewest members of the roster with whom this device masks its vector.

        It counts itself.
        """
        due = None if roster.is_whole else choose_neighbourhood(roster.cohort)
        return max(self.least(roster), due.sharers if due else 0)
