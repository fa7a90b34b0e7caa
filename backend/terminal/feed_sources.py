"""The feeds that a command line names: OPML files, and addresses for `backend.news.discovery`."""

import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import typer

from backend.news.discovery import DiscoveredFeed, SeveralFeeds, discover_or_take
from backend.news.errors import SourceError
from backend.news.feed_addresses import completed, host_of
from backend.news.opml import RefusedSubscription, Subscription, read_opml
from backend.news.public_addresses import IpNetwork
from backend.news.sources.download import Document, fetch
from backend.terminal.options import says
from protocol.text_catalogue import TextCatalogue

WORDS = TextCatalogue("backend.terminal", "words.toml")
HOSTS_AT_ONCE = 8


@dataclass
class NamedFeeds:
    """The feeds that sources name, what can't be followed, and the choices that a person has to make."""

    feeds: list[Subscription] = field(default_factory=list)
    refused: list[RefusedSubscription] = field(default_factory=list)
    choices: list[SeveralFeeds] = field(default_factory=list)
    repeated: int = 0

    def add(self, feeds: Sequence[Subscription]) -> None:
        """Add feeds that aren't among them yet."""
        known = {one.url for one in self.feeds}
        self.feeds += [one for one in feeds if one.url not in known]


def named_feeds(
    sources: Sequence[str],
    *,
    known: Sequence[str] = (),
    allowed: Sequence[IpNetwork] = (),
    ask: bool | None = None,
    transport: httpx.BaseTransport | None = None,
) -> NamedFeeds:
    """The feeds that sources name, in order, each address once.

    A complete address that doesn't answer is taken as it is, with a message, since its server may be down. known:
    addresses of followed feeds, which aren't requested again. allowed, transport: as in `fetch`. ask: whether a person
    can choose among several feeds; by default if this is a terminal. Raises OpmlRefused for a file that isn't a list of
    feeds.
    """
    found = NamedFeeds()
    unknown = [source for source in sources if not _is_list(source) and completed(source) not in known]
    discovered = _discovered(unknown, allowed, transport)
    for source in sources:
        if _is_list(source):
            listed = read_opml(Path(source))
            found.add(listed.feeds)
            found.refused += listed.refused
            found.repeated += listed.repeated
            continue
        address = completed(source)
        if address in known:
            found.add([Subscription(address)])
            continue
        feeds = discovered[source]
        try:
            if isinstance(feeds, SourceError):
                raise feeds
            for each in feeds:
                if each.unread:
                    says.print(WORDS("taken_unread", url=each.url, why=each.unread), markup=False)
            chosen = feeds if len(feeds) == 1 else _chosen(source, feeds, sys.stdin.isatty() if ask is None else ask)
            found.add([Subscription(each.url) for each in chosen])
        except SeveralFeeds as several:
            found.choices.append(several)
        except SourceError as refused:
            found.refused.append(RefusedSubscription("address", source, refused.detail))
    return found


def _is_list(source: str) -> bool:
    return "://" not in source and (Path(source).is_file() or source.lower().endswith((".opml", ".xml")))


def _discovered(
    sources: Sequence[str], allowed: Sequence[IpNetwork], transport: httpx.BaseTransport | None
) -> dict[str, list[DiscoveredFeed] | SourceError]:
    """The feeds behind each source, or why there are none.

    Hosts are asked side by side, and each for one source at a time.
    """
    stopped = threading.Event()

    def get(url: str) -> Document:
        document = fetch(url, allowed=allowed, transport=transport, cancelled=stopped.is_set)
        assert isinstance(document, Document)  # only a conditional GET returns anything else
        return document

    found: dict[str, list[DiscoveredFeed] | SourceError] = {}

    def discover_all(of_a_host: Sequence[str]) -> None:
        for source in of_a_host:
            try:
                found[source] = discover_or_take(source, get, titled=False)
            except SourceError as refused:
                found[source] = refused

    hosts: dict[str, list[str]] = {}
    for source in dict.fromkeys(sources):
        hosts.setdefault(host_of(completed(source)), []).append(source)
    with ThreadPoolExecutor(HOSTS_AT_ONCE, thread_name_prefix="discovery") as pool:
        try:
            list(pool.map(discover_all, hosts.values()))
        except BaseException:
            stopped.set()  # Ctrl-C doesn't wait for slow servers
            pool.shutdown(cancel_futures=True)
            raise
    return found


def _chosen(source: str, feeds: Sequence[DiscoveredFeed], ask: bool) -> list[DiscoveredFeed]:
    """The feeds that a person chooses. Raises SeveralFeeds without a terminal to ask on."""
    if not ask:
        raise SeveralFeeds(source, feeds)
    says.print(WORDS("several", source=source), markup=False)
    for number, each in enumerate(feeds, 1):
        says.print(f"  {number}. {described(each)}", markup=False)
    while True:
        choice = typer.prompt(WORDS("which"), default="1", err=True)
        if choice.strip().lower() == WORDS("all"):
            return list(feeds)
        numbers = [int(each) for each in choice.replace(",", " ").split() if each.isascii() and each.isdigit()]
        if numbers and all(0 < number <= len(feeds) for number in numbers):
            return [feeds[number - 1] for number in dict.fromkeys(numbers)]


def described(feed: DiscoveredFeed) -> str:
    """Its title and address, and its newest entries with their days."""
    newest = "".join(f"\n       {at:%Y-%m-%d}  {title}" if at else f"\n       {title}" for title, at in feed.newest)
    return f"{feed.title}  {feed.url}{newest}"


def print_refused(found: NamedFeeds) -> bool:
    """Print what wasn't followed and why, on standard error; return whether there was any."""
    for refused in found.refused:
        says.print(WORDS("not_followed", what=refused), markup=False, style="red")
    for several in found.choices:
        says.print(WORDS("choose", source=several.detail), markup=False, style="red")
        for each in several.found:
            says.print(f"  {described(each)}", markup=False)
    if found.repeated:
        says.print(WORDS("repeated", count=found.repeated), markup=False)
    return bool(found.refused or found.choices)
