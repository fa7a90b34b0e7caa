"""Measures the frontier of privacy and recall: what every report mode finds, against popularity and under attack.

Choices are made on the validation split and used once on the test readers: the epoch of the tower, and for each kind of
list the sharpness s with the greatest mean gain over popularity. Each required limit stands beside its measurement.
Every mode, including one that no device offers, is measured over its epsilons (`sweeps`). `run` is `ownfeed bench
recall`, on MIND.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from backend.measurements.frontier import DRAWN_FROM, Frontier, FrontierRow, PairedGain, ValidationChoice, keep
from device_app.privacy.noise_sources import SeededNoise
from device_app.reports.modes import MODES
from experiments.datasets.mind import FOLDER, load_mind
from experiments.datasets.titles import product_vectors, title_vectors, unit_rows
from experiments.recall import interests
from experiments.recall.interests import Channels, channels, decomposed, noisy
from experiments.recall.measure import (
    DEPTHS,
    LEAST_CLICKS,
    PossibleLists,
    Rows,
    WarmSplit,
    changed,
    final_page,
    paired,
    recall,
    splits,
)
from experiments.recall.modes import (
    DRAWS,
    MIXED,
    EmbeddedSplit,
    Mixtures,
    ReportCodebook,
    learned_book,
    prototypes_of,
    topic_book,
)
from experiments.recall.tower import WIDTH, Vectors, train_tower
from experiments.recall.uni_fedrec import BOUNDS, Decomposed, FirstModel, scale_of
from experiments.records import Cell, Table

PAPER = (1.0, 4.0, 16.0, 50.0, 300.0)
"""Epsilons of reports by scores; with the paper's noise, a report costs 50."""
COMMON = {16: (1.0, 4.0, 16.0)}
AT: Mapping[str, Mapping[int, Sequence[float]]] = {
    "code": {
        4: (1.0, 2.0),
        8: (4.0,),
        32: (4.0,),
        16: (1.0, 2.0, 4.0, 8.0, 16.0),
        64: (1.0, 2.0, 4.0, 8.0, 16.0),
    },
    "interest": {16: (1.0, 2.0, 4.0, 8.0)},
    "direction": {64: (1.0, 2.0, 4.0, 8.0, 16.0)},
}
"""Epsilons by mode and size of the codebook; COMMON for a mode that isn't named."""
LABORATORY = ("direction",)
"""Modes that no device offers; their reports are decoded by a codebook too."""


@dataclass(frozen=True)
class Sweep:
    """One mode over its epsilons.

    size: size of the codebook that decodes it; None if reports are scores.
    """

    mode: str
    epsilons: Sequence[float]
    size: int | None = None

    @property
    def name(self) -> str:
        """The mode's name in the table."""
        return f"{self.mode}, as served" if self.size is None else f"{self.mode} K={self.size}"

    @property
    def drawn(self) -> bool:
        """Return whether the mode has a line in the drawing."""
        return len(self.epsilons) >= DRAWN_FROM


def sweeps() -> Iterator[Sweep]:
    """Yield all modes with which the server finds articles, except `unmeasured`, and LABORATORY."""
    for name, mode in MODES.items():
        if mode.reporter is None or name in unmeasured():
            continue
        if mode.reporter.made_from == "decomposition":
            yield Sweep(name, PAPER)
        else:
            yield from _by_codebook(name)
    for name in LABORATORY:
        yield from _by_codebook(name)


def _by_codebook(name: str) -> Iterator[Sweep]:
    return (Sweep(name, epsilons, size) for size, epsilons in AT.get(name, COMMON).items())


def unmeasured() -> tuple[str, ...]:
    """Report modes whose lists can't be computed here yet."""
    return tuple(name for name, mode in MODES.items() if mode.reporter is not None and name not in {*MIXED, *BOUNDS})


AT_100, AT_400 = DEPTHS.index(100), DEPTHS.index(400)
SLACK = 0.5
"""Points by which a mode may fall below popularity, or below itself at a smaller epsilon."""


@dataclass(frozen=True)
class Bar:
    """One required limit: what is measured, the target value, and the result."""

    what: str
    wanted: str
    measured: str
    met: bool


def bars(frontier: Frontier) -> list[Bar]:
    """Return all required limits."""
    return [*_gains(frontier), *_floors(frontier), *_attacks(frontier)]


