"""The methods of the FINDING study and their hyper-parameters.

Rates are those of the ranking study. The small ranker's other values were chosen by `ownfeed evaluate finding --tune`
from the grids below, on the validation impressions with a separate seed, never on test impressions. Among values with
AUC equal to four digits the first was taken; for FINDING, where all are equal, the best by further digits. FINDING by
SGD has FINDING's groups and alpha, with its own rate; FINDING-HE has the values of FINDING by SGD.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product

import numpy as np
from numpy.typing import NDArray

from backend.federation.grouping import Constant, Layers, Personalisation, TimeAndLayer
from backend.federation.optimizers import Adam, MemoryOptimizer, Sgd, Weights
from backend.releases.codebooks import topic_centroids
from experiments.simulation.strategies.cfl import Cfl
from experiments.simulation.strategies.fedper import FedPer
from experiments.simulation.strategies.fedprox import FedProx
from experiments.simulation.strategies.finding import Finding, k_means
from experiments.simulation.strategies.method import GradientReaders, Method, Vanilla, VectorsAt
from experiments.simulation.strategies.pfedme import PFedMe
from experiments.simulation.strategies.scaffold import Scaffold

Values = Mapping[str, float]


@dataclass(frozen=True)
class Setting:
    """The inputs of a method.

    everybody: number of readers who train. vectors_at: computes their vectors. news: [n, D].
    """

    readers: GradientReaders
    weights: Weights
    rate: float
    layers: Layers
    everybody: int
    vectors_at: VectorsAt
    seed: int
    news: NDArray[np.float32]

    @property
    def optimizer(self) -> MemoryOptimizer:
        return Adam(self.rate)


@dataclass(frozen=True)
class BaseRanker:
    """A ranker of the ranking study. first_own: the first layer that FedPer keeps on devices."""

    study_model: str
    layers: Layers
    first_own: int


BASES = {
    "small": BaseRanker("candidate attention 256", Layers(("metric", "beta", "sharpness")), 1),
    # The paper's NRMS has five layers; the three of the news encoder are frozen here.
    "nrms": BaseRanker("NRMS, cosine start", Layers(("attention", "pooling"), frozen_below=3), 1),
}


def _finding(interp_every: int = 1) -> Callable[[Setting, BaseRanker, Values], Method]:
    """Return FINDING with these values: groups, alpha and beta of lambda, every (T).

    rate: if given, steps are taken by SGD instead of Adam.
    """

    def build(at: Setting, base: BaseRanker, values: Values) -> Method:
        return Finding(
            at.readers,
            at.weights,
            Sgd(values["rate"]) if "rate" in values else at.optimizer,
            groups=int(values["groups"]),
            personalisation=_personalisation(values),
            layers=at.layers,
            recluster_every=int(values["every"]),
            vectors_at=at.vectors_at,
            clustering=k_means(int(values["groups"]), at.seed),
            interp_every=interp_every,
        )

    return build


def _finding_he(at: Setting, base: BaseRanker, values: Values) -> Method:
    from experiments.papers.finding.finding_he import EncryptedFinding

    first, _ = topic_centroids(at.news, basis_size=int(values["groups"]), seed=at.seed)
    return EncryptedFinding(
        at.readers,
        at.weights,
        values["rate"],
        _personalisation(values),
        at.layers,
        first,
        int(values["every"]),
        at.vectors_at,
        real_rounds=REAL_ROUNDS if at.seed == 0 else 0,
        real_voters=REAL_VOTERS,
    )


def _personalisation(values: Values) -> Personalisation:
    """Return lambda's parameters. alpha APART means g(t) = 1; with beta 0 too, lambda = 1 and groups mix only by
    equation 8.
    """
    return Constant(values["constant"]) if "constant" in values else TimeAndLayer(values["alpha"], values["beta"])


def _vanilla(at: Setting, base: BaseRanker, values: Values) -> Method:
    return Vanilla(at.readers, at.weights, at.optimizer)


def _fedprox(at: Setting, base: BaseRanker, values: Values) -> Method:
    return FedProx(at.readers, at.weights, at.optimizer, mu=values["mu"], steps=LOCAL_STEPS, rate=values["rate"])


def _fedper(at: Setting, base: BaseRanker, values: Values) -> Method:
    return FedPer(
        at.readers,
        at.weights,
        at.optimizer,
        layers=at.layers,
        first_own=base.first_own,
        steps=LOCAL_STEPS,
        rate=values["rate"],
    )


def _scaffold(at: Setting, base: BaseRanker, values: Values) -> Method:
    return Scaffold(
        at.readers, at.weights, at.optimizer, everybody=at.everybody, steps=LOCAL_STEPS, rate=values["rate"]
    )


def _pfedme(at: Setting, base: BaseRanker, values: Values) -> Method:
    return PFedMe(
        at.readers,
        at.weights,
        at.optimizer,
        rho=values["rho"],
        inner_steps=LOCAL_STEPS,
        inner_rate=values["rate"],
        steps=1,
        rate=1 / values["rho"],
    )


def _scaffold_published(at: Setting, base: BaseRanker, values: Values) -> Method:
    """Return SCAFFOLD as published. values: the readers' rate, and the server's."""
    rate = values["rate"]
    server = Sgd(values["server"] * rate)
    return Scaffold(at.readers, at.weights, server, everybody=at.everybody, steps=LOCAL_STEPS, rate=rate, alike=True)


def _pfedme_published(at: Setting, base: BaseRanker, values: Values) -> Method:
    """Return pFedMe as published.

    values: b of the server; step: the share of the distance to theta by which each of R steps moves w_u (eta times
    rho).
    """
    return PFedMe(
        at.readers,
        at.weights,
        Sgd(values["b"]),
        rho=values["rho"],
        inner_steps=LOCAL_STEPS,
        inner_rate=values["rate"],
        steps=LOCAL_STEPS,
        rate=values["step"] / values["rho"],
        alike=True,
    )


def _cfl(at: Setting, base: BaseRanker, values: Values) -> Method:
    return Cfl(at.readers, at.weights, at.optimizer, e1=values["e1"], e2=values["e2"], after=int(values["after"]))


CENTRAL, ENCRYPTED = "centralised", "FINDING-HE"
LOCAL_STEPS = 3
APART, NEVER = math.inf, 1e6
REAL_ROUNDS = 2
REAL_VOTERS = 10
"""Number of voters with real keys in FINDING-HE, in the training of seed 0."""
BUILDERS: dict[str, Callable[[Setting, BaseRanker, Values], Method]] = {
    "vanilla": _vanilla,
    "FedProx": _fedprox,
    "FedPer": _fedper,
    "SCAFFOLD": _scaffold,
    "pFedMe": _pfedme,
    "SCAFFOLD, as published": _scaffold_published,
    "pFedMe, as published": _pfedme_published,
    "CFL": _cfl,
    "FINDING": _finding(1),
    "FINDING, every 10": _finding(10),
    "FINDING, groups apart": _finding(1),
    "FINDING, SGD": _finding(1),
    ENCRYPTED: _finding_he,
}
NAMES = (CENTRAL, *BUILDERS)


def _grid(**values: tuple[float, ...]) -> tuple[Values, ...]:
    return tuple(dict(zip(values, row, strict=True)) for row in product(*values.values()))


GRIDS: dict[str, dict[str, tuple[Values, ...]]] = {
    "small": {
        "FedProx": _grid(rate=(0.1, 0.3, 1.0), mu=(0.01, 0.1, 1.0)),
        "FedPer": _grid(rate=(0.03, 0.1, 0.3, 1.0)),
        "SCAFFOLD": _grid(rate=(0.03, 0.1, 0.3, 1.0)),
        "pFedMe": _grid(rate=(0.1, 0.3, 1.0), rho=(0.1, 0.3, 1.0)),
        "SCAFFOLD, as published": _grid(rate=(0.03, 0.1, 0.3), server=(1.0,)),
        "pFedMe, as published": _grid(rate=(0.1, 0.3), rho=(0.1,), step=(0.5,), b=(1.0,)),
        "CFL": _grid(e1=(0.1, 0.2), e2=(0.3, 0.6), after=(50,)),
        "FINDING": _grid(groups=(4, 16), alpha=(1.0003, 1.003, 1.03), beta=(0.5,), every=(50,)),
        "FINDING, every 10": _grid(groups=(8,), alpha=(1.003, 1.03), beta=(0.5,), every=(50,)),
        "FINDING, groups apart": (
            *_grid(groups=(4, 8, 16), alpha=(APART,), beta=(0.0,), every=(NEVER,)),
            *_grid(groups=(4,), alpha=(1.03, APART), beta=(0.0,), every=(50,)),
            *_grid(groups=(4,), alpha=(1.1,), beta=(0.0,), every=(NEVER,)),
        ),
        "FINDING, SGD": _grid(groups=(16,), alpha=(1.03,), beta=(0.5,), every=(50,), rate=(0.1, 0.5)),
        "FINDING-HE": _grid(groups=(16,), alpha=(1.03,), beta=(0.5,), every=(50,), rate=(0.1, 0.5)),
    },
    "nrms": {
        "FedProx": _grid(rate=(0.03, 0.3), mu=(0.1,)),
        "FedPer": _grid(rate=(0.03, 0.3)),
        "SCAFFOLD": _grid(rate=(0.03, 0.3)),
        "pFedMe": _grid(rate=(0.03, 0.3), rho=(0.1,)),
        "CFL": _grid(e1=(0.2, 0.4), e2=(0.6,), after=(20,)),
        "FINDING": _grid(groups=(8, 16), alpha=(1.003, 1.03), beta=(0.5,), every=(50,)),
        "FINDING, every 10": _grid(groups=(8, 16), alpha=(1.003, 1.03), beta=(0.5,), every=(50,)),
        "FINDING, groups apart": _grid(groups=(4,), alpha=(APART,), beta=(0.0,), every=(NEVER,)),
    },
}
CHOSEN: dict[str, dict[str, Values]] = {
    "small": {
        "FedProx": {"rate": 1.0, "mu": 0.1},
        "FedPer": {"rate": 1.0},
        "SCAFFOLD": {"rate": 0.03},
        "pFedMe": {"rate": 1.0, "rho": 0.1},
        "SCAFFOLD, as published": {"rate": 0.03, "server": 1.0},
        "pFedMe, as published": {"rate": 0.1, "rho": 0.1, "step": 0.5, "b": 1.0},
        "CFL": {"e1": 0.1, "e2": 0.3, "after": 50},
        "FINDING": {"groups": 16, "alpha": 1.03, "beta": 0.5, "every": 50},
        "FINDING, every 10": {"groups": 8, "alpha": 1.03, "beta": 0.5, "every": 50},
        "FINDING, groups apart": {"groups": 4, "alpha": APART, "beta": 0.0, "every": NEVER},
        "FINDING, SGD": {"groups": 16, "alpha": 1.03, "beta": 0.5, "every": 50, "rate": 0.1},
        "FINDING-HE": {"groups": 16, "alpha": 1.03, "beta": 0.5, "every": 50, "rate": 0.1},
    },
    # Not searched: FINDING as for the small ranker, the others at the first values of their grids.
    "nrms": {name: grid[0] for name, grid in GRIDS["nrms"].items()}
    | {
        "FINDING": {"groups": 16, "alpha": 1.03, "beta": 0.5, "every": 50},
        "FINDING, every 10": {"groups": 8, "alpha": 1.03, "beta": 0.5, "every": 50},
    },
}


def methods_of(base: str, requested: Sequence[str]) -> list[str]:
    """Return the requested methods, or all for which a base has values.

    Raises ValueError for a method without values. Paillier is for small models and needs gmpy2: without it FINDING-HE
    is left out.
    """
    there = [name for name in NAMES if name in (CENTRAL, "vanilla") or name in CHOSEN[base]]
    if find_spec("gmpy2") is None and ENCRYPTED in there:
        there.remove(ENCRYPTED)
    missing = [name for name in requested if name not in there]
    if missing:
        needs = " (pip install 'ownfeed[he]')" if missing[0] == ENCRYPTED and base == "small" else ""
        raise ValueError(f"method: {missing[0]!r} is not one of {', '.join(there)} for {base}{needs}")
    return list(requested) or there
