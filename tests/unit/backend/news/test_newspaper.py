"""The continuing newspaper: what it publishes when, with a clock that the test moves. The pool is real."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import backend.news.newspaper
from backend.news.item import NewsItem
from backend.news.newspaper import EDITION_FILE, MISSED_LIMIT, SEEDS_APART, SOURCE, GeneratedNewspaper
from backend.news.newspaper import printed as printed_by_several
from backend.news.pool import NewsPool
from backend.news.sources import newspaper as paper
from backend.news.sources.newspaper import NewspaperDry
from backend.server.progress import SilentSteps
from tests.doubles.migrated import migrated

NOON = datetime(2026, 3, 18, 12, tzinfo=UTC)
ARTICLES = 14 * 24
"""One an hour, so that a test counts hours."""


class PaperClock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now

    def turn(self, **by: float) -> None:
        self.now += timedelta(**by)


def evenly(now: datetime, *, seed: int, articles: int, days: int) -> Iterator[NewsItem]:
    """An edition whose articles are evenly spaced in time, the last of them at `now`."""
    for number in range(articles):
        before_end = timedelta(days=days) * ((articles - 1 - number) / articles)
        yield NewsItem(
            id=f"e{seed}-{number}",
            title=f"Edition {seed} tells of matter {number}",
            section="science",
            topic="space",
            story="science-0001",
            published_at=now - before_end,
        )


@pytest.fixture(autouse=True)
def recorded_editions(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Record (articles, days) of every generated edition."""
    asked: list[tuple[int, int]] = []

    def newspaper(now: datetime, *, seed: int, articles: int, days: int) -> Iterator[NewsItem]:
        asked.append((articles, days))
        return evenly(now, seed=seed, articles=articles, days=days)

    monkeypatch.setattr("backend.news.sources.newspaper.newspaper", newspaper)
    return asked


@pytest.fixture
def clock() -> PaperClock:
    return PaperClock()


@pytest.fixture
def pool(tmp_path: Path, clock: PaperClock) -> NewsPool:
    return NewsPool(migrated(f"sqlite:///{tmp_path / 'news.sqlite'}"), clock=clock)


def start_newspaper(pool: NewsPool, folder: Path, clock: PaperClock, pace: float = 1.0) -> GeneratedNewspaper:
    """Start the newspaper as a demo does."""
    newspaper = GeneratedNewspaper(pool, folder, articles=ARTICLES, seed=7, pace=pace, clock=clock)
    newspaper.open(SilentSteps())
    return newspaper


def titles(pool: NewsPool, clock: PaperClock) -> set[str]:
    return {row.title for row in pool.live(clock())}


def test_first_start_publishes_a_fortnight_without_future_stories(
    pool: NewsPool, tmp_path: Path, clock: PaperClock
) -> None:
    start_newspaper(pool, tmp_path, clock)
    live = pool.live(NOON + timedelta(days=3))
    assert len(live) == ARTICLES
    assert max(row.published_at for row in live) <= NOON


def test_every_six_hours_newspaper_publishes_its_stories_once(
    pool: NewsPool, tmp_path: Path, clock: PaperClock, recorded_editions: list[tuple[int, int]]
) -> None:
    newspaper = start_newspaper(pool, tmp_path, clock)
    known = titles(pool, clock)
    came = []
    for _ in range(28):
        clock.turn(hours=6)
        came.append(newspaper.step())
        assert newspaper.step() == 0, "a second look finds nothing"
        fresh = [row for row in pool.live(clock()) if row.title not in known]
        assert all(clock() - timedelta(hours=6) < row.published_at <= clock() for row in fresh)
        known |= {row.title for row in fresh}
    assert set(came) <= set(range(4, 9)), "at the pace of the fortnight"
    assert sum(came) == pytest.approx(7 * 24, abs=8), "editions follow on each other without a gap or a heap"
    assert len(recorded_editions) >= 3
    assert {row.story for row in pool.live(clock())} > {"science-0001"}, "another edition's threads are its own"


