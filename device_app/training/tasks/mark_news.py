"""Marks articles of a public list for the union: those in this device's samples, or all that were displayed.

Source: Efficient-FedRec, eq. 8. The paper's N_u is the news in a user's behaviors.
"""

from __future__ import annotations

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
    """1 at the articles that this device's samples name and 0 elsewhere.

    With `displayed` also at all others that the reader was shown, as the paper has it: their rows carry no gradient.

    The samples are drawn here, once: the gradient round that follows uses this draw (`training.union_draws`), so that
    the marks are exactly the rows that can carry a gradient of this device: histories, clicks, drawn negatives.

    Args:
        ids: the list, ascending; row i is its i-th article.
        rows_limit: most articles marked; the others' gradients will stay on the device.
        negatives: K.
        samples_limit: most samples drawn.
        keep: receives the draw, in the transaction that charges.
        displayed: whether articles are marked that were displayed and are in no sample.
    """

    ids: Sequence[str]
    rows_limit: int
    negatives: int
    samples_limit: int
    keep: Callable[[UnionDraw], None]
    displayed: bool = False

    def shapes(self, params: Params) -> Shapes:
        """One number for each article of the list."""
        return {NEWS: (len(self.ids),)}

    def run(self, params: Params, samples: SampleSource, grad: GradientFn, rng: np.random.Generator) -> Update:
        """The marks. Raises ValueError if there are no samples."""
        if not isinstance(samples, RowSource):
            raise TypeError(f"samples: {type(samples).__name__} can't list the articles that it names")
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


def marked_nothing(given: TaskInputs) -> Update:
    """Of a device that could compute no marks: the round that follows finds that it took part."""
    return replace(ZEROS, paid=partial(given.draws.keep, given.manifest.round, NOTHING_DRAWN))


def mark_news_task(given: TaskInputs) -> MarkNewsTask:
    """The list is the round's material `news`. Raises NotEligible for a round that is no union, or a malformed list."""
    protection = union_marks_of(given.manifest.protection, "marks of articles go into a union of marks only.")
    manifest = given.manifest
    return MarkNewsTask(
        ids=listed_news(given.materials(NEWS)),
        rows_limit=protection.rows_limit,
        negatives=manifest.negatives,
        samples_limit=manifest.samples_limit,
        keep=partial(given.draws.keep, manifest.round),
    )


def mark_displayed_task(given: TaskInputs) -> MarkNewsTask:
    """The same, with all articles that were displayed. Raises NotEligible as `mark_news_task`."""
    return replace(mark_news_task(given), displayed=True)


def listed_news(blob: bytes) -> tuple[str, ...]:
    """Read the article ids of a round's material (an extra file): strictly ascending. Raises NotEligible."""
    try:
        ids = _IDS.validate_json(blob)
    except ValidationError as broken:
        raise NotEligible("the round's list of articles is malformed.") from broken
    if any(later <= earlier for earlier, later in pairwise(ids)):
        raise NotEligible("the round's list of articles is not in strictly ascending order.")
    return ids
