"""The frontier on MIND: what recall finds at what price in privacy, against popularity, with the bars beside it."""

from __future__ import annotations

import math
from pathlib import Path

import torch

from backend.measurements.frontier import Frontier, FrontierRow, PairedGain, keep
from experiments.datasets.mind import FOLDER, load_mind
from experiments.datasets.titles import product_vectors, title_vectors, unit_rows
from experiments.recall.bars import bars
from experiments.recall.frontier import BOOK_SEEDS, choose, measure
from experiments.recall.measure import DEPTHS
from experiments.recall.sweeps import unmeasured
from experiments.recall.tower import WIDTH
from experiments.recall.warm import LEAST_CLICKS, splits
from experiments.table import Cell, Table


def run(data: Path) -> list[Table]:
    """The frontier and its bars, also written for the console's page. Raises DataMissing.

    The first run turns the titles into vectors, which takes minutes more; they are kept.
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
    kept = ", ".join(f"{name} {value:g}" for name, value in frontier.chosen.sharpness.items())
    notes: tuple[str, ...] = (
        f"{frontier.readers} tested readers with {LEAST_CLICKS} clicks or more, up to 3 held out, {news:,} news; "
        "differences are paired, in points, with 95 % intervals of a bootstrap over readers.",
        f"Chosen on validation readers: epoch {frontier.chosen.epoch} of the tower; sharpness: {kept}.",
        "Expectation over the channel is exact for code; subset, topics and direction are means of 3 draws of the "
        "devices' mechanisms, and so are rows as served: the first release's own model, decoder and popularity. "
        "basis_laplace by the paper's decoder is one draw; epsilons of both are the honest price over 5 channels.",
        f"Constant list of 600: R@600 {frontier.wide:.1f} %. Channels: {frontier.channels:.1f} a reader. "
        + " ".join(f"Codes of {size} B: {count:,} bytes." for size, count in frontier.code_bytes.items()),
        "R@20 ranked: after the device's own ranking of the 400 by content and popularity; new: what the popular list "
        "would not have brought, and the same where the device ranks by content alone. "
        "Attack: recall of the history by who reads the report and knows what is popular.",
    )
    if left := unmeasured():
        notes += (f"Not measured: {', '.join(left)}.",)
    return Table(
        "Recall at an honest price, MIND subset", columns, [_row(row) for row in frontier.rows], notes, BOOK_SEEDS
    )


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
