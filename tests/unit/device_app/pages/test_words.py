"""Pages use technical terms only in the drawers for them. Oracle: the list of terms in this file."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from device_app.settings import PrivacySettings
from tests.doubles.pages_reader import PagesReader

JARGON = re.compile(
    r"ledger|channel|cohort|survivor|\bmask|vector|release r\d|\br\d\b|waterfall|\bp(50|95|99)\b|\butc\b|profile reader"
    r"|epsilon|delta of|prototype|codebook|encoder|tensor|gradient|onnx|percentile|anew\b",
    re.IGNORECASE,
)
OF_OTHERS = re.compile(r"\bnewsroom\b(?!:)|\breports?\b(?! is made, and)|group counts?|\btraining\b", re.IGNORECASE)
PAGES = (
    "/", "/popular", "/fresh", "/explore", "/explore/science", "/following", "/saved", "/search", "/search?q=the",
    "/searches", "/welcome", "/you", "/interests", "/interests/history", "/privacy", "/privacy?show=all", "/settings",
    "/settings?switches=open", "/training", "/latency", "/story/newsroom:0003?feed=feed-1", "/story/newsroom:0014",
)  # fmt: skip
VOID = frozenset({"meta", "link", "img", "input", "br", "hr"})
SPOKEN = frozenset({"title", "aria-label", "placeholder", "alt"})


class VisibleTextParser(HTMLParser):
    """Collects a page's text and names, without drawers of exact figures, code and bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self._inside: list[tuple[str, bool]] = []

    @property
    def _hidden(self) -> bool:
        return any(drawer for _, drawer in self._inside)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if not self._hidden:
            self.words += [value or "" for name, value in attrs if name in SPOKEN]
        if tag not in VOID:
            self._inside.append((tag, tag in ("pre", "code", "style") or "exact" in (given.get("class") or "").split()))

    def handle_endtag(self, tag: str) -> None:
        while self._inside and self._inside.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.words.append(data)


def visible_text(html: str) -> str:
    page = VisibleTextParser()
    page.feed(html)
    return " ".join(" ".join(page.words).split())


@pytest.mark.parametrize("kind", ["typical", "empty", "offline"])
def test_pages_use_no_jargon_outside_drawers(kind: str) -> None:
    reader = PagesReader(kind)
    here = {"typical": "", "empty": r"^/$|story|science", "offline": "story|science"}[kind]
    paths = [path for path in PAGES if not here or not re.search(here, path)]
    found = []
    for path in paths:
        answer = reader.client.get(path)
        assert answer.status_code == 200, path
        said = visible_text(answer.text).replace("The Ledger", "a publisher")
        assert "Ownfeed" in said
        found += [f"{path}: ...{said[max(0, hit.start() - 40) : hit.end() + 30]}..." for hit in JARGON.finditer(said)]
    assert found == []


@pytest.mark.parametrize("kind", ["typical", "empty"])
def test_own_feeds_pages_mention_no_publisher_features(kind: str) -> None:
    reader = PagesReader(kind)
    reader.device.own_feeds, reader.device.settings = True, PrivacySettings(mode="broadcast", counting=False)
    # The stand-in's log and timings are of a reader of a newsroom, whatever it is told.
    left_out = {"typical": "^/(training|privacy|you|latency)", "empty": "^/$|^/(story|training|explore/)"}[kind]
    found = []
    for path in [path for path in PAGES if not re.search(left_out, path)]:
        said = visible_text(reader.get(path))
        found += [
            f"{path}: ...{said[max(0, hit.start() - 60) : hit.end() + 40]}..." for hit in OF_OTHERS.finditer(said)
        ]
    assert found == []


def test_text_in_drawers_is_excluded_from_the_page_text() -> None:
    said = visible_text(
        '<p>a</p><details class="exact"><summary>b</summary><p>epsilon<br>c</p></details><p title="d">e</p>'
    )
    assert said == "a d e"
