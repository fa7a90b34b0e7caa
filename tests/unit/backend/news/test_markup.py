"""Publishers' HTML as bodies. Oracles: bodies written out by hand, and the vocabulary's own strict reader."""

from __future__ import annotations

import pytest

from backend.news.markup import sanitised
from protocol.bodies import BODY_CHARS, read_body, text_of_body
from tests.doubles.bodies import HOSTILE_BODIES, RICH_BODY


def body_of_html(html: str, base: str = "", title: str = "") -> str:
    """Return the body alone."""
    return sanitised(html, base, title).body


BASE = "https://sound.example/news/"


@pytest.mark.parametrize(
    ("html", "body"),
    [
        ("plain text\n\nwith &amp; and <", "<p>plain text with &amp; and &lt;</p>"),
        ("plain text\n\nwith &amp; and &lt;b&gt;", "<p>plain text</p><p>with &amp; and &lt;b&gt;</p>"),
        ("one<br>two<br><br>three <b>bold <i>both</i></b> end", "<p>one<br>two</p><p>three <strong>bold <em>both</em>"
         "</strong> end</p>"),
        ("<div>one</div><div>two <span>x</span></div>", "<p>one</p><p>two x</p>"),
        ("<em>a</em> <em>b</em><strong> c</strong>", "<p><em>a</em> <em>b</em> <strong>c</strong></p>"),
        ("<p>x</p><p></p><div><br></div><p> </p><hr><p>y<br></p>", "<p>x</p><hr><p>y</p>"),
        ("<h1>A</h1><h2>B</h2><h6>C</h6>", "<h2>A</h2><h2>B</h2><h4>C</h4>"),
        ("<ul><li>a<li>b<ul><li>c</ul></ul>tail", "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul><p>tail</p>"),
        ("<pre><code>\n x\n  y &lt;z&gt;\n</code></pre>", "<pre><code> x\n  y &lt;z&gt;</code></pre>"),
        ("<blockquote>quote<p>more</blockquote>", "<blockquote><p>quote</p><p>more</p></blockquote>"),
        ("<table><thead><tr><th>A<th>B</thead><tr><td><td>2</table>", "<table><thead><tr><th>A</th><th>B</th></tr>"
         "</thead><tbody><tr><td></td><td>2</td></tr></tbody></table>"),
        ("<table><tr><td><p>all in one cell</p></td></tr><tr><td>next</td></tr></table>",
         "<p>all in one cell</p><p>next</p>"),
        ("<a href='/x'><h3>Head</h3><p>para</p></a>", '<h3><a href="https://sound.example/x">Head</a></h3>'
         '<p><a href="https://sound.example/x">para</a></p>'),
        ("<p>before <a href='b'><img src='a.png' alt='Alt' width=600> link</a> after</p>",
         '<p>before</p><img src="https://sound.example/news/a.png" alt="Alt">'
         '<p><a href="https://sound.example/news/b">link</a> after</p>'),
        ("<figure><img src='/a.png' title=t><figcaption>Cap</figcaption></figure>",
         '<figure><img src="https://sound.example/a.png" title="t"><figcaption>Cap</figcaption></figure>'),
        ("<img src='data:image/gif;base64,AA' data-src='/late.jpg' alt=x>",
         '<img src="https://sound.example/late.jpg" alt="x">'),
        ("<img srcset='/s.jpg 480w, /l.jpg 960w' alt=x>", '<img src="https://sound.example/l.jpg" alt="x">'),
        ("hm <img src='https://s.example/x.png' class='wp-smiley' alt='🙂'><img src='/p.gif' width=1 height=1>",
         "<p>hm 🙂</p>"),
        ("<img src='http://127.0.0.1:9/x.png' alt='Two ducks' title='Joke'>", '<img alt="Two ducks" title="Joke">'),
        ("<iframe src='https://www.youtube.com/embed/abcdefghijk?rel=0'></iframe><iframe src='https://x.example'></iframe>",
         '<video src="https://www.youtube.com/watch?v=abcdefghijk">'),
        ("<audio controls><source src='/a.mp3' type='audio/mpeg'></audio>", '<audio src="https://sound.example/a.mp3">'),
        ("<a href='javascript:alert(1)'>js</a> <a href='mailto:a@b.org?subject=x'>mail</a> <a href='http://127.0.0.1/'>here</a>"
         " <a href='#note'>1</a>", '<p>js <a href="mailto:a@b.org">mail</a> here 1</p>'),
        ("a<script>x()</script><style>p{}</style><svg><text>no</text></svg>b", "<p>ab</p>"),
        ("<p>a\x00b\x07</p>", "<p>ab</p>"),
        ("", ""), ("<p> </p>", ""), ("<img src='/p.gif' width=1 height=1>", ""),
    ],
)  # fmt: skip
def test_publishers_html_becomes_a_valid_body(html: str, body: str) -> None:
    assert body_of_html(html, BASE) == body
    read_body(body)


def test_picture_addresses_of_a_body_are_returned_even_if_private() -> None:
    html = "<p>a</p><img src='http://127.0.0.1:9/x.png'><img src='/p.gif' width=1><p>b <img src='b.jpg'></p>"
    body, pictures = sanitised(html, BASE)
    assert body.count("<img") == 2
    assert pictures == ("http://127.0.0.1:9/x.png", "https://sound.example/news/b.jpg")
    trailed = f"{html}<p><a>Read more</a><img src='c.png'></p>"
    assert sanitised(trailed, BASE).pictures == pictures


def test_valid_body_stays_unchanged() -> None:
    assert body_of_html(RICH_BODY.replace(' seconds="2520" bytes="38000000"', ""), BASE) == RICH_BODY.replace(
        ' seconds="2520" bytes="38000000"', ""
    ).replace('<img alt="A drawing" title="They were ducks">', "")


@pytest.mark.parametrize("html", HOSTILE_BODIES.values(), ids=HOSTILE_BODIES.keys())
def test_sanitised_hostile_html_is_in_the_vocabulary(html: str) -> None:
    pieces = read_body(body_of_html(html[:20_000], BASE))
    assert not any("evil.example" in value for one in pieces if one.value == "a" for value in one.attributes.values())


def test_long_text_is_cut_within_the_limit_and_marked() -> None:
    body = body_of_html("<div><p>words &amp; words</p></div>" * 30_000, BASE)
    assert 0.9 * BODY_CHARS < len(body) <= BODY_CHARS
    assert text_of_body(read_body(body)).endswith("\n\n[…]")


def test_publishing_software_trailers_are_removed_from_rich_texts() -> None:
    below = (
        '<p>The <a href="/a">post</a> <a href="/a">Late ferries</a> appeared first on <a href="/">The Sound</a>.</p>'
    )
    title = "Late ferries"
    assert body_of_html(f"<ul><li>Two ran <b>late</b>.</li></ul>{below}", BASE, title) == (
        "<ul><li>Two ran <strong>late</strong>.</li></ul>"
    )
    assert body_of_html("<p>Two ran <b>late</b>. <a href='/a'>Continue reading →</a></p>", BASE, title) == (
        "<p>Two ran <strong>late</strong>. […]</p>"
    )
    assert body_of_html("<ul><li>Two ran late.</li></ul><p><a href='/a'>Read more</a></p>", BASE, title) == (
        "<ul><li>Two ran late.</li></ul><p>[…]</p>"
    )
