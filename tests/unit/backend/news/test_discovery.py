"""What a person pastes, and the feeds behind it. Oracle: sites of the test, shaped like real ones."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import httpx
import pytest

from backend.news.discovery import NoFeedFound, SeveralFeeds, discover, guesses, usual_addresses
from backend.news.errors import SourceUnreachable
from backend.news.sources.download import Document, fetch
from backend.news.sources.feed_parser import looks_like_feed
from backend.news.sources.page_links import PageLink, page_links
from backend.terminal.feed_sources import named_feeds

YOUTUBE = "https://www.youtube.com/feeds/videos.xml"


def rss(title: str, *entries: str) -> str:
    items = "".join(
        f"<item><title>{entry}</title><link>https://a.example/{entry}</link>"
        f"<pubDate>Fri, {number:02} Nov 2026 10:00:00 GMT</pubDate></item>"
        for number, entry in enumerate(entries or (f"first of {title}",), 1)
    )
    return f'<rss version="2.0"><channel><title>{title}</title><link>https://a.example/</link>{items}</channel></rss>'


class Web:
    """Pages by address; anything else is a 404, and a host without pages doesn't answer."""

    def __init__(self, **pages: str) -> None:
        self.pages = {address.replace(" ", ""): page for address, page in pages.items()}
        self.asked: list[str] = []
        self.transport = httpx.MockTransport(self._answered)

    def _answered(self, request: httpx.Request) -> httpx.Response:
        url = str(request.url)
        self.asked.append(url)
        if url in self.pages:
            return httpx.Response(200, stream=httpx.ByteStream(self.pages[url].encode()))
        if not any(address.startswith(f"{request.url.scheme}://{request.url.host}") for address in self.pages):
            raise httpx.ConnectError("nobody there", request=request)
        return httpx.Response(404)

    def get(self, url: str) -> Document:
        document = fetch(url, transport=self.transport)
        assert isinstance(document, Document)
        return document

    def found(self, pasted: str) -> list[str]:
        return [each.url for each in discover(pasted, self.get)]


@pytest.mark.parametrize(
    ("pasted", "first"),
    [
        ("example.org", "https://example.org"),
        ("example.org/blog", "https://example.org/blog"),
        ("http://example.org/", "http://example.org/"),
        ("feed://example.org/rss", "http://example.org/rss"),
        ("feed:https://example.org/rss", "https://example.org/rss"),
        ("  https://example.org/rss\n", "https://example.org/rss"),
        ("r/python", "https://www.reddit.com/r/python/.rss"),
        ("/r/Python/", "https://www.reddit.com/r/Python/.rss"),
        ("u/somebody", "https://www.reddit.com/user/somebody/.rss"),
        ("https://old.reddit.com/r/python/comments/1/x/", "https://www.reddit.com/r/python/.rss"),
        ("reddit.com/r/python/top/?t=week", "https://www.reddit.com/r/python/top/.rss?t=week"),
        ("@ana@social.example", "https://social.example/@ana.rss"),
        ("https://social.example/@ana", "https://social.example/@ana.rss"),
        ("https://www.youtube.com/channel/UCabc/videos", f"{YOUTUBE}?channel_id=UCabc"),
        ("youtube.com/user/somebody", f"{YOUTUBE}?user=somebody"),
        ("https://m.youtube.com/playlist?list=PLabc", f"{YOUTUBE}?playlist_id=PLabc"),
        ("https://www.youtube.com/watch?v=1&list=PLabc", f"{YOUTUBE}?playlist_id=PLabc"),
        ("https://www.youtube.com/@somebody", "https://www.youtube.com/@somebody"),
        ("https://github.com/ana/tool", "https://github.com/ana/tool/releases.atom"),
        ("github.com/ana/tool/releases/tag/v1", "https://github.com/ana/tool/releases.atom"),
        ("https://github.com/ana/tool/tags", "https://github.com/ana/tool/tags.atom"),
        ("https://github.com/ana/tool/commits/main/", "https://github.com/ana/tool/commits/main.atom"),
        ("https://github.com/ana", "https://github.com/ana.atom"),
        ("https://ana.substack.com/p/a-post", "https://ana.substack.com/feed"),
        ("https://medium.com/@ana/a-post-1", "https://medium.com/feed/@ana"),
        ("https://medium.com/tag/rowing", "https://medium.com/feed/tag/rowing"),
        ("https://ana.medium.com/", "https://ana.medium.com/feed"),
    ],
)
def test_pasted_address_is_first_guessed_to_be_the_feeds_own(pasted: str, first: str) -> None:
    assert guesses(pasted)[0] == first


