"""The prototypes of reports, learned from secure sums of vectors by nearest prototype.

Under `secure` there is noise in the sum, in shares for cohorts of 1,000 or more devices. Each device then pays epsilon
1.6 at delta 1e-6, and 115 if all other devices are fake: devices decline unless their readers raise that limit. The
noise is spread over K D numbers while one reader's vector is a single row, so the sums are projected onto the few
directions in which articles differ most, and a draft that is mostly noise is never published. On MIND no draft was
published in 30 rounds of up to 2,800 devices. Below about 5,200 devices a round none would be, so such rounds are
refused.

Under `exact` a round opens the exact sum of the cohort, which no epsilon bounds: devices decline unless their readers
allow exact sums. Both protections publish what distinguishes groups (`LearnedCodebook.apart`).
"""

from backend.federation.strategies.learned_codebook import LearnedCodebook
from backend.federation.systems.composition import EXACT, SECURE, Form, System, SystemSpec
from protocol.protections import SecureSum

NOISY = SecureSum(clip=1.0, sigma=12_000)
CODEBOOK = System(
    SystemSpec(
        name="codebook",
        task="nearest_prototype",
        protection=NOISY,
        strategy=LearnedCodebook(apart=1.0, axes=24),
    ),
    forms={
        SECURE: Form(NOISY),
        EXACT: Form(SecureSum(clip=1.0), changes={"strategy": LearnedCodebook(adopt_every=3, apart=1.0)}),
    },
)