def _gains(frontier: Frontier) -> Iterator[Bar]:
    exact = frontier.row("exact vector", math.inf)
    default, high = frontier.row("code K=16", 4.0), frontier.row("code K=64", 8.0)
    yield _at_least("exact vector, R@400 over popularity", exact.gain[AT_400], 4.0)
    yield _at_least("code K=16 epsilon 4, R@400 over popularity", default.gain[AT_400], 1.0)
    share = 100 * default.found[AT_400] / exact.found[AT_400]
    yield Bar("code K=16 epsilon 4, R@400 of exact's", ">= 94 %", f"{share:.1f} %", share >= 94)
    yield _at_least("code K=16 epsilon 4, R@100 over popularity", default.gain[AT_100], 0.0)
    yield _at_least("code K=64 epsilon 8, R@400 over popularity", high.gain[AT_400], 2.4)
    yield _at_least("broadcast 16 B, R@400 over popularity", frontier.row("broadcast 16 B", 0.0).gain[AT_400], 3.5)
    yield _at_least("broadcast 32 B, R@400 over popularity", frontier.row("broadcast 32 B", 0.0).gain[AT_400], 4.5)
    basis = frontier.row(f"channels by {BASIS} topics", math.inf).found[AT_400]
    lost = frontier.row("channels, undecomposed", math.inf).found[AT_400] - basis
    yield Bar("topic-centroid basis, R@400 below undecomposed", "<= 1.5", f"{lost:.1f}", lost <= 1.5)


def _floors(frontier: Frontier) -> Iterator[Bar]:
    shipped = [row for sweep in sweeps() for row in _rows(frontier, sweep.name, sweep.epsilons)]
    lowest = min(shipped, key=lambda row: row.gain[AT_400].mean)
    mean = lowest.gain[AT_400].mean
    named = f"{mean:+.1f} ({lowest.mode}, epsilon {lowest.epsilon:g})"
    yield Bar(
        "the lowest of every mode that reports, as served, R@400", f">= -{SLACK} to popularity", named, mean >= -SLACK
    )
    drops = []
    for sweep in sweeps():
        rows = _rows(frontier, sweep.name, sweep.epsilons)
        drops += [
            (earlier.found[AT_400] - later.found[AT_400], sweep.name)
            for place, earlier in enumerate(rows)
            for later in rows[place + 1 :]
        ]
    drop, mode = max(drops)
    yield Bar(
        "the largest fall as epsilon grows, R@400", f"<= {SLACK}", f"{max(drop, 0.0):.1f} ({mode})", drop <= SLACK
    )


def _attacks(frontier: Frontier) -> Iterator[Bar]:
    known = _attack(frontier.row("popularity (none)", 0.0))
    advantage = _attack(frontier.row("code K=16", 4.0)) - known
    seen = _attack(frontier.row("exact vector", math.inf)) - known
    yield Bar(
        "attack on code K=16 epsilon 4, history R@400 over knowing what is popular",
        "<= 6",
        f"{advantage:+.1f}",
        advantage <= 6,
    )
    yield Bar("attack on the exact vector (else the attack is blind)", ">= 15", f"{seen:+.1f}", seen >= 15)


def _attack(row: FrontierRow) -> float:
    if row.attack is None:
        raise ValueError(f"{row.mode}: has no attack result")
    return row.attack[1]


def _rows(frontier: Frontier, mode: str, epsilons: Sequence[float]) -> list[FrontierRow]:
    return [frontier.row(mode, epsilon) for epsilon in epsilons]


def _at_least(what: str, gain: PairedGain, wanted: float) -> Bar:
    measured = f"{gain.mean:+.2f} ({gain.low:+.1f} .. {gain.high:+.1f})"
    return Bar(what, f">= {wanted:+.1f}", measured, gain.mean >= wanted)


Floats = NDArray[np.float64]

EPOCHS = (2, 4, 8)
SHARPNESSES = (0.35, 0.5, 0.65, 0.8, 1.0, 1.25)
ATTACK_SHARPNESSES = (0.6, 1.0, 1.5, 2.0, 3.0)
FIRST_SHARPNESSES = (1.0, 2.0, 4.0, 6.0, 8.0, 12.0)
BOOK_SEEDS = (7, 8)
DEFAULT = (4.0, 16)
TUNED_AT = {4: 2.0, 8: 4.0, 16: 4.0, 32: 4.0, 64: 8.0}
BASIS, KEY_SHARPNESS, PAPER_BASIS, PAPER_CLIP, PAPER_CHANNELS = 64, 8.0, 30, 0.2, 5
SUBSPACES = (16, 32)
"""Bytes per article of the quantised pool on the device."""
PAGE = 20


