"""Both devices read the same story texts and show the same HTML. Oracle: Python's reader, html.parser."""

from __future__ import annotations

from html.parser import HTMLParser
from random import Random
from typing import Any

import pytest

from device_app.feed.item import text_of
from device_app.pages.story_text import ShownPicture, story_html
from protocol.bodies import BodyError, read_body, text_of_body
from protocol.links import leads_out
from tests.conformance.node_end import ask_node
from tests.doubles.bodies import HOSTILE_BODIES, RICH_BODY

pytestmark = pytest.mark.node

PUT = ("", "<", ">", '"', "&amp;", "</p>", "<p>", "<em>", "</em>", "'", " ", "é", "&quot;", "\n\n", "\x00", "\ufeff", 
       "😀", "<ul>", "</li>", "<li>", "<br>", "<hr>", "<script>", "&#60;", "=", "x" * 2_001)  # fmt: skip
PLAIN = ("", " ", "Plain.\n\nTwo & <b>three</b>.", "An abstract.", "Begun […]", "<p>Cut.</p><p>[…]</p>", "a\r\n\r\nb",
         '<p><a href="https://home.example/x">here</a></p>', "<p>An abstract.</p>")  # fmt: skip


def random_changes() -> list[str]:
    """Return random changes of a valid text; some are still valid."""
    rng, found = Random("bodies in both runtimes"), []
    for _ in range(600):
        text = RICH_BODY
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(text))
            text = text[:at] + rng.choice(PUT) + text[at + rng.randrange(3) :]
        found.append(text)
    return found


def shown_html(body: str) -> list[Any]:
    """Return the HTML that the Python device makes of a text."""
    try:
        read_body(body)
        read = True
    except BodyError:
        read = False
    pieces, ending = text_of(body, "An abstract.")

    def home(url: str) -> bool:
        return url.startswith("https://home.example/")

    def here(number: int) -> ShownPicture:
        return ShownPicture(f"/pictures/x.{number}.webp?of=1", 10, 20)

    words = text_of_body(pieces, pictures=True)
    return [read, ending, words, story_html(pieces, lambda _: None, home), story_html(pieces, here, home)]


def test_both_devices_read_and_show_the_same_texts() -> None:
    bodies = [RICH_BODY, *PLAIN, *HOSTILE_BODIES.values(), *random_changes()]
    ((answers),) = ask_node([("bodies_shown", bodies)])
    for body, answer in zip(bodies, answers, strict=True):
        assert answer == shown_html(body), body[:500]
    assert {answer[0] for answer in answers} == {True, False}
    assert {answer[1] for answer in answers} == {"whole", "teaser", "cut"}


class Found(HTMLParser):
    """The tags and attributes that an HTML parser finds on a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@pytest.mark.parametrize("body", [RICH_BODY, *HOSTILE_BODIES.values()], ids=["rich", *HOSTILE_BODIES])
def test_shown_text_loads_nothing_and_runs_nothing(body: str) -> None:
    """The test above checks that the other runtime shows the same."""
    found = Found()
    found.feed(shown_html(body[:20_000])[4])
    for tag, attributes in found.tags:
        assert set(attributes) <= {
            "a": {"href", "rel", "target"},
            "img": {"class", "src", "alt", "width", "height", "loading", "decoding"},
            "div": {"class", "role", "aria-label", "tabindex"},
        }.get(tag, {"dir", "class", "tabindex"}), tag
        assert tag in {"p", "h2", "h3", "h4", "pre", "blockquote", "ul", "ol", "li", "div", "table", "thead", "tbody",
                       "tr", "th", "td", "figure", "figcaption", "hr", "img", "a", "em", "strong", "code", "sub", "sup",
                       "del", "br", "span"}  # fmt: skip
        if tag == "img":
            assert str(attributes["src"]).startswith("/pictures/")
        if tag == "a":
            assert leads_out(str(attributes["href"])) or str(attributes["href"]).startswith("mailto:")
            assert "noreferrer" in str(attributes["rel"])
            assert attributes["target"] == "_blank"