def test_scheduled_stories_survive_a_restart_and_are_published_once(
    pool: NewsPool, tmp_path: Path, clock: PaperClock, recorded_editions: list[tuple[int, int]]
) -> None:
    start_newspaper(pool, tmp_path, clock)
    clock.turn(hours=9)
    before = titles(pool, clock)
    start_newspaper(pool, tmp_path, clock)
    assert len(titles(pool, clock) - before) == 9, "a night off is caught up with, story by story"
    assert len(recorded_editions) == 1, "out of the same edition, which goes on with its threads"
    assert not start_newspaper(pool, tmp_path, clock).open(SilentSteps()), "nothing is published twice"


@pytest.mark.parametrize("days", [2.5, 8])
def test_after_a_long_pause_only_two_days_are_caught_up(
    pool: NewsPool, tmp_path: Path, clock: PaperClock, days: float
) -> None:
    start_newspaper(pool, tmp_path, clock)
    clock.turn(days=days)
    before = titles(pool, clock)
    newspaper = start_newspaper(pool, tmp_path, clock)
    missed = [row.published_at for row in pool.live(clock()) if row.title not in before]
    assert len(missed) == pytest.approx(48, abs=2)
    assert min(missed) > clock() - MISSED_LIMIT - timedelta(hours=1)
    clock.turn(hours=1)
    assert newspaper.step() in (1, 2), "and goes on"


def test_empty_pool_gets_a_new_fortnight(pool: NewsPool, tmp_path: Path, clock: PaperClock) -> None:
    start_newspaper(pool, tmp_path, clock)
    clock.turn(days=60)
    pool.expire(clock())
    start_newspaper(pool, tmp_path, clock)
    assert len(pool.live(clock())) == ARTICLES


