"""`python -m experiments.recall.auto_choice`: generates the device's figures from the record of `ownfeed bench pools`.

Mode `auto` chooses by them (`protocol/recall_frontier.py`). A test fails if they and the record differ.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments import records
from experiments.records import Record, Table
from protocol.recall_frontier import ListChoice, MeasuredList, RecallFrontier

RECORD = "bench-pools"
FOUND, WEIGHT = "What a list finds, by pool", "What a list weighs"
PACKAGED = Path(__file__).parents[2] / "protocol" / "recall_frontier.json"
LOST_MOST = 0.5
"""Maximum number of points that the choice may lose to the best list of its cost."""
POPULAR, CONTROL = "popular", "mixture K=16"
MODES = {POPULAR: "none", "code": "interest", "broadcast": "broadcast"}
"""The report modes by the first word of a row; `interest` sends the number that `code` sends. Rows without one, such as
the exact vector, can't be chosen."""


@dataclass(frozen=True)
class ChoiceOutcome:
    """The choice within one epsilon and size, and the most that any list within them finds, in percent."""

    news: int
    epsilon_limit: float
    bytes_limit: float
    chosen: ListChoice
    best: float

    @property
    def lost(self) -> float:
        """Return the points that the choice loses to the best."""
        return self.best - self.chosen.found


def frontier_of(found: Table, weight: Table, source: str) -> RecallFrontier:
    """Return the device's figures from the two tables.

    Raises ValueError if a method is missing in a pool. For methods that use content, the gain of the common `mixture`
    over the popular list is subtracted. That gain comes from telling MIND's articles from headlines of another time,
    which a pool of one source doesn't offer, and not from a report.
    """
    places = [int(column.split("@")[1].split()[0]) for column in found.columns if column.startswith("R@")]
    shares = {(str(row[0]), str(row[1])): row for row in found.rows}
    weights = {(str(row[0]), str(row[1])): row[2:] for row in weight.rows}
    pools = list(dict.fromkeys(pool for pool, _ in shares))
    ways = [way for way in dict.fromkeys(way for _, way in shares) if way.split()[0] in MODES]
    if missing := [(pool, way) for pool in pools for way in ways if (pool, way) not in shares]:
        raise ValueError(f"not measured: {missing}")

    def net(pool: str, way: str, at: int) -> float:
        share, common = float(str(shares[pool, way][3 + at])), shares.get((pool, CONTROL))
        if common is None or way == POPULAR:
            return share
        return round(share - max(0.0, float(str(common[3 + at])) - float(str(shares[pool, POPULAR][3 + at]))), 2)

    lists = [
        MeasuredList(
            mode=MODES[way.split()[0]],
            codebook=int(way.split("K=")[1]) if "K=" in way else None,
            epsilon=float(str(shares[pools[0], way][2])),
            places=length,
            found=tuple(net(pool, way, at) for pool in pools),
            weight=tuple(float(str(weights[pool, way][at])) for pool in pools),
        )
        for way in ways
        for at, length in enumerate(places)
    ]
    return RecallFrontier(source=source, pools=tuple(map(int, pools)), lists=tuple(lists))


def recorded(record: Record) -> RecallFrontier:
    """Return the device's figures from the record."""
    return frontier_of(record.table(FOUND), record.table(WEIGHT), f"{record.command}, {record.measured_on}")


def judged(frontier: RecallFrontier) -> list[ChoiceOutcome]:
    """Return the choices at every epsilon and size on the frontier, in each measured pool."""
    codebooks = [(each.codebook, each.epsilon) for each in frontier.lists if each.codebook is not None]
    found = []
    for news in frontier.pools:
        for epsilon, size in _prices(frontier, news):
            chosen = frontier.choose(
                news, epsilon_limit=epsilon, bytes_limit=size, codebooks=codebooks, pool_codes=True
            )
            price = [
                each for each in frontier.lists if each.epsilon <= epsilon and frontier.at(each.weight, news) <= size
            ]
            best = max(frontier.at(each.found, news) for each in price)
            found.append(ChoiceOutcome(news, epsilon, size, chosen, best))
    return found


def _prices(frontier: RecallFrontier, news: int) -> Iterator[tuple[float, float]]:
    lightest = min(frontier.at(each.weight, news) for each in frontier.lists if not each.epsilon)
    sizes: Sequence[float] = sorted({frontier.at(each.weight, news) for each in frontier.lists})
    for epsilon in sorted({each.epsilon for each in frontier.lists}):
        for size in sizes:
            if size >= lightest:
                yield epsilon, size


def main() -> int:
    """Rewrite the device's figures."""
    PACKAGED.write_text(recorded(records.read(RECORD)).model_dump_json(indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
