"""FINDING (CIKM 2023): 262 parameters of the default ranker's architecture for each of 4 groups; and the paper's bases.

Plain FINDING uploads every reader's vector in clear. Here a device finds its group by itself, trains at its group's
weights, and fills that group's block of an update of 1,052 numbers inside a secure sum. What a server that follows the
protocol still learns, of a cohort and of no device: each group's summed gradient, and how many are in each group; after
a clustering also each group's summed user vector, and how many went from which group to which. With cohorts of 60 a
group of one or two readers is possible, and an exact sum then tells nearly all of theirs.

- `finding` has noise in the sum, with the price of `small_ranker_secure`: blocks share one clip, since a device fills
  one. It is the same noise on each of four blocks, so a group's mean carries four times that of everybody's mean in
  `small_ranker_secure`, and the global one, a sum over blocks, twice. Its cohorts are joined by a median as there, so
  that steps may be as long as that noise makes them (docs/decisions/049).
- `finding_exact` is the paper's: no noise, devices weighed by n_u. Readers have to allow exact sums.
- `prototypes` finds the groups anew, by the mean user vectors of groups; the prototypes that reports are made with are
  others, and `codebook` learns those. It is an exact sum: under a noise worth the name, 60 unit vectors in 256
  dimensions would tell nothing (.58 a coordinate at a clip of .1 as above, against sums that long in all).

`finding_nrms` and `finding_naml` are exact, too, on the user models of the paper's two bases: 248,977 and 51,601
parameters for each group, with Adam at the paper's 1e-4. The news encoder stands still and counts in N and i as the
layers that it has in the paper, 3 of NRMS's 5 and 3 of NAML's 4. `prototypes_nrms` and `prototypes_naml` find their
groups anew, by the user vectors of these models. There is no noisy form: under the shares of `finding` the noise in a
group's mean of 60 devices would be 9 long for NAML and 19 for NRMS, where its gradient is at most .1.

alpha = 1.1 where the paper has 1.0003 for 12,000 rounds: lambda's time half is past after 7 rounds instead of 2,311. An
interpolation every round leaves a group at most lambda / (1 - lambda) of its steps away from everybody, so a slower one
keeps groups from ever parting in a hundred rounds; the metric, the bottom layer, stays near everybody's all the same
(h = 1/2). Two populations of readers with opposite tastes part. What that gains, and what of it is left
under the noise of `finding`, is in docs/results/finding.md (`ownfeed bench groups`).

Rates are those of the small ranker, for its reasons: without noise a rate of .1 took replayed readers of MIND .015 of
AUC below the start, .01 at most .0014 (`ownfeed bench replay`).
"""

from __future__ import annotations

from dataclasses import replace

from backend.federation.grouping.interpolation import TimeAndLayer
from backend.federation.grouping.layers import Layers
from backend.federation.optimizers import Adam, Sgd
from backend.federation.strategies.clustering import Clustering
from backend.federation.strategies.grouped import Grouped
from backend.federation.strategies.joined_sums import MedianOfSums
from backend.federation.systems.release_gate import GATE_ROUND
from backend.federation.systems.system import SystemSpec
from device_app.wire.protections import SecureSum

PROTOTYPES = SystemSpec(
    name="prototypes",
    architecture="feature_ranker",
    model="ranker.finding",
    task="nearest_group",
    graph="score",
    protection=SecureSum(clip=1.0),
    strategy=Clustering(),
)
FINDING = SystemSpec(
    name="finding",
    architecture="feature_ranker",
    model="ranker.finding",
    task="group_gradient",
    protection=SecureSum(clip=0.1, sigma=4_900),
    strategy=Grouped(
        layers=Layers(("matching.metric", "matching.beta", "matching.sharpness", "feature_weights")),
        personalisation=TimeAndLayer(alpha=1.1),
        recluster_every=10,
        clustering=PROTOTYPES.name,
    ),
    join=MedianOfSums(),
    optimizer=Sgd(learning_rate=0.1),
    negatives=4,
    samples_limit=32,
    gate=GATE_ROUND,
)
FINDING_EXACT = replace(
    FINDING,
    name="finding_exact",
    protection=SecureSum(clip=1.0, weight_limit=32),
    join=None,
    optimizer=Sgd(learning_rate=0.01),
)


def _exact_on(base: str, layers: Layers) -> tuple[SystemSpec, SystemSpec]:
    """FINDING without noise on a user model of this name, and the clustering of its groups."""
    model = f"ranker.finding_{base}"
    clustering = replace(PROTOTYPES, name=f"prototypes_{base}", architecture=base, model=model)
    finding = replace(
        FINDING_EXACT,
        name=f"finding_{base}",
        architecture=base,
        model=model,
        strategy=Grouped(
            layers=layers,
            personalisation=TimeAndLayer(alpha=1.1),
            recluster_every=10,
            clustering=clustering.name,
        ),
        optimizer=Adam(learning_rate=1e-4),
    )
    return finding, clustering


FINDING_NRMS, PROTOTYPES_NRMS = _exact_on("nrms", Layers(("attention", "pooling"), frozen_below=3))
FINDING_NAML, PROTOTYPES_NAML = _exact_on("naml", Layers(("pooling",), frozen_below=3))
