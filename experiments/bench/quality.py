"""Measures whether live rounds improve the feed.

A fleet trains over HTTP on the newsroom's articles; held-out readers evaluate. The schedule is an operator's: repeated
noisy rounds of the default ranker, sometimes followed by a step of the report codebook or a private count. Releases are
compared by the differences of the same readers, with intervals.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx
import numpy as np
from rich.console import Console

from backend.db.engine import open_engine
from backend.demo import DEMO_ADDRESSES
from backend.measurements.curves import Curve, MeasuredCurves, Point, quality_file
from backend.news.pool import NewsPool
from backend.operations.admin_client import Operator
from backend.settings import BackendSettings, load_settings
from device_app.device import Device
from device_app.fleet.fleet import Fleet, Member, catch_up, read, train, warm_up
from device_app.privacy.mechanisms.code import RandomisedCode
from device_app.ranking.ranker import Ranker
from device_app.ranking.session import GraphSession
from device_app.settings import DeviceSettings, PrivacySettings
from experiments.bench.heldout_readers import Floats, HeldoutReader, Marks, Pool, ServedRanking, heldout_readers, judge
from experiments.bench.newspaper import RunningBackend, free_port, prepared_newspaper, running_backend
from experiments.records import Cell, Table
from protocol.ids import short_release
from protocol.news import NewsCard
from protocol.recall import CodeReport, RecallAnswer, RecallRequest
from protocol.releases import ReleaseManifest
from protocol.rounds import RoundStatus

DRAWS = 2_000
INTERVAL = (2.5, 97.5)


@dataclass(frozen=True)
class MeasuredRelease:
    """A release, and the number of rounds before it."""

    rounds: int
    release: str
    marks: Marks


MEASURES = {
    "auc": "AUC of the small ranker",
    "ranked": "R@100 of the answer, ranked on the device",
    "answered": "R@100 in the server's order",
}


def curves(measured: Sequence[MeasuredRelease]) -> tuple[Curve, ...]:
    """Return one curve for each measure: each release against the first, paired by reader."""
    found = []
    for name, words in MEASURES.items():
        first: Floats = getattr(measured[0].marks, name)
        points = []
        for each in measured:
            mine: Floats = getattr(each.marks, name)
            low, high = gain_interval(mine - first)
            points.append(
                Point(
                    rounds=each.rounds,
                    release=each.release,
                    value=float(mine.mean()),
                    gain=float((mine - first).mean()),
                    low=low,
                    high=high,
                )
            )
        found.append(Curve(name=words, points=tuple(points)))
    return tuple(found)


def gain_interval(gains: Floats) -> tuple[float, float]:
    """Return the 95 % percentile interval of the mean gain, from a bootstrap over readers."""
    dice = np.random.default_rng(0)
    counts = dice.multinomial(len(gains), np.full(len(gains), 1 / len(gains)), size=DRAWS)
    low, high = np.percentile(counts @ gains / len(gains), INTERVAL)
    return float(low), float(high)


DEVICES, COHORT = 66, 60
READERS = 300
ROUNDS = 50
RANKER = "small_ranker/secure/median"
BESIDE = {8: "codebook/exact/mean", 25: "private_counts/secure/huber"}
"""Systems that run one round after this many rounds of the ranker."""
JUDGED_AFTER = (5, 10, 20, 30, 40, 50)
VISITORS_SHARE = 10
"""One reader in this many reads a feed between two rounds."""
CODEBOOK, LIMIT = 16, 400
SECONDS = 240.0
"""Time limit of a round; long, so that a busy machine shows in the results instead of failing a round."""
SEED, HELDOUT_SEED = 7, 11
BACKEND = {
    "OWNFEED_BACKEND_COUNTS_EVERY_MINUTES": "0",
    "OWNFEED_BACKEND_ROUND_TICK_SEC": "0.1",
    **DEMO_ADDRESSES,
}
WILLING = PrivacySettings(
    training=True,
    epsilon_per_day_training=1e9,
    epsilon_per_day_counts=1e9,
    epsilon_per_day_alone=1e9,
    epsilon_per_sum=1e3,
    epsilon_per_sum_alone=1e3,
    epsilon_per_click_alone=1e3,
    secure_sum="exact",
)


def run(data: Path) -> list[Table]:
    """Return two tables: the curves, which are also written for the console, and the rounds."""
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        settings = _folder(home / "backend")
        os.environ.update(BACKEND)
        with running_backend(settings) as backend:
            fleet = Fleet(DeviceSettings(data_dir=home, backend_url=backend.url, privacy=WILLING), DEVICES, seed=SEED)
            try:
                measured, statuses = _live(backend, fleet)
                failures = list(fleet.failures)
            finally:
                fleet.close()
    found = curves(measured)
    return [_curves_table(found), _rounds_table(statuses, failures)]


def _live(backend: RunningBackend, fleet: Fleet) -> tuple[list[MeasuredRelease], list[tuple[RoundStatus, float]]]:
    fleet.run(warm_up)
    now = datetime.now(UTC)
    pool = pool_of(backend.settings, now, _release_of(fleet.members[0].device).encoder)
    readers = heldout_readers(pool, READERS, now, np.random.default_rng(HELDOUT_SEED))
    operator = Operator(backend.url, backend.settings.admin_token_file)
    measured = [_judged(0, backend.url, fleet, pool, readers)]
    statuses: list[tuple[RoundStatus, float]] = []
    for number in range(1, ROUNDS + 1):
        for system in (RANKER, *(name for every, name in BESIDE.items() if number % every == 0)):
            started = time.perf_counter()
            status = play_round(operator, fleet, system, COHORT)
            statuses.append((status, time.perf_counter() - started))
            if status.state != "applied":
                raise RuntimeError(f"{status.round} of {system} failed: {status.reason}")
        for member in fleet.members[number % VISITORS_SHARE :: VISITORS_SHARE]:
            read(member)
        if number in JUDGED_AFTER:
            measured.append(_judged(number, backend.url, fleet, pool, readers))
            _write(curves(measured))
    return measured, statuses


def play_round(operator: Operator, fleet: Fleet, system: str, cohort: int) -> RoundStatus:
    """Open a round, let all devices poll until it is over, and swap to the release that it published."""
    status = operator.open_round(system, cohort=cohort, cohort_minimum=cohort // 2, seconds=SECONDS)
    last: dict[int, str] = {}

    def take_part(member: Member) -> None:
        if last.get(id(member), "waiting") == "waiting":
            outcome = train(member)
            beside = outcome.offer is not None and outcome.offer.manifest.round != status.round
            last[id(member)] = "waiting" if beside else outcome.state

    while status.state not in ("applied", "failed"):
        fleet.run(take_part)
        status = operator.status(status.round)
    fleet.run(catch_up)
    return status


def pool_of(settings: BackendSettings, now: datetime, encoder: str) -> Pool:
    """Return the live articles with their vectors."""
    engine = open_engine(settings.database_url)
    try:
        kept = NewsPool(engine)
        ids, vectors = kept.vectors(encoder)
        place = {news_id: row for row, news_id in enumerate(ids)}
        rows = [row for row in kept.live(now) if row.id in place]
        cards = tuple(
            NewsCard(
                id=row.id,
                title=row.title,
                abstract="",
                url="",
                publisher="",
                section=row.section,
                topic=row.topic,
                published_at=row.published_at,
                weight=row.weight,
            )
            for row in rows
        )
        return Pool(cards, np.asarray(vectors[[place[row.id] for row in rows]], dtype=np.float32))
    finally:
        engine.dispose()


def served(url: str, device: Device, pool: Pool) -> tuple[str, ServedRanking]:
    """Return a device's release as a ranking for held-out readers."""
    release = device.release()
    assert release is not None
    manifest = release.manifest
    name = manifest.default_ranker
    entry = manifest.models[name]
    graph = GraphSession(release.graph(name, "score"), release.weights(name), threads=1, private=entry.private)
    book = manifest.recall.codebook(CODEBOOK)
    assert book is not None
    row_of = {card.id: row for row, card in enumerate(pool.cards)}
    curves = device.parts.stores.popularity.current()
    values: Mapping[str, float] = curves.values if curves else {}
    return release.id, ServedRanking(
        Ranker(graph, name=name, features=entry.features),
        np.array([values.get(card.id, 0.0) for card in pool.cards]),
        release.spaces().prototypes[CODEBOOK],
        RandomisedCode(book.size, book.epsilon),
        [_answer(url, release.id, code, row_of) for code in range(book.size)],
    )