def choose(titles: Vectors, first: Vectors, validation: WarmSplit) -> ValidationChoice:
    """Make all choices on the validation readers.

    first [n, D]: the untrained vectors of a first release.
    """
    towers = train_tower(titles, validation.train, kept=EPOCHS)
    studies = {epoch: _study(titles @ matrix.T, validation) for epoch, matrix in towers.items()}
    best_of = {epoch: _best(study, study.exact, SHARPNESSES) for epoch, study in studies.items()}
    epoch = max(EPOCHS, key=lambda each: best_of[each][1])
    study = studies[epoch]
    found = {"exact": best_of[epoch][0]}
    for size, epsilon in TUNED_AT.items():
        books = _books(study, size)
        found[f"code {size}"], _ = _best(study, lambda s: _coded(study, books, s, epsilon), SHARPNESSES)  # noqa: B023
    topics = topic_book(study, DEFAULT[1], BOOK_SEEDS[0])
    found["topic book"], _ = _best(study, lambda s: Mixtures(study, topics, s).code(DEFAULT[0]), SHARPNESSES)
    whole = channels(titles, study.news, validation.measured.histories)
    found["channels"], _ = _best(study, lambda s: interests.lists(study, whole, s), SHARPNESSES)
    rebuilt = decomposed(whole, prototypes_of(study, BASIS, BOOK_SEEDS[0]), KEY_SHARPNESS)
    found["basis"], _ = _best(study, lambda s: interests.lists(study, rebuilt, s), (*SHARPNESSES, 1.5))
    untrained = _study(first, validation)
    book = topic_book(untrained, DEFAULT[1], BOOK_SEEDS[0])
    found["first exact"], _ = _best(untrained, untrained.exact, FIRST_SHARPNESSES)
    found["first code"], _ = _best(
        untrained, lambda s: Mixtures(untrained, book, s).code(DEFAULT[0]), FIRST_SHARPNESSES
    )
    attacked = _attacked(study)
    found["attack exact"] = _strongest(attacked, attacked.exact)
    books = _books(study, DEFAULT[1])
    found["attack code"] = _strongest(attacked, lambda s: _coded(attacked, books, s, DEFAULT[0]))
    return ValidationChoice(epoch, found)


