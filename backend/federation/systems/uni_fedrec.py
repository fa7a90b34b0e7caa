"""Uni-FedRec (EMNLP Findings 2021): as served, and as published.

`basis` trains the basis of the default reports, the release's codebook of 16, and replaces it, and with it everyone's
candidates, if a vote finds the trained one better. The noise is inside the sum: a device's gradient is 128 numbers in
the L2 ball of radius 0.1; with shares of 4,900 steps of 2^-16 a round costs epsilon 1.62 at delta 1e-6 with 60
survivors and 4.33 with 10. Below some 5,800 devices a round the noise would be most of what is trained, so the round is
refused. Under `exact` there is no noise; no epsilon bounds its sum, and devices decline unless their readers allow
exact sums. `basis_vote` is the release gate's sum of three numbers, for a draft that is not served yet.

The preset `uni_fedrec` is the paper's recall model of 30 basic interests, which only reports by `basis_laplace` use
(section 3.5: theta 0.1, lambda_g 0.01, omega 0.05, K = 4). Its protection costs 20 a coordinate and 4.9 million for a
whole update: the device charges this true cost to its ledger and shows it, and the reader's settings decide whether it
may be spent.
"""

from __future__ import annotations

from backend.federation.optimizers import Sgd
from backend.federation.strategies.fedavg import FedAvg
from backend.federation.strategies.joined_sums import MedianOfSums
from backend.federation.strategies.reported_basis import BasisRounds, BasisVote
from backend.federation.systems.composition import EXACT, NOISY_SUM, SECURE, Form, System
from backend.federation.systems.release_gate import RELEASE_GATE
from backend.federation.systems.system import SystemSpec
from protocol.protections import LOCAL_NOISE, SecureSum

BASIS_VOTE = SystemSpec(
    name="basis_vote",
    task="basis_vote",
    protection=RELEASE_GATE.protection,
    strategy=BasisVote(),
    join=MedianOfSums(),
    samples_limit=64,
)

BASIS = System(
    SystemSpec(
        name="basis",
        task="basis_gradient",
        protection=NOISY_SUM,
        strategy=BasisRounds(rate=4.0, vote=BASIS_VOTE.name),
        samples_limit=32,
    ),
    forms={
        SECURE: Form(NOISY_SUM),
        EXACT: Form(SecureSum(clip=1.0), changes={"strategy": BasisRounds(rate=5.0, vote=BASIS_VOTE.name)}),
    },
)

UNI_FEDREC = SystemSpec(
    name="uni_fedrec",
    architecture="basis",
    model="recall",
    task="recall",
    protection=LOCAL_NOISE["recall"],
    strategy=FedAvg(),
    optimizer=Sgd(learning_rate=0.05),
    negatives=4,
    samples_limit=32,
    participation=0.02,
    dropout=0.2,
)
