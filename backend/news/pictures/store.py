"""The database rows of pictures: which stories may have one, and each picture's state."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    and_,
    delete,
    exists,
    false,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)

from backend.db.engine import reading, writing
from backend.db.statements import among, chunks
from backend.db.tables import (
    FAILED,
    LEFT,
    MADE,
    REASON_CHARS,
    REFUSED,
    DuplicateRow,
    FeedRow,
    NewsRow,
    PictureRow,
    TextPictureRow,
)
from backend.news.newest import is_live

LOOKED_AT = 20_000
"""How many of the newest stories with pictures are read."""


@dataclass(frozen=True, slots=True)
class PicturedStory:
    """A story that may have its publisher's picture, and the picture's state (None: not requested yet).

    of_text: 0 for the card's picture, else its number in the text. source: the feed that delivered it. renewed: the
    picture that was MADE had another address than the story has now; it is kept until the new one was fetched.
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
    of_text: int = 0

    @property
    def row(self) -> ColumnElement[bool]:
        """The condition of its row."""
        return and_(PictureRow.news == self.number, PictureRow.of_text == self.of_text)


class PictureCounts(NamedTuple):
    """How many pictures are in each state, the bytes of those made, and the last failures."""

    by_state: dict[str, int]
    made_bytes: int
    reasons: list[tuple[str, str, str]]
    """Address, state and reason of the last failures."""


