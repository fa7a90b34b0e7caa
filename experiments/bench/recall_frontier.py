"""The recall frontier on MIND: what every report mode finds at which epsilon, against popularity, with bars."""

from __future__ import annotations

import math
from pathlib import Path

import torch

from backend.measurements.frontier import Frontier, FrontierRow, PairedGain, keep
from experiments.datasets.mind import FOLDER, load_mind
from experiments.datasets.titles import product_vectors, title_vectors, unit_rows
from experiments.recall.frontier import BOOK_SEEDS, bars, choose, measure
from experiments.recall.measure import DEPTHS, LEAST_CLICKS, splits
from experiments.recall.sweeps import unmeasured
from experiments.recall.tower import WIDTH
from experiments.records import Cell, Table


def run(data: Path) -> list[Table]:
    """Return the frontier and its bars, also written for the console's page. Raises DataMissing.

    The first run computes the titles' vectors, which takes some minutes more; they are cached.
    """
    torch.set_num_threads(1)
    mind = load_mind(data / FOLDER)
    pooled = title_vectors(mind.news.titles)
    histories = mind.train.longest_histories()
    validation, test = splits([histories[user] for user in sorted(histories)], len(mind.news))
    titles, first = unit_rows(pooled), product_vectors(pooled, WIDTH)
    frontier = measure(titles, first, test, choose(titles, first, validation))
    keep(frontier)
    return [_table(frontier, len(mind.news)), _bars(frontier)]


def _table(frontier: Frontier, news: int) -> Table:
    columns = (
        "report",
        "epsilon",
        *(f"R@{depth} %" for depth in DEPTHS),
        *(f"@{depth} against popularity" for depth in (100, 400)),
        "R@20 ranked %",
        "of these 20 new %",
        "by content %",
        "attack R@100 / 400 %",
    )
    notes: tuple[str, ...] = (
        f"{frontier.readers} test readers with {LEAST_CLICKS} clicks or more, up to 3 held out, {news:,} articles; "
        "differences are paired by reader, in points, 95 %. As served: the first release's model and decoder; naive: "
        f"the paper's decoder; epsilons of both cover 5 channels. List of 600 for everybody: R@600 {frontier.wide:.1f} "
        "%. attack: share of the history that an observer of the report guesses.",
    )
    if left := unmeasured():
        notes += (f"Not measured: {', '.join(left)}.",)
    return Table("Recall by report mode, MIND subset", columns, [_row(row) for row in frontier.rows], notes, BOOK_SEEDS)


def _row(row: FrontierRow) -> tuple[Cell, ...]:
    return (
        row.mode,
        "none" if math.isinf(row.epsilon) else f"{row.epsilon:g}",
        *(f"{share:.1f}" for share in row.found),
        _gain(row.gain[DEPTHS.index(100)]),
        _gain(row.gain[DEPTHS.index(400)]),
        f"{row.page:.1f}",
        f"{row.changed:.1f}",
        f"{row.cosine:.1f}",
        None if row.attack is None else f"{row.attack[0]:.1f} / {row.attack[1]:.1f}",
    )


def _gain(gain: PairedGain) -> str:
    return f"{gain.mean:+.1f} ({gain.low:+.1f} .. {gain.high:+.1f})"


def _bars(frontier: Frontier) -> Table:
    rows = [(bar.what, bar.wanted, bar.measured, "yes" if bar.met else "no") for bar in bars(frontier)]
    return Table("Bars", ("what", "wanted", "measured", "met"), rows, seeds=BOOK_SEEDS)
