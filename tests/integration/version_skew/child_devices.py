"""Devices of the tree it is run under, told what to do by lines of JSON on stdin, each answered by one on stdout.

`{"do": "make", "name": "old", "count": 3, ...}` builds a fleet; every other order names one, and is done by each of its
devices, or by those of the numbers in "only".
"""

from __future__ import annotations

import json
import logging
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from device_app.fleet.fleet import Fleet, Member, catch_up, read, train, warm_up
from device_app.privacy.protections.registry import SecureSumProtection
from device_app.settings import DeviceSettings, PerformanceSettings, PrivacySettings

STEPS: dict[str, Callable[[Member], object]] = {"warm up": warm_up, "read": read, "sync": catch_up, "train": train}
ASKS_ALWAYS: dict[str, Any] = {"recall_max_age_sec": 0, "default_list_limit": 200, "bodies_wait_sec": 0.2}
given: list[str] = []
"""Ring elements that devices gave to sums, before they were masked."""


class KeptLines(logging.Handler):
    """Keeps what the devices log."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """A line more."""
        self.lines.append(f"{record.levelname} {record.name}: {record.getMessage()}")


def overhear() -> None:
    """Note each vector that is given to a sum, the noise in it included."""
    give: Callable[..., Any] = SecureSumProtection.contribute

    def contribute(*args: Any, **kwargs: Any) -> Any:
        made = give(*args, **kwargs)
        given.append(made.vector.tobytes().hex())
        return made

    SecureSumProtection.contribute = contribute  # type: ignore[method-assign]


def made(order: dict[str, Any]) -> Fleet:
    """Devices of one backend."""
    settings = DeviceSettings(
        data_dir=Path(order["folder"]),
        backend_url=order["url"],
        privacy=PrivacySettings(**order["privacy"]),
        performance=PerformanceSettings(**ASKS_ALWAYS),
    )
    return Fleet(settings, order["count"], seed=order["seed"], prefix=order["name"])


def facts(member: Member) -> dict[str, Any]:
    """What a device holds and shows; asks nobody but for its feed."""
    device = member.device
    stores, release, feed = device.parts.stores, device.release(), device.feed()
    sent = stores.database.rows("SELECT method, url, body_sha256, status, body FROM traffic ORDER BY id")
    return {
        "profile": device.settings.profile,
        "folder": str(device.settings.home),
        "release": release.manifest.release if release else None,
        "mode": feed.mode,
        "items": [item.card.id for item in feed.items],
        "notice": feed.notice,
        "alerts": [alert.words for alert in device.alerts.now()],
        "clicks": stores.clicks.count(),
        "sent": [[method, _path(url), sha, status] for method, url, sha, status, _ in sent],
        "reports": [json.loads(body)["report"]["kind"] for _, url, _, _, body in sent if url.endswith("/v1/recall")],
        "charges": stores.database.rows("SELECT channel, mechanism, epsilon, subject FROM charge ORDER BY id"),
        "rounds": stores.database.rows("SELECT round, state, detail FROM participation ORDER BY round"),
    }


def copied(member: Member, target: Path) -> None:
    """A device's database as it is now, while it is open."""
    source = sqlite3.connect(member.device.settings.database)
    target.parent.mkdir(parents=True)
    kept = sqlite3.connect(target)
    source.backup(kept)
    kept.close()
    source.close()


def _path(url: str) -> str:
    split = urlsplit(url)
    return f"{split.path}?{split.query}" if split.query else split.path


def done(order: dict[str, Any], fleet: Fleet) -> dict[str, Any]:
    """An order for a fleet, and what came of it."""
    members = [fleet.members[number] for number in order.get("only", range(len(fleet.members)))]
    answer: dict[str, Any] = {}
    if order["do"] == "facts":
        answer["devices"] = [facts(member) for member in members]
    elif order["do"] == "copy":
        copied(members[0], Path(order["target"]))
    elif len(members) == len(fleet.members):
        fleet.run(STEPS[order["do"]])
    else:
        for member in members:
            STEPS[order["do"]](member)
    answer["failures"] = fleet.failures[:]
    fleet.failures.clear()
    return answer


def main() -> None:
    """Until stdin ends."""
    overhear()
    log = KeptLines()
    logging.getLogger("device_app").setLevel(logging.INFO)
    logging.getLogger().addHandler(log)
    fleets: dict[str, Fleet] = {}
    for line in sys.stdin:
        order = json.loads(line)
        answer: dict[str, Any] = {}
        try:
            if order["do"] == "make":
                fleets[order["name"]] = made(order)
            elif order["do"] == "heard":
                answer = {"given": given[:], "log": log.lines[:]}
                given.clear()
                log.lines.clear()
            elif order["do"] == "close":
                fleets.pop(order["name"]).close()
            else:
                answer = done(order, fleets[order["name"]])
        except Exception as fault:
            answer["fault"] = f"{type(fault).__name__}: {fault}"
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    for fleet in fleets.values():
        fleet.close()


if __name__ == "__main__":
    main()
