"""Oracle: links written out by hand."""

from __future__ import annotations

import pytest

from backend.news.sources.links import canonical, news_id


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("https://Example.ORG/News/A?utm_source=rss&utm_medium=x#top", "https://example.org/News/A"),
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
def test_a_link_has_one_canonical_form(link: str, expected: str) -> None:
    found = canonical(link, "https://base.example/feed/rss.xml")
    assert found == expected
    assert canonical(found) == expected


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ("javascript:alert(1)", "must begin with http:// or https://"),
        ("file:///etc/passwd", "must begin with http:// or https://"),
        ("relative/path", "must begin with http:// or https://"),
        ("https:///path", "names no host"),
        ("https://example.org:port/", "is no link"),
        ("https://example.org/" + "x" * 2_000, "has 2,020 characters; the limit is 2,000"),
    ],
)
def test_what_is_no_web_link_is_refused_by_reason(link: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        canonical(link)


def test_the_id_depends_on_the_canonical_link_and_not_on_the_scheme() -> None:
    assert news_id("http://example.org/a") == news_id("https://example.org/a") != news_id("https://example.org/b")
