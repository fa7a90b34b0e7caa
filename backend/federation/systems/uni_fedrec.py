"""Uni-FedRec (EMNLP Findings 2021): as it is served, and as it is printed.

`uni_fedrec` trains the basis that the default report names, the release's codebook of 16, and changes everybody's
candidates where a vote finds the trained one better. Noise is inside the sum: a device's gradient is 128 numbers in the
L2 ball of 0.1; with shares of 4,900 steps of 2^-16 a round costs epsilon 1.62 at delta 1e-6 among 60 survivors and 4.33
with 10. Below some 5,800 devices a round the noise would be most of what is trained, and the round is
refused. `uni_fedrec_exact` has no noise; no epsilon bounds its sum, and devices decline it unless their readers allow
exact sums. `basis_vote` is the release gate's sum of three numbers, about a draft that doesn't serve yet.

`uni_fedrec_as_printed` is the paper's recall model of 30 basic interests, which reports by `basis_laplace` alone use
(section 3.5: theta 0.1, lambda_g 0.01, omega 0.05, K = 4). Its protection costs 20 a coordinate and 4.9 million for a
whole update: the honest figure is what the device charges to its ledger and shows, and the reader's settings decide
whether it may be spent.
"""

from __future__ import annotations

from dataclasses import replace

from backend.federation.optimizers import Sgd
from backend.federation.strategies.fedavg import FedAvg
from backend.federation.strategies.joined_sums import MedianOfSums
from backend.federation.strategies.reported_basis import BasisRounds, BasisVote
from backend.federation.systems.release_gate import RELEASE_GATE
from backend.federation.systems.system import SystemSpec
from device_app.wire.protections import LOCAL_NOISE, SecureSum

BASIS_VOTE = SystemSpec(
    name="basis_vote",
    task="basis_vote",
    protection=RELEASE_GATE.protection,
    strategy=BasisVote(),
    join=MedianOfSums(),
    samples_limit=64,
)

UNI_FEDREC = SystemSpec(
    name="uni_fedrec",
    task="basis_gradient",
    protection=SecureSum(clip=0.1, sigma=4_900),
    strategy=BasisRounds(rate=4.0, vote=BASIS_VOTE.name),
    samples_limit=32,
)

UNI_FEDREC_EXACT = replace(
    UNI_FEDREC,
    name="uni_fedrec_exact",
    protection=SecureSum(clip=1.0),
    strategy=BasisRounds(rate=5.0, vote=BASIS_VOTE.name),
)

UNI_FEDREC_AS_PRINTED = SystemSpec(
    name="uni_fedrec_as_printed",
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
