"""Measures memory and times of a server with a large pool, in a process of its own."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from sqlalchemy import insert

from backend.composition import Services, build_services
from backend.db.engine import migrate, open_engine, writing
from backend.db.tables import NewsRow, VectorRow
from backend.news.item import NewsItem
from backend.news.pool_version import lock_version, raise_version
from backend.releases.store import ReleaseStore
from backend.settings import BackendSettings, load_settings
from experiments.bench.headlines import Floats, basis_of, bench_now, noisy_scores
from experiments.bench.recall_endpoint import ENCODER, RELEASE, publish
from protocol.ids import short_release
from protocol.recall import CHANNELS_LIMIT, RecallRequest
from protocol.server_timing import Stopwatch

NEW_ARTICLES, REQUESTS, LIMIT, CODEBOOK = 100, 200, 400, 16
ROWS_AT_ONCE = 20_000
MINUTES_APART = 0.02
"""Minutes between two articles: a million in two weeks, so that none expires during the bench."""


def served_pool(seeds: Floats, count: int) -> dict[str, float]:
    """Return the measurements of a server with `count` articles, whose vectors are noisy copies of `seeds`."""
    from experiments.bench.large_pools import noisy_copies

    with TemporaryDirectory(prefix="ownfeed-large-pool-") as scratch:
        folder = Path(scratch)
        settings = load_settings(data_dir=folder)
        vectors = noisy_copies(seeds, count + NEW_ARTICLES, folder / "vectors.f32")
        _fill(settings, vectors[:count])
        new = folder / "new.npy"
        np.save(new, vectors[count:])
        command = [sys.executable, "-m", "experiments.bench.large_pool_server", scratch, str(new)]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    figures: dict[str, float] = json.loads(output)
    return figures


def _fill(settings: BackendSettings, vectors: Floats) -> None:
    """Write the pool's rows and vectors directly into its tables, and publish a release."""
    migrate(settings.database_url)
    engine, now = open_engine(settings.database_url), bench_now()
    for start in range(0, len(vectors), ROWS_AT_ONCE):
        numbers = range(start, min(start + ROWS_AT_ONCE, len(vectors)))
        news = [
            {
                "number": number + 1,
                "arrival": number + 1,
                "id": f"h{number}",
                "title": f"Headline {number} of a pool with as many words as others have",
                "abstract": "What it says in two sentences, each of them as long as such sentences are. " * 2,
                "url": f"https://news.example/{number}",
                "publisher": f"Paper {number % 50}",
                "section": f"section{number % 12}",
                "topic": f"topic{number % 90}",
                "published_at": now - timedelta(minutes=MINUTES_APART * (len(vectors) - number)),
                "weight": 0.5,
                "source": "bench",
                "content_digest": number.to_bytes(16),
                "added_at": now,
                "updated_at": now,
            }
            for number in numbers
        ]
        coded = [{"encoder": ENCODER, "news": number + 1, "vector": vectors[number].tobytes()} for number in numbers]
        with writing(engine) as connection:
            lock_version(connection)
            connection.execute(insert(NewsRow), news)
            connection.execute(insert(VectorRow), coded)
            raise_version(connection, (number + 1 for number in numbers), next_number=numbers[-1] + 2)
    publish(ReleaseStore.open(engine, settings), basis_of(vectors[:ROWS_AT_ONCE]), np.asarray(vectors[:ROWS_AT_ONCE]))
    engine.dispose()


def _figures(services: Services, build_sec: float, new: Floats) -> dict[str, float]:
    found = {"articles": float(len(services.live.current)), "catalogue, lists and scan built, s": build_sec}
    coded = {"kind": "code", "codebook": CODEBOOK}
    by_code = [_answer_ms(services, {**coded, "code": number % CODEBOOK}) for number in range(REQUESTS)]
    by_scores = [_answer_ms(services, _scores(seed)) for seed in range(REQUESTS)]
    found |= {
        "by code, p95 ms": float(np.percentile(by_code, 95)),
        "scores, C = 5, p50 ms": float(np.percentile(by_scores, 50)),
        "scores, C = 5, p95 ms": float(np.percentile(by_scores, 95)),
        **_memory("serving"),
    }
    with _asking(services) as meanwhile:
        started = time.perf_counter()
        _deliver(services, new)
        found["ingestion of them, s"] = time.perf_counter() - started
        while "new0" not in services.live.current.ids:
            services.updater.step()
        found[f"{NEW_ARTICLES} new articles searchable after, s"] = time.perf_counter() - started
    found |= {"slowest answer meanwhile, ms": max(meanwhile), **_memory("after them")}
    with _asking(services) as meanwhile:
        started = time.perf_counter()
        services.updater.rebuild()
        found["all rebuilt after, s"] = time.perf_counter() - started
    return found | {
        "slowest answer during it, ms": max(meanwhile),
        **_memory("after it"),
        "answers during it": len(meanwhile),
    }


@contextmanager
def _asking(services: Services) -> Iterator[list[float]]:
    """Send requests by scores in the background, and note the time of each answer."""
    took: list[float] = []
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            took.append(_answer_ms(services, _scores(len(took))))
            done.wait(0.05)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield took
    finally:
        done.set()
        asking.join()


def _deliver(services: Services, new: Floats) -> None:
    """Ingest new articles as usual, with vectors stored as by an embedder."""
    items = [
        NewsItem(
            id=f"new{row}",
            title=" ".join(f"w{word}" for word in np.random.default_rng(row).integers(10**6, size=9)),
            abstract="",
            body="",
            publisher="Paper",
            section="section1",
            topic="topic1",
            published_at=bench_now(),
            weight=0.5,
        )
        for row in range(len(new))
    ]
    services.pool.add(items, source="bench")
    services.pool.store_vectors(ENCODER, [item.id for item in items], new)


def _scores(seed: int) -> dict[str, object]:
    return {"kind": "basis_laplace", "scores": noisy_scores(CHANNELS_LIMIT, seed).tolist(), "counts": (17, 12, 9, 7, 5)}


def _answer_ms(services: Services, report: dict[str, object]) -> float:
    request = RecallRequest.model_validate({"release": short_release(RELEASE), "limit": LIMIT, "report": report})
    started = time.perf_counter()
    if services.service.kept(request) is None:
        services.service.answer(request, Stopwatch())
    return (time.perf_counter() - started) * 1_000


def _memory(when: str) -> dict[str, float]:
    """Return this process's memory in MB according to the kernel; empty if the kernel doesn't report it."""
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="utf-8").splitlines() if status.is_file() else []
    held = {line.split(":")[0]: int(line.split()[1]) / 1_000 for line in lines if line.startswith("Rss")}
    return {
        f"{what} memory {when}, MB": held[name] for what, name in (("private", "RssAnon"), ("file", "RssFile")) if held
    }


def main() -> None:
    """Serve the pool of the given folder and print the measurements as JSON."""
    settings = load_settings(data_dir=Path(sys.argv[1]))
    started = time.perf_counter()
    services = build_services(settings)
    built = time.perf_counter() - started
    try:
        print(json.dumps(_figures(services, built, np.load(sys.argv[2]))))  # noqa: T201
    finally:
        services.close()


if __name__ == "__main__":
    main()
