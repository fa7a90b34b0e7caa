"""Oracle: texts written out by hand."""

from __future__ import annotations

import pytest

from backend.plain_text import cut_text, longest_whole, one_line, paragraphs, plain, shortened


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>One &amp; two.</p><p>Three<br>four.</p>", "One & two.\n\nThree four."),
        ("a<script>alert('x')</script>b<style>p{}</style>", "ab"),
        ("5 &lt; 6 and <b>bold</b>", "5 < 6 and bold"),
        ("plain\n\n\n text", "plain\n\ntext"),
        ("<ul><li>one<li>two</ul>", "one\n\ntwo"),
        ("&#0;&#x1F388;", "\ufffd🎈"),
    ],
)
def test_html_becomes_plain_paragraphs(html: str, expected: str) -> None:
    assert plain(html) == expected


def test_controls_go_and_joiners_stay() -> None:
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
def test_texts_are_cut_at_the_length_at_which_they_come_to_the_limit(sizes: list[int], limit: int, level: int) -> None:
    assert longest_whole(sizes, limit) == level
    assert sum(min(size, level) for size in sizes) <= limit


def test_a_text_is_cut_after_a_paragraph_and_says_so() -> None:
    text = "First one.\n\nSecond one.\n\nThird one."
    assert cut_text(text, len(text)) == text
    assert cut_text(text, len(text) - 1) == "First one.\n\nSecond one.\n\n[…]"
    assert cut_text(text, 12) == "First o\n\n[…]"
    assert [len(cut_text(text, level)) <= level for level in range(40)] == [True] * 40
