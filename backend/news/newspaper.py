"""Publishes the generated newspaper continuously: it is written some days ahead, and each article appears on time.

An edition is written as a whole, so that later articles follow up earlier ones; future articles wait in a file.
"""

from __future__ import annotations

import heapq
import json
import logging
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from backend.db.engine import migrate, open_engine
from backend.news.ingest import Progress, ingest
from backend.news.item import NewsItem
from backend.news.pool import NewsPool
from backend.news.sources import newspaper as paper
from backend.server.child_processes import end_with_parent
from backend.server.progress import Advance, SilentSteps, Steps
from backend.settings import BackendSettings

FIRST_DAYS = 14
AHEAD_DAYS = 3
PRINT_WHEN_LEFT = timedelta(hours=12)
MISSED_LIMIT = timedelta(days=2)
"""A demo that was switched off publishes what was due in the last two days (about 860 articles), nothing older."""
PAPER_A_DAY = 460
"""Articles per day of one newspaper, a tenth below what its sections can produce; more are divided among several
newspapers."""
SEEDS_APART = 10_000_019
"""Difference between the seeds of two newspapers, larger than the number of days that later editions add."""
LOOK_EVERY_SEC = 10.0
STOP_WITHIN_SEC = 30.0
EDITION_FILE = "newspaper.jsonl"
SOURCE = paper.NewspaperSource.name

_log = logging.getLogger(__name__)


