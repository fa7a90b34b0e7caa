"""Read and check an export of the reader's other device.

Searches and stances of the export are first stored here, then moved into the second view's store (`MovedSearches`).
"""

import json
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from device_app.errors import ExportRefused
from device_app.store.database import Database, LazyDatabase
from device_app.store.opinions import FORGET_UNFOLLOWED
from device_app.store.preferences import MOVED_SEARCHES, Preferences
from device_app.store.rows import to_us
from device_app.store.searches import WORDS_LIMIT_CHARS
from protocol.ids import NewsId
from protocol.news import NewsCard
from protocol.recall import Report

_REPORT: TypeAdapter[Report] = TypeAdapter(Report)
VERSION = 2
"""Increased when an export changes in a way that older devices can't import."""
LIMIT_BYTES = 128 * 2**20
LEEWAY = timedelta(minutes=10)
"""Allowed difference between the clocks of two devices."""
LATEST_US = 2**53 - 1
"""The latest time that both kinds of device can represent, in the year 2255."""
CHARGES_LIMIT = 50_000
"""Enough for a dozen charges a day for ten years."""
VECTOR_BYTES_LIMIT = 4 * 4_096
MOMENTS: Mapping[str, tuple[str, ...]] = {
    "charge": ("at",),
    "report_meaning": ("first_at",),
    "click": ("at",),
    "impression": ("at", "viewed_at"),
    "reaction": ("at",),
    "read_story": ("at",),
    "mute_rule": ("at",),
    "view_round": ("at",),
    "round_upload": ("bound_at",),
    "drawn_report": ("drawn_at",),
}
"""Time columns, by table, that may not be later than the file: a click dated next year would count as the newest, and
as current reading, for a year."""
SEARCH_MOMENTS: Mapping[str, tuple[str, ...]] = {
    "stance": ("at",),
    "search": ("saved_at", "looked_at"),
    "opened": ("at",),
}


def _hash_or_none(text: str) -> str:
    if text and not (len(text) == 64 and set(text) <= set("0123456789abcdef")):
        raise ValueError("must be a SHA-256 in hex, or empty")
    return text


def _float32(text: str) -> bytes:
    try:
        content = b64decode(text, validate=True)
    except NotBase64 as broken:
        raise ValueError(f"not base64: {broken}") from broken
    if not 0 < len(content) <= VECTOR_BYTES_LIMIT or len(content) % 4:
        raise ValueError(f"must be 4 to {VECTOR_BYTES_LIMIT} bytes of float32, got {len(content)}")
    if not np.isfinite(np.frombuffer(content, dtype="<f4")).all():
        raise ValueError("has values that are not finite")
    return content


Us = Annotated[StrictInt, Field(ge=0, le=LATEST_US)]
Count = Annotated[StrictInt, Field(ge=0, le=LATEST_US)]
Number = StrictFloat | StrictInt
Price = Annotated[Number, Field(ge=0)]
Name = Annotated[StrictStr, StringConstraints(max_length=200)]
LongText = Annotated[StrictStr, StringConstraints(max_length=200_000)]
HashOrNone = Annotated[StrictStr, AfterValidator(_hash_or_none)]
StanceName = Annotated[StrictStr, StringConstraints(min_length=1, max_length=120)]
SearchWords = Annotated[StrictStr, StringConstraints(min_length=1, max_length=WORDS_LIMIT_CHARS)]


