"""Rows of pictures: which stories may have one, what became of each, and which are kept in the storage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, Engine, delete, false, func, insert, select, update

from backend.db.chunks import among
from backend.db.engine import reading, writing
from backend.db.tables import DuplicateRow, FeedRow, NewsRow
from backend.db.tables_pictures import FAILED, LEFT, MADE, REASON_CHARS, REFUSED, PictureRow
from backend.news.batch import SOURCE_CHARS

LOOKED_AT = 20_000
"""Stories with a picture that are looked at, the newest first."""


@dataclass(frozen=True, slots=True)
class PicturedStory:
    """A story that may have its publisher's picture, and what became of it; state None: it wasn't asked for yet.

    source: the feed that brought it. renewed: the picture that was MADE had another address than the story names now;
    it stays until what is at the new one is known.
    """

    number: int
    id: str
    url: str
    state: str | None
    attempts: int
    due_at: datetime | None
    sha256: str | None
    size_bytes: int | None
    place: int | None
    source: str = ""
    renewed: bool = False


class PictureCounts(NamedTuple):
    """How many pictures are in each state, the bytes of those made, and the last reasons of others."""

    by_state: dict[str, int]
    made_bytes: int
    reasons: list[tuple[str, str, str]]
    """Address, state and reason of the last that couldn't be had."""


class PictureRepository:
    """The rows. Whoever changes them does so under the one lock of `PictureWorker`."""

    def __init__(self, engine: Engine, clock: Callable[[], datetime]) -> None:
        self._engine, self._clock = engine, clock

    def stories(self, horizon: datetime) -> list[PicturedStory]:
        """Live stories with a picture of feeds that may have theirs shown, the newest first; no near-duplicates.

        horizon: of the pool; older ones have expired.
        """
        same = PictureRow.url == NewsRow.picture
        asked = (PictureRow.news == NewsRow.number) & (same | (PictureRow.state == MADE))
        query = (
            select(
                NewsRow.number, NewsRow.id, NewsRow.picture, PictureRow.state, func.coalesce(PictureRow.attempts, 0),
                PictureRow.due_at, PictureRow.sha256, PictureRow.size_bytes, PictureRow.place,
                NewsRow.source, func.coalesce(PictureRow.url != NewsRow.picture, false()),
            )
            .outerjoin(PictureRow, asked)
            .outerjoin(DuplicateRow, DuplicateRow.news == NewsRow.number)
            .where(NewsRow.picture != "", NewsRow.taken_down_at.is_(None), NewsRow.published_at > horizon)
            .where(DuplicateRow.news.is_(None))
            .order_by(NewsRow.number.desc())
            .limit(LOOKED_AT)
        )  # fmt: skip
        with reading(self._engine) as connection:
            allowed = among(connection, NewsRow.source, _allowed(connection))
            return [PicturedStory(*row) for row in connection.execute(query.where(allowed))]

    def withdraw(self) -> int:
        """Forget the pictures whose story is taken down or has none any more, or whose feed may have none; how many."""
        with reading(self._engine) as connection:
            allowed = among(connection, NewsRow.source, _allowed(connection))
            may = select(NewsRow.number).where(NewsRow.picture != "", NewsRow.taken_down_at.is_(None), allowed)
            gone = connection.scalars(select(PictureRow.news).where(PictureRow.news.not_in(may))).all()
        if gone:
            with writing(self._engine) as connection:
                connection.execute(delete(PictureRow).where(among(connection, PictureRow.news, gone)))
        return len(gone)

    def made(self, story: PicturedStory, sha256: str, size_bytes: int) -> None:
        """The storage has it. It gets the next place, or keeps its own where it's the picture that the story had."""
        with writing(self._engine) as connection:
            had = (PictureRow.news == story.number) & (PictureRow.sha256 == sha256)
            place = connection.scalar(select(PictureRow.place).where(had))
            place = place or (connection.scalar(select(func.max(PictureRow.place))) or 0) + 1
            values = {"state": MADE, "sha256": sha256, "size_bytes": size_bytes, "place": place}
            self._settle(connection, story, values)

    def failed(self, story: PicturedStory, why: str, again_at: datetime | None) -> None:
        """It couldn't be had; again_at: when it is tried once more, None: it is given up. A renewed one that is tried
        once more keeps what it had until then."""
        values: dict[str, object] = {"reason": why[:REASON_CHARS], "attempts": story.attempts + 1, "due_at": again_at}
        with writing(self._engine) as connection:
            if story.renewed and again_at is not None:
                connection.execute(update(PictureRow).where(PictureRow.news == story.number).values(values))
            else:
                self._settle(connection, story, values | {"state": REFUSED if again_at is None else FAILED})

    def leave(self, stories: Iterable[PicturedStory]) -> None:
        """There is no room for these any more; they aren't asked for again."""
        numbers = [story.number for story in stories]
        if numbers:
            values = {"state": LEFT, "sha256": None, "size_bytes": None, "place": None, "settled_at": self._clock()}
            with writing(self._engine) as connection:
                gone = among(connection, PictureRow.news, numbers)
                connection.execute(update(PictureRow).where(gone).values(values))

    def forget(self, stories: Iterable[PicturedStory]) -> None:
        """These are in no storage any more, and are asked for again."""
        numbers = [story.number for story in stories]
        if numbers:
            with writing(self._engine) as connection:
                connection.execute(delete(PictureRow).where(among(connection, PictureRow.news, numbers)))

    def kept(self) -> set[str]:
        """The hashes of all that the storage has to keep."""
        with reading(self._engine) as connection:
            return set(connection.scalars(select(PictureRow.sha256).where(PictureRow.sha256.is_not(None))))

    def counts(self, reasons: int = 0) -> PictureCounts:
        """For the operator."""
        row = PictureRow
        with reading(self._engine) as connection:
            states = connection.execute(select(row.state, func.count()).group_by(row.state))
            by_state = {state: int(count) for state, count in states}
            size = connection.scalar(select(func.coalesce(func.sum(row.size_bytes), 0))) or 0
            last = select(row.url, row.state, row.reason).where(row.reason.is_not(None)).order_by(row.settled_at.desc())
            told = [(url, state, reason or "") for url, state, reason in connection.execute(last.limit(reasons))]
        return PictureCounts(by_state, int(size), told)

    def _settle(self, connection: Connection, story: PicturedStory, values: dict[str, object]) -> None:
        """Nothing for a story that has left the pool or was taken down meanwhile."""
        connection.execute(delete(PictureRow).where(PictureRow.news == story.number))
        still = (NewsRow.number == story.number) & (NewsRow.picture == story.url)
        if connection.scalar(select(NewsRow.number).where(still)) is not None:
            row = {"news": story.number, "url": story.url, "settled_at": self._clock()}
            connection.execute(insert(PictureRow), row | values)


def _allowed(connection: Connection) -> Sequence[str]:
    """Feeds whose pictures may be shown, as their news name them; none of two that are named alike unless both may."""
    feeds = connection.execute(select(FeedRow.url, FeedRow.pictures)).all()
    refused = {url[:SOURCE_CHARS] for url, pictures in feeds if not pictures}
    return sorted({url[:SOURCE_CHARS] for url, pictures in feeds if pictures} - refused)