class PictureRepository:
    """Reads and writes the rows of pictures. Callers that change them hold the lock of `PictureWorker`."""

    def __init__(self, engine: Engine, clock: Callable[[], datetime]) -> None:
        self._engine, self._clock = engine, clock

    def stories(self, horizon: datetime) -> list[PicturedStory]:
        """Pictures of live stories from feeds whose pictures may be shown, without near-duplicates.

        Newest first, those of cards before those in texts. horizon: the pool's; older stories have expired.
        """
        with reading(self._engine) as connection:
            allowed = among(connection, NewsRow.source, _allowed(connection))
            found: list[PicturedStory] = []
            for url, of_text in ((NewsRow.picture, literal(0)), (TextPictureRow.url, TextPictureRow.place)):
                at = (PictureRow.news == NewsRow.number) & (PictureRow.of_text == of_text)
                query = select(
                    NewsRow.number, NewsRow.id, url, PictureRow.state, func.coalesce(PictureRow.attempts, 0),
                    PictureRow.due_at, PictureRow.sha256, PictureRow.size_bytes, PictureRow.place,
                    NewsRow.source, func.coalesce(PictureRow.url != url, false()), of_text,
                )  # fmt: skip
                if url is not NewsRow.picture:
                    query = query.join(TextPictureRow, TextPictureRow.news == NewsRow.number)
                query = (
                    query.outerjoin(PictureRow, at & ((PictureRow.url == url) | (PictureRow.state == MADE)))
                    .outerjoin(DuplicateRow, DuplicateRow.news == NewsRow.number)
                    .where(url != "", is_live(horizon))
                    .where(DuplicateRow.news.is_(None), allowed)
                    .order_by(NewsRow.number.desc(), of_text)
                    .limit(LOOKED_AT)
                )
                found += [PicturedStory(*row) for row in connection.execute(query)]
        return found

    def withdraw(self) -> int:
        """Delete the rows of pictures that may no longer be shown; return how many.

        Their story was taken down or no longer has the picture, or their feed's pictures are not allowed.
        """
        with reading(self._engine) as connection:
            allowed = among(connection, NewsRow.source, _allowed(connection))
            may = select(NewsRow.number).where(NewsRow.taken_down_at.is_(None), allowed)
            card = (PictureRow.of_text == 0) & PictureRow.news.in_(may.where(NewsRow.picture != ""))
            named = exists().where(TextPictureRow.news == PictureRow.news, TextPictureRow.place == PictureRow.of_text)
            text = PictureRow.news.in_(may) & named
            unlisted = connection.execute(select(PictureRow.news, PictureRow.of_text).where(~(card | text))).all()
        for rows in chunks(unlisted):
            with writing(self._engine) as connection:
                each = (and_(PictureRow.news == news, PictureRow.of_text == of_text) for news, of_text in rows)
                connection.execute(delete(PictureRow).where(or_(*each)))
        return len(unlisted)

    def made(self, story: PicturedStory, sha256: str, size_bytes: int) -> None:
        """Record that a picture is stored, at the next position, or at its own if it is unchanged."""
        with writing(self._engine) as connection:
            had = story.row & (PictureRow.sha256 == sha256)
            place = connection.scalar(select(PictureRow.place).where(had))
            place = place or (connection.scalar(select(func.max(PictureRow.place))) or 0) + 1
            values = {"state": MADE, "sha256": sha256, "size_bytes": size_bytes, "place": place}
            self._settle(connection, story, values)

    def failed(self, story: PicturedStory, why: str, again_at: datetime | None) -> None:
        """Record a failure; again_at: when it is tried again, None: never.

        A renewed picture that is tried again keeps its previous version until then.
        """
        values: dict[str, object] = {"reason": why[:REASON_CHARS], "attempts": story.attempts + 1, "due_at": again_at}
        with writing(self._engine) as connection:
            if story.renewed and again_at is not None:
                connection.execute(update(PictureRow).where(story.row).values(values))
            else:
                self._settle(connection, story, values | {"state": REFUSED if again_at is None else FAILED})

    def leave(self, stories: Iterable[PicturedStory]) -> None:
        """Record that no room is left for these; they aren't requested again."""
        values = {"state": LEFT, "sha256": None, "size_bytes": None, "place": None, "settled_at": self._clock()}
        for some in chunks(stories):
            with writing(self._engine) as connection:
                connection.execute(update(PictureRow).where(or_(*(story.row for story in some))).values(values))

    def forget(self, stories: Iterable[PicturedStory]) -> None:
        """Delete the rows of pictures that the storage has lost, so that they are requested again."""
        for some in chunks(stories):
            with writing(self._engine) as connection:
                connection.execute(delete(PictureRow).where(or_(*(story.row for story in some))))

    def kept(self) -> set[str]:
        """The hashes of all pictures that the storage must keep."""
        with reading(self._engine) as connection:
            return set(connection.scalars(select(PictureRow.sha256).where(PictureRow.sha256.is_not(None))))

    def counts(self, reasons: int = 0) -> PictureCounts:
        """Counts for the operator."""
        row = PictureRow
        with reading(self._engine) as connection:
            states = connection.execute(select(row.state, func.count()).group_by(row.state))
            by_state = {state: int(count) for state, count in states}
            size = connection.scalar(select(func.coalesce(func.sum(row.size_bytes), 0))) or 0
            last = select(row.url, row.state, row.reason).where(row.reason.is_not(None)).order_by(row.settled_at.desc())
            failures = [(url, state, reason or "") for url, state, reason in connection.execute(last.limit(reasons))]
        return PictureCounts(by_state, int(size), failures)

    def _settle(self, connection: Connection, story: PicturedStory, values: dict[str, object]) -> None:
        """Update a row; does nothing for a story that has left the pool or was taken down meanwhile."""
        connection.execute(delete(PictureRow).where(story.row))
        still = select(NewsRow.number).where(NewsRow.number == story.number, NewsRow.picture == story.url)
        if story.of_text:
            named = (TextPictureRow.news == story.number) & (TextPictureRow.place == story.of_text)
            still = select(TextPictureRow.news).where(named, TextPictureRow.url == story.url)
        if connection.scalar(still) is not None:
            row = {"news": story.number, "of_text": story.of_text, "url": story.url, "settled_at": self._clock()}
            connection.execute(insert(PictureRow), row | values)


def _allowed(connection: Connection) -> Sequence[str]:
    """Keys of the followed feeds whose pictures may be shown."""
    return connection.scalars(select(FeedRow.key).where(FeedRow.pictures, FeedRow.removed_at.is_(None))).all()