class MovedRow(BaseModel):
    """One row, with exactly its columns."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class MovedNews(MovedRow):
    """A card. words is its searchable text, which the importing device computes again."""

    id: NewsId
    card: NewsCard
    words: LongText
    shelved_at: Us

    @model_validator(mode="after")
    def _one_news(self) -> Self:
        if self.card.id != self.id:
            raise ValueError(f"the card has the id {self.card.id}, the row {self.id}")
        return self


class MovedBody(MovedRow):
    """The text of one article."""

    news_id: NewsId
    body: LongText


class MovedVector(MovedRow):
    """A vector by an encoder; float32 as base64."""

    news_id: NewsId
    encoder: Name
    float32: Annotated[StrictStr, StringConstraints(max_length=2 * VECTOR_BYTES_LIMIT)]

    @model_validator(mode="after")
    def _numbers(self) -> Self:
        _float32(self.float32)
        return self

    @property
    def content(self) -> bytes:
        """The numbers, least significant byte first."""
        return _float32(self.float32)


class MovedClick(MovedRow):
    """An article that was opened; feed_id '': outside of any feed."""

    id: Count
    news_id: NewsId
    feed_id: Name
    at: Us


class MovedImpression(MovedRow):
    """An article that was served in a feed."""

    feed_id: Name
    news_id: NewsId
    position: Count
    at: Us
    popularity: Number | None
    viewed_at: Us | None


class MovedReaction(MovedRow):
    """Like, less or save."""

    news_id: NewsId
    kind: Literal["like", "less", "save"]
    at: Us


class MovedRead(MovedRow):
    """A story that counts as read; batch 0: it was opened."""

    news_id: NewsId
    at: Us
    batch: Count


class MovedRule(MovedRow):
    """A mute rule."""

    id: Count
    field: Literal["anywhere", "title", "text", "publisher", "address"]
    kind: Literal["word", "phrase", "regex"]
    pattern: Annotated[StrictStr, StringConstraints(min_length=1, max_length=200)]
    at: Us


class MovedCharge(MovedRow):
    """A charge of the ledger."""

    id: Count
    at: Us
    channel: Literal["reports", "training", "counts"]
    mechanism: Name
    parameters: dict[Name, Price] = Field(max_length=50)
    epsilon: Price
    delta: Annotated[Number, Field(ge=0, le=1)]
    payload_sha256: HashOrNone
    subject: Name


class MovedViewRound(MovedRow):
    """What a view contributed to a round."""

    round: Name
    view: Name
    clip: Number
    sigma: Annotated[Number, Field(gt=0)]
    at: Us


class MovedMeaning(MovedRow):
    """A codebook under which a report was drawn."""

    meaning: Name
    first_at: Us


class MovedUpload(MovedRow):
    """The single upload of a round."""

    round: Name
    payload_sha256: HashOrNone
    bound_at: Us


class MovedDrawing(MovedRow):
    """The stored draw for a true value."""

    mechanism: Name
    book: Name
    value: StrictInt = Field(ge=-LATEST_US, le=LATEST_US)
    report: dict[str, Any]
    drawn_at: Us

    @model_validator(mode="after")
    def _a_report(self) -> Self:
        _REPORT.validate_python(self.report)
        return self


class MovedInterest(MovedRow):
    """The reader's setting for an interest."""

    id: Count
    name: Annotated[StrictStr, StringConstraints(max_length=60)] | None
    muted: StrictBool
    news: tuple[NewsId, ...]


class MovedChoices(BaseModel):
    """The preferences that are moved; None: not chosen."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    privacy: dict[str, Any] | None = None
    chosen_sections: Annotated[tuple[Name, ...], Field(max_length=200)] | None = None
    training_paused: StrictBool | None = None
    pictures_hidden: StrictBool | None = None
    interests: tuple[MovedInterest, ...] = ()


class MovedPreference(MovedRow):
    """A preference by its name."""

    name: Name
    value: Any


class MovedStance(MovedRow):
    """A name that the reader follows or blocks."""

    kind: Literal["topic", "section", "publisher"]
    name: StanceName
    stance: Literal["follow", "block"]
    at: Us


class MovedSearch(MovedRow):
    """A saved search."""

    id: Count
    words: SearchWords
    saved_at: Us
    looked_at: Us

    @model_validator(mode="after")
    def _plain(self) -> Self:
        if self.words != " ".join(self.words.split()):
            raise ValueError("words must have single spaces between them, and none around them")
        return self


class MovedOpening(MovedRow):
    """An article that was opened from the results of a search."""

    news_id: NewsId
    at: Us


class MovedTables(BaseModel):
    """The tables that are moved; others are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    news: tuple[MovedNews, ...]
    body: tuple[MovedBody, ...]
    vector: tuple[MovedVector, ...]
    click: tuple[MovedClick, ...]
    impression: tuple[MovedImpression, ...]
    reaction: tuple[MovedReaction, ...]
    read_story: tuple[MovedRead, ...] = ()
    mute_rule: tuple[MovedRule, ...] = ()
    charge: Annotated[tuple[MovedCharge, ...], Field(max_length=CHARGES_LIMIT)]
    view_round: tuple[MovedViewRound, ...]
    report_meaning: tuple[MovedMeaning, ...]
    round_upload: tuple[MovedUpload, ...]
    drawn_report: tuple[MovedDrawing, ...]
    preference: tuple[MovedPreference, ...]


class MovedSearchTables(BaseModel):
    """The tables of the second view's store."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    stance: tuple[MovedStance, ...] = ()
    search: tuple[MovedSearch, ...] = ()
    opened: tuple[MovedOpening, ...] = ()


class MovedViews(BaseModel):
    """The stores of other views that exist."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    searches: MovedSearchTables = MovedSearchTables()


