"""`auto`: stands for `code`, `broadcast` or `none`, and sets the length of lists, by the pool's size.

Formal guarantees: those of the mode that it stands for. The choice is a function of the reader's own limits and of what
a release says to every device, never of clicks, so it tells nothing. A release that lies about its pool's size can have
another of the three chosen, and no more: a report costs what the device's own mechanism makes of the codebook's
epsilon, which is at most `epsilon_per_report`, and is charged before it leaves.
"""

from __future__ import annotations

from device_app.privacy.modes.mode import WORDS, PoolTerms, ReportMode
from device_app.recall_frontier import ListChoice, packaged_frontier


def chosen(terms: PoolTerms) -> ListChoice:
    """The list for the release's pool within the reader's limits."""
    return packaged_frontier().choose(
        terms.news,
        epsilon_limit=terms.epsilon_limit,
        bytes_limit=terms.bytes_limit,
        codebooks=[(book.size, book.epsilon) for book in terms.protocol.codebooks],
        pool_codes=terms.protocol.pool_codes,
    )


AUTO = ReportMode(
    name="auto",
    title=WORDS("auto_title"),
    paragraph=lambda book: WORDS("auto_paragraph"),
    finds="nobody",
    chooses=chosen,
)
