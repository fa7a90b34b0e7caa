"""Finds the feeds behind what a person pastes: a feed, a site, a host, a channel, a profile, @user@host or r/name.

Only `discover` sends requests, through the download function that its caller passes.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import parse_qs, quote, urljoin, urlsplit, urlunsplit

from backend.news.errors import FeedRefused, SourceError, SourceMalformed, SourceUnreachable
from backend.news.feed_addresses import checked_url, completed
from backend.news.plain_text import one_line, shortened
from backend.news.sources.download import Document
from backend.news.sources.feed_parser import FeedUnreadable, ParsedFeed, looks_like_feed, parse
from backend.news.sources.page_links import page_links

USUAL_PATHS = ("feed", "rss", "atom.xml", "feed.xml", "index.xml", "rss.xml", "feed.json")
REQUESTS_LIMIT = 20
CHOICES_LIMIT = 8
NEWEST_SHOWN = 3
TITLE_CHARS = 120
_SUBREDDIT = re.compile(r"^/?(r|u|user)/([\w+.-]+)/?$", re.IGNORECASE)
_HANDLE = re.compile(r"^@?([\w.-]+)@([\w-]+(?:\.[\w-]+)+)$")
_FEED_RELATION, _PROFILE_RELATION = (
    "http://schemas.google.com/g/2010#updates-from",
    "http://webfinger.net/rel/profile-page",
)
_GITHUB_PAGES = frozenset(
    {"about", "explore", "features", "login", "marketplace", "orgs", "search", "settings", "topics"}
)

Get = Callable[[str], Document]


class NoFeedFound(SourceError):
    """Nothing that was pasted leads to a feed."""

    code, status, title = "no-feed-found", 422, "No feed was found"

    def __init__(self, pasted: str) -> None:
        super().__init__(
            f"No feed was found at {shortened(pasted, TITLE_CHARS)}: the page names none, and there is none at the "
            "usual addresses.",
            field="url",
        )


@dataclass(frozen=True)
class DiscoveredFeed:
    """A feed that answered: its address, its title and site, and its newest entries with their dates.

    unread: why the address was accepted although its server didn't answer; '' if it did.
    """

    url: str
    title: str
    site: str = ""
    newest: tuple[tuple[str, datetime | None], ...] = ()
    unread: str = ""

    def to_json(self) -> dict[str, object]:
        """Plain JSON values."""
        newest = [{"title": title, "published": at and at.isoformat()} for title, at in self.newest]
        return {"url": self.url, "title": self.title, "site": self.site, "newest": newest}


class SeveralFeeds(SourceError):
    """What was pasted leads to several feeds; a person has to choose one."""

    code, status, title = "several-feeds", 409, "There are several feeds"

    def __init__(self, pasted: str, found: Sequence[DiscoveredFeed]) -> None:
        listed = "; ".join(f"{each.url} ({each.title})" for each in found)
        super().__init__(
            f"{shortened(pasted, TITLE_CHARS)} has several feeds. Name one of them: {listed}.", field="url"
        )
        self.found = list(found)


def guesses(pasted: str) -> list[str]:
    """The addresses to try for what was pasted, the likeliest first; [] if it can't be a web address."""
    pasted = pasted.strip()
    if named := _SUBREDDIT.match(pasted):
        kind = "user" if named[1].lower() in ("u", "user") else "r"
        return [f"https://www.reddit.com/{kind}/{named[2]}/.rss"]
    if named := _HANDLE.match(pasted):
        return [f"https://{named[2]}/@{named[1]}.rss", f"https://{named[2]}/@{named[1]}"]
    address = completed(pasted)
    if not address.startswith(("http://", "https://")):
        return []
    known = _of_a_known_site(address)
    # A bare host: try https first.
    secure = (
        [f"https://{address.removeprefix('http://')}"] if "://" not in pasted and address.startswith("http:") else []
    )
    return list(dict.fromkeys([*known, *secure, address]))


