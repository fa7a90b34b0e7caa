"""Prints the newspaper: hands out assignments, settles times and papers, and numbers the items."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random

from backend.news.errors import NewsError
from backend.news.item import NewsItem
from backend.news.sources.newsroom.agreement import agreed, descriptions
from backend.news.sources.newsroom.beat import Beat, Board, Desk, Draft, Scene, SpentError, Stage
from backend.news.sources.newsroom.desks import DESKS
from backend.news.sources.newsroom.grammar import Decks, Pen
from backend.news.sources.newsroom.publishers import AGENCY, Publisher, publisher_for
from backend.news.sources.newsroom.schedule import any_moment, next_moment
from backend.news.sources.newsroom.world import NamesSpentError, World

_FRUITLESS_TRIES = 40  # stories in a row that fall outside a short window: such a beat counts as spent
_TITLE_TRIES = 16
_REPRINT_SHARE = 0.3
_SLUG_WORDS = 9


class PaperDryError(NewsError):
    """All desks together have too few facts for the number of articles asked of the paper."""

    code, status, title = "paper-dry", 422, "The newspaper has too little to say"

    def __init__(self, written: int, wanted: int) -> None:
        super().__init__(
            f"The desks have matter for {written:,} articles, {wanted:,} are wanted; ask for fewer, or for more days.",
            field="articles",
            limit=f"{written:,}",
        )


@dataclass(frozen=True)
class Filed:
    """A draft as one paper prints it; `story` is None for what is reported once."""

    draft: Draft
    section: str
    topic: str
    story: str | None
    publisher: Publisher
    at: datetime
    weight: float


class DeskAtWork:
    """One desk writing one edition."""

    def __init__(self, desk: Desk, world: World, board: Board, first: datetime, now: datetime, seed: int) -> None:
        self._desk, self._world, self._board = desk, world, board
        self._first, self._now = first, now
        self._rng = Random(f"{seed}:{desk.section}")
        self._decks = Decks(self._rng)
        self._titles: set[str] = set()
        self._stories = 0
        self._described = {beat.topic: descriptions(beat) for beat in desk.beats}
        self._done = dict.fromkeys(range(len(desk.beats)), 0.0)
        self._fruitless = dict.fromkeys(range(len(desk.beats)), 0)
        self._spare: list[Filed] = []

    @property
    def share(self) -> float:
        return self._desk.share

    @property
    def dry(self) -> bool:
        """Whether all beats are spent, so that nothing more can be written."""
        return not self._done and not self._spare

    def written(self, wanted: int) -> list[Filed]:
        """The next `wanted` items of the window, fewer once the beats are spent."""
        filed, self._spare = self._spare, []
        while len(filed) < wanted and self._done:
            behind = min(self._done, key=lambda index: self._done[index] + self._rng.random() * 3)
            beat = self._desk.beats[behind]
            try:
                story = self._story(beat)
            except (SpentError, NamesSpentError):
                del self._done[behind]
                continue
            self._fruitless[behind] = 0 if story else self._fruitless[behind] + 1
            if self._fruitless[behind] == _FRUITLESS_TRIES:
                del self._done[behind]
                continue
            self._done[behind] += max(1, len(story)) / beat.share
            filed.extend(story)
        self._spare = filed[wanted:]
        return filed[:wanted]

    def _story(self, beat: Beat) -> list[Filed]:
        begin = any_moment(self._first - beat.span * 0.7, self._now, beat.rhythm, self._rng)
        scene = Scene(self._world, self._rng, self._board, begin)
        facts = agreed(beat.facts(scene), self._described[beat.topic], self._world)
        times = list(getattr(facts, "times", ())) or [scene.start]
        for stage in beat.stages[len(times) :]:
            times.append(next_moment(times[-1], stage.after, stage.rhythm or beat.rhythm, self._rng))
        dates = {f"t{index}": at for index, at in enumerate(times)}
        self._stories += 1
        name = f"{re.sub('[^a-z]+', '-', self._desk.section)}-{self._stories:04d}"
        usual = publisher_for(self._desk.section, self._rng)
        filed: list[Filed] = []
        for stage, at in zip(beat.stages, times, strict=True):
            if self._first <= at <= self._now and stage.when(facts) and self._rng.random() < stage.chance:
                pen = Pen(facts, dates, at.date(), self._rng, self._decks)
                filed.extend(self._reports(stage, pen, at, beat.topic, name, usual))
        if len(beat.stages) == 1 and len(filed) == 1:
            return [replace(filed[0], story=None)]
        return filed

    def _reports(
        self, stage: Stage, pen: Pen, at: datetime, topic: str, name: str, usual: Publisher
    ) -> Iterator[Filed]:
        """One stage as its paper prints it, then as others do: in their own words or reprinted from the agency."""
        section = self._desk.section
        paper = usual if self._rng.random() < 0.65 else publisher_for(section, self._rng)
        others: list[Publisher] = []
        while self._rng.random() < stage.covered and len(others) < 2:
            others.append(
                publisher_for(section, self._rng, frozenset({AGENCY.name, paper.name, *(o.name for o in others)}))
            )
        reprinted = bool(others) and self._rng.random() < _REPRINT_SHARE
        if reprinted:
            paper = AGENCY
        draft = self._draft(stage, pen)
        weight = min(1.0, max(0.05, stage.weight * self._rng.lognormvariate(-0.05, 0.3)))
        yield Filed(draft, section, topic, name, paper, at, weight)
        for other in others:
            at = at + timedelta(minutes=self._rng.uniform(6, 100))
            if at > self._now or at.date() != pen.today:
                return
            kept = self._rng.randint(3, len(draft.paragraphs))
            reprint = replace(draft, paragraphs=draft.paragraphs[:kept])
            try:
                told = reprint if reprinted else self._draft(stage, pen)
            except SpentError:
                return
            yield Filed(told, section, topic, name, other, at, weight * 0.9)
            reprinted = False

    def _draft(self, stage: Stage, pen: Pen) -> Draft:
        """A draft whose title the desk has not used."""
        for _ in range(_TITLE_TRIES):
            draft = stage.draft(pen, self._rng)
            if draft.title.casefold() not in self._titles:
                self._titles.add(draft.title.casefold())
                return draft
        raise SpentError(f"no unused title from {stage.titles[0]!r}")


def _slug(title: str) -> str:
    plain = title.casefold().replace("’", "")
    return "-".join(re.findall(r"[a-z0-9]+", plain)[:_SLUG_WORDS])


def _item(filed: Filed, number: int, seed: int) -> NewsItem:
    slug = _slug(filed.draft.title)
    digest = hashlib.sha256(f"{seed}:{number}:{slug}".encode()).hexdigest()[:8]
    place = filed.section.replace(" & ", "-").replace(" ", "-")
    return NewsItem(
        id=f"nr-{number:06d}-{digest}",
        title=filed.draft.title,
        abstract=filed.draft.abstract,
        body="\n\n".join(filed.draft.paragraphs),
        url=f"https://{filed.publisher.domain}/{place}/{filed.at:%Y/%m/%d}/{slug}-{digest[:4]}",
        publisher=filed.publisher.name,
        section=filed.section,
        topic=filed.topic,
        story=filed.story,
        published_at=filed.at,
        weight=round(filed.weight, 3),
    )


def _quotas(shares: Sequence[float], articles: int) -> list[int]:
    """How many of the articles each desk writes, by share; sums to `articles`."""
    total = sum(shares)
    bounds = [0.0]
    for share in shares:
        bounds.append(bounds[-1] + articles * share / total)
    return [round(high) - round(low) for low, high in pairwise(bounds)]


def newsroom(now: datetime, *, seed: int = 7, articles: int = 6000, days: int = 14) -> Iterator[NewsItem]:
    """The paper's items of the last `days` before `now`, by publication time; the same for the same arguments.

    Raises ValueError naming the argument when `now` has no zone, or `articles` or `days` is below 1, and
    PaperDryError when more articles are asked for than all desks have matter. What one desk cannot fill, others do.
    """
    if now.tzinfo is None:
        raise ValueError("now needs a time zone")
    if articles < 1 or days < 1:
        raise ValueError(f"articles and days must be at least 1, are {articles} and {days}")
    now = now.astimezone(UTC).replace(microsecond=0)
    first = now - timedelta(days=days)
    world, board = World(seed, now), Board()
    desks = [DeskAtWork(desk, world, board, first, now, seed) for desk in DESKS]
    filed: list[Filed] = []
    while len(filed) < articles:
        able = [desk for desk in desks if not desk.dry]
        if not able:
            raise PaperDryError(len(filed), articles)
        for desk, quota in zip(able, _quotas([desk.share for desk in able], articles - len(filed)), strict=True):
            filed.extend(desk.written(quota))
    filed.sort(key=lambda one: (one.at, one.draft.title, one.publisher.name))
    return (_item(one, number, seed) for number, one in enumerate(filed, start=1))
