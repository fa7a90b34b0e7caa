"""What a device adds to a private count: which news were displayed to its reader, and which were clicked."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from device_app.errors import NotEligible
from device_app.privacy.prices import OneClick
from device_app.store.count_log import CountTaken, CountWindow
from device_app.training.gradients import GradientFn, Params
from device_app.training.samples import SampleSource
from device_app.training.tasks.task import Shapes, TaskInputs, Update
from device_app.wire.popularity import CLICKED, DISPLAYED, MATERIAL, CountList


@dataclass(frozen=True)
class CountTask:
    """Contributes the displays and clicks of a window, which is spent when the round is paid for.

    window: what this device has not contributed yet. take: writes down that it has now.
    """

    listed: CountList
    window: CountWindow
    round: str
    take: Callable[[CountTaken], None]

    def shapes(self, params: Params) -> Shapes:
        """Two numbers a piece of news."""
        count = len(self.listed.news)
        return {DISPLAYED: (count,), CLICKED: (count,)}

    def run(self, params: Params, samples: SampleSource, grad: GradientFn, rng: np.random.Generator) -> Update:
        """The vectors; a reader who saw nothing adds zeros and noise, which can't be told from anything else.

        The window is spent whole, also what wasn't chosen: a later count is about later displays.
        """
        tensors = count_vector(self.listed, self.window.displayed, self.window.clicked, rng)
        taken = CountTaken(
            round=self.round,
            since=self.window.since,
            until=self.window.until,
            displayed=int(np.count_nonzero(tensors[DISPLAYED])),
            clicked=int(np.count_nonzero(tensors[CLICKED])),
        )
        return Update(tensors, loss=0.0, samples=1, paid=lambda: self.take(taken))


def one_click(listed: CountList) -> OneClick:
    """What one click and its display, exchanged for those of another piece of news or left out, do to a count.

    Formal guarantees: there is a joint draw of the two random choices under which `count_vector` differs in at most two
    entries of each tensor, by 1 and by w: L2 at most sqrt(2 (1 + w^2)). Where news a stands for b, the same rows are
    drawn with a for b; where a is left out of more than the limit, a random one that wasn't drawn takes its place. A
    bound on rho for every such pair of vectors bounds that of the random ones (joint quasi-convexity).
    """
    distance = math.sqrt(2 * (1 + listed.displayed_unit**2))
    return OneClick(distance, listed.displayed_limit + listed.clicked_limit + 2)


def one_click_of(given: TaskInputs) -> OneClick:
    """As `one_click`, of the round's list. Raises NotEligible for a list that is none."""
    return one_click(_listed(given))


def _listed(given: TaskInputs) -> CountList:
    try:
        return CountList.model_validate_json(given.materials(MATERIAL))
    except ValidationError as broken:
        first = broken.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise NotEligible(f"its list of news is malformed: {where}: {first['msg']}") from broken


def count_task(given: TaskInputs) -> CountTask:
    """From the round's list. Raises NotEligible for a list that is none."""
    listed = _listed(given)
    window = given.reading.uncounted(given.now, timedelta(hours=listed.window_hours))
    return CountTask(listed, window, given.manifest.round, given.reading.take_count)


def count_vector(
    listed: CountList, displayed: Collection[str], clicked: Collection[str], rng: np.random.Generator
) -> dict[str, NDArray[np.float32]]:
    """The tensors `displayed` and `clicked`, each [n] in the order of the list: w or 1 at what is contributed, else 0.

    Of more displays than D, or clicks than B, a random choice is contributed, each with the same chance and without
    regard to the other, so that clicks over displays stay in proportion to the rate. News that aren't listed, and what
    happened to one of them twice, change nothing.

    Formal guarantees: whatever the reader did, at most D entries of `displayed` are w and at most B of `clicked` are 1,
    all others being 0: the L2 norm of both together is at most `listed.norm`, and no entry is negative.
    """
    place = {news_id: row for row, news_id in enumerate(listed.news)}

    def entries(news: Collection[str], limit: int, unit: float) -> NDArray[np.float32]:
        # In the list's order before the draw: the order of a set is no seeded thing.
        rows = sorted({place[news_id] for news_id in news if news_id in place})
        chosen = rng.permutation(np.array(rows, dtype=np.intp))[:limit]
        vector = np.zeros(len(listed.news), dtype=np.float32)
        vector[chosen] = unit
        return vector

    return {
        DISPLAYED: entries(displayed, listed.displayed_limit, listed.displayed_unit),
        CLICKED: entries(clicked, listed.clicked_limit, 1.0),
    }
