"""Measures recall by bytes and pool size, and what mode `auto` chooses."""

import math
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import torch

from experiments.datasets.mind import FOLDER, load_mind
from experiments.datasets.titles import title_vectors
from experiments.recall.auto_choice import FOUND, LOST_MOST, WEIGHT, frontier_of, judged
from experiments.recall.measure import splits
from experiments.recall.pools import (
    BOOK_SEEDS,
    CONTROL,
    HEADLINES_BESIDE,
    PLACES,
    PoolPart,
    distractors,
    measure,
    vectors_of,
)
from experiments.records import Cell, DataMissing, Table

CHOSEN = "What auto chooses"
AT_400 = PLACES.index(400)
EPSILONS_SHOWN, BYTES_SHOWN = (0.0, 4.0), (100e3, 300e3, 800e3, 2.5e6, 20e6)


def run(data: Path) -> list[Table]:
    """Return three tables: what lists find in pools of three sizes, their bytes, and what `auto` chooses.

    Raises DataMissing without MIND; without the headlines, the pools that need them are left out by name. The first run
    computes the vectors of 100,000 titles in some ten minutes of a core; they are cached.
    """
    torch.set_num_threads(1)
    mind = load_mind(data / FOLDER)
    histories = mind.train.longest_histories()
    validation, test = splits([histories[user] for user in sorted(histories)], len(mind.news))
    left = ""
    try:
        beside = distractors(data, mind.news, max(HEADLINES_BESIDE))
    except DataMissing as missing:
        beside, left = [], f"Left out, pools with headlines beside: {missing}"
    if not left and len(beside) < max(HEADLINES_BESIDE):
        left = f"Left out, pools with more than {len(beside):,} headlines beside: the file has no more."
    pooled = title_vectors(mind.news.titles)
    parts = measure(mind.news, pooled, beside, vectors_of([each.title for each in beside]), validation, test)
    return tables(parts, left)


def tables(parts: Sequence[PoolPart], left: str = "") -> list[Table]:
    """Return the tables.

    Shares have two decimals and bytes are whole, because the device's figures are generated from them.
    """
    found: list[tuple[Cell, ...]] = []
    weight: list[tuple[Cell, ...]] = []
    for part in parts:
        for way in part.ways:
            epsilon = "none" if math.isinf(way.epsilon) else f"{way.epsilon:g}"
            gain = way.gain[AT_400]
            points = f"{gain.mean:+.1f} ({gain.low:+.1f} .. {gain.high:+.1f})"
            found.append((f"{part.news}", way.name, epsilon, *(f"{share:.2f}" for share in way.found), points))
            weight.append((f"{part.news}", way.name, *(f"{size}" for size in way.weight)))
    notes: tuple[str, ...] = (
        f"{parts[0].readers} test readers. Larger pools add real headlines that nobody clicked, each with the clicks "
        "of a random MIND article. Gains are over the popular list of the same length, 95 %. mixture: one list of all "
        f"{CONTROL} prototypes for everybody; a report is worth what it finds beyond that.",
    )
    notes += (left,) if left else ()
    shares, weights = (f"R@{places} %" for places in PLACES), (f"{places} places" for places in PLACES)
    first = Table(FOUND, ("pool", "report", "epsilon", *shares, "@400 against popular"), found, notes, BOOK_SEEDS)
    second = Table(
        WEIGHT,
        ("pool", "report", *weights),
        weight,
        (
            "Bytes of an answer with cards and vectors but without texts; popular and code lists are compressed. "
            "broadcast: the first copy of the whole pool.",
        ),
        BOOK_SEEDS,
    )
    return [first, second, _chosen(first, second)]


def _chosen(found: Table, weight: Table) -> Table:
    frontier = frontier_of(found, weight, "this run")
    worst = max(row.lost for row in judged(frontier))
    codebooks = [(each.codebook, each.epsilon) for each in frontier.lists if each.codebook is not None]
    cells: list[tuple[Cell, ...]] = []
    for news, epsilon, size in product(frontier.pools, EPSILONS_SHOWN, BYTES_SHOWN):
        chosen = frontier.choose(news, epsilon_limit=epsilon, bytes_limit=size, codebooks=codebooks, pool_codes=True)
        cells.append(
            (
                f"{news}",
                f"{epsilon:g}",
                f"{size / 1e6:g}",
                chosen.mode if chosen.codebook is None else f"{chosen.mode} K={chosen.codebook}",
                f"{chosen.epsilon:g}",
                None if chosen.mode == "broadcast" else f"{chosen.places}",
                f"{chosen.weight / 1e6:.2f}",
                f"{chosen.found:.1f}",
                f"{chosen.silent:.1f}",
                f"{chosen.best:.1f}",
            )
        )
    columns = ("pool", "epsilon allowed", "MB allowed", "chosen", "epsilon", "places", "MB", "found %")
    notes = (
        f"At every epsilon and size above, auto finds at most {worst:.2f} points less than the best choice; bar "
        f"{LOST_MOST:g}, {'met' if worst <= LOST_MOST else 'missed'}. Of lists that find nearly as much it takes the "
        "one that reveals least.",
    )
    return Table(CHOSEN, (*columns, "best without a report %", "best of the price %"), cells, notes)
