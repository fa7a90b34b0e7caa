"""What the last version says on the wire, and what it leaves in its folders, written into a file that tests replay.

`last-version.tar.xz` holds:
- `facts.json`: of which revision and when, the round that was under way, and the numbers it opened later;
- `exchanges.json`: every kind of request of its devices, and the answers of its backend; then those of the round from
  the moment on at which the folders were copied;
- `backend/` and `device/`: the folders of that moment, half of the round's masked vectors in the sum, and one device;
- `code/`: its wire (`device_app/wire`), which reads what this version writes.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tarfile
from base64 import b64encode
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from backend.operator import Operator
from device_app.wire.ids import PROTOCOL_HEADER, PROTOCOL_VERSION
from tests.doubles.small_world import free_port
from tests.integration.version_skew.trees import ROOT, SkewedDevices, SkewFailed, Tree, devices_of, server_of
from tests.integration.version_skew.wire import COUNT, LOOKS, ROUND_SEC, known_modes, read_in

RECORDED = ROOT / "tests" / "integration" / "data" / "last-version.tar.xz"
EVERY = 8
"""Of the small world's articles so many-th are enough."""
DEVICES = 12
ASKED_BESIDES = (
    "/v1/health", "/v1/keys", "/v1/releases/chain?last=1", "/v1/releases/1/vectors", "/v1/releases/1", "/v1/pictures",
)  # fmt: skip
"""What its devices ask for only after a rotation or with another encoder, and what they never ask for."""
KEPT_HEADERS = ("accept", "accept-encoding", "content-type", "if-none-match", PROTOCOL_HEADER)
LEFT_OUT = (
    "looks",
    "*.log*",
    "*.lock",
    "*-wal",
    "*-shm",
    "servers",
    "uploads",
    "copies",
    "index",
    "browser-builds.json",
)


def record(old: Tree, revision: str, home: Path) -> list[str]:
    """Write the file; what was recorded. Raises SkewFailed."""
    data, folder = old.world(home / "recorded", home / "cache", every=EVERY), home / "archive"
    settings: dict[str, Any] = {"graphs_dir": str(home / "cache" / "old" / "graphs")}
    port, notes = free_port(), home / "recorded notes"
    folder.mkdir()
    with devices_of(old, home / "recorded log") as devices:
        with server_of(old, data, port, notes / "1", **settings) as server:
            modes = sorted(known_modes(old))
            for mode in modes:
                read_in(mode, devices, server, home / "recorded devices")
            for path in ASKED_BESIDES:
                httpx.get(f"{server.url}{path}", headers={PROTOCOL_HEADER: str(PROTOCOL_VERSION)})
            devices.make("round", DEVICES, server.url, home / "recorded devices", mode="none", training=False)
            devices.ask("warm up", "round")
            operator = Operator(server.url, data / "admin.token")
            status = operator.open_round(COUNT, cohort=DEVICES, cohort_minimum=10, seconds=ROUND_SEC)
            _until(devices, operator, status.round, ("masked",))
            while (uploaded := operator.status(status.round).uploaded) < DEVICES // 2:
                devices.ask("train", "round", only=[uploaded])
            (profile, *_) = devices.facts("round")
            pseudonym = next(path.rpartition("/")[2] for _, path, _, _ in profile["sent"] if "/keys/" in path)
            moment = datetime.now(UTC)
            devices.ask("copy", "round", only=[0], target=str(folder / "device" / "device.sqlite"))
            heard = _each_kind(server.heard(), data / "blobs")
        shutil.copytree(data, folder / "backend", ignore=shutil.ignore_patterns(*LEFT_OUT))
        with server_of(old, data, port, notes / "2", **settings) as server:
            ended = _until(devices, Operator(server.url, data / "admin.token"), status.round, ("applied", "failed"))
            later = [_kept(each, data / "blobs") for each in server.heard() if f"/{status.round}/" in each["path"]]
            opened = server.opened()
    if ended != "applied" or devices.failures:
        raise SkewFailed(f"{status.round} is {ended}; {devices.failures}")
    facts = {
        "revision": revision, "protocol": PROTOCOL_VERSION, "at": moment.isoformat(), "modes": modes,
        "round": status.round, "devices": DEVICES, "uploaded": uploaded, "profile": profile["profile"],
        "pseudonym": pseudonym,        "opened": opened[0], "clicks": profile["clicks"],
    }  # fmt: skip
    (folder / "facts.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")
    (folder / "exchanges.json").write_text(json.dumps({"any time": heard, "round": later}, indent=1), encoding="utf-8")
    _copy_code(old, folder / "code")
    _vacuum(folder)
    _pack(folder)
    size = RECORDED.stat().st_size
    return [f"{len(heard)} exchanges, {len(later)} of {status.round}, {size:,} bytes: {RECORDED.relative_to(ROOT)}"]


def _until(devices: SkewedDevices, operator: Operator, round_id: str, states: tuple[str, ...]) -> str:
    """Have the devices go on with the round until it is in one of these states. Raises SkewFailed."""
    for look in range(LOOKS * DEVICES):  # one after the other, so that none goes on while a state is looked at
        if (state := operator.status(round_id).state) in states:
            return state
        devices.ask("train", "round", only=[look % DEVICES])
    raise SkewFailed(f"{round_id} never came to {states}")


def _kept(each: dict[str, Any], blobs: Path) -> dict[str, Any]:
    """A request and its answer as they are kept; most blobs are in the folder."""
    answer = b"" if (blobs / each["path"].rpartition("/")[2]).is_file() else each["answer"]
    return {
        "method": each["method"],
        "target": f"{each['path']}?{each['query']}" if each["query"] else each["path"],
        "headers": {name: value for name, value in each["headers"] if name in KEPT_HEADERS},
        "body": b64encode(each["body"]).decode(),
        "status": each["status"],
        "answer_headers": {name: value for name, value in each["answer_headers"] if name != "date"},
        "answer": b64encode(answer).decode(),
    }


def _each_kind(heard: list[dict[str, Any]], blobs: Path) -> list[dict[str, Any]]:
    """The first of every kind of request: by method, address, status, and the mode of a report."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for each in heard:
        if each["path"].startswith("/v1/admin/"):
            continue
        place = each["path"] if each["method"] == "GET" else each["path"].rpartition("/")[0]
        report = json.loads(each["body"])["report"]["kind"] if each["path"] == "/v1/recall" else None
        found.setdefault((each["method"], place, each["query"], each["status"], report), _kept(each, blobs))
    return list(found.values())


def _copy_code(old: Tree, target: Path) -> None:
    """Its wire, and the golden bytes of it."""
    package = target / "device_app"
    shutil.copytree(old.folder / "device_app" / "wire", package / "wire", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(old.folder / "device_app" / "__init__.py", package)
    shutil.copy(old.folder / "tests" / "contracts" / "data" / "wire.json", target)


def _vacuum(folder: Path) -> None:
    """Databases without what was deleted."""
    for path in folder.rglob("*.sqlite"):
        database = sqlite3.connect(path)
        database.execute("PRAGMA journal_mode=DELETE")
        database.execute("VACUUM")
        database.close()


def _pack(folder: Path) -> None:
    def bare(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        return entry

    with tarfile.open(RECORDED, "w:xz", preset=9) as archive:
        for path in sorted(folder.iterdir()):
            archive.add(path, path.name, filter=bare)
