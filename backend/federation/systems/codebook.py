"""The prototypes that reports are made with, learned from secure sums of readers' vectors by their nearest prototype.

`codebook` has noise inside the sum: shares of 0.75 of the clip, so a round costs each of 60 survivors epsilon 1.6 at
delta 1e-6 (0.36 of 1,000), like `small_ranker_secure`. The noise is spread over K D numbers where one reader's vector
is a single row: a cohort of 60 moves the prototypes hardly at all (R@100 +-0 in simulation). In simulated cohorts of
1,000 to 10,000 it moved them, and R@100 fell by 2 to 4 points: groups then follow what all readers have in common.
So it is for study, and nothing schedules it.

`codebook_exact` opens the exact sum of the cohort, which no epsilon bounds: devices decline it unless their readers
allow exact sums. It adopts what sets groups apart (`LearnedCodebook.apart`).
"""

from __future__ import annotations

from backend.federation.strategies.learned_codebook import LearnedCodebook
from backend.federation.systems.system import SystemSpec
from device_app.wire.protections import SecureSum

CODEBOOK = SystemSpec(
    name="codebook",
    task="nearest_prototype",
    protection=SecureSum(clip=1.0, sigma=49_000),
    strategy=LearnedCodebook(),
)

CODEBOOK_EXACT = SystemSpec(
    name="codebook_exact",
    task="nearest_prototype",
    protection=SecureSum(clip=1.0),
    strategy=LearnedCodebook(adopt_every=3, apart=1.0),
)
