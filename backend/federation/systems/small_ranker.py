"""The default ranker, 262 parameters, trained under local noise, with robust means, and by secure sums.

`small_ranker` has local differential privacy. Per coordinate 2 * 0.01 / 0.1 = 0.2, for a whole upload 0.2 * 262 = 52.4
in pure epsilon: no strong guarantee, but 650 to 90,000 times less than the papers' models cost, since the price counts
coordinates. A device charges exactly this.

The clip lets 97 of 100 coordinates of the metric's gradient through as they are and bounds those of beta, sharpness and
the feature weights, which are ten times as large (simulated readers of planted topics). With a cohort of 60 the mean's
noise is 0.1 sqrt(2 / 60) = 0.018 a coordinate, so a step moves a weight by about 0.002 at random, against weights of
0.02 to 1: one round does no harm and many are needed. There, 40 rounds took the loss from .661 to .642, and to .638
without noise. Noise inside a secure sum buys the same accuracy for far less: `small_ranker_secure` has it.

`small_ranker_trimmed` and `small_ranker_median` are the same with means that liars can't move far
(`strategies.robust_mean`).

`small_ranker_secure` has noise inside the sum. A device's gradient is scaled into the L2 ball of 0.1, so exchanging all
of a reader's data moves the sum by at most 0.2; with shares of sigma = 4,900 steps of 2^-16 (0.075) the sum of 60
survivors carries noise of 0.58, the mean 0.0097 a coordinate, and a round costs each of them epsilon 1.62 at delta
1e-6 (4.33 with 10 survivors, which a device charges where a round may be opened with so few). Under local noise
(`small_ranker`) it is 0.018 a coordinate and 52.4.

A cohort that makes three groups of twelve or more is summed in such groups, joined by a coordinate median
(`strategies.joined_sums`), so that one liar spoils one group. A device is then in a sum of ten to twelve or so, and the
round is told at that price, 3.9 for twelve; what it charges is 4.33 either way. A round whose cohort_minimum leaves no
three groups is one sum.

`small_ranker_exact` is Efficient-FedRec's form (eq. 4): no noise, devices weighed by n_u. What the exact sum
of a cohort tells of one reader is bounded by no epsilon, and devices decline it unless their readers allow it.

Rates: gradients are .3 to .6 long, so the clip of 0.1 takes most of their length away, and what isn't clipped goes at a
tenth of the rate. At 0.1 it took replayed readers of MIND from .617 to .606 of dev AUC in 60 rounds, since the weights
of sections and topics grow beyond what other days bear; `ownfeed bench replay` watches that.

Fixed point: 16 fraction bits in a ring of 32. n C n_u 2^16 < 2^31 for 1,000 devices at C = 1 and n_u = 32.
"""

from __future__ import annotations

from dataclasses import replace

from backend.federation.optimizers import Sgd
from backend.federation.strategies.fedavg import FedAvg
from backend.federation.strategies.joined_sums import MedianOfSums
from backend.federation.strategies.robust_mean import Median, Trimmed
from backend.federation.systems.release_gate import GATE_ROUND
from backend.federation.systems.system import SystemSpec
from device_app.wire.protections import LOCAL_NOISE, SecureSum

SMALL_RANKER = SystemSpec(
    name="small_ranker",
    architecture="feature_ranker",
    model="ranker.features",
    task="full_gradient",
    protection=LOCAL_NOISE["ranker.features"],
    strategy=FedAvg(),
    optimizer=Sgd(learning_rate=0.1),
    negatives=4,
    samples_limit=32,
    gate=GATE_ROUND,
)

SMALL_RANKER_TRIMMED = replace(SMALL_RANKER, name="small_ranker_trimmed", centre=Trimmed(share=0.1))
SMALL_RANKER_MEDIAN = replace(SMALL_RANKER, name="small_ranker_median", centre=Median())

SMALL_RANKER_SECURE = SystemSpec(
    name="small_ranker_secure",
    architecture="feature_ranker",
    model="ranker.features",
    task="full_gradient",
    protection=SecureSum(clip=0.1, sigma=4_900),
    strategy=FedAvg(),
    join=MedianOfSums(),
    optimizer=Sgd(learning_rate=0.1),
    negatives=4,
    samples_limit=32,
    gate=GATE_ROUND,
)

SMALL_RANKER_EXACT = SystemSpec(
    name="small_ranker_exact",
    architecture="feature_ranker",
    model="ranker.features",
    task="full_gradient",
    protection=SecureSum(clip=1.0, weight_limit=32),
    strategy=FedAvg(),
    optimizer=Sgd(learning_rate=0.01),
    negatives=4,
    samples_limit=32,
    gate=GATE_ROUND,
)