def _answer(url: str, release: str, code: int, row_of: Mapping[str, int]) -> np.ndarray:
    """Return rows of the server's answer to one report, without articles newer than the held-out readers."""
    request = RecallRequest(
        release=short_release(release), limit=LIMIT, report=CodeReport(codebook=CODEBOOK, code=code)
    )
    answer = httpx.post(
        f"{url}/v1/recall",
        content=request.model_dump_json(),
        headers={"content-type": "application/json"},
        timeout=30.0,
    ).raise_for_status()
    cards = RecallAnswer.model_validate_json(answer.content).candidates
    return np.array([row_of[card.id] for card in cards if card.id in row_of], dtype=np.int64)


def _judged(rounds: int, url: str, fleet: Fleet, pool: Pool, readers: list[HeldoutReader]) -> MeasuredRelease:
    release, ranking = served(url, fleet.members[0].device, pool)
    marks = judge(readers, pool, ranking)
    _tell(rounds, release, marks.auc, marks.ranked, marks.answered)
    return MeasuredRelease(rounds, release, marks)


def _tell(rounds: int, release: str, *values: Floats) -> None:
    words = ", ".join(f"{each.mean():.4f}" for each in values)
    Console(stderr=True).print(f"  {rounds} rounds, {release}: {words}", markup=False)


