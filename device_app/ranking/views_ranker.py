"""Ranks by several views: the mean of each view's probabilities (FL-MV-DSSM, Algorithm 2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from device_app.errors import GraphMismatch
from device_app.ranking.padding import left_padded
from device_app.ranking.ranker import FeatureContext
from device_app.ranking.session import GraphSession
from protocol.releases import USER_TOWER, USER_TOWERS

Parameters = Mapping[str, NDArray[np.float32]]
ITEM_TOWER = "item_tower."


@dataclass(frozen=True)
class ReaderViews:
    """The reader's other views, used for ranking besides clicks. Sensitive.

    searched [n, D] are the vectors of saved searches and followed topics. towers are the views' private user towers, by
    view, if they have learned one.
    """

    searched: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    towers: Mapping[str, Parameters] = field(default_factory=dict)


class ViewsRanker:
    """Scores candidates by the mean over views of P(d | u), without noise.

    Whoever runs it sees every view; on a device, that is the part that makes the page, which its reader must trust
    anyway. The paper's noise at its own C and sigma would make the order random (docs/results/movielens.md).

    Args:
        graph: the `score` graph of one view; the softmax of its scores is P.
        weights: shared parameters, as released.
        name: the model's name in its release.
        threads: ONNX Runtime's threads.
    """

    def __init__(
        self, graph: bytes, weights: Parameters, *, name: str, threads: int = 1, views: ReaderViews | None = None
    ) -> None:
        self._graph, self._weights, self._threads = graph, weights, threads
        self._views = views or ReaderViews()
        self.name = name
        self.features: tuple[str, ...] = ()
        self._session("reading", None)  # refuses a graph that doesn't fit its weights now, not at the first feed

    def with_views(self, views: Callable[[str], ReaderViews]) -> ViewsRanker:
        """Return this ranker for one reader; the graph is loaded once per process for all towers."""
        return ViewsRanker(self._graph, self._weights, name=self.name, threads=self._threads, views=views(self.name))

    def with_own(self, parameters: object) -> ViewsRanker:
        """Return this ranker: its private parameters belong to a view."""
        return self

    def score(
        self,
        clicks: NDArray[np.float32],
        candidates: NDArray[np.float32],
        context_features: FeatureContext | None = None,
    ) -> NDArray[np.float32]:
        """Return the log of the mean probability [R], from clicks [H, D] and candidates [R, D].

        Zeros if no view has any vectors. Raises GraphMismatch if scores aren't finite.
        """
        views = {"reading": clicks, "searches": self._views.searched}
        each = [
            self._probabilities(view, rows, candidates) for view, rows in views.items() if len(rows) and len(candidates)
        ]
        if not each:
            return np.zeros(len(candidates), dtype=np.float32)
        mean: NDArray[np.float64] = np.log(np.mean(each, axis=0))
        if not np.isfinite(mean).all():
            raise GraphMismatch(f"scores of {self.name}: not finite; clicks or candidates contain NaN or huge values")
        return mean.astype(np.float32)

    def contributions(
        self, clicks: NDArray[np.float32], candidates: NDArray[np.float32], context_features: FeatureContext
    ) -> dict[str, NDArray[np.float64]]:
        """Return nothing: a ranker of views has no features."""
        return {}

    def _probabilities(
        self, view: str, rows: NDArray[np.float32], candidates: NDArray[np.float32]
    ) -> NDArray[np.float64]:
        padded, mask = left_padded(rows)
        inputs = {"clicks": padded, "click_mask": mask, "candidates": candidates[None].astype(np.float32, copy=False)}
        scores = self._session(view, self._views.towers.get(view))(**inputs)["scores"][0].astype(np.float64)
        weights = np.exp(scores - scores.max())
        shares: NDArray[np.float64] = weights / weights.sum()
        return shares

    def _session(self, view: str, tower: Parameters | None) -> GraphSession:
        shared = of_view(self._weights, view)
        return GraphSession(self._graph, {**shared, **user_tower(shared, tower)}, threads=self._threads)


def released_name(shared: Parameters, view: str, name: str) -> str:
    """Return a release's name of the parameter `name` of one view's graph."""
    own = f"{USER_TOWERS}{view}.{name.removeprefix(USER_TOWER)}"
    return own if name.startswith(USER_TOWER) and own in shared else name


def of_view(shared: Parameters, view: str) -> Parameters:
    """Return a release's parameters, under the names used in one view's graph.

    Of the views' user towers, only that view's own is included. If the release has none for this view, only the
    parameters common to all views are returned.
    """
    own = f"{USER_TOWERS}{view}."
    common = {name: each for name, each in shared.items() if not name.startswith(USER_TOWERS)}
    tower = {USER_TOWER + name.removeprefix(own): each for name, each in shared.items() if name.startswith(own)}
    return common | tower


def user_tower(shared: Parameters, kept: Parameters | None) -> Parameters:
    """Return the private user tower: the stored one, or initially a copy of the item tower.

    Equal initial towers place a reader's mean near the articles it averages; with two random initialisations, a cosine
    would mean nothing until much was learned. Empty if the user tower is shared and thus among the parameters. A stored
    tower whose shapes differ from the release's is replaced.
    """
    if any(name.startswith(USER_TOWER) for name in shared):
        return {}
    fresh = {
        USER_TOWER + name.removeprefix(ITEM_TOWER): value
        for name, value in shared.items()
        if name.startswith(ITEM_TOWER)
    }
    fits = kept is not None and {name: each.shape for name, each in kept.items()} == {
        name: each.shape for name, each in fresh.items()
    }
    return kept if kept is not None and fits else fresh
