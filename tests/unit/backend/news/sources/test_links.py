"""Oracle: links written out by hand."""

from __future__ import annotations

import pytest

from backend.news.sources.links import canonical


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("https://Example.ORG/News/A?utm_source=rss&utm_medium=x#top", "https://example.org/News/A#top"),
        ("https://example.org:443/a?id=7&fbclid=abc&page=2", "https://example.org/a?id=7&page=2"),
        ("http://example.org:80", "http://example.org/"),
        ("http://example.org:8080/a", "http://example.org:8080/a"),
        ("https://reader:secret@example.org/a", "https://example.org/a"),
        ("https://example.org./a?q=a%20b", "https://example.org/a?q=a%20b"),
        ("https://bücher.example/a", "https://xn--bcher-kva.example/a"),
        ("http://[2001:DB8::1]/a", "http://[2001:db8::1]/a"),
        ("../b?x=1", "https://base.example/b?x=1"),
    ],
)
def test_variants_of_a_link_have_one_canonical_form(link: str, expected: str) -> None:
    found = canonical(link, "https://base.example/feed/rss.xml")
    assert found == expected
    assert canonical(found) == expected


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("http://t.example/s?name=%EF%F0%E8&utm_source=rss", "http://t.example/s?name=%EF%F0%E8"),
        ("http://t.example/?my-slug&utm_source=rss", "http://t.example/?my-slug"),
        ("http://t.example/?a=1;b=2&utm_source=rss", "http://t.example/?a=1;b=2"),
        ("http://t.example/?utm_source=rss&q=a%20b+c", "http://t.example/?q=a%20b+c"),
        ("http://t.example/?a=1;utm_source=rss;b=2", "http://t.example/?a=1;b=2"),
        ("http://t.example/?a=1&utm_content=x;y&b=", "http://t.example/?a=1&b="),
        ("http://t.example/?a=1&amp;utm_source=rss&amp;b=2", "http://t.example/?a=1&amp;b=2"),
        ("http://t.example/?UTM_Source=rss&utm%5Fmedium=x", "http://t.example/"),
        ("http://t.example/a?b=c?utm_source=d#/route?utm_source=e", "http://t.example/a?b=c?utm_source=d#/route?utm_source=e"),
        ("http://t.example/a#xtor=RSS-1", "http://t.example/a"),
        ("http://t.example/a?#", "http://t.example/a?#"),
        ("http://t.example/a//b/../c;v=1?&&x=[1]&y='%2f%2F", "http://t.example/a//b/../c;v=1?&&x=[1]&y='%2f%2F"),
        ("http://t.example/wiki/Ü b?q=ü", "http://t.example/wiki/Ü b?q=ü"),
    ],
)  # fmt: skip
def test_tracking_parameters_are_removed_and_all_else_kept(link: str, expected: str) -> None:
    assert canonical(link, "http://t.example/feed") == expected


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ("javascript:alert(1)", "must begin with http:// or https://"),
        ("file:///etc/passwd", "must begin with http:// or https://"),
        ("relative/path", "must begin with http:// or https://"),
        ("https:///path", "has no host"),
        ("https://example.org:port/", "is not a link"),
        ("https://example.org/" + "x" * 2_000, "has 2,020 characters; the limit is 2,000"),
    ],
)
def test_invalid_web_link_is_refused_with_the_reason(link: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        canonical(link)
