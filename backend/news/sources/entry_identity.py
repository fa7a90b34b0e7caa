"""Identifies a feed's entry: by the feed and its guid; without a guid, by its link, or by its text.

A guid or link that several different entries share doesn't identify any. Which ones are shared depends on the entries
that a feed lists at the moment, so an id that the pool has already is preferred to a new one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple
from urllib.parse import urlsplit

KnownTitles = Callable[[Collection[str]], Mapping[str, str]]
"""Returns the titles of those ids that the pool has."""
SHARED_BY = 3
"""At least this many entries with one guid, each with its own link and title, are different entries; two are one entry
listed twice."""


class EntryNames(NamedTuple):
    """What identifies an entry: its guid and canonical link ('' if missing), its title, and its whole text."""

    guid: str
    link: str
    title: str
    text: str


def entry_ids(
    feed: str, entries: Sequence[EntryNames], *, site: str = "", known: KnownTitles = lambda ids: {}
) -> list[str]:
    """The ids of a document's entries, in order; versions of the same entry have the same id.

    feed: the feed's own identity, such as `FeedRow.key`. site: the link of the feed's site, which identifies no entry.
    """
    guids, links = _identifying_guids(entries), _identifying_links(entries, site)
    wanted: list[tuple[str, list[str]]] = []
    for entry in entries:
        by_guid = _digest(feed, "guid", entry.guid)
        by_link = _digest(feed, "link", entry.link.partition("://")[2])
        by_both = _digest(feed, "link and title", f"{entry.link}\n{entry.title or entry.text}")
        by_text = _digest(feed, "text", f"{entry.title}\n{entry.text}")
        if entry.guid in guids:
            chosen, others = by_guid, [by_link] if entry.link in links else []
        elif entry.link in links:
            chosen, others = by_link, [by_both]
        elif entry.link:
            chosen, others = by_both, [by_link]
        else:
            chosen, others = by_text, []
        wanted.append((chosen, others))
    titles = known({one for chosen, others in wanted for one in (chosen, *others)})
    found = []
    for entry, (chosen, others) in zip(entries, wanted, strict=True):
        if chosen not in titles:
            chosen = next((one for one in others if titles.get(one, "") == entry.title != ""), chosen)
        found.append(chosen)
    return found


def _identifying_guids(entries: Sequence[EntryNames]) -> frozenset[str]:
    groups: dict[str, list[EntryNames]] = defaultdict(list)
    for entry in entries:
        groups[entry.guid].append(entry)
    return frozenset(guid for guid, group in groups.items() if guid and not _are_different(group, len(entries)))


def _are_different(group: Sequence[EntryNames], entries: int) -> bool:
    """Whether entries that share a guid are different ones, not one entry that the document lists twice."""
    links, titles = {entry.link for entry in group}, {entry.title or entry.text for entry in group}
    if len(group) == 1 or len(titles) == 1:
        return False
    if len(group) == entries:
        return len(links) > 1 or len(group) >= SHARED_BY or not links - {""}
    return len(group) >= SHARED_BY and len(links) == len(titles) == len(group)


def _identifying_links(entries: Sequence[EntryNames], site: str) -> frozenset[str]:
    titles: dict[str, Counter[str]] = defaultdict(Counter)
    for entry in entries:
        if entry.link:
            titles[entry.link][entry.title or entry.text] += 1
    return frozenset(link for link, shared in titles.items() if len(shared) == 1 and not _is_a_site(link, site))


def _is_a_site(link: str, site: str) -> bool:
    parts = urlsplit(link)
    return link == site or (parts.path in ("", "/") and not parts.query and not parts.fragment)


def _digest(feed: str, kind: str, value: str) -> str:
    return "e" + blake2b(f"{feed}\n{kind}\n{value}".encode(), digest_size=12).hexdigest()
