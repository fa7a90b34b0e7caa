"""The ids of entries. Oracle: which entries a reader would call the same, written by hand."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from backend.news.sources.rss import EntryNames, entry_ids

SITE = "https://shop.example/"


def entry_names(*entries: tuple[str, str, str]) -> list[EntryNames]:
    return [EntryNames(guid, link, title, f"text of {title}") for guid, link, title in entries]


@pytest.mark.parametrize(
    ("entries", "different"),
    [
        pytest.param([("a", SITE, "One"), ("b", SITE, "Two")], 2, id="one link, guids of their own"),
        pytest.param([("", SITE, "One"), ("", SITE, "Two")], 2, id="one link, no guids"),
        pytest.param([("", "https://x.example/1", title) for title in ("One", "Two")], 2, id="one page, no guids"),
        pytest.param([("a", "https://x.example/1", "One"), ("a", "https://x.example/1", "One!")], 1, id="listed twice"),
        pytest.param([("", "https://x.example/1", "One"), ("", "https://x.example/1", "One")], 1, id="the same twice"),
        pytest.param([("g", f"https://x.example/{n}", f"Story {n}") for n in range(2)], 2, id="one guid for all"),
        pytest.param([("g", SITE, f"Story {n}") for n in range(3)], 3, id="one guid and one link for all"),
        pytest.param([("g", "", f"Story {n}") for n in range(2)], 2, id="one guid for all, no links"),
        pytest.param([("", "", f"Story {n}") for n in range(3)], 3, id="neither guid nor link"),
        pytest.param(
            [("g", f"https://x.example/{n}", f"Story {n}") for n in range(3)] + [("h", "https://x.example/9", "Other")],
            4,
            id="one guid for most",
        ),
        pytest.param(
            [("", f"https://x.example/a#{n}", f"Story {n}") for n in range(3)], 3, id="fragments tell them apart"
        ),
        pytest.param(
            [("a", "https://x.example/old", "One"), ("a", "https://x.example/new", "One"), ("b", SITE, "Two")],
            2,
            id="an entry that moved",
        ),
    ],
)  # fmt: skip
def test_different_entries_get_different_ids(entries: list[tuple[str, str, str]], different: int) -> None:
    assert len(set(entry_ids("feed", entry_names(*entries), site=SITE))) == different
    assert entry_ids("feed", entry_names(*entries), site=SITE) == entry_ids("feed", entry_names(*entries), site=SITE)


def test_same_guid_in_two_feeds_is_two_entries() -> None:
    (entry,) = [entry_names(("a", SITE, "One"))]
    assert entry_ids("one", entry) != entry_ids("two", entry)


def test_links_with_another_scheme_keep_the_id() -> None:
    secure, plain = (entry_names(("", f"{scheme}://x.example/1", "One")) for scheme in ("https", "http"))
    assert entry_ids("feed", secure) == entry_ids("feed", plain)


def test_edited_title_keeps_the_id_of_a_guid_or_link() -> None:
    for guid, link in [("a", SITE), ("", "https://x.example/1")]:
        before, after = (
            entry_ids("feed", entry_names((guid, link, title)), site=SITE) for title in ("One", "One, edited")
        )
        assert before == after


@pytest.mark.parametrize(("guid", "link"), [("g", "https://x.example/{}"), ("", "https://x.example/all")])
def test_entry_id_does_not_depend_on_the_feeds_other_entries(guid: str, link: str) -> None:
    """A guid shared by all entries, or their one link, identifies an entry while the document lists only that one."""
    pool: dict[str, str] = {}

    def known(ids: Collection[str]) -> dict[str, str]:
        return {one: pool[one] for one in ids if one in pool}

    first: dict[int, str] = {}
    for listed in ([0, 1, 2], [2], [2, 3, 4], [1, 2, 3], [4]):
        entries = entry_names(*((guid, link.format(n), f"Story {n}") for n in listed))
        for n, news_id in zip(listed, entry_ids("feed", entries, known=known), strict=True):
            assert first.setdefault(n, news_id) == news_id
            pool[news_id] = f"Story {n}"
    assert len(set(first.values())) == 5
