from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from backend.federation.errors import IllegalTransition
from backend.federation.rounds.states import TRANSITIONS, UNDER_WAY, advance
from device_app.wire.rounds import RoundState

STATES = get_args(RoundState)
LEGAL = {("open", "updates"), ("open", "failed"), ("updates", "applied"), ("updates", "failed")} | {
    ("open", "keys"), ("keys", "shares"), ("shares", "masked"), ("masked", "agree"), ("masked", "unmask"),
    ("agree", "unmask"), ("unmask", "applied"), ("keys", "failed"), ("shares", "failed"), ("masked", "failed"),
    ("agree", "failed"), ("unmask", "failed"),
}  # fmt: skip


@pytest.mark.parametrize(("state", "to"), list(product(STATES, STATES)))
def test_exactly_the_legal_transitions_are_taken(state: RoundState, to: RoundState) -> None:
    if (state, to) in LEGAL:
        assert advance(state, to) == to
    else:
        with pytest.raises(IllegalTransition, match=f"{state}.*{to}"):
            advance(state, to)


def test_the_table_covers_the_wires_states_and_only_unended_ones_have_a_way_out() -> None:
    assert set(TRANSITIONS) == set(STATES)
    assert {state for state, ways in TRANSITIONS.items() if ways} == set(UNDER_WAY)
