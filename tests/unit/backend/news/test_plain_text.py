"""Oracle: texts written out by hand."""

from __future__ import annotations

import pytest

from backend.news.markup import sanitised
from backend.news.plain_text import (
    beginning,
    longest_whole,
    one_line,
    paragraphs,
    plain,
    shortened,
    untrailed,
)
from protocol.bodies import read_body, text_of_body

TITLE = "Ferries “late” again: what’s next?"


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>One &amp; two.</p><p>Three<br>four.</p>", "One & two.\n\nThree four."),
        ("a<script>alert('x')</script>b<style>p{}</style>", "ab"),
        ("5 &lt; 6 and <b>bold</b>", "5 < 6 and bold"),
        ("plain\n\n\n text", "plain\n\ntext"),
        ("<ul><li>one<li>two</ul>", "one\n\ntwo"),
        ("&#0;&#x1F388;", "\ufffd🎈"),
        ("<![if !supportLists]>1<![endif]> <o:p>x</o:p>", "1 x"),
    ],
)
def test_html_becomes_plain_paragraphs(html: str, expected: str) -> None:
    assert plain(html) == expected


def test_control_characters_are_removed_and_joiners_kept() -> None:
    assert one_line(" a\x00\tb\n\x1b[31m c\u200d ") == "a b [31m c\u200d"
    assert paragraphs("a\x00\n \n\nb") == "a\n\nb"


def test_text_is_cut_after_a_whole_word_within_the_limit() -> None:
    assert shortened("one two three", 13) == "one two three"
    assert shortened("one two, three", 10) == "one two…"
    assert shortened("x" * 20, 10) == "x" * 9 + "…"


@pytest.mark.parametrize(
    ("sizes", "limit", "level"),
    [([], 10, 0), ([3, 4], 10, 4), ([5, 5], 10, 5), ([1, 2, 90, 80], 43, 20), ([9, 9, 9], 2, 0), ([7], 0, 0)],
)
def test_texts_are_cut_to_the_length_that_meets_the_total_limit(sizes: list[int], limit: int, level: int) -> None:
    assert longest_whole(sizes, limit) == level
    assert sum(min(size, level) for size in sizes) <= limit


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (f'<p>Two ran late.</p>\n<p>The post <a href="/a">{TITLE}</a> appeared first on <a href="/">The Sound</a>.</p>',
         "Two ran late."),
        (f"Two ran late. The post {TITLE} first appeared on U.S. Ferry News.", "Two ran late."),
        ("<p>Two ran [&#8230;]</p><p>The post Ferries &#8220;late&#8221; again: what&#8217;s next? appeared first on "
         "A. &#038; B.</p>", "Two ran […]"),
        (f"<p>Sie kamen spät.</p><p>Der Beitrag {TITLE} erschien zuerst auf Der Sund.</p>", "Sie kamen spät."),
        (f"<p>En retard.</p><p>L’article {TITLE} est apparu en premier sur Le Détroit.</p>", "En retard."),
        (f"<p>Tarde.</p><p>La entrada {TITLE} se publicó primero en El Estrecho.</p>", "Tarde."),
        (f"<p>In ritardo.</p><p>L'articolo {TITLE} proviene da Lo Stretto.</p>", "In ritardo."),
        (f"<p>Atrasados.</p><p>O post {TITLE} apareceu primeiro em O Estreito.</p>", "Atrasados."),
        (f"<p>Te laat.</p><p>Het bericht {TITLE} verscheen eerst op De Zeestraat.</p>", "Te laat."),
        ("<p>Two ran late.</p><p>The post Ferries “late” again: wh… appeared first on The Sound.</p>", "Two ran late."),
        ('Two ran late. <a href="/a">Continue reading...</a>', "Two ran late. […]"),
        (f'Two ran &hellip; <a href="/a">Continue reading <span>"{TITLE}"</span> &rarr;</a>', "Two ran […]"),
        ("<p>Two ran late.</p><p><a>Read more</a></p>", "Two ran late. […]"),
        ("<p>Two ran late and then <a>Read More &raquo;</a></p>", "Two ran late and then […]"),
        ("<p>Two ran late. [<a>Read more&#8230;</a>]</p>", "Two ran late. […]"),
        ("Two ran [...] Read the full story »", "Two ran [...]"),
        ("<p>Two ran late. <a>Read the rest of this entry &#187;</a></p>", "Two ran late. […]"),
        ("<p>Two ran late. <a>(more&#8230;)</a></p>", "Two ran late. […]"),
        ("<p>Two ran late.</p><a>Read more about the late ferries →</a>", "Two ran late. […]"),
        ("<p>Zwei kamen spät.</p><p><a>Weiterlesen</a></p>", "Zwei kamen spät. […]"),
        ("<p>En retard. <a>Lire la suite…</a></p>", "En retard. […]"),
        (f"<p>Late.</p><a>Continue reading</a><p>The post {TITLE} appeared first on The Sound.</p>", "Late. […]"),
        ("<a>Comments</a>", ""),
    ],
)  # fmt: skip
def test_publishing_software_trailers_are_removed(html: str, expected: str) -> None:
    assert untrailed(plain(html), TITLE) == expected
    assert text_of_body(read_body(sanitised(html, title=TITLE).body)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "The copy was deleted. The post appeared first on his own page.",
        "The post office appeared first on maps in 1850.",
        "It was late.\n\nThe post with the picture appeared first on Telegram, officials said.",
        f"The post {TITLE} appeared first on The Sound. The mayor then denied it.",
        f"A reader asks: {TITLE} We asked, too.",
        "Children should read more.",
        "Is it enough to say this once? Read more?",
        "The advice to parents is short. Read more.",
        "Asked what he wants of schools, he says: read more",
        "She told pupils to continue reading",
        "Continue reading is what teachers ask of pupils.",
        "The league goes on. Read more about the league on page 4.",
        "The bill passed. More…\n\nThe vote was close.",
        "Comments on the plan are welcome until May.",
        "He did not say how many more (more than ten).",
        "The law says who may read the full story.",
        "",
    ],
)
def test_sentences_resembling_trailers_are_kept(text: str) -> None:
    assert untrailed(text, TITLE) == text


def test_abstract_ends_in_an_ellipsis_where_its_text_is_cut() -> None:
    assert beginning("Two ran […]", 600) == "Two ran…"
    assert beginning("Two ran late. [...]", 600) == "Two ran late."
    assert beginning("Two ran … […]", 600) == "Two ran…"
    assert beginning("One [...] left out.", 600) == "One [...] left out."
    assert beginning("one two, three", 10) == "one two…"
