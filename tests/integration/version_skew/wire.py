"""Devices of one version at a backend of the other: they read and report in every mode, and sum exactly together.

Oracle: what devices wrote into their byte logs against what the server heard, and numpy's sum of what they gave.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from backend.federation.systems import SYSTEMS
from backend.operator import Operator
from device_app.privacy.modes import MODES
from device_app.wire.protections import SecureSum
from device_app.wire.rounds import RoundStatus
from tests.doubles.small_world import free_port
from tests.integration.version_skew.trees import SkewedDevices, SkewedServer, SkewFailed, Tree, devices_of, server_of

COUNT = "private_counts"
DEVICES = 8
"""Of each version in a round; a device declines a sum that fewer than ten may open."""
ROUND_SEC = 3_600.0
"""No stage may end by its time, however busy the machine is."""
LOOKS = 400
COUNTS_ALL: dict[str, Any] = {"training": False, "epsilon_per_day_counts": 1e9, "epsilon_per_day_alone": 1e9}
"""A reader's privacy, for several counts a day."""
ENDED = ("applied", "failed")
ANSWERED = (200, 204, 304)
NEW_ONLY = ("/v1/pictures",)
"""What a new device asks for and an old backend answers with 404."""
ONES_OWN: dict[str, str] = {"none": "front", "auto": ""}
"""Modes whose feed need not be ranked by a report or the whole pool; auto goes by the pool's size."""


def pair(devices_tree: Tree, server_tree: Tree, data: Path, home: Path, graphs: Path) -> tuple[str, list[str]]:
    """A device for each mode of reporting that both know, at a server of its own. What was done, and what was wrong."""
    name = f"{devices_tree.name} devices at the {server_tree.name} backend"
    modes = [mode for mode in MODES if mode in known_modes(devices_tree) & known_modes(server_tree)]
    wrong: list[str] = []
    with ExitStack() as stack:
        server = stack.enter_context(
            server_of(server_tree, data, free_port(), home / f"{name} notes", graphs_dir=str(graphs))
        )
        devices = stack.enter_context(devices_of(devices_tree, home / f"{name} log"))
        found = [read_in(mode, devices, server, home / name) for mode in modes]
        for mode, facts in zip(modes, found, strict=True):
            wrong += [f"{name}, {mode}: {each}" for each in _amiss(facts, mode, skewed=devices_tree != server_tree)]
        wrong += [f"{name}: {each}" for each in devices.failures + _unlogged(found, server) + server.wrong()]
        told = Counter(each["status"] for each in server.heard() if each["path"] != "/v1/health")
        reports = Counter(kind for facts in found for kind in facts["reports"])
        lines = [line for line in devices.ask("heard")["log"] if "pictures" in line]
        for mode in modes:
            devices.ask("close", mode)
        if devices_tree.name == "new" and server_tree.name == "old" and not lines:
            wrong.append(f"{name}: nothing in the log says that the backend has no pictures")
    done = f"{name}: {len(modes)} modes, {sum(map(len, (each['items'] for each in found)))} stories on their pages"
    return f"{done}; answers {dict(told)}; reports {dict(reports)}", wrong


def known_modes(tree: Tree) -> set[str]:
    """Modes of reporting that a version has."""
    done = tree.run("-c", "import json; from device_app.privacy.modes import MODES; print(json.dumps(list(MODES)))")
    return set(json.loads(done.stdout))


def read_in(mode: str, devices: SkewedDevices, server: SkewedServer, folder: Path) -> dict[str, Any]:
    """A reader's first visits, and another."""
    budget: dict[str, Any] = {"epsilon_per_day_reports": 1_000.0, "epsilon_lifetime_reports": None}
    devices.make(mode, 1, server.url, folder, mode=mode, training=False, **budget)
    for do in ("warm up", "sync", "read"):
        devices.ask(do, mode)
    (found,) = devices.facts(mode)
    return found


def _amiss(facts: dict[str, Any], mode: str, *, skewed: bool) -> list[str]:
    """What a reader of this mode misses."""
    found = []
    if facts["release"] is None:
        found.append("no release")
    if not facts["items"] or not facts["clicks"]:
        found.append(f"{len(facts['items'])} stories, {facts['clicks']} clicks")
    if facts["alerts"]:
        found.append(f"the reader is told: {facts['alerts']}")
    if (wanted := ONES_OWN.get(mode, "personal")) and facts["mode"] != wanted:
        found.append(f"the feed is {facts['mode']}: {facts['notice']}")
    if (MODES[mode].report is not None) != (set(facts["reports"]) == {mode}):
        found.append(f"it reported by {facts['reports']}")
    for method, path, _, status in facts["sent"]:
        if status not in ANSWERED and not (skewed and status == 404 and path in NEW_ONLY):
            found.append(f"{method} {path} was answered {status}")
    return found


