"""The default ranker, trained under local noise, with robust means, or by secure sums.

It has 262 parameters. `local` gives local differential privacy. A coordinate costs 2 * 0.01 / 0.1 = 0.2, and a whole
upload 0.2 * 262 = 52.4 in pure epsilon: this is not a strong guarantee, but 650 to 90,000 times less than the papers'
models cost, since the cost grows with the number of coordinates. A device charges exactly this.

The clip leaves 97 of 100 coordinates of the metric's gradient unchanged and limits those of beta, sharpness and the
feature weights, which are ten times as large (simulated readers of planted topics). With a cohort of 60 the mean's
noise is 0.1 sqrt(2 / 60) = 0.018 a coordinate, so a step moves a weight by about 0.002 at random, while weights are
0.02 to 1: one round does no harm, and training takes many. In that simulation 40 rounds lowered the loss from .661 to
.642, and to .638 without noise. Noise inside a secure sum gives the same accuracy at a far lower cost.

The aggregations `trimmed` and `median` are means that malicious clients can't move far (`strategies.robust_mean`).

Under `secure`, the default protection, the noise is inside the sum. A device's gradient is scaled into the L2 ball of
radius 0.1, so replacing all of a reader's data moves the sum by at most 0.2. With shares of sigma = 4,900 steps of
2^-16 (0.075) the sum of 60 survivors carries noise of 0.58, and the mean 0.0097 a coordinate; a round costs each of
them epsilon 1.62 at delta 1e-6 (4.33 with 10 survivors, which a device charges if a round may be opened with that few).
Under local noise these figures are 0.018 a coordinate and 52.4.

With the aggregation `median` a cohort of at least three groups of twelve is summed in such groups, which are joined by
a coordinate median (`strategies.joined_sums`), so that one malicious client spoils only one group. A device is then in
a sum of about ten to twelve, and the round is reported at that cost, 3.9 for twelve; a device charges 4.33 either way.
A round whose cohort_minimum leaves no three groups is one sum.

Under `exact` it has Efficient-FedRec's form (eq. 4): no noise, and devices weighted by n_u. No epsilon bounds what the
exact sum of a cohort reveals about one reader, and devices decline unless their readers allow it.

Learning rates: gradients have length .3 to .6, so the clip of 0.1 removes most of it; where nothing is clipped the rate
is a tenth. At 0.1 it lowered the dev AUC of replayed readers of MIND from .617 to .606 in 60 rounds, since the weights
of sections and topics grow too large for other days; `ownfeed bench replay` monitors that.

Fixed point: 16 fraction bits in a ring of 32. n C n_u 2^16 < 2^31 for 1,000 devices at C = 1 and n_u = 32.
"""

from backend.federation.optimizers import Sgd
from backend.federation.strategies.fedavg import FedAvg
from backend.federation.systems.composition import EXACT, LOCAL, NOISY_SUM, SECURE, Form, System, SystemSpec
from backend.federation.systems.release_gate import GATE_ROUND
from protocol.protections import LOCAL_NOISE, SecureSum

MODEL = "ranker.features"
SMALL_RANKER = System(
    SystemSpec(
        name="small_ranker",
        architecture="feature_ranker",
        model=MODEL,
        task="full_gradient",
        protection=NOISY_SUM,
        strategy=FedAvg(),
        optimizer=Sgd(learning_rate=0.1),
        negatives=4,
        samples_limit=32,
        gate=GATE_ROUND,
    ),
    forms={
        SECURE: Form(NOISY_SUM, aggregation="median"),
        LOCAL: Form(LOCAL_NOISE[MODEL]),
        EXACT: Form(SecureSum(clip=1.0, weight_limit=32), changes={"optimizer": Sgd(learning_rate=0.01)}),
    },
)
