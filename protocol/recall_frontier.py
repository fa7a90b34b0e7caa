"""Choose how to find articles, using figures measured for pools of different sizes.

The figures (`recall_frontier.json`) come from the recorded `ownfeed bench pools` (`experiments.recall.auto_choice`).
Between two measured sizes they are interpolated linearly in the logarithm of the size; outside the measured range the
nearest size is used. A list as long as the pool contains the whole pool.
"""

import math
from collections.abc import Collection
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict, Field

SLACK = 0.3
"""Points of recall given up for less epsilon, or fewer bytes: below 0.5, the error of the figures."""

USUAL_PLACES = 400
"""The default length of a list."""
EVERYTHING = 100.0
USUAL_EPSILON, USUAL_BYTES = 4.0, 2_500_000
"""The default limits for the cost of a report and the bytes of a list."""


class MeasuredList(BaseModel):
    """A way of finding articles, at one length.

    found: percent of the next clicks that are in the list, by pool; weight: bytes, by pool, of the answer, or of the
    whole copy of the pool if the device finds the articles. codebook: K, for a report by code.
    """

    model_config = ConfigDict(frozen=True)

    mode: str
    places: int = Field(ge=1)
    epsilon: float = Field(ge=0)
    found: tuple[float, ...]
    weight: tuple[float, ...]
    codebook: int | None = None


class ListChoice(BaseModel):
    """The chosen list, with its figures for the pool.

    silent: percent found by the best list that reveals nothing and is no larger than the reader allows, of any length;
    best: percent found by the best list that the reader's limits allow.
    """

    model_config = ConfigDict(frozen=True)

    news: int
    mode: str
    codebook: int | None
    places: int
    epsilon: float
    weight: float
    found: float
    silent: float
    best: float


class RecallFrontier(BaseModel):
    """Lists measured in pools of different sizes, ascending.

    source: the record of the figures.
    """

    model_config = ConfigDict(frozen=True)

    source: str
    pools: tuple[int, ...] = Field(min_length=1)
    lists: tuple[MeasuredList, ...]

    def around(self, news: int) -> tuple[int, int]:
        """Return the measured pool sizes around this one.

        Returns the same size twice if this size was measured or is outside the range.
        """
        low = max((size for size in self.pools if size <= news), default=self.pools[0])
        high = min((size for size in self.pools if size >= news), default=self.pools[-1])
        return low, high

    def found(self, each: MeasuredList, news: int) -> float:
        """Return the percentage of next clicks that are in a list, in a pool of this many articles."""
        return EVERYTHING if each.places >= news else self.at(each.found, news)

    def at(self, figures: tuple[float, ...], news: int) -> float:
        """Return one of a list's figures, interpolated for a pool of this many articles."""
        if news <= self.pools[0]:
            return figures[0]
        for place in range(1, len(self.pools)):
            low, high = self.pools[place - 1], self.pools[place]
            if news <= high:
                share = math.log(news / low) / math.log(high / low)
                return figures[place - 1] + share * (figures[place] - figures[place - 1])
        return figures[-1]

    def choose(
        self,
        news: int,
        *,
        epsilon_limit: float,
        bytes_limit: float,
        codebooks: Collection[tuple[int, float]],
        pool_codes: bool,
    ) -> ListChoice:
        """Return the best list within both limits.

        It has the lowest epsilon, then the fewest bytes, among the lists whose recall is within SLACK of the best.
        codebooks: (K, epsilon) of each codebook in the release. pool_codes: whether devices can copy the pool. If no
        list at epsilon 0 fits `bytes_limit`, the smallest one is allowed anyway.
        """
        silent = [each for each in self.lists if not each.epsilon and (each.mode != "broadcast" or pool_codes)]
        reporting = [
            each
            for each in self.lists
            if 0 < each.epsilon <= epsilon_limit and (each.codebook, each.epsilon) in codebooks
        ]
        allowed = [each for each in (*silent, *reporting) if self.at(each.weight, news) <= bytes_limit]
        if not any(each in allowed for each in silent):
            allowed = [*allowed, min(silent, key=lambda each: self.at(each.weight, news))]
        best = max(self.found(each, news) for each in allowed)
        near = [each for each in allowed if self.found(each, news) >= best - SLACK]
        chosen = min(near, key=lambda each: (each.epsilon, self.at(each.weight, news), each.places))
        return ListChoice(
            news=news,
            mode=chosen.mode,
            codebook=chosen.codebook,
            places=chosen.places,
            epsilon=chosen.epsilon,
            weight=self.at(chosen.weight, news),
            found=self.found(chosen, news),
            silent=max(self.found(each, news) for each in allowed if not each.epsilon),
            best=best,
        )

    def gain(self, mode: str, codebook: int, epsilon: float, news: int) -> tuple[float, int, float] | None:
        """Return the benefit of a report in a pool of this size, or None if it wasn't measured.

        The result has three figures: the points of recall gained over the default list of the same length
        (USUAL_PLACES); the longest list's length; and the points that a default list of that length gains over one of
        the usual length.
        """
        reporting = [
            each for each in self.lists if (each.mode, each.codebook, each.epsilon) == (mode, codebook, epsilon)
        ]
        silent = [each for each in self.lists if each.mode == "none"]
        mine = next((each for each in reporting if each.places == USUAL_PLACES), None)
        plain = next((each for each in silent if each.places == USUAL_PLACES), None)
        if mine is None or plain is None:
            return None
        longest = max(silent, key=lambda each: each.places)
        usual = self.at(plain.found, news)
        return self.at(mine.found, news) - usual, longest.places, self.at(longest.found, news) - usual


@cache
def packaged_frontier() -> RecallFrontier:
    """Return the figures packaged with this version."""
    return RecallFrontier.model_validate_json(files("protocol").joinpath("recall_frontier.json").read_text("utf-8"))
