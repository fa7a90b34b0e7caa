"""Prints one edition: assigns stories, chooses times and papers, and numbers the articles."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random

from newsroom.agreement import agreed, descriptions
from newsroom.content import sections
from newsroom.entities import names_of, printed
from newsroom.publishers import Publisher, agency, publisher_for
from newsroom.scene import Claims, Scene, SpentError
from newsroom.schedule import any_moment, next_moment
from newsroom.story import Draft, Section, Stage, StoryKind
from newsroom.world import NamesExhausted, World
from newsroom.writer import WordingUse, Writer

_FRUITLESS_TRIES = 40  # stories in a row that fall outside a short window: such a kind counts as spent
_TITLE_TRIES = 16
_REPRINT_SHARE = 0.3
_SLUG_WORDS = 9


class TooFewFacts(LookupError):
    """All sections together have too few facts for the requested number of articles."""

    def __init__(self, written: int, wanted: int) -> None:
        super().__init__(
            f"The sections have matter for {written:,} articles, {wanted:,} are wanted; ask for fewer, or more days."
        )
        self.written, self.wanted = written, wanted


@dataclass(frozen=True)
class PrintedArticle:
    """One article as a paper prints it; `story` names the developing story it belongs to, if any."""

    id: str
    title: str
    abstract: str
    body: str
    url: str
    publisher: str
    section: str
    topic: str
    story: str | None
    published_at: datetime
    weight: float


@dataclass(frozen=True)
class NamedArticle:
    """An article with the people, places, companies, clubs and works that its story is about and its card names."""

    article: PrintedArticle
    names: frozenset[str]


@dataclass(frozen=True)
class EditedDraft:
    """A draft as one paper prints it; `story` is None for a single report, `names` are those it prints."""

    draft: Draft
    section: str
    topic: str
    story: str | None
    publisher: Publisher
    at: datetime
    weight: float
    names: frozenset[str]


class SectionAtWork:
    def __init__(
        self, section: Section, world: World, claims: Claims, first: datetime, now: datetime, seed: int
    ) -> None:
        self._section, self._world, self._claims = section, world, claims
        self._first, self._now = first, now
        self._rng = Random(f"{seed}:{section.name}")
        self._wordings = WordingUse(self._rng)
        self._titles: set[str] = set()
        self._stories = 0
        self._described = {kind.topic: descriptions(kind) for kind in section.kinds}
        self._done = dict.fromkeys(range(len(section.kinds)), 0.0)
        self._fruitless = dict.fromkeys(range(len(section.kinds)), 0)
        self._spare: list[EditedDraft] = []

    @property
    def share(self) -> float:
        return self._section.share

    @property
    def dry(self) -> bool:
        """Return whether all kinds of story are used up."""
        return not self._done and not self._spare

    def written(self, wanted: int) -> list[EditedDraft]:
        """Return the next `wanted` items of the window, fewer once the kinds of story are used up."""
        filed, self._spare = self._spare, []
        while len(filed) < wanted and self._done:
            behind = min(self._done, key=lambda index: self._done[index] + self._rng.random() * 3)
            kind = self._section.kinds[behind]
            try:
                story = self._story(kind)
            except (SpentError, NamesExhausted):
                del self._done[behind]
                continue
            self._fruitless[behind] = 0 if story else self._fruitless[behind] + 1
            if self._fruitless[behind] == _FRUITLESS_TRIES:
                del self._done[behind]
                continue
            self._done[behind] += max(1, len(story)) / kind.share
            filed.extend(story)
        self._spare = filed[wanted:]
        return filed[:wanted]

    def _story(self, kind: StoryKind) -> list[EditedDraft]:
        begin = any_moment(self._first - kind.span * 0.7, self._now, kind.rhythm, self._rng)
        scene = Scene(self._world, self._rng, self._claims, begin)
        facts = agreed(kind.facts.drawn(scene), self._described[kind.topic], self._world)
        times = list(getattr(facts, "times", ())) or [scene.start]
        for stage in kind.stages[len(times) :]:
            times.append(next_moment(times[-1], stage.after, stage.rhythm or kind.rhythm, self._rng))
        dates = {f"t{index}": at for index, at in enumerate(times)}
        self._stories += 1
        name = f"{re.sub('[^a-z]+', '-', self._section.name)}-{self._stories:04d}"
        usual = publisher_for(self._section.name, self._rng)
        known = names_of(facts)
        filed: list[EditedDraft] = []
        for stage, at in zip(kind.stages, times, strict=True):
            if self._first <= at <= self._now and stage.happens(facts) and self._rng.random() < stage.chance:
                writer = Writer(facts, dates, at.date(), self._rng, self._wordings)
                filed.extend(self._reports(stage, writer, at, kind.topic, name, usual, known))
        if len(kind.stages) == 1 and len(filed) == 1:
            return [replace(filed[0], story=None)]
        return filed

    def _reports(
        self,
        stage: Stage,
        writer: Writer,
        at: datetime,
        topic: str,
        name: str,
        usual: Publisher,
        known: frozenset[str],
    ) -> Iterator[EditedDraft]:
        """Yield one stage as its first paper prints it, then as others do: in their own words or reprinted."""
        section = self._section.name
        paper = usual if self._rng.random() < 0.65 else publisher_for(section, self._rng)
        others: list[Publisher] = []
        while self._rng.random() < stage.covered and len(others) < 2:
            others.append(
                publisher_for(section, self._rng, frozenset({agency().name, paper.name, *(o.name for o in others)}))
            )
        reprinted = bool(others) and self._rng.random() < _REPRINT_SHARE
        if reprinted:
            paper = agency()
        draft = self._draft(stage, writer)
        weight = min(1.0, max(0.05, stage.weight * self._rng.lognormvariate(-0.05, 0.3)))
        yield EditedDraft(draft, section, topic, name, paper, at, weight, printed(known, draft))
        for other in others:
            at = at + timedelta(minutes=self._rng.uniform(6, 100))
            if at > self._now or at.date() != writer.today:
                return
            kept = self._rng.randint(3, len(draft.paragraphs))
            reprint = replace(draft, paragraphs=draft.paragraphs[:kept])
            try:
                report = reprint if reprinted else self._draft(stage, writer)
            except SpentError:
                return
            yield EditedDraft(report, section, topic, name, other, at, weight * 0.9, printed(known, report))
            reprinted = False

    def _draft(self, stage: Stage, writer: Writer) -> Draft:
        """Return a draft whose title the section has not used."""
        for _ in range(_TITLE_TRIES):
            draft = stage.draft(writer, self._rng)
            if draft.title.casefold() not in self._titles:
                self._titles.add(draft.title.casefold())
                return draft
        raise SpentError(f"no unused title from {stage.titles[0]!r}")


def _slug(title: str) -> str:
    plain = title.casefold().replace("’", "")
    return "-".join(re.findall(r"[a-z0-9]+", plain)[:_SLUG_WORDS])


def _article(filed: EditedDraft, number: int, seed: int) -> PrintedArticle:
    slug = _slug(filed.draft.title)
    digest = hashlib.sha256(f"{seed}:{number}:{slug}".encode()).hexdigest()[:8]
    place = filed.section.replace(" & ", "-").replace(" ", "-")
    return PrintedArticle(
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
    """Return how many of the articles each section writes, by share; they sum to `articles`."""
    total = sum(shares)
    bounds = [0.0]
    for share in shares:
        bounds.append(bounds[-1] + articles * share / total)
    return [round(high) - round(low) for low, high in pairwise(bounds)]


def edition(now: datetime, *, seed: int = 7, articles: int = 6000, days: int = 14) -> Iterator[PrintedArticle]:
    """Yield the articles of the last `days` before `now` by time; the same arguments give the same edition.

    Raises ValueError naming the argument if `now` has no zone, or `articles` or `days` is below 1, and
    TooLittleToSayError if more are requested than all sections can write. What one section can't fill, others do.
    """
    return (named.article for named in named_edition(now, seed=seed, articles=articles, days=days))


def named_edition(now: datetime, *, seed: int = 7, articles: int = 6000, days: int = 14) -> Iterator[NamedArticle]:
    """Yield the same articles with their names, as the facts have them, to test measures of similarity."""
    if now.tzinfo is None:
        raise ValueError("now needs a time zone")
    if articles < 1 or days < 1:
        raise ValueError(f"articles and days must be at least 1, are {articles} and {days}")
    now = now.astimezone(UTC).replace(microsecond=0)
    first = now - timedelta(days=days)
    world, claims = World(seed, now), Claims()
    at_work = [SectionAtWork(section, world, claims, first, now, seed) for section in sections()]
    filed: list[EditedDraft] = []
    while len(filed) < articles:
        able = [section for section in at_work if not section.dry]
        if not able:
            raise TooFewFacts(len(filed), articles)
        for section, quota in zip(
            able, _quotas([section.share for section in able], articles - len(filed)), strict=True
        ):
            filed.extend(section.written(quota))
    filed.sort(key=lambda one: (one.at, one.draft.title, one.publisher.name))
    return (NamedArticle(_article(one, number, seed), one.names) for number, one in enumerate(filed, start=1))
