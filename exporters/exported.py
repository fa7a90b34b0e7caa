"""An exported model: graphs by purpose and weights by name. Imports no torch, and is read without it."""

from dataclasses import dataclass, field
from typing import Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from protocol.releases import ModelRole

Kind = Literal["ranker", "recall", "news"]


@dataclass(frozen=True)
class GraphReport:
    """The size of one exported graph, and its differences from torch, as in `exporters.parity.Parity`."""

    purpose: str
    size_bytes: int
    nodes: int
    export_sec: float
    largest_difference: float
    relative: float


@dataclass(frozen=True)
class ExportedModel:
    """A model as its graphs and weights.

    graphs: purpose -> ONNX bytes. weights: torch parameter name -> float32, graph input `p.<name>`. private: names of
    the parameters that stay on devices. features: those that a ranker uses, in order.
    """

    architecture: str
    kind: Kind
    graphs: dict[str, bytes]
    weights: dict[str, NDArray[np.float32]]
    private: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    reports: tuple[GraphReport, ...] = field(default=(), compare=False)

    @property
    def role(self) -> ModelRole:
        """Return the model's role in a release.

        Raises ValueError for a part that a release can't carry alone.
        """
        for role in get_args(ModelRole):
            if role == self.kind:
                return cast(ModelRole, role)
        raise ValueError(f"{self.architecture} ({self.kind}) is not a ranker or recall model of a release")
