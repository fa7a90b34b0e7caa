"""Which library finds an article on its page: fifty pages in the shapes of real sites, whose true texts are known.

    python -m experiments.bench.full_text            # a table of token F1 by shape, for each installed library

The texts are the demo newsroom's; the pages are written here, in ten shapes of sites (a blog, a newspaper, a magazine,
a letter, a static site, a wiki, documentation, a forum's first post, a page of nested tables, a page that consists of
divs), with menus, lists of other stories, comments, cookie notices and footers around the text. F1 is that of the words
as a multiset: a lost paragraph lowers recall, a menu taken for text lowers precision.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from html import escape
from importlib.util import find_spec
from typing import NamedTuple

import typer

from backend.news.markup import sanitised
from backend.news.sources.newspaper import newspaper
from protocol.bodies import read_body, text_of_body

MADE_AT = datetime(2026, 11, 20, 12, tzinfo=UTC)
PAGES_OF_A_SHAPE = 5


class PageWithText(NamedTuple):
    """A page of a shape, and the text of its article without the title."""

    shape: str
    html: str
    text: str


def pages(seed: str = "full text") -> list[PageWithText]:
    """Fifty pages, the same for each seed."""
    rng = random.Random(seed)
    articles = list(newspaper(MADE_AT, articles=150))
    found = []
    for shape, make in SHAPES.items():
        for _ in range(PAGES_OF_A_SHAPE):
            article, *others = rng.sample(articles, 9)
            parts = text_of_body(read_body(article.body)).split("\n\n")
            inner, text = _inside(parts, rng)
            head = f"<title>{escape(article.title)} | {escape(article.publisher)}</title>"
            body = make(escape(article.title), inner, [escape(other.title) for other in others], rng)
            found.append(
                PageWithText(shape, f"<!doctype html><html><head>{head}</head><body>{body}</body></html>", text)
            )
    return found


def _inside(parts: list[str], rng: random.Random) -> tuple[str, str]:
    """The paragraphs, with a heading, a list, a quotation or code among them."""
    html = [f"<p>{escape(part)}</p>" for part in parts]
    text = list(parts)
    extra = rng.choice((
        ("<h2>What comes next</h2>", "What comes next"),
        ("<ul><li>The first of three points</li><li>The second point</li><li>The last one</li></ul>",
         "The first of three points The second point The last one"),
        ("<blockquote><p>We had a plan for each kind of trouble.</p></blockquote>",
         "We had a plan for each kind of trouble."),
        ("<pre><code>for boat in boats:\n    print(boat)</code></pre>", "for boat in boats: print(boat)"),
        ("<table><tr><th>Boat</th><th>Leaves</th></tr><tr><td>Gull</td><td>07:10</td></tr></table>",
         "Boat Leaves Gull 07:10"),
    ))  # fmt: skip
    at = rng.randrange(1, len(parts) + 1)
    return "".join([*html[:at], extra[0], *html[at:]]), " ".join([*text[:at], extra[1], *text[at:]])


def _menu(titles: list[str]) -> str:
    return "<ul>" + "".join(f'<li><a href="/{at}">{title}</a></li>' for at, title in enumerate(titles)) + "</ul>"


COOKIES = (
    '<div class="cookie-banner"><p>We use cookies to improve your visit. Accept all or manage your choices.</p></div>'
)
COMMENTS = (
    '<section id="comments"><h3>2 comments</h3><div class="comment"><p>First! This was worth the wait, thank you for '
    'writing it up.</p></div><div class="comment"><p>I disagree with the second point, and so does my neighbour.</p>'
    "</div></section>"
)

Make = Callable[[str, str, list[str], random.Random], str]


def _blog(title: str, inner: str, others: list[str], rng: random.Random) -> str:
    return (
        f'<header><nav>{_menu(["Home", "About", "Contact"])}</nav></header><div id="content"><article class="post">'
        f'<h1 class="entry-title">{title}</h1><div class="entry-meta">Posted by Ann on 3 May</div>'
        f'<div class="entry-content">{inner}<div class="sharedaddy">Share this: <a href="#">Mail</a> '
        f'<a href="#">Print</a></div></div></article>'
        f"{COMMENTS}</div><aside><h2>Recent posts</h2>{_menu(others)}</aside><footer>Proudly powered.</footer>"
    )


def _newspaper(title: str, inner: str, others: list[str], rng: random.Random) -> str:
    half = inner.find("</p>") + 4
    promo = f'<aside class="related"><h3>Read next</h3>{_menu(others[:3])}</aside>'
    return (
        f'{COOKIES}<div class="topbar">{_menu(["World", "Sport", "Business", "Culture"])}</div><main><h1>{title}</h1>'
        f'<div class="byline">By Our Correspondent, 12 min ago</div><div class="article-body">{inner[:half]}{promo}'
        f'<div class="ad">Advertisement</div>{inner[half:]}</div></main><div class="most-read"><h2>Most read</h2>'
        f"{_menu(others)}</div><footer>© The publisher. All rights reserved. Terms. Privacy.</footer>"
    )


def _magazine(title: str, inner: str, others: list[str], rng: random.Random) -> str:
    return (
        f'<div class="hero"><h1>{title}</h1></div><article itemscope itemtype="https://schema.org/Article">'
        f'<section itemprop="articleBody">{inner}</section></article><div class="newsletter"><p>Sign up for '
        f'our letter, every Friday in your inbox.</p></div><div class="grid">{_menu(others)}</div>'
    )


def _letter(title: str, inner: str, others: list[str], rng: random.Random) -> str:
    return (
        f'<div class="single-post"><h1 class="post-title">{title}</h1><div class="available-content"><div class="body '
        f'markup">{inner}<div class="subscription-widget"><p>Thanks for reading! Subscribe for free to receive '
        f"new posts.</p><button>Subscribe</button></div></div></div></div>{COMMENTS}{_menu(others[:2])}"
    )


def _static(title: str, inner: str, others: list[str], rng: random.Random) -> str:
    return f'<main><h1>{title}</h1><time>2026-11-20</time>{inner}</main><footer><a href="/feed.xml">RSS</a></footer>'


def _wiki(title: str, inner: str, others: list[str], rng: random.Random) -> str:
    return (
        f'<div id="mw-panel">{_menu(["Main page", "Random page", "Help"])}</div><div id="bodyContent"><h1>{title}</h1>'
        f'<div class="mw-parser-output">{inner}<div class="navbox">{_menu(others)}</div></div></div>'
        '<div id="footer"><p>This page was last edited on 3 May. Text is available under a licence.</p></div>'
    )


def _documentation(title: str, inner: str, others: list[str], rng: random.Random) -> str:
    return (
        f'<div class="sidebar">{_menu(others)}</div><div role="main" class="document"><div class="body"><section>'
        f'<h1>{title}</h1>{inner}</section></div></div><div class="prev-next"><a href="/p">Previous</a> <a href="/n">'
        "Next</a></div>"
    )


def _forum(title: str, inner: str, others: list[str], rng: random.Random) -> str:
    return (
        f'<div class="crumbs"><a href="/">Board</a></div><h1>{title}</h1><div class="post"><div class="author">ann, '
        f'1,204 posts</div><div class="content">{inner}</div></div><div class="post reply"><div class="author">bob, 3 '
        f'posts</div><div class="content"><p>Same here.</p></div></div>{_menu(others[:4])}'
    )


def _tables(title: str, inner: str, others: list[str], rng: random.Random) -> str:
    return (
        f'<table width="760"><tr><td colspan="2"><b>The Site</b></td></tr><tr><td width="160">{_menu(others)}</td><td>'
        f'<font size="5"><b>{title}</b></font><br><br>{inner}</td></tr><tr><td colspan="2">Best viewed at 800 x '
        "600.</td></tr></table>"
    )


def _divs(title: str, inner: str, others: list[str], rng: random.Random) -> str:
    plain = inner.replace("<p>", '<div class="x7k">').replace("</p>", "</div>")
    links = "".join(f'<div class="q2"><a href="/{at}"><div>{one}</div></a></div>' for at, one in enumerate(others))
    text = f'<div class="c3"><h1>{title}</h1>{plain}</div>'
    return f'<div id="root"><div class="a1"><div class="b2">{links}</div>{text}</div></div>'


SHAPES: dict[str, Make] = {
    "blog": _blog, "newspaper": _newspaper, "magazine": _magazine, "letter": _letter, "static site": _static,
    "wiki": _wiki, "documentation": _documentation, "forum": _forum, "tables": _tables, "divs": _divs,
}  # fmt: skip


def token_f1(found: str, true: str) -> float:
    """The F1 of the words of two texts as multisets, without case; 1 is best."""
    one, other = (Counter(text.casefold().split()) for text in (found, true))
    common = sum((one & other).values())
    return 2 * common / max(1, one.total() + other.total())


def by_trafilatura(html: str) -> str:
    """The text that trafilatura finds, as a body's words."""
    import trafilatura

    found = trafilatura.extract(
        html, output_format="html", include_tables=True, include_formatting=True, include_images=True,
        include_links=True, include_comments=False, favor_recall=True,
    )  # fmt: skip
    return text_of_body(read_body(sanitised(found or "").body))


def by_readability(html: str) -> str:
    """The text that readability-lxml finds, as a body's words."""
    from readability import Document

    return text_of_body(read_body(sanitised(Document(html).summary(html_partial=True)).body))


LIBRARIES: dict[str, Callable[[str], str]] = {"trafilatura": by_trafilatura, "readability": by_readability}


def main() -> None:
    """Print a table of the mean F1 by shape."""
    scores: dict[str, dict[str, list[float]]] = {}
    names = [name for name in LIBRARIES if find_spec(name) is not None]
    for page in pages():
        for name in names:
            score = token_f1(LIBRARIES[name](page.html), page.text)
            scores.setdefault(page.shape, {}).setdefault(name, []).append(score)
    typer.echo(f"| shape | {' | '.join(names)} |")
    for shape, found in (*scores.items(), ("all", {n: [s for f in scores.values() for s in f[n]] for n in names})):
        figures = (f"{sum(found[n]) / len(found[n]):.3f}" for n in names)
        typer.echo(f"| {shape} | {' | '.join(figures)} |")


if __name__ == "__main__":
    main()