def test_interrupted_first_fortnight_is_completed(
    pool: NewsPool, tmp_path: Path, clock: PaperClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(pool: NewsPool, rows: list[NewsItem], **_: object) -> None:
        pool.add(rows[:100], source=SOURCE)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(backend.news.newspaper, "ingest", killed)
        with pytest.raises(KeyboardInterrupt):
            start_newspaper(pool, tmp_path, clock)
    assert len(pool.live(clock())) == 100
    clock.turn(minutes=5)
    start_newspaper(pool, tmp_path, clock)
    assert len(pool.live(clock())) == ARTICLES


@pytest.mark.parametrize("content", ["", "not json\n", '{"printed_at": "2026-03-18T12:00:00+00:00"}\n{"id": 1}\n'])
def test_damaged_schedule_file_does_not_stop_the_newspaper(
    pool: NewsPool, tmp_path: Path, clock: PaperClock, content: str
) -> None:
    start_newspaper(pool, tmp_path, clock)
    (tmp_path / EDITION_FILE).write_text(content, encoding="utf-8")
    clock.turn(hours=5)
    newspaper = start_newspaper(pool, tmp_path, clock)
    assert len(pool.live(clock())) == pytest.approx(ARTICLES + 5, abs=1)
    clock.turn(hours=2)
    assert newspaper.step() in (1, 2, 3)


def test_pace_of_60_publishes_an_hours_stories_each_minute(pool: NewsPool, tmp_path: Path, clock: PaperClock) -> None:
    newspaper = start_newspaper(pool, tmp_path, clock, pace=60)
    before = titles(pool, clock)
    for _ in range(30):
        clock.turn(minutes=1)
        newspaper.step()
    fresh = sorted(row.published_at for row in pool.live(clock()) if row.title not in before)
    assert len(fresh) == pytest.approx(30, abs=2)
    assert NOON < fresh[0] <= NOON + timedelta(minutes=2)
    assert fresh[-1] <= clock()
    going_on = start_newspaper(pool, tmp_path, clock)
    clock.turn(hours=1)
    assert going_on.step() in (1, 2), "at the clock's pace again it goes on at once, though the paper was a day ahead"


def test_newspaper_publishes_only_the_fortnight_if_material_is_short(
    pool: NewsPool, tmp_path: Path, clock: PaperClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def short_of_matter(now: datetime, *, seed: int, articles: int, days: int) -> Iterator[NewsItem]:
        if articles > ARTICLES:
            raise NewspaperDry(ARTICLES, articles)
        return evenly(now, seed=seed, articles=articles, days=days)

    monkeypatch.setattr("backend.news.sources.newspaper.newspaper", short_of_matter)
    newspaper = start_newspaper(pool, tmp_path, clock)
    assert len(pool.live(clock())) == ARTICLES
    clock.turn(hours=4)
    assert newspaper.step() in (3, 4, 5), "the days to come have an edition of their own"


def test_large_orders_are_generated_as_several_newspapers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each newspaper has its own seed; together they contain what each would publish alone, by time."""
    monkeypatch.undo()
    monkeypatch.setattr("backend.news.newspaper.PAPER_A_DAY", 50)
    reported: list[tuple[int, int | None]] = []
    stories = printed_by_several(NOON, 7, 101, 1, lambda done, total: reported.append((done, total)))
    alone = [
        story
        for place, share in enumerate([33, 34, 34])
        for story in paper.newspaper(NOON, seed=7 + place * SEEDS_APART, articles=share, days=1)
    ]
    assert sorted(story.id for story in stories) == sorted(story.id for story in alone)
    assert [story.published_at for story in stories] == sorted(story.published_at for story in alone)
    threads = {thread for story in stories if (thread := story.story)}
    assert len(threads) == sum(
        len({story.story for story in alone[first:last] if story.story})
        for first, last in ((0, 33), (33, 67), (67, 101))
    ), "a thread is one newspaper's"
    assert sorted(done for done, _ in reported)[-1] == 101
    assert {total for _, total in reported} == {101}


def test_one_of_several_newspapers_running_out_of_material_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def short_of_matter(now: datetime, *, seed: int, articles: int, days: int) -> Iterator[NewsItem]:
        if seed > SEEDS_APART:
            raise NewspaperDry(0, articles)
        return evenly(now, seed=seed, articles=articles, days=days)

    monkeypatch.setattr("backend.news.sources.newspaper.newspaper", short_of_matter)
    monkeypatch.setattr("backend.news.newspaper.PAPER_A_DAY", 50)
    monkeypatch.setattr("backend.news.newspaper.ProcessPoolExecutor", lambda workers, **_: ThreadPoolExecutor(workers))
    with pytest.raises(NewspaperDry, match="facts for 50 articles, not 100"):
        printed_by_several(NOON, 7, 100, 1)


@pytest.mark.parametrize("pace", [0.0, -1.0, float("nan")])
def test_invalid_pace_is_refused(pool: NewsPool, tmp_path: Path, pace: float) -> None:
    with pytest.raises(ValueError, match="pace: must be above 0"):
        GeneratedNewspaper(pool, tmp_path, articles=ARTICLES, seed=7, pace=pace)


def test_developing_stories_continue_after_the_start(
    pool: NewsPool, tmp_path: Path, clock: PaperClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real newspaper, two days later: stories in the pool at the start have developed, each in its own order."""
    monkeypatch.undo()
    newspaper = GeneratedNewspaper(pool, tmp_path, articles=500, seed=7, clock=clock)
    newspaper.open(SilentSteps())
    begun = {row.story for row in pool.live(clock()) if row.story}
    known = titles(pool, clock)
    clock.turn(days=2)
    newspaper.step()
    fresh = [row for row in pool.live(clock()) if row.title not in known]
    assert 30 <= len(fresh) <= 120, "500 articles in 14 days are 71 in two"
    assert sum(row.story in begun for row in fresh) >= 5
