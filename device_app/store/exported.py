"""What another device of the same reader has exported, read and checked: the rows of it that a device takes over."""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterable, Mapping
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
    ValidationError,
    model_validator,
)

from device_app.errors import ExportRefused
from device_app.store.rows import to_us
from device_app.store.searches import WORDS_LIMIT_CHARS
from device_app.wire.ids import NewsId
from device_app.wire.news import NewsCard
from device_app.wire.recall import CodeReport

VERSION = 2
"""Raised when an export changes so that an older device can't take it over."""
LIMIT_BYTES = 128 * 2**20
LEEWAY = timedelta(minutes=10)
"""By so much the clocks of two devices may differ."""
LATEST_US = 2**53 - 1
"""The last moment that both kinds of device can tell, in the year 2255."""
CHARGES_LIMIT = 50_000
"""A dozen a day for ten years."""
VECTOR_BYTES_LIMIT = 4 * 4_096
MOMENTS: Mapping[str, tuple[str, ...]] = {
    "charge": ("at",),
    "report_meaning": ("first_at",),
    "click": ("at",),
    "impression": ("at", "viewed_at"),
    "reaction": ("at",),
    "view_round": ("at",),
    "round_upload": ("bound_at",),
    "drawn_report": ("drawn_at",),
}
"""Columns, by table, that no row may have of later than the file: a click of next year is the newest for a year, and as
long says that its reader reads just now."""
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
    """One row: its columns, and no others."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class MovedNews(MovedRow):
    """A card. words: what of it is searched, which is made anew."""

    id: NewsId
    card: NewsCard
    words: LongText
    shelved_at: Us

    @model_validator(mode="after")
    def _one_news(self) -> Self:
        if self.card.id != self.id:
            raise ValueError(f"the card is of {self.card.id}, the row of {self.id}")
        return self


class MovedBody(MovedRow):
    """The text of one piece of news."""

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
    """A story that was opened; feed_id '': outside of any feed."""

    id: Count
    news_id: NewsId
    feed_id: Name
    at: Us


class MovedImpression(MovedRow):
    """A story that was laid out in a feed."""

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
    """What a view handed over in a round."""

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
    """The one upload of a round."""

    round: Name
    payload_sha256: HashOrNone
    bound_at: Us


class MovedDrawing(MovedRow):
    """What was drawn once for a true value."""

    mechanism: Name
    book: Name
    value: StrictInt = Field(ge=-LATEST_US, le=LATEST_US)
    report: dict[str, Any]
    drawn_at: Us

    @model_validator(mode="after")
    def _a_report(self) -> Self:
        if self.mechanism == "code":
            CodeReport.model_validate(self.report)
        return self


class MovedInterest(MovedRow):
    """What the reader said of an interest."""

    id: Count
    name: Annotated[StrictStr, StringConstraints(max_length=60)] | None
    muted: StrictBool
    news: tuple[NewsId, ...]


class MovedChoices(BaseModel):
    """The preferences that go along; None: it was not chosen."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    privacy: dict[str, Any] | None = None
    chosen_sections: Annotated[tuple[Name, ...], Field(max_length=200)] | None = None
    training_paused: StrictBool | None = None
    pictures_hidden: StrictBool | None = None
    interests: tuple[MovedInterest, ...] = ()


class MovedPreference(MovedRow):
    """A choice by its name."""

    name: Name
    value: Any


class MovedStance(MovedRow):
    """What is followed or blocked."""

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
    """A story that was opened from the results of a search."""

    news_id: NewsId
    at: Us


class MovedTables(BaseModel):
    """The tables that go along; others are not looked at."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    news: tuple[MovedNews, ...]
    body: tuple[MovedBody, ...]
    vector: tuple[MovedVector, ...]
    click: tuple[MovedClick, ...]
    impression: tuple[MovedImpression, ...]
    reaction: tuple[MovedReaction, ...]
    charge: Annotated[tuple[MovedCharge, ...], Field(max_length=CHARGES_LIMIT)]
    view_round: tuple[MovedViewRound, ...]
    report_meaning: tuple[MovedMeaning, ...]
    round_upload: tuple[MovedUpload, ...]
    drawn_report: tuple[MovedDrawing, ...]
    preference: tuple[MovedPreference, ...]


class MovedSearchTables(BaseModel):
    """Those of the second view's store."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    stance: tuple[MovedStance, ...] = ()
    search: tuple[MovedSearch, ...] = ()
    opened: tuple[MovedOpening, ...] = ()


class MovedViews(BaseModel):
    """The stores of other views, as far as there are any."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    searches: MovedSearchTables = MovedSearchTables()


class ReaderExport(BaseModel):
    """One export."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    version: Literal[2]
    exported_at: AwareDatetime
    tables: MovedTables
    views: MovedViews

    @property
    def choices(self) -> MovedChoices:
        """The preferences that go along. Raises ValidationError."""
        return MovedChoices.model_validate({one.name: one.value for one in self.tables.preference})

    @property
    def touched(self) -> set[str]:
        """News that the reader opened or reacted to."""
        tables = self.tables
        read = {one.news_id for one in tables.click} | {one.news_id for one in self.views.searches.opened}
        return read | {one.news_id for one in tables.reaction}


def read_export(content: bytes, now: datetime) -> ReaderExport:
    """Raises ExportRefused."""
    if len(content) > LIMIT_BYTES:
        raise ExportRefused(f"the file has more than {LIMIT_BYTES // 2**20} MiB, which is the limit")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as broken:
        raise ExportRefused("the file is no export of Ownfeed (it is not JSON)") from broken
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise ExportRefused(
            f"version: must be {VERSION}; the file is of another version of Ownfeed, or none of its exports"
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
    """Raises ExportRefused for a row of later than the file itself."""
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
