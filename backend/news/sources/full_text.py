"""Fetches the full texts of stories whose feed has only teasers, from their pages.

Only for feeds for which their reader or operator switched it on, and then for each new story when it arrives: which
pages are fetched depends on the feed and never on what is read. Pages are fetched one at a time, each from a
checked address. trafilatura extracts the text (docs/decisions/036-full-text.md) in a process with limits, like
`feed_parser`: `extract` runs this file as a script.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[3]))  # where the package is not installed
from backend.server.child_processes import limit_this_process, read_untrusted

if TYPE_CHECKING:
    from backend.news.item import NewsItem, Rejection

CPU_SEC, WALL_SEC = 20, 120
MEMORY_BYTES = 2 * 1024**3
ANSWER_LIMIT_BYTES = 4 * 1024 * 1024
PAGES_AT_ONCE = 60
"""Maximum number of pages fetched per reading of a feed; further stories keep their teasers."""


class NoFullText(ValueError):
    """No text could be extracted from the page within the limits; the message is a short reason."""


class FullText(NamedTuple):
    """An article's body, and the addresses of its pictures in order."""

    body: str
    pictures: tuple[str, ...] = ()


def with_full_texts(
    rows: Iterable[NewsItem | Rejection],
    known: Mapping[str, FullText],
    page: Callable[[str], bytes],
    fault: Callable[[str], None],
) -> Iterator[NewsItem | Rejection]:
    """The rows, their stories with full texts.

    known: texts of stories that are in the pool already, which are kept. page: fetches a page; raises SourceError.
    fault: called with the reason if a new story keeps its teaser.
    """
    from backend.news.errors import SourceError
    from backend.news.item import NewsItem
    from protocol.bodies import TEXT_PICTURES_LIMIT, read_body, text_of_body

    requests = 0
    for row in rows:
        if not isinstance(row, NewsItem):
            yield row
            continue
        found = known.get(row.id)
        if found is None and row.url:
            requests += 1
            try:
                if requests > PAGES_AT_ONCE:
                    raise NoFullText(f"only {PAGES_AT_ONCE} pages are fetched at a time")
                found = extract(page(row.url), row.url)
                found = found._replace(body=_without_title(found.body, row.title))
                if len(text_of_body(read_body(found.body))) < len(text_of_body(read_body(row.body))):
                    raise NoFullText("the page has less text than the feed")
            except (SourceError, NoFullText) as failed:
                fault(f"{row.url}: {failed}")
                found = None
        changed = {"body": found.body, "text_pictures": found.pictures[:TEXT_PICTURES_LIMIT]} if found else {}
        yield row.model_copy(update=changed)


def _without_title(body: str, title: str) -> str:
    """The body without a first heading that repeats the story's title."""
    from backend.news.plain_text import one_line
    from protocol.bodies import blocks_of, read_body, text_of_body, write_body

    blocks = blocks_of(read_body(body))
    if blocks and blocks[0][0].value in ("h2", "h3") and one_line(text_of_body(blocks[0])) == one_line(title):
        return write_body(piece for block in blocks[1:] for piece in block)
    return body


def extract(page: bytes, url: str) -> FullText:
    """The article on a page. Raises NoFullText."""
    try:
        code, output = read_untrusted(__file__, [url], page, wall_sec=WALL_SEC, answer_bytes=ANSWER_LIMIT_BYTES)
    except TimeoutError:
        raise NoFullText(f"reading its page takes longer than {WALL_SEC} s") from None
    if code != 0 or len(output) > ANSWER_LIMIT_BYTES:
        raise NoFullText(f"its page can't be read within {CPU_SEC} s and {MEMORY_BYTES // 1024**2:,} MiB")
    found = json.loads(output)
    if not found["body"]:
        raise NoFullText("no article was found on its page")
    return FullText(found["body"], tuple(found["pictures"]))


def _extracted(page: bytes, url: str) -> dict[str, Any]:
    import trafilatura

    from backend.news.markup import sanitised

    html = trafilatura.extract(
        page,
        url=url,
        output_format="html",
        include_comments=False,
        include_tables=True,
        include_formatting=True,
        include_images=True,
        include_links=True,
        favor_recall=True,
    )
    return sanitised(html or "", url)._asdict()


if __name__ == "__main__":
    limit_this_process(CPU_SEC, MEMORY_BYTES, ANSWER_LIMIT_BYTES)
    sys.stdout.buffer.write(json.dumps(_extracted(sys.stdin.buffer.read(), sys.argv[1])).encode())