def _release_of(device: Device) -> ReleaseManifest:
    release = device.release()
    assert release is not None
    return release.manifest


def _folder(folder: Path) -> BackendSettings:
    """Copy the newspaper's folder, so that every bench begins with the same release."""
    kept = prepared_newspaper()
    shutil.copytree(kept.data_dir, folder)
    return load_settings(data_dir=folder, host=kept.host, port=free_port())


def _write(found: tuple[Curve, ...]) -> None:
    curves = MeasuredCurves(
        curves=found,
        readers=READERS,
        devices=DEVICES,
        cohort=COHORT,
        measured_at=datetime.now(UTC).replace(second=0, microsecond=0),
    )
    quality_file().parent.mkdir(parents=True, exist_ok=True)
    quality_file().write_text(curves.model_dump_json(indent=1), encoding="utf-8")


def _curves_table(found: tuple[Curve, ...]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for each in found:
        for point in each.points:
            gain = f"{point.gain:+.4f} ({point.low:+.4f} .. {point.high:+.4f})"
            rows.append((each.name, point.rounds, point.release, f"{point.value:.4f}", gain))
    notes = (
        f"{DEVICES} devices over HTTP, {COHORT} in a round; {READERS} held-out readers with known interests judge and "
        f"never take part. Rounds of {RANKER}, "
        + " and ".join(f"{name} every {every}" for every, name in BESIDE.items())
        + ". Gains are paired by reader.",
    )
    return Table(
        "Quality over live rounds, newsroom",
        ("measure", "rounds", "release", "value", "gain (95 %)"),
        rows,
        notes,
        (SEED, HELDOUT_SEED),
    )


def _rounds_table(statuses: list[tuple[RoundStatus, float]], failures: list[str]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name in dict.fromkeys(status.system for status, _ in statuses):
        mine = [(status, seconds) for status, seconds in statuses if status.system == name]
        survivors = [status.survivors or 0 for status, _ in mine]
        epsilons = [status.epsilon for status, _ in mine if status.epsilon is not None]
        rows.append(
            (
                name,
                len(mine),
                float(np.mean(survivors)),
                min(survivors),
                max(epsilons) if epsilons else None,
                float(np.median([seconds for _, seconds in mine])),
            )
        )
    columns = ("system", "rounds", "devices in the sum", "fewest", "epsilon of a round, at most", "median s")
    return Table("The rounds", columns, rows, (f"{len(failures)} devices had an error.",), (SEED,))