def measure(titles: Vectors, first: Vectors, test: WarmSplit, chosen: ValidationChoice) -> Frontier:
    """Return the table on the test readers."""
    news = titles @ train_tower(titles, test.train, kept=(chosen.epoch,))[chosen.epoch].T
    study, untrained, s = _study(news, test), _study(first, test), chosen.sharpness
    attacked, targets = _attacked(study), _histories(test)
    books = {size: _books(study, size) for size in TUNED_AT}
    whole = channels(titles, news, test.measured.histories)
    baseline, ranking = recall(study.popular(), test.measured.targets, test.news), study.ranking(s["exact"])
    page = final_page(study.popular(), ranking, PAGE)
    by_content = study.readers @ study.news.T
    content_page = final_page(study.popular(), by_content, PAGE)
    rows: list[FrontierRow] = []

    def add(
        mode: str, epsilon: float, answers: PossibleLists, attack: PossibleLists | None = None, *, drawn: bool = False
    ) -> None:
        found = recall(answers, test.measured.targets, test.news)
        pages = final_page(answers, ranking, PAGE)
        rows.append(
            FrontierRow(
                mode,
                epsilon,
                tuple(100 * found.mean(axis=0)),
                tuple(paired(found, baseline)),
                100 * float(recall(pages, test.measured.targets, test.news, (PAGE,)).mean()),
                100 * changed(pages, page),
                100 * changed(final_page(answers, by_content, PAGE), content_page),
                drawn,
                None if attack is None else _percentages(attack, targets, test.news),
            )
        )

    add("popularity (none)", 0.0, study.popular(), attacked.popular(), drawn=True)
    add("exact vector", np.inf, study.exact(s["exact"]), attacked.exact(s["attack exact"]), drawn=True)
    for subspaces in SUBSPACES:
        add(f"broadcast {subspaces} B", 0.0, study.broadcast(s["exact"], subspaces), attacked.popular(), drawn=True)
    model = FirstModel.of(first)
    scored, clip = Decomposed.of(model, first, test.measured.histories), model.model.score_clip
    for sweep in sweeps():
        for epsilon in sweep.epsilons:
            attacked_share = None
            if sweep.size is None:
                scale = scale_of(sweep.mode, epsilon, clip)
                draws = range(DRAWS)
                lists = PossibleLists.either(
                    [scored.served(untrained, sweep.mode, clip=clip, noise_scale=scale, draw=draw) for draw in draws]
                )
            elif sweep.mode in ("interest", "code"):
                lists = _coded(study, books[sweep.size], s[f"code {sweep.size}"], epsilon)
                attacked_share = _coded(attacked, books[sweep.size], s["attack code"], epsilon)
            else:
                lists = MIXED[sweep.mode](Mixtures(study, books[sweep.size][0], s[f"code {sweep.size}"]), epsilon)
            add(sweep.name, epsilon, lists, attacked_share, drawn=sweep.drawn)
    topics = topic_book(study, DEFAULT[1], BOOK_SEEDS[0])
    add("code K=16, topic centroids", DEFAULT[0], Mixtures(study, topics, s["topic book"]).code(DEFAULT[0]))
    add("channels, undecomposed", np.inf, interests.lists(study, whole, s["channels"]))
    rebuilt = decomposed(whole, prototypes_of(study, BASIS, BOOK_SEEDS[0]), KEY_SHARPNESS)
    add(f"channels by {BASIS} topics", np.inf, interests.lists(study, rebuilt, s["basis"]))
    basis = prototypes_of(study, PAPER_BASIS, BOOK_SEEDS[0])
    for epsilon in PAPER:
        naive = interests.lists(study, _paper(whole, basis, epsilon), s["channels"])
        add("basis_laplace, naive", epsilon, naive, drawn=True)
    add("exact vector, first release", np.inf, untrained.exact(s["first exact"]))
    cold = Mixtures(untrained, topic_book(untrained, DEFAULT[1], BOOK_SEEDS[0]), s["first code"])
    add("code K=16, first release", DEFAULT[0], cold.code(DEFAULT[0]))
    wide = recall(study.popular(600), test.measured.targets, test.news, (600,)).mean()
    sizes = {subspaces: study.codes(subspaces).nbytes for subspaces in SUBSPACES}
    return Frontier(tuple(rows), chosen, 100 * float(wide), len(test.measured), whole.mean, sizes)


def _study(news: Vectors, split: WarmSplit) -> EmbeddedSplit:
    return EmbeddedSplit(split, news, split.recent_clicks())


def _attacked(study: EmbeddedSplit) -> EmbeddedSplit:
    """Simulate an attacker who searches for the history, so the prior is the popularity of all clicks."""
    return EmbeddedSplit(study.split, study.news, study.split.all_clicks())


def _histories(split: WarmSplit) -> list[Rows]:
    return [np.unique(history) for history in split.measured.histories]


def _books(study: EmbeddedSplit, size: int) -> list[ReportCodebook]:
    return [learned_book(study, size, seed) for seed in BOOK_SEEDS]


def _coded(study: EmbeddedSplit, books: Sequence[ReportCodebook], sharpness: float, epsilon: float) -> PossibleLists:
    return PossibleLists.either([Mixtures(study, book, sharpness).code(epsilon) for book in books])


def _paper(found: Channels, basis: Vectors, epsilon: float) -> Channels:
    """Return the noise scale at which the report of all channels costs epsilon: 2 delta B C / lambda."""
    scale = 2 * PAPER_CLIP * PAPER_BASIS * PAPER_CHANNELS / epsilon
    return noisy(found, basis, clip=PAPER_CLIP, scale=scale, source=SeededNoise(1))


def _best(study: EmbeddedSplit, mode: Callable[[float], PossibleLists], tried: Sequence[float]) -> tuple[float, float]:
    """Return the s with the greatest R@K, averaged over all depths, and that mean."""
    targets, news = study.split.measured.targets, study.split.news
    scored = [(float(recall(mode(s), targets, news).mean()), s) for s in tried]
    mean, s = max(scored)
    return s, mean


def _strongest(study: EmbeddedSplit, mode: Callable[[float], PossibleLists]) -> float:
    targets = _histories(study.split)
    return max(ATTACK_SHARPNESSES, key=lambda s: _percentages(mode(s), targets, study.split.news)[1])


def _percentages(answers: PossibleLists, targets: Sequence[Rows], news: int) -> tuple[float, float]:
    found = 100 * recall(answers, targets, news, (100, 400)).mean(axis=0)
    return float(found[0]), float(found[1])


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
