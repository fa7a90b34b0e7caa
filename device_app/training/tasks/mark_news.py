"""Which news of a public list this reader's samples name: the device's word for the union (Efficient-FedRec, eq. 8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, runtime_checkable

import numpy as np
from pydantic import TypeAdapter, ValidationError

from device_app.errors import NotEligible
from device_app.privacy.protections.union_marks import union_marks_of
from device_app.training.gradients import GradientFn, Params
from device_app.training.samples import SampleSource
from device_app.training.tasks.task import Shapes, TaskInputs, Update
from device_app.wire.ids import NewsId
from device_app.wire.union import NEWS

_IDS = TypeAdapter(tuple[NewsId, ...])


@runtime_checkable
class NamedNews(Protocol):
    """Something that tells which news its samples can name."""

    def named(self) -> tuple[str, ...]:
        """News ids, those to keep first where there is a limit."""
        ...


@dataclass(frozen=True)
class MarkNewsTask:
    """1 at this device's news and 0 elsewhere.

    Its news: the clicks that its samples have as histories, and every news that the feeds of these samples showed,
    clicked or not (as the paper's code has it). The negatives that a later round will draw are among them, so nothing
    of the draw has to be kept between the rounds, and a news that many were shown has many owners. The drawn negatives
    alone would be fewer news, and more of them one device's only.

    Args:
        ids: the list, ascending; row i is its i-th news.
        rows_limit: most news marked; the newest feeds' come first.
    """

    ids: Sequence[str]
    rows_limit: int

    def shapes(self, params: Params) -> Shapes:
        """One number for each news of the list."""
        return {NEWS: (len(self.ids),)}

    def run(self, params: Params, samples: SampleSource, grad: GradientFn, rng: np.random.Generator) -> Update:
        """The marks. Neither parameters nor chance enter into it."""
        if not isinstance(samples, NamedNews):
            raise TypeError(f"samples: {type(samples).__name__} doesn't tell which news it names")
        row_of = {news_id: row for row, news_id in enumerate(self.ids)}
        rows = [row_of[news_id] for news_id in samples.named() if news_id in row_of][: self.rows_limit]
        held = np.zeros(len(self.ids), dtype=np.float32)
        held[rows] = 1.0
        return Update({NEWS: held}, 0.0, 1)


def mark_news_task(given: TaskInputs) -> MarkNewsTask:
    """The list is the round's material `news`. Raises NotEligible for a round that is no union, or a malformed list."""
    protection = union_marks_of(given.manifest.protection, "marks of news go into a union of marks only.")
    return MarkNewsTask(listed_news(given.materials(NEWS)), protection.rows_limit)


def listed_news(blob: bytes) -> tuple[str, ...]:
    """A material that lists news: ids, ascending, each once. Raises NotEligible."""
    try:
        ids = _IDS.validate_json(blob)
    except ValidationError as broken:
        raise NotEligible("the round's list of news is malformed.") from broken
    if any(later <= earlier for earlier, later in pairwise(ids)):
        raise NotEligible("the round's list of news does not ascend.")
    return ids