@pytest.mark.parametrize(
    "pasted", ["", "words and words", "mailto:ana@a.example", "javascript:alert(1)", "ftp://a.example/"]
)
def test_text_that_is_not_a_web_address_sends_no_request(pasted: str) -> None:
    web = Web()
    with pytest.raises(NoFeedFound):
        web.found(pasted)
    assert web.asked == []


def test_feed_address_costs_one_request() -> None:
    web = Web(**{"https://a.example/feed": rss("A")})
    assert web.found("https://a.example/feed") == ["https://a.example/feed"]
    assert len(web.asked) == 1


def test_page_link_leads_to_its_feed(shared_feeds: Path) -> None:
    page = (shared_feeds / "site-address" / "page.html").read_text(encoding="utf-8")
    web = Web(**{"https://a.example/site": page, "https://a.example/c/rellink": rss("A")})
    assert web.found("https://a.example/site") == ["https://a.example/c/rellink"]


@pytest.mark.parametrize(
    "head",
    [
        "<link rel=alternate type=application/rss+xml href=/f>",
        "<LINK REL='Alternate' TYPE='application/atom+xml; charset=utf-8' HREF='f'>",
        '<base href="https://a.example/blog/"><link rel="alternate home" type="application/feed+json" href="../f">',
        '<link rel="feed" href="https://a.example/f">',
        '<link rel="alternate" type="text/xml" href="//a.example/f"/>',
        '<link rel="alternate" hreflang="de" href="/de"><link rel="alternate" type="application/rdf+xml" href="/f">',
    ],
)
def test_page_may_link_its_feed_in_many_ways(head: str) -> None:
    web = Web(**{"https://a.example/": f"<!doctype html><head>{head}</head><p>Hello", "https://a.example/f": rss("A")})
    assert web.found("a.example/") == ["https://a.example/f"]
    assert web.asked[0] == "https://a.example/", "over TLS first"


def test_host_without_tls_is_read_over_http() -> None:
    web = Web(
        **{"http://a.example": "<link rel=alternate type=application/rss+xml href=/f>", "http://a.example/f": rss("A")}
    )
    assert web.found("a.example") == ["http://a.example/f"]


@pytest.mark.parametrize("path", ["feed", "rss", "atom.xml", "feed.xml", "index.xml", "rss.xml"])
def test_page_without_a_link_is_tried_at_usual_addresses(path: str) -> None:
    web = Web(**{"https://a.example/": "<html><body>Hello", f"https://a.example/{path}": rss("A")})
    assert web.found("https://a.example/") == [f"https://a.example/{path}"]


def test_usual_feed_addresses_are_tried_under_the_page_before_those_under_the_host() -> None:
    found = usual_addresses("https://a.example/blog/index.html")
    assert (found[0], found[-1]) == ("https://a.example/blog/feed", "https://a.example/feed.json")
    assert usual_addresses("https://a.example/blog")[0] == "https://a.example/blog/feed"
    assert usual_addresses("https://a.example")[0] == "https://a.example/feed"


def test_link_in_the_text_is_used_if_the_head_has_none() -> None:
    page = '<html><body><a href="/about">About</a> <a href="/blog/rss.xml">RSS</a></body></html>'
    web = Web(**{"https://a.example/": page, "https://a.example/blog/rss.xml": rss("A")})
    assert web.found("https://a.example/") == ["https://a.example/blog/rss.xml"]