def _of_a_known_site(address: str) -> list[str]:
    """The feed addresses of well-known sites whose pages don't always name their feeds."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return []
    host = (parts.hostname or "").removeprefix("www.").removeprefix("m.").removeprefix("old.")
    path = [part for part in parts.path.split("/") if part]
    if host == "youtube.com":
        return _of_youtube(path, parse_qs(parts.query))
    if host == "reddit.com" and len(path) >= 2 and path[0] in ("r", "user", "u") and not path[-1].endswith(".rss"):
        kept = path[:3] if len(path) > 2 and path[2] in ("new", "top", "hot", "rising", "m") else path[:2]
        return [urlunsplit(("https", "www.reddit.com", f"/{'/'.join(kept)}/.rss", parts.query, ""))]
    if host == "github.com" and path and path[0] not in _GITHUB_PAGES and not parts.path.endswith(".atom"):
        if len(path) == 1:
            return [f"https://github.com/{path[0]}.atom"]
        repository = f"https://github.com/{path[0]}/{path[1].removesuffix('.git')}"
        if len(path) >= 3 and path[2] in ("tags", "commits", "releases"):
            return [f"{repository}/{'/'.join(path[2:4] if path[2] == 'commits' else path[2:3])}.atom"]
        return [f"{repository}/releases.atom"]
    if host.endswith(".substack.com") and path[:1] != ["feed"]:
        return [f"https://{host}/feed"]
    if host == "medium.com" and path and path[0] != "feed":
        return [f"https://medium.com/feed/{'/'.join(path[: 2 if path[0] == 'tag' else 1])}"]
    if host.endswith(".medium.com") and path[:1] != ["feed"]:
        return [f"https://{host}/feed"]
    if len(path) == 1 and path[0].startswith("@") and not path[0].endswith((".rss", ".atom")):
        return [f"{parts.scheme}://{parts.netloc}/{path[0]}.rss"]  # Mastodon and similar software
    return []


def webfinger_address(pasted: str) -> str | None:
    """Return where the host of a pasted @user@host says that account is (RFC 7033); None for anything else.

    An account's host is often not the server of its posts: @ana@example.org may be at https://social.example.org/@ana.
    """
    named = _HANDLE.match(pasted.strip())
    account = named and quote(f"acct:{named[1]}@{named[2]}", safe="")
    return named and f"https://{named[2]}/.well-known/webfinger?resource={account}"


def addresses_in_webfinger(answer: bytes) -> list[str]:
    """The web addresses to try for an account, from a WebFinger answer: its feed, then those of its profile page."""
    try:
        links = json.loads(answer)["links"]
        named = [(link.get("rel"), link["href"]) for link in links if isinstance(link.get("href"), str)]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []
    feeds = [href for relation, href in named if relation == _FEED_RELATION]
    profiles = [href for relation, href in named if relation == _PROFILE_RELATION]
    return [address for href in (*feeds, *profiles) for address in guesses(href)]


def _of_youtube(path: list[str], query: dict[str, list[str]]) -> list[str]:
    feed = "https://www.youtube.com/feeds/videos.xml"
    if query.get("list"):
        return [f"{feed}?playlist_id={query['list'][0]}"]
    if len(path) >= 2 and path[0] == "channel":
        return [f"{feed}?channel_id={path[1]}"]
    if len(path) >= 2 and path[0] == "user":
        return [f"{feed}?user={path[1]}"]
    return []  # the page of a handle names its channel's feed


def usual_addresses(url: str) -> list[str]:
    """Common feed addresses of a site, below the page's path and below the host."""
    parts = urlsplit(url)
    root, last = f"{parts.scheme}://{parts.netloc}", parts.path.rpartition("/")[2]
    folder = parts.path.removesuffix(last) if "." in last else f"{parts.path.rstrip('/')}/"
    return list(dict.fromkeys(f"{root}{below}{path}" for below in (folder or "/", "/") for path in USUAL_PATHS))


def discover(pasted: str, get: Get, *, titled: bool = True) -> list[DiscoveredFeed]:
    """The feeds behind what was pasted: the one at that address, or those that its page names.

    get: downloads an address (`backend.news.sources.download.fetch`); called at most REQUESTS_LIMIT times. titled:
    False leaves out title and entries of a feed that is found without a choice, which saves parsing it. Raises
    NoFeedFound, or SourceError if no address could be read.
    """
    return _Search(pasted, get, titled).run()


