"""Story texts on the wire. Oracles: texts written by hand, and html.parser as a second reader of what is written."""

from __future__ import annotations

from html.parser import HTMLParser
from random import Random

import pytest

from protocol.bodies import (
    BODY_CHARS,
    CUT,
    ELEMENTS,
    LIMITS,
    BodyError,
    body_of_text,
    cut_body,
    in_vocabulary,
    read_body,
    text_of_body,
    write_body,
)
from tests.doubles.bodies import HOSTILE_BODIES, RICH_BODY


def test_body_with_every_element_survives_reading_and_writing() -> None:
    assert write_body(read_body(RICH_BODY)) == RICH_BODY
    named = {piece.value for piece in read_body(RICH_BODY) if piece.kind == "start"}
    assert named == set(ELEMENTS), "the example has every element of the vocabulary"


@pytest.mark.parametrize("body", HOSTILE_BODIES.values(), ids=HOSTILE_BODIES.keys())
def test_hostile_text_is_outside_the_vocabulary(body: str) -> None:
    with pytest.raises(BodyError):
        read_body(body)
    shown = in_vocabulary(body)
    assert {piece.value for piece in read_body(shown) if piece.kind == "start"} <= {"p"}, "it becomes plain text"


@pytest.mark.parametrize(
    "body",
    [
        "text alone", "<p>a & b</p>", "<p>&nbsp;</p>", "<p>&#60;</p>", "<p>a</p> ", "<P>a</P>", "<p>a", "a</p>",
        "<p>a</em></p>", "<p><p>a</p></p>", "<ul>a</ul>", "<ul><p>a</p></ul>", "<li>a</li>", "<table><tr></tr></table>",
        "<br>", "<p><hr></p>", "<p><img></p>", "<br/>", "<p >a</p>", "<p class=\"a\">b</p>", "<p><a>b</a></p>",
        '<p><a href="/a">b</a></p>', '<p><a href="https://a.org/" href="https://b.org/">c</a></p>',
        "<p><a href='https://a.org/'>b</a></p>", '<p><a href="mailto:a@b.org?body=x">b</a></p>',
        '<p><a href="https://a.org/"><a href="https://b.org/">b</a></a></p>', "<p>\x00</p>", "<p>\ud800</p>",
        '<audio src="https://a.org/a.mp3" seconds="1.5">', "<audio>", '<img alt="a" alt="b">', "<hr></hr>",
        "<p>" + "<em>" * LIMITS["depth"] + "</em>" * LIMITS["depth"] + "</p>", "<hr>" * (LIMITS["pieces"] + 1),
        f"<p>{'a' * BODY_CHARS}</p>", f'<img alt="{"a" * (LIMITS["words_chars"] + 1)}">',
    ],
)  # fmt: skip
def test_text_outside_the_vocabulary_is_refused(body: str) -> None:
    with pytest.raises(BodyError):
        read_body(body)


def test_plain_text_becomes_paragraphs_and_back() -> None:
    assert body_of_text("a <b>\n c\n \n\nd & \x00e") == "<p>a &lt;b&gt; c</p><p>d &amp; e</p>"
    assert text_of_body(read_body(body_of_text("a\n\nb"))) == "a\n\nb"
    assert in_vocabulary("") == body_of_text(" \n\n ") == ""
    assert len(body_of_text("<" * BODY_CHARS)) <= BODY_CHARS


def test_plain_text_includes_picture_descriptions_on_request() -> None:
    pieces = read_body('<p>One<br>two</p><ul><li>three</li></ul><img src="https://a.org/a" alt="Alt" title="Joke">')
    assert text_of_body(pieces) == "One\ntwo\n\nthree"
    assert text_of_body(pieces, pictures=True) == "One\ntwo\n\nthree\n\nAlt\n\nJoke"


def test_cut_text_is_valid_and_marked_as_cut() -> None:
    body = "<p>First <em>one</em>.</p><ul><li>Second &amp; third.</li></ul><p>Last.</p>"
    assert cut_body(body, len(body)) == body
    assert (
        cut_body(body, len(body) - 1) == f"<p>First <em>one</em>.</p><ul><li>Second &amp; third.</li></ul><p>{CUT}</p>"
    )
    assert cut_body(body, 25) == f"<p>First </p><p>{CUT}</p>"
    for limit in range(len(body) + 1):
        cut = cut_body(body[: limit + 1], limit)
        assert len(cut) <= max(limit, len(f"<p>{CUT}</p>"))
        read_body(cut)


class CollectingParser(HTMLParser):
    """Another reader of HTML, which collects what it finds."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(("start", f"{tag} {sorted(attrs)}"))

    def handle_endtag(self, tag: str) -> None:
        self.found.append(("end", tag))

    def handle_data(self, data: str) -> None:
        self.found.append(("text", data))

    def handle_comment(self, data: str) -> None:
        self.found.append(("comment", data))

    def handle_decl(self, decl: str) -> None:
        self.found.append(("comment", decl))


def test_body_reader_finds_the_same_pieces_as_html_parser() -> None:
    """Random changes of a text: whatever is still accepted means the same to html.parser."""
    rng, taken = Random("two readers of bodies"), 0
    for _ in range(4_000):
        text = RICH_BODY
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(text))
            put = rng.choice(["", "<", ">", '"', "&amp;", "</p>", "<p>", "<em>", "</em>", "'", " ", "é", "&quot;"])
            text = text[:at] + put + text[at + rng.randrange(3) :]
        try:
            pieces = read_body(text)
        except BodyError:
            continue
        taken += 1
        second = CollectingParser()
        second.feed(write_body(pieces))
        second.close()
        mine = [
            (one.kind, one.value if one.kind != "start" else f"{one.value} {sorted(one.attributes.items())}")
            for one in pieces
        ]
        assert second.found == mine
    assert taken > 200