@pytest.mark.parametrize(
    ("links", "feed"),
    [
        (
            [{"rel": "http://webfinger.net/rel/profile-page", "type": "text/html", "href": "https://s.example/@ana"}],
            "https://s.example/@ana.rss",
        ),
        (
            [
                {"rel": "self", "type": "application/activity+json", "href": "https://s.example/users/ana"},
                {
                    "rel": "http://schemas.google.com/g/2010#updates-from",
                    "href": "https://s.example/users/ana/feed.atom",
                },
                {"rel": "http://ostatus.org/schema/1.0/subscribe", "template": "https://s.example/f?uri={uri}"},
            ],
            "https://s.example/users/ana/feed.atom",
        ),
    ],
    ids=["Mastodon", "Pleroma"],
)
@pytest.mark.parametrize("pasted", ["@ana@example.org", "ana@example.org"])
def test_account_is_followed_where_its_hosts_webfinger_says(pasted: str, links: list[object], feed: str) -> None:
    answer = json.dumps({"subject": "acct:ana@s.example", "aliases": [], "links": links})
    asked = "https://example.org/.well-known/webfinger?resource=acct%3Aana%40example.org"
    web = Web(**{asked: answer, "https://example.org/@ana.rss": rss("Another Ana"), feed: rss("Ana")})
    assert web.found(pasted) == [feed]
    assert web.asked == [asked, feed]


@pytest.mark.parametrize("answer", ["", "<html>", "[]", "null", '{"links": null}', '{"links": [1, {"href": 2}, {}]}'])
def test_account_without_a_usable_webfinger_answer_is_requested_from_its_host(answer: str) -> None:
    asked = "https://example.org/.well-known/webfinger?resource=acct%3Aana%40example.org"
    web = Web(**{asked: answer, "https://example.org/@ana.rss": rss("Ana")})
    assert web.found("@ana@example.org") == ["https://example.org/@ana.rss"]


def test_feed_behind_a_handle_is_named_after_its_channel() -> None:
    page = '<html><head><link rel="canonical" href="https://www.youtube.com/channel/UCabc"></head></html>'
    web = Web(**{"https://www.youtube.com/@ana": page, f"{YOUTUBE}?channel_id=UCabc": rss("Ana")})
    assert web.found("https://www.youtube.com/@ana") == [f"{YOUTUBE}?channel_id=UCabc"]


SEVERAL = {
    "https://a.example/": '<link rel=alternate type=application/rss+xml href=/posts><link rel=alternate '
    'type=application/atom+xml href=/posts.atom><link rel=alternate type=application/rss+xml href=/comments>'
    '<link rel=alternate type=application/rss+xml href=/gone>',
    "https://a.example/posts": rss("Posts", "old", "newer", "newest"),
    "https://a.example/posts.atom": rss("Posts", "old", "newer", "newest"),
    "https://a.example/comments": rss("Comments"),
}  # fmt: skip


def test_several_feeds_are_offered_once_each_with_titles_and_newest_entries() -> None:
    web = Web(**SEVERAL)
    found = discover("https://a.example/", web.get)
    assert [(each.url, each.title) for each in found] == [
        ("https://a.example/posts", "Posts"),
        ("https://a.example/comments", "Comments"),
    ]
    assert [title for title, _ in found[0].newest] == ["newest", "newer", "old"]
    assert found[0].to_json()["newest"][0]["published"] == "2026-11-03T10:00:00+00:00"  # type: ignore[index]


def test_choice_of_feeds_is_printed_without_a_terminal_and_prompted_on_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    web = Web(**SEVERAL)
    asked = named_feeds(["https://a.example/"], ask=False, transport=web.transport)
    assert asked.feeds == []
    (choice,) = asked.choices
    assert isinstance(choice, SeveralFeeds)
    assert "Name one of them: https://a.example/posts (Posts); https://a.example/comments" in choice.detail
    answers = iter(["5", "2, 1"])
    monkeypatch.setattr("typer.prompt", lambda *_, **__: next(answers))
    chosen = named_feeds(["https://a.example/"], ask=True, transport=web.transport)
    assert [one.url for one in chosen.feeds] == ["https://a.example/comments", "https://a.example/posts"]