def _unlogged(devices: Iterable[dict[str, Any]], server: SkewedServer) -> list[str]:
    """Requests that stand in one account and not in the other."""
    logged = Counter(tuple(line) for facts in devices for line in facts["sent"])
    heard = Counter(
        (
            each["method"],
            f"{each['path']}?{each['query']}" if each["query"] else each["path"],
            sha256(each["body"]).hexdigest(),
            each["status"],
        )
        for each in server.heard()
        if each["path"] not in ("/v1/health",)
    )
    odd = [f"only in byte logs: {line}" for line in logged - heard]
    return odd + [f"heard, and in no byte log: {line}" for line in heard - logged]


def exactness(opened: Sequence[list[float]], given: Sequence[str]) -> tuple[float, list[str]]:
    """How far the one count that was opened is from numpy's sum; and what else is wrong with it."""
    if len(opened) != 1 or not given:
        return float("inf"), [f"{len(opened)} counts were opened, of {len(given)} vectors"]
    protection = SYSTEMS[COUNT].protection
    assert isinstance(protection, SecureSum)
    vectors = np.array([np.frombuffer(bytes.fromhex(each), dtype="<u4") for each in given], dtype=np.int64)
    total = (vectors.sum(axis=0) & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
    off = float(np.abs(np.array(opened[0]) - total[:-1] * 2.0**-protection.fraction_bits).max())
    wrong = [] if off == 0.0 else [f"the sum is {off:g} from numpy's"]
    if int(total[-1]) != len(given):
        wrong.append(f"{total[-1]} gave of {len(given)}")
    return off, wrong


def followed(operator: Operator, status: RoundStatus, fleets: Sequence[tuple[SkewedDevices, str]]) -> RoundStatus:
    """A round to its end, with all of these devices. Raises SkewFailed where it never ends."""
    for _ in range(LOOKS):
        for devices, name in fleets:
            devices.ask("train", name)
        status = operator.status(status.round)
        if status.state in ENDED:
            return status
    raise SkewFailed(f"{status.round} is still in state {status.state} after {LOOKS} looks of {len(fleets)} fleets")


def mixed(trees: Sequence[Tree], server_tree: Tree, data: Path, home: Path, graphs: Path) -> tuple[str, list[str]]:
    """A count by devices of both versions. What was done, and what was wrong."""
    name = f"old and new devices in one count at the {server_tree.name} backend"
    with ExitStack() as stack:
        notes = home / f"{name} notes"
        server = stack.enter_context(server_of(server_tree, data, free_port(), notes, graphs_dir=str(graphs)))
        fleets = []
        for tree in trees:
            devices = stack.enter_context(devices_of(tree, home / f"{name} {tree.name} log"))
            devices.make(tree.name, DEVICES, server.url, home / name / tree.name, **COUNTS_ALL)
            devices.ask("warm up", tree.name)
            fleets.append((devices, tree.name))
        operator = Operator(server.url, data / "admin.token")
        cohort = DEVICES * len(trees)
        status = operator.open_round(COUNT, cohort=cohort, cohort_minimum=10, seconds=ROUND_SEC)
        status = followed(operator, status, fleets)
        given = [each for devices, _ in fleets for each in devices.given()]
        off, wrong = exactness(server.opened(), given)
        wrong += [each for devices, _ in fleets for each in devices.failures]
        wrong += server.wrong()
        if (status.state, status.survivors) != ("applied", cohort):
            wrong.append(f"{status.state}, {status.survivors} survivors: {status.reason}")
        for devices, fleet in fleets:
            devices.ask("train", fleet)  # hears how it ended
            wrong += twice(devices.facts(fleet))
    done = f"{name}: {status.state}, {status.survivors} of {cohort}, {off:g} from numpy's sum"
    return done, [f"{name}: {each}" for each in wrong]


def twice(devices: Iterable[dict[str, Any]]) -> list[str]:
    """Rounds that devices paid for more than once, or have no part in."""
    found = []
    for facts in devices:
        charged = Counter(subject for channel, _, _, subject in facts["charges"] if channel in ("training", "counts"))
        found += [f"{facts['profile']}: {round_id} charged {n} times" for round_id, n in charged.items() if n > 1]
        found += [f"{facts['profile']}: {each}" for each in facts["rounds"] if each[1] not in ("uploaded", "applied")]
        if facts["alerts"]:
            found.append(f"{facts['profile']}: the reader is told {facts['alerts']}")
    return found
