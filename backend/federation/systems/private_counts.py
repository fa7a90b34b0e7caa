"""Private counts of what is displayed and clicked, for popularity (docs/decisions/008).

A device contributes at most 5 clicks and 32 displays, a display weighing 3/16: its vector has no negative value and an
L2 norm of at most sqrt(5 + 32 (3/16)^2) = 2.47, so exchanging all of its reader's data moves the sum by at most 3.5.
Shares of 278 steps of 2^-8 (1.09 clicks) make noise of 8.4 clicks (45 displays) in the sum of 60 survivors, which costs
each of them epsilon 1.98 at delta 1e-6, for everything it did in the window; with 10 survivors, 3.4 clicks and 5.3. The
noise grows with the root of the cohort and counts with the cohort itself: of a thousand devices 34 clicks is little.

A window is at most a day, and what was contributed once never is again.

From 66 devices on a count is several sums of 22 and more, joined by Huber's location (`strategies.joined_sums`), so
that one liar spoils one group: of 1,000 devices one adds some 10 clicks to a story, where in one sum it adds as many as
take part. A group counts as no more than its devices can give. The noise of the whole grows by 1.026 at most; a
device's own share, and with it the price if nobody else is real, are what they were. The price in honest company is
that of a group: 3.8 with 18 survivors.

If no other device is real a count costs epsilon 21.1: a device figures that too, and declines above 24.

`private_counts_large` has shares for 500 devices and more: 96 steps, so that 500 pay 2.0 and the noise is 8.4 clicks
again. With one such share alone it is 90.8, so devices decline it unless their readers raise that ceiling. It remains
one sum: in a group of 22 its shares would cost more than a device allows.
`private_counts_exact` is for tests and for a cohort that trusts its server with the exact sum: no epsilon bounds it.
`private_counts_local` has no secure sum: Laplace noise on every number of every device. Its honest price is that of
16,384 coordinates; it is here for comparison.
"""

from __future__ import annotations

import math
from dataclasses import replace

from backend.federation.strategies.counting import Counting
from backend.federation.strategies.joined_sums import HuberOfSums
from backend.federation.systems.system import SystemSpec
from device_app.wire.popularity import CLICKED, DISPLAYED
from device_app.wire.protections import LocalLaplace, SecureSum
from device_app.wire.secagg import MEMBERS_LIMIT

MEMBERS = 18
"""Survivors of a group. With a fifth to spare, three groups make 66 devices. In one sum of n a liar adds up to n clicks
to a story: no more than a click and the noise's tail up to 71 devices where 1,500 news are counted, to 65 of 100."""
_COUNTING = Counting()
_NORM = math.sqrt(_COUNTING.clicked_limit + _COUNTING.displayed_unit**2 * _COUNTING.displayed_limit)

PRIVATE_COUNTS = SystemSpec(
    name="private_counts",
    task="count",
    protection=SecureSum(clip=_NORM, sigma=278, fraction_bits=8, nonnegative=True),
    strategy=_COUNTING,
    join=HuberOfSums(members=MEMBERS, most={CLICKED: 1.0, DISPLAYED: _COUNTING.displayed_unit}),
    changes="counts",
)
PRIVATE_COUNTS_LARGE = replace(
    PRIVATE_COUNTS,
    name="private_counts_large",
    protection=SecureSum(clip=_NORM, sigma=96, fraction_bits=8, nonnegative=True, cohort_limit=MEMBERS_LIMIT),
    join=None,
)
PRIVATE_COUNTS_EXACT = replace(
    PRIVATE_COUNTS,
    name="private_counts_exact",
    protection=SecureSum(clip=_NORM, fraction_bits=8, nonnegative=True),
    join=None,
)
PRIVATE_COUNTS_LOCAL = replace(
    PRIVATE_COUNTS, name="private_counts_local", protection=LocalLaplace(clip=1.0, scale=2.0), join=None
)