def test_discovery_requests_are_bounded_and_failure_is_reported() -> None:
    links = "".join(f"<link rel=alternate type=application/rss+xml href=/{number}>" for number in range(99))
    web = Web(**{"https://a.example/": links})
    with pytest.raises(NoFeedFound, match="No feed was found at"):
        web.found("https://a.example/")
    assert len(web.asked) <= 20


def test_unreachable_feed_is_accepted_only_if_its_address_is_complete(
    capsys: pytest.CaptureFixture[str],
) -> None:
    web = Web()
    with pytest.raises(SourceUnreachable):
        web.found("https://down.example/feed")
    found = named_feeds(["feed://down.example/feed", "down.example", "@ana@down.example"], transport=web.transport)
    assert [one.url for one in found.feeds] == ["http://down.example/feed"]
    assert [one.name for one in found.refused] == ["down.example", "@ana@down.example"]
    assert "nobody there" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("document", "is_feed"),
    [
        (b'<?xml version="1.0"?>\n<!-- by hand --><rss version="2.0"><channel>', True),
        (b'<feed xmlns="http://www.w3.org/2005/Atom">', True),
        (b'<!DOCTYPE rss [<!ENTITY a "<html>">]><rdf:RDF xmlns:rdf="x">', True),
        (b"<!DOCTYPE html><html><body><rss>", False),
        (b"<feedback>", False),
        (b'{"version": "https://jsonfeed.org/version/1.1"}', False),
        (b"", False),
    ],
)
def test_feed_is_recognised_by_its_first_element(document: bytes, is_feed: bool) -> None:
    assert looks_like_feed(document) == is_feed


def test_feed_named_on_the_command_line_is_left_to_the_server_to_parse(monkeypatch: pytest.MonkeyPatch) -> None:
    def unwanted(*_: object, **__: object) -> None:
        raise AssertionError("the feed was parsed")

    web = Web(**{"https://a.example/rss": rss("Posts"), "https://moved.example/": rss("Moved")})
    monkeypatch.setattr("backend.news.discovery.parse", unwanted)
    found = named_feeds(["https://a.example/rss", "moved.example/"], transport=web.transport)
    assert [one.url for one in found.feeds] == ["https://a.example/rss", "https://moved.example/"]


def test_hosts_are_requested_in_parallel_and_each_for_one_source_at_a_time() -> None:
    together, busy, overlapping = threading.Barrier(2), set[str](), list[str]()

    def answered(request: httpx.Request) -> httpx.Response:
        host = request.url.host
        if host in busy:
            overlapping.append(str(request.url))
        busy.add(host)
        together.wait(30)  # broken, and the test with it, unless both hosts are asked at the same time
        busy.discard(host)
        return httpx.Response(200, stream=httpx.ByteStream(rss(host).encode()))

    sources = [f"https://{host}.example/{number}" for host in "ab" for number in range(3)]
    found = named_feeds(sources, transport=httpx.MockTransport(answered))
    assert [one.url for one in found.feeds] == sources
    assert overlapping == []


def test_page_is_parsed_in_a_separate_process_within_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    assert page_links(b"") == page_links(b"\0\xff") == ([], "", "")
    assert page_links(b"<a href=x>" * 200_000).links == []
    assert page_links(b'<a href="/rss">Feed<link rel=feed title=" T  x " href=/f>').links == [
        PageLink("/f", "T x", True),
        PageLink("/rss", "", False),
    ]
    monkeypatch.setattr("backend.news.sources.page_links.READ_WALL_SEC", 0.001)
    assert page_links(b"<link rel=feed href=/f>").links == []
