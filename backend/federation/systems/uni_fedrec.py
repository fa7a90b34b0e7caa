"""Uni-FedRec (EMNLP Findings 2021): as served, and as published.

`basis` trains the basis of the default reports, the release's codebook of 16, and replaces it, and with it everyone's
candidates, if a vote finds the trained one better. The noise is inside the sum: a device's gradient is 128 numbers in
the L2 ball of radius 0.1; with shares of 4,900 steps of 2^-16 a round costs epsilon 1.62 at delta 1e-6 with 60
survivors and 4.33 with 10. Below some 5,800 devices a round the noise would be most of what is trained, so the round is
refused. Under `exact` there is no noise; no epsilon bounds its sum, and devices decline unless their readers allow
exact sums. `basis_vote` is the release gate's sum of three numbers, for a draft that is not served yet.

The preset `uni_fedrec` is the paper's, both stages. A round trains the recall model of 30 basic interests, which only
reports by `basis_laplace` use; its negatives are any articles displayed and not clicked. Then it orders a round of the
ranker, whose negatives are from the same feed. Both have the figures of sections 3.5 and 4.1: theta 0.1, lambda_g 0.01,
omega 0.05, K = 4, r = 2 %. The ranker is NRMS, on the news vectors that serve; `uni_fedrec_lstur`, `uni_fedrec_naml`
and `uni_fedrec_fednewsrec` have the paper's other three, whose news models the devices train too.

The protection costs 20 a coordinate and 4.9 million for a whole recall update: the device charges this true cost to its
ledger and shows it, and the reader's settings decide whether it may be spent.
"""

from collections.abc import Iterable
from dataclasses import replace

from backend.federation.optimizers import Sgd
from backend.federation.strategies.fedavg import FedAvg
from backend.federation.strategies.joined_sums import MedianOfSums
from backend.federation.strategies.reported_basis import BasisRounds, BasisVote
from backend.federation.systems.composition import EXACT, LOCAL, NOISY_SUM, SECURE, Form, System, SystemSpec
from backend.federation.systems.fednewsrec import FEDNEWSREC_WHOLE
from backend.federation.systems.lstur import LSTUR_WHOLE
from backend.federation.systems.naml import NAML_WHOLE
from backend.federation.systems.nrms import NRMS
from backend.federation.systems.release_gate import RELEASE_GATE
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

_RECALL = SystemSpec(
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


def _ranking(name: str, ranker: System) -> SystemSpec:
    """Return stage two: the ranker with the figures of stage one."""
    same = ("protection", "optimizer", "negatives", "samples_limit", "participation")
    changes = {each: getattr(_RECALL, each) for each in same}
    return replace(ranker.compose(LOCAL, "mean"), name=f"{name}_ranking", **changes)


def _presets(rankers: Iterable[tuple[str, System]]) -> tuple[tuple[SystemSpec, ...], tuple[SystemSpec, ...]]:
    """Return the presets of stage one and the steps of stage two that they order, by the presets' names."""
    steps = tuple(_ranking(name, ranker) for name, ranker in rankers)
    recalls = (
        replace(_RECALL, name=each.name.removesuffix("_ranking"), strategy=FedAvg(follow=each.name)) for each in steps
    )
    return tuple(recalls), steps


UNI_FEDRECS, UNI_FEDREC_RANKINGS = _presets(
    (
        ("uni_fedrec", NRMS),
        ("uni_fedrec_lstur", LSTUR_WHOLE),
        ("uni_fedrec_naml", NAML_WHOLE),
        ("uni_fedrec_fednewsrec", FEDNEWSREC_WHOLE),
    )
)
