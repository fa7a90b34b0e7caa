"""The release gate: 3 numbers a device under noise inside a secure sum (`strategies.release_gate` says what is done
with them).

A device's vector lies in the L2 ball of 1.06, so exchanging all of a reader's data moves the sum by at most 2.12; with
shares of sigma = 61,000 steps of 2^-16 a device pays epsilon 1.36 at delta 1e-6 among 60 survivors and 3.62 where a
round may be opened with 10: a day's budget of 8 pays for a round of `small_ranker_secure` (4.33) and for its gate.
16 others are drawn against each click.
"""

from __future__ import annotations

from backend.federation.strategies.joined_sums import MedianOfSums
from backend.federation.strategies.release_gate import ReleaseGate, take_back_unscored
from backend.federation.systems.system import GateRound, SystemSpec
from device_app.wire.protections import SecureSum
from device_app.wire.sum_vectors import BOUND

RELEASE_GATE = SystemSpec(
    name="release_gate",
    task="evaluate",
    protection=SecureSum(clip=BOUND, sigma=61_000),
    strategy=ReleaseGate(),
    join=MedianOfSums(),
    graph="score",
    negatives=16,
    samples_limit=64,
    if_failed=take_back_unscored,
)

GATE_ROUND = GateRound(RELEASE_GATE.name, cohort_limit=1_000, seconds_minimum=90.0)
"""The field `gate` of every system that trains a ranker."""
