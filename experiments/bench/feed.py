"""`ownfeed bench feed`: measures what a feed promises its reader (decision 043)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.bench.feed_laws import Newspaper, measured
from experiments.bench.newspaper_pages import default_ranker, newspaper_pool
from experiments.records import Table

SECTIONS = ("football", "science", "technology", "business", "world", "markets", "crime")
"""Sections with 300 stories or more in an edition of 6,000."""
SEEDS = (1, 2, 3)


def run(data: Path) -> list[Table]:
    """Return the table. Needs no research data."""
    found = measured(Newspaper(newspaper_pool(), default_ranker()), sections=SECTIONS, seeds=SEEDS)
    return [_table(found)]


def _table(found: dict[str, Any]) -> Table:
    picked, topics, blend = found["learning"], found["topics"], found["blend"]
    least, median, most = np.percentile([share for each in topics for share in each.of_topic], [5, 50, 95])
    steady = float(np.mean([each.is_steady for each in topics]))
    rows = (
        (
            "reasons that name a story: share with a topic or name in common",
            ">= .95",
            _least(found["similarity"], "related"),
        ),
        ("random pairs above the floor", "<= .005", max(each["random_pairs"] for each in found["similarity"])),
        ("five reads of a topic: readers with 30 to 45 % of it on three pages", ">= .95", steady),
        ("... its share of a page: 5th percentile", ">= .30", float(least)),
        ("... its share of a page: median", ".30 to .45", float(median)),
        ("... its share of a page: 95th percentile", "<= .45", float(most)),
        ("... greatest share of a section", "<= .50", max(max(each.greatest) for each in topics)),
        ("... of the personal places", "<= .50", max(max(each.greatest_in_column) for each in topics)),
        ("... its share where sections were picked", ">= .30", min(min(each.of_topic) for each in picked)),
        ("... and that of the sections picked", ">= .25", min(min(each.of_picked) for each in picked)),
        ("sections picked after 19 reads", ">= .25", min(min(each.of_picked) for each in blend)),
        ("sections of a first page", ">= 8", min(each["sections"] for each in found["cold"])),
        ("greatest share of a section not picked", "<= .20", max(each["greatest"] for each in found["cold"])),
        ("cards of 30 that a like moves", "<= 3", max(found["moved"]["liked"])),
        ("cards of 30 that a less moves", "<= 3", max(found["moved"]["less"])),
    )
    notes = (
        f"{found['stories']:,} stories; the worst of all readers and seeds, and for five reads of a topic "
        f"{len(topics)} readers of {len({each.topic for each in topics})} topics, three pages each.",
    )
    return Table("What a feed promises, newsroom", ("promise", "bar", "found"), rows, notes, SEEDS)


def _least(figures: Sequence[dict[str, Any]], name: str) -> float:
    return float(min(each[name] for each in figures))
