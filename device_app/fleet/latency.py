"""Measures a server end to end by simulated readers: `python -m device_app.fleet.latency URL READERS PAGES FOLDER`.

Each reader is a complete device. It reads until there is something to report, and then asks for new pages one after
another. Every page counts with the request for candidates before it, as in `ownfeed bench latency`. Prints one
`MeasuredLatency` as JSON. The readers' devices are made in the folder.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from device_app.fleet.fleet import Fleet, Member, read, warm_up
from device_app.settings import DeviceSettings, PrivacySettings
from protocol.fleet_figures import MeasuredLatency, MeasuredStage
from protocol.server_timing import DEVICE_STAGES, SERVER_STAGES

REQUEST, PAGE = "recall", "feed"
NETWORK = DEVICE_STAGES.index("network")
Stages = Mapping[str, float]


class StageRecorder:
    """Collects the pages of one device, each with the request for candidates before it.

    pages: (milliseconds of the device's stages, of the server's stages).
    """

    def __init__(self) -> None:
        self.pages: list[tuple[Stages, Stages]] = []
        self._asked: tuple[Stages, Stages] | None = None

    def hear(self, kind: str, device_ms: Stages, server_ms: Stages) -> None:
        """Receive the times of one request; a page without a request before it doesn't count."""
        if kind == REQUEST:
            self._asked = dict(device_ms), dict(server_ms)
        elif kind == PAGE and self._asked is not None:
            earlier, server = self._asked
            whole = {
                name: earlier.get(name, 0.0) + device_ms.get(name, 0.0) for name in earlier.keys() | device_ms.keys()
            }
            self.pages.append((whole, server))
            self._asked = None


def stages_of(pages: list[tuple[Stages, Stages]], readers: int) -> MeasuredLatency:
    """Return p50 and p95 of every stage. Expects at least one page.

    The server's stages are subtracted from the device's wait for the network, which contains them.
    """
    rows = []

    def add(place: str, name: str, values: list[float]) -> None:
        p50, p95 = np.percentile(values, (50, 95))
        rows.append(MeasuredStage.model_validate({"place": place, "name": name, "p50_ms": p50, "p95_ms": p95}))

    for name in DEVICE_STAGES[:NETWORK]:
        add("device", name, [device.get(name, 0.0) for device, _ in pages])
    waits = [max(0.0, device.get("network", 0.0) - sum(server.values())) for device, server in pages]
    add("network", "network", waits)
    for name in SERVER_STAGES:
        add("server", name, [server.get(name, 0.0) for _, server in pages])
    for name in DEVICE_STAGES[NETWORK + 1 :]:
        add("device", name, [device.get(name, 0.0) for device, _ in pages])
    add("whole", "total", [sum(device.values()) for device, _ in pages])
    return MeasuredLatency(readers=readers, pages=len(pages), stages=tuple(rows))


def measure(settings: DeviceSettings, readers: int, pages: int) -> MeasuredLatency:
    """Let each of `readers` readers request `pages` pages.

    Raises RuntimeError with the first device's error, or if no page was made.
    """
    fleet = Fleet(settings, readers, seed=7, prefix="latency")
    recorders = [StageRecorder() for _ in fleet.members]

    def ask(member: Member) -> None:
        for _ in range(pages):
            read(member)

    try:
        fleet.run(warm_up)
        for member, recorder in zip(fleet.members, recorders, strict=True):
            member.device.parts.stores.timings.listen(recorder.hear)
        fleet.run(ask)
        found = [page for recorder in recorders for page in recorder.pages]
        if fleet.failures or not found:
            raise RuntimeError(next(iter(fleet.failures), "No page was made."))
        return stages_of(found, readers)
    finally:
        fleet.close()


REPORTS = PrivacySettings(clicks_per_report=1, epsilon_per_day_reports=1e9, epsilon_lifetime_reports=1e9)
"""Settings for the benchmark only: every page draws a new report, so that its stages are measured."""


def main(url: str, readers: str, pages: str, folder: str) -> None:
    """Measure and print."""
    settings = DeviceSettings(data_dir=Path(folder), backend_url=url, privacy=REPORTS)
    sys.stdout.write(measure(settings, int(readers), int(pages)).model_dump_json())


if __name__ == "__main__":
    main(*sys.argv[1:])
