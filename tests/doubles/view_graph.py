"""The gradient and score graphs of a small ranker of views, with its weights, exported once per session."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from exporters.graphs import ranker_graphs
from models.builders.dssm import fl_dssm_ranker, multi_view_ranker
from models.dssm import ViewRanker
from models.shapes import private_names
from tests.doubles.graphs import kept_graph

HIDDEN = (6, 4)


@dataclass(frozen=True)
class ViewModel:
    """graphs by purpose; shared weights, as in a release; names of the private ones."""

    model: ViewRanker
    graphs: dict[str, bytes]
    shared: dict[str, NDArray[np.float32]]
    private: tuple[str, ...]


@lru_cache
def towers_of_views(dim: int) -> dict[str, NDArray[np.float32]]:
    """The weights of a release of FL-MV-DSSM: an item tower, and a user tower for each of two views, all different."""
    rng, model = np.random.default_rng(4), view_model(dim, semi=False)
    found = {name: each for name, each in model.shared.items() if name.startswith("item_tower.")}
    for view in ("reading", "searches"):
        for name, each in found.copy().items():
            if name.startswith("item_tower."):
                tower = name.replace("item_tower.", f"user_towers.{view}.")
                found[tower] = np.asarray(each + rng.normal(0, 0.1, each.shape), dtype=np.float32)
    return found


@lru_cache
def view_model(dim: int, *, semi: bool = True) -> ViewModel:
    """A ranker of views over vectors of `dim`, a little away from its start."""
    torch.manual_seed(3)
    model: ViewRanker = multi_view_ranker(dim, HIDDEN) if semi else fl_dssm_ranker(dim, HIDDEN)
    with torch.no_grad():
        for value in model.item_tower.parameters():
            value.add_(0.1 * torch.randn_like(value))
    graphs = {
        spec.purpose: kept_graph(model, spec) for spec in ranker_graphs(model) if spec.purpose in ("score", "gradient")
    }
    private = private_names(model)
    shared = {name: value.detach().numpy().copy() for name, value in model.named_parameters() if name not in private}
    return ViewModel(model, graphs, shared, private)
