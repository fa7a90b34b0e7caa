"""The methods of the study, and their hyper-parameters.

Rates are those of the ranking study. All else of the small ranker was chosen by `ownfeed evaluate finding --tune` on
the validation impressions with a seed of its own, from the grids below, and never on test impressions. Of values that
agree to four digits of AUC the first was taken; FINDING's all did, and there the best by further digits was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product

from backend.federation.grouping.layers import Layers
from backend.federation.grouping.personalisation import TimeAndLayer
from backend.federation.optimizers import Adam, MemoryOptimizer, Weights
from experiments.simulation.strategies.cfl import Cfl
from experiments.simulation.strategies.fedper import FedPer
from experiments.simulation.strategies.fedprox import FedProx
from experiments.simulation.strategies.finding import Finding, k_means
from experiments.simulation.strategies.method import Method, Readers, VectorsAt
from experiments.simulation.strategies.pfedme import PFedMe
from experiments.simulation.strategies.scaffold import Scaffold
from experiments.simulation.strategies.vanilla import Vanilla

Values = Mapping[str, float]


@dataclass(frozen=True)
class Setting:
    """What a method is built from. everybody: how many readers train; vectors_at: their vectors."""

    readers: Readers
    weights: Weights
    rate: float
    layers: Layers
    everybody: int
    vectors_at: VectorsAt
    seed: int

    @property
    def optimizer(self) -> MemoryOptimizer:
        return Adam(self.rate)


@dataclass(frozen=True)
class Base:
    """A ranker of the ranking study. first_own: the layer from which on FedPer keeps them at home."""

    contestant: str
    layers: Layers
    first_own: int


BASES = {
    "small": Base("candidate attention 256", Layers(("metric", "beta", "sharpness")), 1),
    # The paper's NRMS has five layers; the three of the news encoder are frozen here.
    "nrms": Base("NRMS, cosine start", Layers(("attention", "pooling"), frozen_below=3), 1),
}


def _finding(interp_every: int) -> Callable[[Setting, Base, Values], Method]:
    def build(at: Setting, base: Base, values: Values) -> Method:
        return Finding(
            at.readers,
            at.weights,
            at.optimizer,
            groups=int(values["groups"]),
            personalisation=TimeAndLayer(values["alpha"]),
            layers=at.layers,
            recluster_every=int(values["every"]),
            vectors_at=at.vectors_at,
            clustering=k_means(int(values["groups"]), at.seed),
            interp_every=interp_every,
        )

    return build


def _vanilla(at: Setting, base: Base, values: Values) -> Method:
    return Vanilla(at.readers, at.weights, at.optimizer)


def _fedprox(at: Setting, base: Base, values: Values) -> Method:
    return FedProx(at.readers, at.weights, at.optimizer, mu=values["mu"], steps=LOCAL_STEPS, rate=values["rate"])


def _fedper(at: Setting, base: Base, values: Values) -> Method:
    return FedPer(
        at.readers,
        at.weights,
        at.optimizer,
        layers=at.layers,
        first_own=base.first_own,
        steps=LOCAL_STEPS,
        rate=values["rate"],
    )


def _scaffold(at: Setting, base: Base, values: Values) -> Method:
    return Scaffold(
        at.readers, at.weights, at.optimizer, everybody=at.everybody, steps=LOCAL_STEPS, rate=values["rate"]
    )


def _pfedme(at: Setting, base: Base, values: Values) -> Method:
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


def _cfl(at: Setting, base: Base, values: Values) -> Method:
    return Cfl(
        at.readers, at.weights, at.optimizer, calm=values["calm"], pull=values["pull"], after=int(values["after"])
    )


LOCAL_STEPS = 3
BUILDERS: dict[str, Callable[[Setting, Base, Values], Method]] = {
    "vanilla": _vanilla,
    "FedProx": _fedprox,
    "FedPer": _fedper,
    "SCAFFOLD": _scaffold,
    "pFedMe": _pfedme,
    "CFL": _cfl,
    "FINDING": _finding(1),
    "FINDING, every 10": _finding(10),
}
CENTRAL = "centralised"
NAMES = (CENTRAL, *BUILDERS)


def _grid(**values: tuple[float, ...]) -> tuple[Values, ...]:
    return tuple(dict(zip(values, row, strict=True)) for row in product(*values.values()))


GRIDS: dict[str, dict[str, tuple[Values, ...]]] = {
    "small": {
        "FedProx": _grid(rate=(0.1, 0.3, 1.0), mu=(0.01, 0.1, 1.0)),
        "FedPer": _grid(rate=(0.03, 0.1, 0.3, 1.0)),
        "SCAFFOLD": _grid(rate=(0.03, 0.1, 0.3, 1.0)),
        "pFedMe": _grid(rate=(0.1, 0.3, 1.0), rho=(0.1, 0.3, 1.0)),
        "CFL": _grid(calm=(0.1, 0.2), pull=(0.3, 0.6), after=(50,)),
        "FINDING": _grid(groups=(4, 16), alpha=(1.0003, 1.003, 1.03), every=(50,)),
        "FINDING, every 10": _grid(groups=(8,), alpha=(1.003, 1.03), every=(50,)),
    },
    "nrms": {
        "FedProx": _grid(rate=(0.03, 0.3), mu=(0.1,)),
        "FedPer": _grid(rate=(0.03, 0.3)),
        "SCAFFOLD": _grid(rate=(0.03, 0.3)),
        "pFedMe": _grid(rate=(0.03, 0.3), rho=(0.1,)),
        "CFL": _grid(calm=(0.2, 0.4), pull=(0.6,), after=(20,)),
        "FINDING": _grid(groups=(8, 16), alpha=(1.003, 1.03), every=(50,)),
        "FINDING, every 10": _grid(groups=(8, 16), alpha=(1.003, 1.03), every=(50,)),
    },
}
CHOSEN: dict[str, dict[str, Values]] = {
    "small": {
        "FedProx": {"rate": 1.0, "mu": 0.1},
        "FedPer": {"rate": 1.0},
        "SCAFFOLD": {"rate": 0.03},
        "pFedMe": {"rate": 1.0, "rho": 0.1},
        "CFL": {"calm": 0.1, "pull": 0.3, "after": 50},
        "FINDING": {"groups": 16, "alpha": 1.03, "every": 50},
        "FINDING, every 10": {"groups": 8, "alpha": 1.03, "every": 50},
    },
    # Not searched: FINDING as for the small ranker, the others at the first values of their grids.
    "nrms": {name: grid[0] for name, grid in GRIDS["nrms"].items()}
    | {
        "FINDING": {"groups": 16, "alpha": 1.03, "every": 50},
        "FINDING, every 10": {"groups": 8, "alpha": 1.03, "every": 50},
    },
}
