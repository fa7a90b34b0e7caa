"""The reader's own feeds behind a stand-in device: its publishers in two folders, one feed with a trouble."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from device_app.feed.own_feeds import PAGE, FeedLine, FeedScope, Folder, Overview, StoryPage
from device_app.reading.mute_patterns import matcher
from device_app.store.articles import Place
from device_app.store.mute_rules import MuteRule, RuleField, RuleKind
from device_app.store.rows import to_us
from device_app.sync.own_feeds import KnownFeed, OwnFeedsSync
from protocol.own_feeds import FeedListing, OwnFeed, RemovedFeed

if TYPE_CHECKING:
    from tests.doubles.pages_device import PagesDevice

MANAGED = FeedListing(
    feeds=(
        OwnFeed(key="https://courant.example/feed", url="https://courant.example/feed", publisher="Harbour Courant",
                site="https://courant.example/", folder=("World",), status="well", taken=40, refused=0,
                last_answer_at=datetime(2026, 11, 27, 8, tzinfo=UTC)),
        OwnFeed(key="https://dull.example/feed", url="https://dull.example/feed", title="A feed with troubles",
                folder=("World", "Near"), status="failing", problem="Its server answers with status 500.", refused=3,
                reasons=("has no title, text or link (3 of them)",), pictures=True, full_text=True),
    ),
    removed=(
        RemovedFeed(key="https://gone.example/feed", shown="Gone", removed_at=datetime(2026, 11, 20, tzinfo=UTC)),
    ),
    sections=("science", "sport"),
)  # fmt: skip
TROUBLE = "Answered on Friday; none of its 10 entries could be used: they have neither a title nor a text."


def managed_feeds() -> OwnFeedsSync:
    """What the device knows of its reader's server, which has answered once and is asked nothing."""
    own = OwnFeedsSync(None, None, lambda: datetime.now(UTC))  # type: ignore[arg-type]
    own.listed = MANAGED
    return own


class PagesOwnFeeds:
    """Implements `device_app.feed.own_feeds.OwnFeeds` over the stand-in's cards and marks."""

    def __init__(self, device: PagesDevice) -> None:
        self._device, self._only = device, False

    def overview(self) -> Overview:
        """Return every publisher: every third in no folder, the others in two."""
        folders: dict[str, list[FeedLine]] = {"": [], "World": [], "Science & nature, far and near": []}
        for line in self._lines():
            folders[line.feed.folder].append(line)
        return Overview(tuple(Folder(name, tuple(lines)) for name, lines in folders.items() if lines), self._only)

    def only_unread(self) -> bool:
        return self._only

    def show_only_unread(self, only: bool) -> None:
        self._only = only

    def page(
        self, which: FeedScope, after: Place | None = None, since: datetime | None = None, *, hidden: bool = False
    ) -> StoryPage:
        """Return the cards of the publishers, newest first."""
        lines = [
            line
            for line in self._lines()
            if which.feed in (None, line.feed.publisher) and which.folder in (None, line.feed.folder)
        ]
        publishers = {line.feed.publisher for line in lines}
        listed = sorted(
            (
                Place(to_us(card.published_at), card.id)
                for card in self._device.cards
                if card.publisher in publishers and (since is None or card.id not in self._device.read_news())
            ),
            reverse=True,
        )
        rest = [place for place in listed if after is None or place < after]
        return StoryPage(
            tuple(rest[:PAGE]),
            sum(line.stories for line in lines),
            sum(line.unread for line in lines),
            0 if hidden else 3,
            lines[0] if which.feed is not None and lines else None,
            {line.feed.publisher: line.feed.title for line in self._lines()},
            next(iter(listed), None),
            rest[PAGE - 1] if len(rest) > PAGE else None,
        )

    def mark_all(
        self, which: FeedScope, *, upto: Place | None = None, above: Place | None = None, below: Place | None = None
    ) -> int:
        """Mark the stories of the list."""
        found = [
            place.id
            for place in self.page(which).places
            if (upto is None or place <= upto) and (above is None or place > above) and (below is None or place < below)
        ]
        return self._device.mark(found)

    def _lines(self) -> list[FeedLine]:
        names = sorted({card.publisher for card in self._device.cards})
        lines = []
        for at, name in enumerate(names):
            ids = {card.id for card in self._device.cards if card.publisher == name}
            folder = ("", "World", "Science & nature, far and near")[at % 3]
            trouble = at == 1
            feed = KnownFeed(
                name, name, folder, "https://example.org/", TROUBLE if trouble else "Read 10 minutes ago.",
                "bad" if trouble else "good",
            )  # fmt: skip
            lines.append(FeedLine(feed, len(ids), sum(one not in self._device.read_news() for one in ids)))
        return lines


class PagesMuting:
    """Implements `device_app.reading.muting.Muting` in memory; each rule hides as many stories as its number."""

    def __init__(self) -> None:
        self._rules = [MuteRule(1, "anywhere", "word", "lottery"), MuteRule(2, "title", "regex", "^live: .{2,5}$")]

    def rules(self) -> list[tuple[MuteRule, int]]:
        return [(rule, rule.id - 1) for rule in self._rules]

    def add(self, field: RuleField, kind: RuleKind, pattern: str) -> None:
        """Store a rule; raises what the real one raises."""
        matcher(kind, pattern)
        self._rules.append(MuteRule(max((rule.id for rule in self._rules), default=0) + 1, field, kind, pattern))

    def remove(self, rule_id: int) -> MuteRule | None:
        """Drop a rule and return it."""
        gone = next((rule for rule in self._rules if rule.id == rule_id), None)
        self._rules = [rule for rule in self._rules if rule.id != rule_id]
        return gone
