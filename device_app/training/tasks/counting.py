"""A device's part in a private count: which articles its reader was shown, and which were clicked."""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from device_app.errors import NotEligible
from device_app.privacy.accounting.cost_of_sums import OneClick
from device_app.store.participations import CountWindow, PaidCount
from device_app.training.gradients import GradientFn, Params
from device_app.training.samples import SampleSource
from device_app.training.tasks.task import Shapes, TaskInputs, Update
from protocol.popularity import CLICKED, DISPLAYED, MATERIAL, CountList


@dataclass(frozen=True)
class CountTask:
    """Contributes the displays and clicks of a window, which is spent when the round is paid for.

    window: what this device has not contributed yet. take: records that it has. unspent: whether the window is still
    uncontributed; if not, another count was paid for meanwhile, and zeros are sent for this one.
    """

    listed: CountList
    window: CountWindow
    round: str
    take: Callable[[PaidCount], None]
    unspent: Callable[[], bool]

    def shapes(self, params: Params) -> Shapes:
        """Return the shapes: two numbers per article."""
        count = len(self.listed.news)
        return {DISPLAYED: (count,), CLICKED: (count,)}

    def run(self, params: Params, samples: SampleSource, grad: GradientFn, rng: np.random.Generator) -> Update:
        """Return the vectors; a reader who saw nothing adds zeros and noise, indistinguishable from other updates.

        The whole window is spent, including displays that weren't chosen: a later count covers later displays.
        """
        tensors = count_vector(self.listed, self.window.displayed, self.window.clicked, rng)
        paid_count = PaidCount(
            round=self.round,
            since=self.window.since,
            until=self.window.until,
            displayed=int(np.count_nonzero(tensors[DISPLAYED])),
            clicked=int(np.count_nonzero(tensors[CLICKED])),
        )
        return Update(tensors, loss=0.0, samples=1, paid=lambda: self.take(paid_count), unchanged=self.unspent)


def one_click(listed: CountList) -> OneClick:
    """Return a bound on how a count changes when one click and its display move to another article or are left out.

    Formal guarantees: there is a joint draw of the two random choices under which `count_vector` differs in at most two
    entries of each tensor, by 1 and by w: L2 at most sqrt(2 (1 + w^2)). If article a is replaced by b, the same rows
    are drawn with a for b; if a is left out of more than the limit, a random one that wasn't drawn takes its place. A
    bound on rho for every such pair of vectors bounds that of the random ones (joint quasi-convexity).
    """
    distance = math.sqrt(2 * (1 + listed.displayed_unit**2))
    return OneClick(distance, listed.displayed_limit + listed.clicked_limit + 2)


def one_click_of(inputs: TaskInputs) -> OneClick:
    """Like `one_click`, for the round's list. Raises NotEligible for an invalid list."""
    return one_click(_listed(inputs))


def _listed(inputs: TaskInputs) -> CountList:
    try:
        return CountList.model_validate_json(inputs.materials(MATERIAL))
    except ValidationError as broken:
        first = broken.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise NotEligible(f"its list of articles is malformed: {where}: {first['msg']}") from broken


def count_task(inputs: TaskInputs) -> CountTask:
    """Make the task from the round's list. Raises NotEligible for an invalid list."""
    listed = _listed(inputs)

    def uncounted() -> CountWindow:
        return inputs.reading.uncounted(inputs.now, timedelta(hours=listed.window_hours))

    window = uncounted()
    return CountTask(
        listed,
        window,
        inputs.manifest.round,
        inputs.reading.take_count,
        unspent=lambda: uncounted().since == window.since,
    )


def count_vector(
    listed: CountList, displayed: Collection[str], clicked: Collection[str], rng: np.random.Generator
) -> dict[str, NDArray[np.float32]]:
    """Return the tensors `displayed` and `clicked`, each [n] in the list's order: w or 1 if contributed, else 0.

    If there are more than D displays or B clicks, a uniform random choice of them is contributed, independently for
    both, so that clicks divided by displays still estimate the rate. Articles that aren't listed, and repeated events,
    change nothing.

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