def discover_or_take(pasted: str, get: Get, *, titled: bool = True) -> list[DiscoveredFeed]:
    """Like `discover`, but accepts a complete address whose server doesn't answer: it may be down temporarily."""
    try:
        return discover(pasted, get, titled=titled)
    except SourceUnreachable as silent:
        if "://" not in pasted:
            raise
        url = checked_url(completed(pasted))
        return [DiscoveredFeed(url, url, unread=silent.detail)]


class _Search:
    def __init__(self, pasted: str, get: Get, titled: bool) -> None:
        self._pasted, self._get, self._titled = pasted, get, titled
        self._responses: dict[str, DiscoveredFeed | Document | None] = {}
        self._failure: SourceError | None = None

    def run(self) -> list[DiscoveredFeed]:
        pages: list[Document] = []
        for url in dict.fromkeys([*self._named_by_host(), *guesses(self._pasted)]):
            if any(page.location == url.replace("http://", "https://", 1) for page in pages):
                continue  # already fetched over TLS
            answer = self._ask(url, titled=self._titled)
            if isinstance(answer, DiscoveredFeed):
                return [answer]
            if answer is not None:
                pages.append(answer)
        for page in pages:
            if found := self._named_by(page):
                return found
        if not pages and self._failure is not None:
            raise self._failure
        raise NoFeedFound(self._pasted)

    def _named_by_host(self) -> list[str]:
        """The addresses of a pasted account, as its host gives them; [] if it gives none."""
        address = webfinger_address(self._pasted)
        if address is None:
            return []
        try:
            return addresses_in_webfinger(self._get(checked_url(address)).data)
        except (SourceUnreachable, FeedRefused, SourceMalformed):
            return []  # the usual address may still exist

    def _named_by(self, page: Document) -> list[DiscoveredFeed]:
        links = page_links(page.data)
        base = urljoin(page.base, links.base)
        for declared in (True, False):
            found = self._feeds_at([urljoin(base, link.href) for link in links.links if link.declared == declared])
            if found:
                return found
        if links.canonical and (found := self._feeds_at(_of_a_known_site(urljoin(base, links.canonical)))):
            return found
        for url in usual_addresses(page.base):
            if found := self._feeds_at([url]):
                return found
        return []

    def _feeds_at(self, urls: Sequence[str]) -> list[DiscoveredFeed]:
        """The feeds among the addresses; of feeds with the same entries, only the first."""
        found: dict[object, DiscoveredFeed] = {}
        for url in dict.fromkeys(urls):
            if len(found) < CHOICES_LIMIT and isinstance(answer := self._ask(url), DiscoveredFeed):
                found.setdefault((answer.newest or answer.url), answer)
        return list(found.values())

    def _ask(self, url: str, *, titled: bool = True) -> DiscoveredFeed | Document | None:
        """The feed at an address, or its page; None if it can't be read."""
        if url in self._responses or len(self._responses) >= REQUESTS_LIMIT:
            return self._responses.get(url)
        self._responses[url] = None
        try:
            document = self._get(checked_url(url))
            self._responses[url] = document
            if not titled and looks_like_feed(document.data):
                at = document.moved_to or document.location
                self._responses[url] = DiscoveredFeed(at, at)
                return self._responses[url]
            parsed = parse(document.data, content_type=document.content_type, base=document.base)
            self._responses[url] = _found(document, parsed)
        except (SourceUnreachable, FeedRefused, SourceMalformed) as failed:
            self._failure = self._failure or failed
        except FeedUnreadable:
            pass  # a page; `run` follows its links
        return self._responses[url]


def _found(document: Document, parsed: ParsedFeed) -> DiscoveredFeed:
    title = shortened(one_line(parsed.head["title"]), TITLE_CHARS) or document.location
    entries = sorted((_entry(each) for each in parsed.entries), key=lambda each: each[1] or _OLDEST, reverse=True)
    url = document.moved_to or document.location
    return DiscoveredFeed(url, title, parsed.head["link"], tuple(entries[:NEWEST_SHOWN]))


_OLDEST = datetime(1, 1, 1, tzinfo=UTC)


def _entry(entry: dict[str, object]) -> tuple[str, datetime | None]:
    given = entry["published"]
    try:
        moment = datetime(*given, tzinfo=UTC) if given else None  # type: ignore[misc]
    except (ValueError, TypeError):  # the 31st of February, a leap second
        moment = None
    return shortened(str(entry["title"]), TITLE_CHARS), moment