def utc_now() -> datetime:
    """The clock of a running demo."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class Edition:
    """Articles by time of publication.

    printed_at: when the edition was written, partly for the days before.
    """

    printed_at: datetime
    stories: tuple[NewsItem, ...]

    def until(self) -> datetime:
        """When its last article is due."""
        return max((story.published_at for story in self.stories), default=self.printed_at)

    def due(self, oldest: datetime, until: datetime) -> list[NewsItem]:
        """Return the articles due by `until`. Of those after the edition was written, only articles after `oldest` are
        due.

        So an interrupted first fortnight is completed, but a demo doesn't publish everything it missed while it was
        switched off.
        """
        return [
            story
            for story in self.stories
            if story.published_at <= until and (story.published_at <= self.printed_at or story.published_at > oldest)
        ]


class GeneratedNewspaper:
    """Keeps a pool supplied with the generated newspaper, at the rate of its first fortnight.

    articles: how many in FIRST_DAYS. pace: how many times faster than the clock it runs; articles still carry the
    clock's dates.
    """

    def __init__(
        self,
        pool: NewsPool,
        folder: Path,
        *,
        articles: int,
        seed: int,
        pace: float = 1.0,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        if not pace > 0:
            raise ValueError(f"pace: must be above 0, got {pace}")
        self._pool, self._file, self._clock = pool, folder / EDITION_FILE, clock
        self._articles, self._seed, self._pace = articles, seed, pace
        self._edition: Edition | None = None
        self._published: set[str] = set()
        self._began = self._paper_began = clock()
        self._stopping = threading.Event()

    @classmethod
    def of(cls, settings: BackendSettings, *, articles: int, seed: int, pace: float = 1.0) -> GeneratedNewspaper:
        """The newspaper of a server's data folder; creates the database if it is missing."""
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        migrate(settings.database_url)
        pool = NewsPool(open_engine(settings.database_url))
        return cls(pool, settings.data_dir, articles=articles, seed=seed, pace=pace)

    def open(self, steps: Steps) -> int:
        """Publish what is due by now and return how many: a fortnight for an empty pool, else what was missed."""
        now = self._clock()
        live = self._pool.live(now)
        self._edition = _read(self._file) if live else None
        self._published = {row.id for row in live}
        printed = () if self._edition is None else self._edition.stories
        # A newspaper faster than the clock continues where it was instead of waiting for the clock.
        ahead = [story.published_at for story in printed if story.id in self._published]
        self._began, self._paper_began = now, max([now, *ahead])
        if self._edition is not None and self._edition.until() > self._paper_began and not self._missing():
            return 0
        with steps.step("Writing the newspaper") as advance:
            if not live:
                self._edition = self._first_edition(advance)
            elif self._edition is None:
                self._edition = self._next_edition(max(row.published_at for row in live))
            elif self._edition.until() <= self._paper_began:
                self._edition = self._next_edition(self._edition.until())
            self._keep()
            published = self._publish(lambda done, total: advance(done, total))
            self._edition = Edition(self._edition.printed_at, self._waiting())
            self._keep()
        return published

    def step(self) -> int:
        """Publish what is due, write the next edition if little is left, and return how many were published."""
        if self._edition is None:
            raise ValueError("call open first")
        if self._edition.until() - self._paper_now() < PRINT_WHEN_LEFT:
            self._edition = self._next_edition(self._edition.until())
            self._keep()
        return self._publish()

    @contextmanager
    def publishing(self) -> Iterator[None]:
        """Publish in a background thread while the block runs, calling `open` first if needed.

        At the end it waits for the publication in progress.
        """
        thread = threading.Thread(target=self._run, name="newspaper", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            thread.join(STOP_WITHIN_SEC)

    def _run(self) -> None:
        wait_sec = LOOK_EVERY_SEC if self._edition else 0.0
        while not self._stopping.wait(wait_sec):
            wait_sec = LOOK_EVERY_SEC
            try:
                if self._edition is None:
                    self.open(SilentSteps())
                self.step()
            except Exception:
                # A locked database or a full disk may recover: what was due stays due and is retried.
                _log.exception("the newspaper could not be published")

    def _paper_now(self) -> datetime:
        """Return the current time in the newspaper's world."""
        return self._paper_began + (self._clock() - self._began) * self._pace

    def _missing(self) -> list[NewsItem]:
        """Return what is due and not published."""
        if self._edition is None:
            return []
        due = self._edition.due(self._began - MISSED_LIMIT, self._paper_now())
        return [story for story in due if story.id not in self._published]

    def _waiting(self) -> tuple[NewsItem, ...]:
        """Return unpublished articles of the edition that aren't too old to publish."""
        stories = () if self._edition is None else self._edition.stories
        oldest = self._began - MISSED_LIMIT
        return tuple(story for story in stories if story.id not in self._published and story.published_at > oldest)

    def _publish(self, progress: Progress | None = None) -> int:
        missing = self._missing()
        if missing:
            dated = [story.model_copy(update={"published_at": self._date(story)}) for story in missing]
            ingest(self._pool, dated, source=SOURCE, progress=progress, rows_total=len(dated))
            self._published.update(story.id for story in missing)
        return len(missing)

    def _date(self, story: NewsItem) -> datetime:
        """Return the date of an article by the clock."""
        if story.published_at <= self._paper_began:
            return min(story.published_at, self._began)
        return self._began + (story.published_at - self._paper_began) / self._pace

    def _first_edition(self, advance: Advance) -> Edition:
        now = self._clock()
        try:
            days = FIRST_DAYS + AHEAD_DAYS
            stories = printed(now + timedelta(days=AHEAD_DAYS), self._seed, self._rate(days), days, advance)
        except paper.NewspaperDry:  # the fortnight uses all facts: write nothing ahead
            stories = printed(now, self._seed, self._articles, FIRST_DAYS, advance)
        return Edition(now, stories)

    def _next_edition(self, last: datetime) -> Edition:
        """The next edition: articles still waiting, and new ones after `last` that aren't too old, from a new seed."""
        now = self._paper_now()
        first = max(last, self._began - MISSED_LIMIT)
        end = max(now, first) + timedelta(days=AHEAD_DAYS)
        days = -((first - end) // timedelta(days=1))
        seed = self._seed + end.toordinal()
        new = (story for story in printed(end, seed, self._rate(days), days) if story.published_at > first)
        return Edition(now, (*self._waiting(), *_renamed(new, seed)))

    def _rate(self, days: int) -> int:
        return max(1, self._articles * days // FIRST_DAYS)

    def _keep(self) -> None:
        """Save the edition by replacing its file atomically."""
        assert self._edition is not None
        lines = [json.dumps({"printed_at": self._edition.printed_at.isoformat()})]
        lines.extend(story.model_dump_json() for story in self._edition.stories)
        new = self._file.with_suffix(".new")
        new.write_text("\n".join(lines) + "\n", encoding="utf-8")
        new.replace(self._file)


def printed(
    end: datetime, seed: int, articles: int, days: int, advance: Advance = lambda done, total: None
) -> tuple[NewsItem, ...]:
    """The edition of the `days` before `end`, by time of publication; the same for the same arguments.

    More articles than one newspaper can write are divided among several, each with its own seed. advance: called with
    (articles, total) as newspapers are written. Raises NewspaperDry.
    """
    papers = -(-articles // (days * PAPER_A_DAY))
    if papers == 1:
        return tuple(paper.newspaper(end, seed=seed, articles=articles, days=days))
    shares = [articles * (place + 1) // papers - articles * place // papers for place in range(papers)]
    # A newspaper occupies a core for seconds; separate processes also leave the caller's threads free.
    workers = min(papers, os.cpu_count() or 1)
    with ProcessPoolExecutor(
        workers, mp_context=multiprocessing.get_context("spawn"), initializer=end_with_parent
    ) as pool:
        writing = [
            pool.submit(one_paper, end, seed + place * SEEDS_APART, share, days) for place, share in enumerate(shares)
        ]
        written = 0
        for done in as_completed(writing):
            written += len(done.result())
            advance(written, articles)
    if written < articles:
        raise paper.NewspaperDry(written, articles)
    return tuple(heapq.merge(*(done.result() for done in writing), key=lambda story: (story.published_at, story.id)))


def one_paper(end: datetime, seed: int, articles: int, days: int) -> list[NewsItem]:
    """One of several newspapers, with thread names that differ from those of the others.

    Empty if it has too few facts, since NewspaperDry can't be pickled.
    """
    try:
        return list(_renamed(paper.newspaper(end, seed=seed, articles=articles, days=days), seed))
    except paper.NewspaperDry:
        return []


def _renamed(stories: Iterable[NewsItem], seed: int) -> Iterator[NewsItem]:
    """Rename the stories' threads so that they differ from those of other editions, which count from 1 too."""
    for story in stories:
        yield story.model_copy(update={"story": story.story and f"{story.story}-{seed}"})


def _read(file: Path) -> Edition | None:
    """The edition in a file; None if the file is missing or can't be read."""
    try:
        head, *lines = file.read_text(encoding="utf-8").splitlines()
        printed_at = datetime.fromisoformat(json.loads(head)["printed_at"])
        return Edition(printed_at, tuple(NewsItem.model_validate_json(line) for line in lines))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as broken:
        _log.warning("%s can't be read and is written again: %s", file.name, broken)
        return None
