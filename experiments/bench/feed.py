"""`ownfeed bench feed`: what a feed promises its reader, in figures (decision 043)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.quality.feed_laws import Newspaper, measured
from experiments.quality.newspaper_pages import default_ranker, newspaper_pool
from experiments.table import Table

SECTIONS = ("football", "science", "technology", "business", "world", "markets", "crime")
"""Those with 300 stories and more in an edition of 6,000."""
SEEDS = (1, 2, 3)


def run(data: Path) -> list[Table]:
    """The table. Needs none of the research data."""
    found = measured(Newspaper(newspaper_pool(), default_ranker()), sections=SECTIONS, seeds=SEEDS)
    return [_table(found)]


def _table(found: dict[str, Any]) -> Table:
    learning, blend = found["learning"], found["blend"]
    picked = [each for each in learning if each["picked"]]
    rows = (
        ("whys that name a story: share with topic or name in common", ">= .95", _least(found["kinship"], "akin")),
        ("random pairs above the floor", "<= .005", max(each["random_pairs"] for each in found["kinship"])),
        ("five reads of a topic: its share of the next page", ">= .40", min(each["of_topic"][0] for each in learning)),
        ("... two refreshes later", ">= .30", min(each["of_topic"][-1] for each in learning)),
        ("... and of the sections picked", ">= .25", min(min(each["of_picked"]) for each in picked)),
        ("sections picked after 19 reads", ">= .25", min(min(each["of_picked"]) for each in blend)),
        ("sections of a first page", ">= 8", min(each["sections"] for each in found["cold"])),
        ("greatest share of a section not picked", "<= .20", max(each["greatest"] for each in found["cold"])),
        ("cards of 30 that a like moves", "<= 3", max(found["moved"]["liked"])),
        ("cards of 30 that a less moves", "<= 3", max(found["moved"]["less"])),
    )
    notes = (f"{found['stories']:,} stories; the worst of all readers and seeds.",)
    return Table("What a feed promises, newsroom", ("promise", "bar", "worst"), rows, notes, SEEDS)


def _least(figures: Sequence[dict[str, Any]], name: str) -> float:
    return float(min(each[name] for each in figures))
