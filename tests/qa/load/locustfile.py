"""A fleet's requests to a backend besides the messages of rounds, for locust (`ownfeed[load]`).

Each user is one device with its own connection: a visit every few minutes, of two pages, is a report by code and the
texts of its answer; in between the device polls for a release and, more often, for a round (`PerformanceSettings`).
Weights are the number of each request in four minutes. Every answer is recorded, and written to the file that
LOAD_ANSWERS names when the test ends (`tests.qa.load.figures`).
"""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path
from typing import Any

from locust import FastHttpUser, events, task

from device_app.uplink.http import IDLE_SEC
from protocol.ids import short_release

CODES, LIMIT, PAGE = 16, 400, 30
EACH_A_SECOND = float(os.environ.get("LOAD_EACH", "0.15"))
ANSWERS: dict[str, list[Any]] = {"at": [], "asked": [], "ms": [], "status": []}


@events.request.add_listener
def keep(name: str, response_time: float, response: Any, exception: BaseException | None, **about: Any) -> None:
    """Record an answer: its status, or the error if there is none."""
    status = getattr(response, "status_code", 0)
    ANSWERS["at"].append(round(time.time(), 3))
    ANSWERS["asked"].append(name)
    ANSWERS["ms"].append(round(response_time, 2))
    ANSWERS["status"].append(status or type(exception).__name__)


@events.test_stop.add_listener
def write(**about: Any) -> None:
    """Write the answers for the driver, which waits for this process to end."""
    if named := os.environ.get("LOAD_ANSWERS"):
        Path(named).write_text(json.dumps(ANSWERS), encoding="utf-8")


class ReadingDevice(FastHttpUser):
    """One device. Sends requests as often as LOAD_EACH says, in requests a second."""

    network_timeout = connection_timeout = 10.0

    def on_start(self) -> None:
        """A device that has synced once."""
        self.dice = random.Random()
        self.etags: dict[str, str] = {}
        self.release, self.shown = "r1", list[str]()
        self.look_for_a_release()

    def wait_time(self) -> float:
        """Return random seconds: otherwise all devices that start in one second would keep in step.

        A device leaves no connection idle for longer than IDLE_SEC, and so never sends while the server closes it.
        """
        wait = self.dice.expovariate(EACH_A_SECOND)
        if wait > IDLE_SEC:
            self.client.client.close()
        return wait

    def known(self, path: str, name: str) -> Any:
        """Send a conditional GET, as devices do."""
        headers = {"If-None-Match": self.etags[path]} if path in self.etags else {}
        answer = self.client.get(path, headers=headers, name=name)
        if answer.status_code == 200 and (etag := answer.headers.get("etag")):
            self.etags[path] = etag
        return answer

    @task(16)
    def look_for_a_round(self) -> None:
        """Poll for rounds, as every training_poll_sec."""
        self.client.get("/v1/rounds/current", name="rounds/current")

    @task(4)
    def look_for_a_release(self) -> None:
        """Poll for a release, as every sync_poll_sec."""
        answer = self.known("/v1/releases/current", "releases/current")
        if answer.status_code == 200:
            self.release = json.loads(answer.json()["manifest"])["release"]

    @task(1)
    def default_list(self) -> None:
        """Request the default list, as in a sync."""
        self.known("/v1/news/front?limit=600", "news/front")

    @task(1)
    def popularity(self) -> None:
        """Request popularity, as in a sync."""
        self.known(f"/v1/releases/{short_release(self.release)}/popularity", "popularity")

    @task(4)
    def read(self) -> None:
        """Read two pages each of two visits: a report, and the texts of its answer."""
        report = {"kind": "code", "codebook": CODES, "code": self.dice.randrange(CODES)}
        body = {"release": short_release(self.release), "limit": LIMIT, "report": report}
        with self.client.post("/v1/recall", json=body, name="recall", catch_response=True) as answer:
            if answer.status_code in (409, 410):  # the device syncs and asks again
                answer.success()
                self.look_for_a_release()
                return
            if answer.status_code != 200:
                return
            ids = [card["id"] for card in answer.json()["candidates"]]
        self.client.post("/v1/news/bodies", json={"ids": ids[:PAGE]}, name="news/bodies")
