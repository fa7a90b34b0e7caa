"""The prototypes that reports are made with, learned from secure sums of readers' vectors by their nearest prototype.

`codebook` has noise inside the sum, in shares for cohorts of 1,000 devices and more, which pay epsilon 1.6 each at
delta 1e-6, and 115 if no other device is real: devices decline it unless their readers raise the ceiling for that. The
noise is spread over K D numbers where one reader's vector is a single row, so the sums are read in the
few directions in which news differ most, and a draft that is mostly noise is never published. On MIND none was in 30
rounds of up to 2,800 devices; below some 5,200 devices a round none would be, and the round is refused.

`codebook_exact` opens the exact sum of the cohort, which no epsilon bounds: devices decline it unless their readers
allow exact sums. Both adopt what sets groups apart (`LearnedCodebook.apart`).
"""

from __future__ import annotations

from backend.federation.strategies.learned_codebook import LearnedCodebook
from backend.federation.systems.system import SystemSpec
from device_app.wire.protections import SecureSum

CODEBOOK = SystemSpec(
    name="codebook",
    task="nearest_prototype",
    protection=SecureSum(clip=1.0, sigma=12_000),
    strategy=LearnedCodebook(apart=1.0, axes=24),
)

CODEBOOK_EXACT = SystemSpec(
    name="codebook_exact",
    task="nearest_prototype",
    protection=SecureSum(clip=1.0),
    strategy=LearnedCodebook(adopt_every=3, apart=1.0),
)
