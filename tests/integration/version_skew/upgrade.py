"""A rolling upgrade: old and new servers side by side on one PostgreSQL and one folder, with devices of both versions.

Oracle: what devices gave, and wrote into their own databases, against the rounds and releases of the backend's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from sqlalchemy import text

from backend.db.engine import open_engine, reading
from backend.operator import Operator
from device_app.wire.ids import PROTOCOL_HEADER, PROTOCOL_VERSION, short_release
from device_app.wire.offers import SignedOffer, verify_offer
from device_app.wire.rounds import RoundStatus
from device_app.wire.tensors import pack
from tests.doubles.postgres_server import postgres_server
from tests.doubles.round_robin import round_robin
from tests.doubles.small_world import free_port
from tests.integration.version_skew.trees import SkewedDevices, SkewedServer, SkewFailed, Tree, devices_of, server_of
from tests.integration.version_skew.wire import (
    COUNT,
    COUNTS_ALL,
    DEVICES,
    ENDED,
    LOOKS,
    ROUND_SEC,
    exactness,
    followed,
    twice,
)

PLAIN, PLACES = "uni_fedrec_as_printed", 4
"""A round of single updates, and how many are sent to it."""
SPEAKS = {PROTOCOL_HEADER: str(PROTOCOL_VERSION)}


@dataclass
class Upgraded:
    """The two servers and the devices of both versions, which reach either through a proxy."""

    old: SkewedServer
    new: SkewedServer
    operator: Operator
    fleets: list[tuple[SkewedDevices, str]]

    def read(self) -> None:
        """Every reader looks at a new page."""
        for devices, name in self.fleets:
            for do in ("sync", "read"):
                devices.ask(do, name)

    def train(self) -> None:
        """Every device looks for a round, or goes on with one."""
        for devices, name in self.fleets:
            devices.ask("train", name)

    def exactness(self, counts: int) -> tuple[float, list[str]]:
        """As of `exactness`, of what was opened after so many counts."""
        given = [each for devices, _ in self.fleets for each in devices.given()]
        return exactness((self.old.opened() + self.new.opened())[counts:], given)


def rolling(trees: tuple[Tree, Tree], home: Path, cache: Path, say: Callable[[str], None]) -> list[str]:
    """What was wrong; say: told what is done, step by step."""
    old_tree, new_tree = trees
    wrong: list[str] = []
    with ExitStack() as stack:
        database = stack.enter_context(postgres_server())
        data = old_tree.world(home / "rolling", cache, database)
        settings: dict[str, Any] = {"database_url": database, "graphs_dir": str(cache / "old" / "graphs")}
        old = stack.enter_context(server_of(old_tree, data, free_port(), home / "rolling old notes", **settings))
        port = free_port()
        proxy = stack.enter_context(round_robin([old.port, port]))
        fleets = []
        for tree in trees:
            devices = stack.enter_context(devices_of(tree, home / f"rolling {tree.name} log"))
            devices.make(tree.name, DEVICES, proxy, home / "rolling devices" / tree.name, **COUNTS_ALL)
            devices.ask("warm up", tree.name)
            fleets.append((devices, tree.name))

        status = _opened(Operator(old.url, data / "admin.token"))
        while status.state == "open" or status.state == "keys":
            for devices, name in fleets:
                devices.ask("train", name)
            status = Operator(old.url, data / "admin.token").status(status.round)
        new = stack.enter_context(server_of(new_tree, data, port, home / "rolling new notes", **settings))
        say(f"the new server starts and migrates the database while {status.round} is at stage {status.state}")
        world = Upgraded(old, new, Operator(new.url, data / "admin.token"), fleets)

        status = followed(world.operator, status, fleets)
        off, amiss = world.exactness(0)
        wrong += amiss
        say(f"{_words(status)}, begun with the old and ended with both: {off:g} from numpy's sum")
        wrong += _unapplied(status)

        world.read()
        say(f"{2 * DEVICES} devices read on, of either server")
        say(f"single updates, each sent to the other server: {_plain(world, wrong)}")
        world.read()

        wrong += old.wrong()
        status = _opened(world.operator)
        killed = False
        for _ in range(LOOKS):
            world.train()
            status = world.operator.status(status.round)
            if not killed and status.state in ("masked", "agree", "unmask"):
                old.kill()
                killed = True
                say(f"the old server is killed while {status.round} is at stage {status.state}")
            if status.state in ENDED:
                break
        off, amiss = world.exactness(1)
        wrong += amiss
        say(f"{_words(status)}, of which the new server opens the sum: {off:g} from numpy's")
        wrong += _unapplied(status)

        world.train()
        world.read()
        wrong += new.wrong()
        for devices, name in fleets:
            wrong += twice(devices.facts(name)) + devices.failures
        wrong += _rows(database)
        say(_restarted(old_tree, data, home, settings, wrong))
    return [f"rolling upgrade: {each}" for each in wrong]


def _opened(operator: Operator) -> RoundStatus:
    return operator.open_round(COUNT, cohort=2 * DEVICES, cohort_minimum=10, seconds=ROUND_SEC)


def _words(status: RoundStatus) -> str:
    return f"{status.round}: {status.state}, {status.survivors} of {2 * DEVICES}"


def _unapplied(status: RoundStatus) -> list[str]:
    if (status.state, status.survivors) == ("applied", 2 * DEVICES):
        return []
    return [f"{status.round} is {status.state}, with {status.survivors} in it: {status.reason}"]


def _plain(world: Upgraded, wrong: list[str]) -> str:
    """A round whose places are given by one server, and whose updates are sent to the other."""
    status = world.operator.open_round(PLAIN, cohort=PLACES, cohort_minimum=PLACES, seconds=ROUND_SEC)
    servers = (world.old, world.new)
    for place in range(PLACES):
        gives, takes = servers[place % 2], servers[(place + 1) % 2]
        asked = {"protocol": PROTOCOL_VERSION, "release": short_release(status.release), "tasks": ["recall"]}
        answer = httpx.post(f"{gives.url}/v1/rounds/check-in", json=asked | {"round": status.round}, headers=SPEAKS)
        signed = SignedOffer.model_validate_json(answer.raise_for_status().content)
        offer = verify_offer(signed, signed.public_key)
        update = {name: np.full(shape, 0.001, dtype=np.float32) for name, shape in offer.manifest.shapes.items()}
        path = f"/v1/rounds/{status.round}/updates/{offer.pseudonym}"
        headers = SPEAKS | {"content-type": "application/vnd.safetensors"}
        for again in (False, True):
            sent = httpx.put(f"{takes.url}{path}", content=pack(update), headers=headers)
            if not sent.is_success or sent.json()["duplicate"] is not again:
                wrong.append(f"an update sent to the {takes.tree.name} server: {sent.status_code} {sent.text}")
    for _ in range(LOOKS):
        status = world.operator.status(status.round)
        if status.state in ENDED:
            break
        world.train()
    if status.state != "applied" or status.published is None:
        wrong.append(f"{status.round} of single updates: {status.state}, {status.reason}")
        return str(status.state)
    return f"{status.round}: {status.state}, {status.uploaded} updates, published as {status.published}"


def _rows(database: str) -> list[str]:
    """What is there twice, or is missing."""
    engine = open_engine(database)
    with reading(engine) as connection:
        rounds = connection.execute(text("SELECT number, state, reason, published FROM rounds ORDER BY number")).all()
        releases = list(connection.scalars(text("SELECT number FROM releases ORDER BY number")))
    engine.dispose()
    found = [f"round-{number}: {state}, {reason}" for number, state, reason, _ in rounds if state != "applied"]
    published = Counter(number for *_, number in rounds if number is not None)
    found += [f"r{number} is of {count} rounds" for number, count in published.items() if count > 1]
    if releases != list(range(1, len(releases) + 1)) or len(releases) != 1 + len(published):
        found.append(f"releases {releases} of rounds that published {sorted(published)}")
    return found


def _restarted(tree: Tree, data: Path, home: Path, settings: dict[str, Any], wrong: list[str]) -> str:
    """The old version started anew on the schema of the new one."""
    knows = (tree.folder / "backend" / "db" / "schema_readers.py").is_file()
    try:
        with server_of(tree, data, free_port(), home / "rolling again notes", **settings) as server:
            answer = httpx.get(f"{server.url}/v1/releases/current", headers=SPEAKS).raise_for_status()
            if not knows:
                wrong.append("an old server that knows nothing of newer schemas has started on one")
            return f"the old version starts on the new schema and serves {len(answer.content)} bytes of a release"
    except SkewFailed as refused:
        if knows or "does not know" not in str(refused):
            wrong.append(f"the old version doesn't start on the new schema: {refused}")
        return f"the old version refuses to start on the new schema: {str(refused).strip().splitlines()[-1]}"
