"""View model of the latency page: the last requests as waterfalls, percentiles, a histogram."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import numpy as np

from device_app.store.byte_log import TimingStore
from protocol.server_timing import DEVICE_STAGES, SERVER_STAGES
from protocol.text_catalogue import TextCatalogue

WORDS = TextCatalogue("device_app.view_models", "words.toml")


@dataclass(frozen=True)
class StageWords:
    """A short name for tables, and one sentence that explains the stage."""

    name: str
    sentence: str


_DEVICE = {name: StageWords(*pair) for name, pair in WORDS.pairs("device_stages").items()}
_SERVER = {name: StageWords(*pair) for name, pair in WORDS.pairs("server_stages").items()}


def stage_words(name: str, place: str) -> StageWords:
    """Return a stage's name and explanation; an unknown stage keeps its name."""
    known = (_SERVER if place == "server" else _DEVICE).get(name)
    return known or StageWords(name.replace("_", " ").capitalize(), WORDS("stage_unknown"))


LatencyPlace = Literal["device", "network", "server"]
RECALL = "recall"
"""Kind of the background requests for candidates."""
ROUND_STEPS = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)


@dataclass(frozen=True)
class StageTime:
    """One bar of a waterfall; the server's stages lie within the network's bar."""

    name: str
    place: LatencyPlace
    start_ms: float
    ms: float


@dataclass(frozen=True)
class RequestTimes:
    """One feed request: its stages in order, and its total in milliseconds."""

    at: datetime
    kind: str
    total_ms: float
    stages: tuple[StageTime, ...]


@dataclass(frozen=True)
class StagePercentiles:
    """Percentiles of one stage over the `count` requests that had it."""

    name: str
    place: LatencyPlace
    count: int
    p50_ms: float
    p95_ms: float
    p99_ms: float


@dataclass(frozen=True)
class Bin:
    """One bar of the histogram: requests with low_ms <= total < high_ms."""

    low_ms: float
    high_ms: float
    count: int


@dataclass(frozen=True)
class LatencyView:
    """The whole latency page; percentiles are None before the first page.

    recall: the last background request for candidates, from which pages are made. stages covers both.
    """

    requests: tuple[RequestTimes, ...]
    count: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    stages: tuple[StagePercentiles, ...]
    histogram: tuple[Bin, ...]
    recall: RequestTimes | None = None


def waterfall(at: datetime, kind: str, device_ms: dict[str, float], server_ms: dict[str, float]) -> RequestTimes:
    """Return the stages laid end to end in the order they ran.

    The server's stages are centred in the network's bar.
    """
    bars: list[StageTime] = []
    clock_ms = 0.0
    for name in sorted(device_ms, key=_order):
        ms = device_ms[name]
        bars.append(StageTime(name, "network" if name == "network" else "device", clock_ms, ms))
        if name == "network":
            inside_ms = clock_ms + max(0.0, (ms - sum(server_ms.values())) / 2)
            for server_name, part_ms in server_ms.items():
                bars.append(StageTime(server_name, "server", inside_ms, part_ms))
                inside_ms += part_ms
        clock_ms += ms
    return RequestTimes(at, kind, clock_ms, tuple(bars))


def latest(timings: TimingStore, count: int = 200) -> LatencyView:
    """Return the view of the last `count` pages and requests for candidates."""
    times = [waterfall(one.at, one.kind, one.device_ms, one.server_ms) for one in timings.last(count)]
    recalls = [one for one in times if one.kind == RECALL]
    return latency_view([one for one in times if one.kind != RECALL], recalls)


def latency_view(
    requests: Sequence[RequestTimes], recalls: Sequence[RequestTimes] = (), *, shown: int = 20
) -> LatencyView:
    """Return percentiles and histogram over all `requests`, waterfalls of the newest `shown`.

    requests are pages, newest first.
    """
    totals, last = np.array([one.total_ms for one in requests]), next(iter(recalls), None)
    if not len(totals):
        return LatencyView((), 0, None, None, None, (), (), last)
    p50, p95, p99 = (float(value) for value in np.percentile(totals, [50, 95, 99]))
    edges = round_edges(float(totals.min()), float(totals.max()))
    counts, _ = np.histogram(totals, bins=edges)
    return LatencyView(
        requests=tuple(requests[:shown]),
        count=len(requests),
        p50_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
        stages=_stage_figures([*requests, *recalls]),
        histogram=tuple(
            Bin(float(low), float(high), int(count))
            for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
        ),
        recall=last,
    )


def round_edges(low_ms: float, high_ms: float) -> list[float]:
    """Return histogram edges that enclose low_ms and high_ms, each about 1.5 times the previous one.

    Latencies have long tails: even steps would put nearly all of them into one bar.
    """
    ladder = [step * 10.0**power for power in range(-2, 7) for step in ROUND_STEPS]
    first = max(sum(edge <= low_ms for edge in ladder) - 1, 0)
    last = next((at for at, edge in enumerate(ladder) if edge > high_ms), len(ladder) - 1)
    edges = ladder[first : max(last, first + 1) + 1]
    return [0.0 if low_ms < edges[0] else edges[0], *edges[1:-1], max(edges[-1], high_ms)]


def _stage_figures(requests: Sequence[RequestTimes]) -> tuple[StagePercentiles, ...]:
    times: dict[tuple[LatencyPlace, str], list[float]] = {}
    for one in requests:
        for stage in one.stages:
            times.setdefault((stage.place, stage.name), []).append(stage.ms)
    figures = []
    for place, name in sorted(times, key=_stage_order):
        p50, p95, p99 = (float(value) for value in np.percentile(times[place, name], [50, 95, 99]))
        figures.append(StagePercentiles(name, place, len(times[place, name]), p50, p95, p99))
    return tuple(figures)


def _stage_order(stage: tuple[LatencyPlace, str]) -> tuple[int, int]:
    """Return the sort key: the order in which stages run, the server's within the network's."""
    place, name = stage
    if place == "server":
        known = SERVER_STAGES.index(name) if name in SERVER_STAGES else len(SERVER_STAGES)
        return _order("network"), 1 + known
    return _order(name), 0


def _order(stage: str) -> int:
    return DEVICE_STAGES.index(stage) if stage in DEVICE_STAGES else len(DEVICE_STAGES)
