from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from backend.federation.errors import IllegalTransition
from backend.federation.rounds.records import TRANSITIONS, UNDER_WAY, advance
from protocol.rounds import RoundState

STATES = get_args(RoundState)
LEGAL = {("open", "updates"), ("open", "failed"), ("updates", "applied"), ("updates", "failed")} | {
    ("open", "keys"), ("keys", "shares"), ("shares", "masked"), ("masked", "agree"), ("masked", "unmask"),
    ("agree", "unmask"), ("unmask", "applied"), ("keys", "failed"), ("shares", "failed"), ("masked", "failed"),
    ("agree", "failed"), ("unmask", "failed"),
}  # fmt: skip


@pytest.mark.parametrize(("state", "to"), list(product(STATES, STATES)))
def test_only_legal_transitions_of_a_round_are_accepted(state: RoundState, to: RoundState) -> None:
    if (state, to) in LEGAL:
        assert advance(state, to) == to
    else:
        with pytest.raises(IllegalTransition, match=f"{state}.*{to}"):
            advance(state, to)


def test_transition_table_covers_every_state_on_the_wire() -> None:
    assert set(TRANSITIONS) == set(STATES)
    assert {state for state, ways in TRANSITIONS.items() if ways} == set(UNDER_WAY)
