"""Private counts of displays and clicks, for popularity (docs/decisions/010).

A device contributes at most 5 clicks, and 32 displays that weigh 3/16 each. Its vector has no negative value and an L2
norm of at most sqrt(5 + 32 (3/16)^2) = 2.47, so replacing all of its reader's data moves the sum by at most 3.5.
Shares of 278 steps of 2^-8 (1.09 clicks) make noise of 8.4 clicks (45 displays) in the sum of 60 survivors, which costs
each of them epsilon 1.98 at delta 1e-6 for everything it did in the window; with 10 survivors the noise is 3.4 clicks
and epsilon 5.3. The noise grows with the square root of the cohort, and counts grow with the cohort: for a thousand
devices noise of 34 clicks is little.

A window is at most a day, and a device never contributes the same action twice.

From 66 devices on a count is several sums of 22 or more devices, joined by Huber's location (`strategies.joined_sums`),
so that one malicious client spoils only one group: of 1,000 devices one adds some 10 clicks to a story, where in a
single sum it could add as many clicks as there are devices. A group's count is limited to what its devices can
contribute. The noise of the total grows by a factor of at most 1.026. A device's own share of noise is unchanged, and
so is its cost if all other devices are fake. Its cost if the other devices are real is that of a group: 3.8 with 18
survivors.

If all other devices are fake, a count costs epsilon 21.1; a device computes that too, and declines above 24.

Under `secure_large` shares are for cohorts of 500 or more devices: 96 steps, so that with 500 devices epsilon is 2.0
and the noise again 8.4 clicks. With only one such share epsilon is 90.8, so devices decline unless their readers raise
that limit. It remains one sum: in a group of 22 devices its shares would cost more than a device allows. `exact` is for
tests and for a cohort that trusts its server with the exact sum: no epsilon bounds it. `local` has no secure sum: each
device adds Laplace noise to every number. Its true cost is that of 16,384 coordinates; it is here for comparison.
"""

import math

from backend.federation.strategies.counting import Counting
from backend.federation.strategies.joined_sums import HuberOfSums
from backend.federation.systems.composition import EXACT, LOCAL, SECURE, SECURE_LARGE, Form, System, SystemSpec
from protocol.popularity import CLICKED, DISPLAYED
from protocol.protections import LocalLaplace, SecureSum
from protocol.secagg import MEMBERS_LIMIT

MEMBERS = 18
"""Survivors of a group. With a fifth more members to allow for dropout, three groups make 66 devices. In one sum of n
devices a malicious client adds up to n clicks to a story: no more than a click and the noise's tail up to 71 devices if
1,500 articles are counted, or up to 65 devices for 100 articles.
"""
_COUNTING = Counting()
_NORM = math.sqrt(_COUNTING.clicked_limit + _COUNTING.displayed_unit**2 * _COUNTING.displayed_limit)

_SHARES = SecureSum(clip=_NORM, sigma=278, fraction_bits=8, nonnegative=True)

PRIVATE_COUNTS = System(
    SystemSpec(name="private_counts", task="count", protection=_SHARES, strategy=_COUNTING, changes="counts"),
    forms={
        SECURE: Form(_SHARES, aggregation="huber"),
        SECURE_LARGE: Form(
            SecureSum(clip=_NORM, sigma=96, fraction_bits=8, nonnegative=True, cohort_limit=MEMBERS_LIMIT)
        ),
        EXACT: Form(SecureSum(clip=_NORM, fraction_bits=8, nonnegative=True)),
        LOCAL: Form(LocalLaplace(clip=1.0, scale=2.0)),
    },
    huber=HuberOfSums(members=MEMBERS, most={CLICKED: 1.0, DISPLAYED: _COUNTING.displayed_unit}),
)
