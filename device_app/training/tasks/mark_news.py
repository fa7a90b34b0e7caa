"""Marks articles of a public list for the union: those in this device's samples, or all that were displayed.

Source: Efficient-FedRec, eq. 8. The paper's N_u are the articles in a user's behaviours.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
from pydantic import TypeAdapter, ValidationError

from device_app.errors import NotEligible
from device_app.privacy.protections.union_marks import union_marks_of
from device_app.ranking.ranker import FEATURES
from device_app.training.gradients import GradientFn, Params
from device_app.training.samples import ReaderSamples, RowSource, SampleSource
from device_app.training.tasks.task import ZEROS, Shapes, TaskInputs, Update
from device_app.training.union_draws import NOTHING_DRAWN, UnionDraw
from protocol.ids import NewsId
from protocol.union import NEWS

_IDS = TypeAdapter(tuple[NewsId, ...])


@dataclass(frozen=True)
class MarkNewsTask:
    """Marks with 1 the articles in this device's samples, and 0 elsewhere.

    With `displayed`, all others that the reader was shown are marked, too, as in the paper; their rows have no
    gradient.

    The samples are drawn here, once: the gradient round that follows uses this draw (`training.union_draws`), so that
    the marks are exactly the rows for which this device can have a gradient: histories, clicks, drawn negatives.

    Args:
        ids: the list, ascending; row i is its i-th article.
        rows_limit: the maximum number of marked articles; the gradients of the others stay on the device.
        negatives: K.
        samples_limit: the maximum number of samples drawn.
        keep: receives the draw, in the transaction that records the charge.
        displayed: whether to mark also articles that were displayed but are in no sample.
    """

    ids: Sequence[str]
    rows_limit: int
    negatives: int
    samples_limit: int
    keep: Callable[[UnionDraw], None]
    displayed: bool = False

    def shapes(self, params: Params) -> Shapes:
        """Return the shapes: one number for each article of the list."""
        return {NEWS: (len(self.ids),)}

    def run(self, params: Params, samples: SampleSource, grad: GradientFn, rng: np.random.Generator) -> Update:
        """Return the marks. Raises ValueError if there are no samples."""
        if not isinstance(samples, RowSource):
            raise TypeError(f"samples: {type(samples).__name__} can't list the articles it uses")
        known = tuple(FEATURES) if isinstance(samples, ReaderSamples) and samples.contexts is not None else ()
        drawn = samples.draw_rows(negatives=self.negatives, limit=self.samples_limit, rng=rng, features=known)
        row_of = {news_id: row for row, news_id in enumerate(self.ids)}
        held_here = samples.vectors if self.displayed and isinstance(samples, ReaderSamples) else ()
        named = dict.fromkeys((*drawn.ids, *held_here))
        marked = [news_id for news_id in named if news_id in row_of][: self.rows_limit]
        held = np.zeros(len(self.ids), dtype=np.float32)
        held[[row_of[news_id] for news_id in marked]] = 1.0
        mark = samples.mark if isinstance(samples, ReaderSamples) else None
        draw = UnionDraw(drawn, frozenset(marked), known, mark)
        return Update({NEWS: held}, 0.0, 1, partial(self.keep, draw))


def marked_nothing(inputs: TaskInputs) -> Update:
    """Return no marks, for a device that couldn't compute any; the next round still knows that it took part."""
    return replace(ZEROS, paid=partial(inputs.draws.keep, inputs.manifest.round, NOTHING_DRAWN))


def mark_news_task(inputs: TaskInputs) -> MarkNewsTask:
    """Make the task; the list is the round's data `news`.

    Raises NotEligible if the round is not a union or the list is malformed."""
    protection = union_marks_of(inputs.manifest.protection, "marks of articles go into a union of marks only.")
    manifest = inputs.manifest
    return MarkNewsTask(
        ids=listed_news(inputs.materials(NEWS)),
        rows_limit=protection.rows_limit,
        negatives=manifest.negatives,
        samples_limit=manifest.samples_limit,
        keep=partial(inputs.draws.keep, manifest.round),
    )


def mark_displayed_task(inputs: TaskInputs) -> MarkNewsTask:
    """Make the same task, with all articles that were displayed. Raises NotEligible like `mark_news_task`."""
    return replace(mark_news_task(inputs), displayed=True)


def listed_news(blob: bytes) -> tuple[str, ...]:
    """Read the article ids from a round's data item; they are strictly ascending. Raises NotEligible."""
    try:
        ids = _IDS.validate_json(blob)
    except ValidationError as broken:
        raise NotEligible("the round's list of articles is malformed.") from broken
    if any(later <= earlier for earlier, later in pairwise(ids)):
        raise NotEligible("the round's list of articles is not in strictly ascending order.")
    return ids
