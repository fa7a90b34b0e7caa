"""The release gate: 3 numbers from each device in a noisy secure sum.

See `strategies.release_gate`. A device's vector lies in the L2 ball of radius 1.06, so replacing all of a reader's data
moves the sum by at most 2.12. With shares of sigma = 61,000 steps of 2^-16 a device pays epsilon 1.36 at delta 1e-6
with 60 survivors, and 3.62 in a round that may be opened with 10: a daily budget of 8 pays for a round of
`small_ranker` (4.33) and its gate. For each click 16 other articles are drawn as negatives.
"""

from backend.federation.strategies.joined_sums import MedianOfSums
from backend.federation.strategies.release_gate import ReleaseGate, take_back_unscored
from backend.federation.systems.composition import GateRound, SystemSpec
from protocol.protections import SecureSum
from protocol.ring import BOUND

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
"""The value of `gate` in every system that trains a ranker."""