class ReaderExport(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    version: Literal[2]
    exported_at: AwareDatetime
    tables: MovedTables
    views: MovedViews

    @property
    def choices(self) -> MovedChoices:
        """The preferences that are moved. Raises ValidationError."""
        return MovedChoices.model_validate({one.name: one.value for one in self.tables.preference})

    @property
    def touched(self) -> set[str]:
        """Ids of articles that the reader opened or reacted to."""
        tables = self.tables
        read = {one.news_id for one in tables.click} | {one.news_id for one in self.views.searches.opened}
        return read | {one.news_id for one in tables.reaction}


def read_export(content: bytes, now: datetime) -> ReaderExport:
    """Parse and check an export. Raises ExportRefused."""
    if len(content) > LIMIT_BYTES:
        raise ExportRefused(f"the file has more than {LIMIT_BYTES // 2**20} MiB, which is the limit")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as broken:
        raise ExportRefused("the file is not an Ownfeed export (it is not JSON)") from broken
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise ExportRefused(
            f"version: must be {VERSION}; the file is from another version of Ownfeed, or not an Ownfeed export"
        )
    try:
        exported = ReaderExport.model_validate(document)
    except ValidationError as wrong:
        raise ExportRefused(_first(wrong)) from wrong
    try:
        exported.choices  # noqa: B018
    except ValidationError as wrong:
        raise ExportRefused(_first(wrong, ("preference",))) from wrong
    if exported.exported_at > now + LEEWAY:
        raise ExportRefused("exported_at: is later than this device's clock says; set the clock first")
    _check_moments(exported)
    return exported


def _check_moments(exported: ReaderExport) -> None:
    """Raise ExportRefused for a row dated later than the file itself."""
    latest = to_us(exported.exported_at + LEEWAY)
    for where, tables, moments in (
        ("tables", exported.tables, MOMENTS),
        ("views.searches", exported.views.searches, SEARCH_MOMENTS),
    ):
        for table, columns in moments.items():
            for place, row in enumerate(getattr(tables, table)):
                for column in columns:
                    if (getattr(row, column) or 0) > latest:
                        raise ExportRefused(
                            f"{where}.{table}.{place}.{column}: is later than exported_at, by more than "
                            f"the {LEEWAY // timedelta(minutes=1)} minutes by which two clocks may differ"
                        )


def _first(wrong: ValidationError, before: Iterable[str] = ()) -> str:
    found = wrong.errors()[0]
    return f"{'.'.join(map(str, (*before, *found['loc'])))}: {found['msg'].removeprefix('Value error, ')}"


class MovedSearches:
    """Rows waiting to be moved into the second view's store.

    They are kept by table in the preference MOVED_SEARCHES. Two files can't be written in one transaction, so the first
    one records what must still be written to the second.

    Formal guarantees: what was put in the transaction of `database` is in `searches` once `finish` has run, even if the
    process ended in between; what was rolled back never gets there; afterwards nothing of it stays in `database`; and
    copies and exports of `database` made before contain nothing of it.
    """

    def __init__(self, database: Database, searches: LazyDatabase) -> None:
        self._database, self._searches = database, searches
        self._preferences = Preferences(database)

    def put(self, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Keep rows of `stance`, `search` and `opened` until `finish` moves them.

        Call it in the transaction of the import, after a `finish`: rows that were still waiting would be lost.
        """
        if any(rows.values()):
            self._preferences.set(MOVED_SEARCHES, rows)

    def finish(self) -> None:
        """Write the waiting rows, if any; if there are two settings for a name, the later one wins.

        Call it after `put` and at start.
        """
        rows = self._preferences.get(MOVED_SEARCHES)
        if rows is None:
            return
        with self._searches.transaction():
            for one in rows["stance"]:
                self._searches.write(
                    """INSERT INTO stance (kind, name, stance, at) VALUES (?, ?, ?, ?) ON CONFLICT (kind, name)
                       DO UPDATE SET stance = excluded.stance, at = excluded.at WHERE excluded.at > stance.at""",
                    (one["kind"], one["name"], one["stance"], one["at"]),
                )
            for one in rows["search"]:
                self._searches.write(
                    """INSERT INTO search (words, saved_at, looked_at) VALUES (?, ?, ?) ON CONFLICT (words)
                       DO UPDATE SET looked_at = max(search.looked_at, excluded.looked_at)""",
                    (one["words"], one["saved_at"], one["looked_at"]),
                )
            for one in rows["opened"]:
                self._searches.write(
                    "INSERT INTO opened (news_id, at) VALUES (?, ?) ON CONFLICT DO NOTHING", (one["news_id"], one["at"])
                )
            self._searches.write(FORGET_UNFOLLOWED)
        self._preferences.set(MOVED_SEARCHES, None)
        self._database.fold()
