"""FINDING (CIKM 2023): the default ranker for each of 4 groups, and the paper's base models for each of 8.

Each group of `groups` has the default ranker's 262 parameters. FINDING as published uploads every reader's vector in
clear. Here a device determines its group itself, trains at its group's weights, and fills that group's block of an
update of 1,052 numbers inside a secure sum. A server that follows the protocol learns this of a cohort, and nothing of
a single device: each group's summed gradient and size; after a clustering also each group's summed user vector, and how
many devices moved from which group to which. With cohorts of 60 a group may have only one or two readers, and an exact
sum then reveals nearly everything about theirs.

- `groups` under `secure` has noise in the sum and costs what `small_ranker` costs under it: the blocks share one clip,
  since a device fills only one. Each of the four blocks carries the same noise, so a group's mean carries four times
  the noise of the mean over all devices in the small ranker's sum; the global mean, a sum over blocks, carries twice as
  much. Its cohorts are joined by a median as there, so that steps may be as long as that noise makes them
  (docs/decisions/009).
- `groups` under `exact` is the paper's step: no noise, devices weighted by n_u. Readers have to allow exact sums.
- `prototypes` finds the groups again from the groups' mean user vectors. (The prototypes of reports are different;
  `codebook` learns those.) It is an exact sum: under useful noise, 60 unit vectors in 256 dimensions would reveal
  nothing (.58 a coordinate at a clip of .1 as above, where the sums have that length in total).

The presets `finding` and `finding_naml` are the paper's, on the user models of its two base models: 248,977 and 51,601
parameters for each of K = 8 groups, alpha = 1.0003, beta = 0.5, Adam at 1e-4, devices weighted by all their samples,
nothing clipped (as in `efficient_fedrec`). The news encoder is frozen and counts in N and i as the layers that it has
in the paper, 3 of NRMS's 5 and 3 of NAML's 4. After the first round and every T = 500 rounds `prototypes_nrms` and
`prototypes_naml` regroup readers by K-means: Lloyd steps of the global model's user vectors, each a secure sum, until
the centroids settle. Secure sums take the place of the vectors that the paper uploads in clear, and of its variant's
homomorphic encryption. Only directions of user vectors count. There is no noisy form: with the shares of `groups` the
noise in a group's mean of 60 devices would have length 9 for NAML and 19 for NRMS, where its gradient has at most .1.

`groups` has alpha = 1.1 where the paper has 1.0003 for 12,000 rounds: the time factor of lambda passes one half after 7
rounds instead of 2,311. An interpolation every round keeps a group within lambda / (1 - lambda) of its steps of the
global model, so with a slower factor groups would never separate in a hundred rounds. The metric, the bottom layer,
stays close to the global one anyway (h = 1/2). Two populations of readers with opposite tastes do separate.
docs/results/finding.md says what this gains and how much of it is left under the noise of `groups` (`ownfeed bench
groups`).

Learning rates are those of the small ranker, for the same reasons: without noise a rate of .1 took replayed readers of
MIND .015 of AUC below the start, a rate of .01 at most .0014 (`ownfeed bench replay`).
"""

from dataclasses import replace

from backend.federation.grouping import ITERATIONS, Layers, TimeAndLayer
from backend.federation.optimizers import Adam, Sgd
from backend.federation.strategies.grouped import Clustering, Grouped
from backend.federation.systems.composition import (
    EVERY_SAMPLE,
    EXACT,
    NOISY_SUM,
    SECURE,
    UNCLIPPED_SUM,
    Form,
    System,
    SystemSpec,
)
from backend.federation.systems.release_gate import GATE_ROUND
from protocol.protections import SecureSum

PROTOTYPES = SystemSpec(
    name="prototypes",
    architecture="feature_ranker",
    model="ranker.finding",
    task="nearest_group",
    graph="score",
    protection=SecureSum(clip=1.0),
    strategy=Clustering(),
)


def _prototypes_on(base: str) -> SystemSpec:
    """Return the clustering of groups on a user model of this name: K-means to its end."""
    return replace(
        PROTOTYPES,
        name=f"prototypes_{base}",
        architecture=base,
        model=f"ranker.finding_{base}",
        strategy=Clustering(iterations=ITERATIONS),
    )


PROTOTYPES_NRMS, PROTOTYPES_NAML = _prototypes_on("nrms"), _prototypes_on("naml")


GROUPS = System(
    SystemSpec(
        name="groups",
        architecture="feature_ranker",
        model="ranker.finding",
        task="group_gradient",
        protection=NOISY_SUM,
        strategy=Grouped(
            Layers(("matching.metric", "matching.beta", "matching.sharpness", "feature_weights")),
            TimeAndLayer(alpha=1.1),
            recluster_every=10,
            clustering=PROTOTYPES.name,
        ),
        optimizer=Sgd(learning_rate=0.1),
        negatives=4,
        samples_limit=32,
        gate=GATE_ROUND,
    ),
    forms={
        SECURE: Form(NOISY_SUM, aggregation="median"),
        EXACT: Form(SecureSum(clip=1.0, weight_limit=32), changes={"optimizer": Sgd(learning_rate=0.01)}),
    },
)


def _published_on(base: str, layers: Layers, clustering: SystemSpec, name: str) -> SystemSpec:
    """Return FINDING as published, without noise, on a user model of this name."""
    return replace(
        GROUPS.compose(EXACT),
        name=name,
        architecture=base,
        model=clustering.model,
        strategy=Grouped(layers, TimeAndLayer(), recluster_every=500, clustering=clustering.name, as_published=True),
        protection=UNCLIPPED_SUM,
        samples_limit=EVERY_SAMPLE,
        optimizer=Adam(learning_rate=1e-4),
    )


FINDING = _published_on("nrms", Layers(("attention", "pooling"), frozen_below=3), PROTOTYPES_NRMS, "finding")
FINDING_NAML = _published_on("naml", Layers(("pooling",), frozen_below=3), PROTOTYPES_NAML, "finding_naml")
