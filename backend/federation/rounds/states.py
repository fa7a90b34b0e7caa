"""The state machine of a round. Terminal states have no way out.

open     offers go out, no update has come
keys, shares, masked, (agree), unmask
         the stages of a secure sum, from the first place given: instead of `updates`, and kept by the sum itself
updates  at least one update has come; offers still go out while places and time are left
applied  the updates were summed and concluded, and what they gave published, if anything, in one transaction
failed   with a reason: too few updates at the deadline, cancelled, or nothing left to build on
"""

from __future__ import annotations

from typing import Final

from backend.federation.errors import IllegalTransition
from device_app.wire.rounds import RoundState

TRANSITIONS: Final[dict[RoundState, frozenset[RoundState]]] = {
    "open": frozenset({"updates", "keys", "failed"}),
    "keys": frozenset({"shares", "failed"}),
    "shares": frozenset({"masked", "failed"}),
    "masked": frozenset({"agree", "unmask", "failed"}),
    "agree": frozenset({"unmask", "failed"}),
    "unmask": frozenset({"applied", "failed"}),
    "updates": frozenset({"applied", "failed"}),
    "applied": frozenset(),
    "failed": frozenset(),
}
UNDER_WAY: Final[tuple[RoundState, ...]] = ("open", "updates", "keys", "shares", "masked", "agree", "unmask")


def advance(state: RoundState, to: RoundState) -> RoundState:
    """Return `to` if a round may go there from `state`; raise IllegalTransition otherwise."""
    if to not in TRANSITIONS[state]:
        raise IllegalTransition(f"A round that is {state} can't become {to}.", field="state")
    return to
