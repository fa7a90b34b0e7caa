"""One view's process can't reach another view's store, memory or gradient.

Oracle: the operating system's refusals.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from safetensors.numpy import load

from device_app.errors import GraphMismatch
from device_app.ranking.session import shared_session
from device_app.store.preferences import TowerStore
from device_app.store.searches import SearchVector
from device_app.stores import DeviceStores
from device_app.training.multiview.job import ViewFailed, ViewJob, ViewTerms, read_frame, to_bytes, write_frame
from device_app.training.multiview.processes import NO_LOCKDOWN, SpawnedViews, ViewWorkers, _environment
from device_app.training.multiview.worker import LockdownUnavailable, lock_down, version
from tests.doubles.news import NOW, synthetic_pool
from tests.doubles.view_graph import view_model

DIM = 8
ROOT = Path(__file__).parents[2]
needs_landlock = pytest.mark.skipif(not version(), reason="this kernel has no Landlock")

PROBE = """
import ctypes, json, os, socket, sqlite3, subprocess, sys
from pathlib import Path
from device_app.training.multiview.worker import lock_down
own, other, victim, port = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
libc = ctypes.CDLL(None, use_errno=True)
def tried(deed):
    try:
        return f"did: {deed()!r}"
    except (OSError, sqlite3.Error) as refused:
        return type(refused).__name__
def traced():
    if libc.ptrace(16, victim, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "ptrace")
def memory_read():
    class Piece(ctypes.Structure):
        _fields_ = [("at", ctypes.c_void_p), ("size", ctypes.c_size_t)]
    buffer = ctypes.create_string_buffer(8)
    here = Piece(ctypes.addressof(buffer), 8)
    if libc.process_vm_readv(victim, ctypes.byref(here), 1, ctypes.byref(Piece(int(sys.argv[5]), 8)), 1, 0) < 0:
        raise OSError(ctypes.get_errno(), "process_vm_readv")
    return buffer.raw
def connected():
    socket.create_connection(("127.0.0.1", port), timeout=2).close()
deeds = {
    "read other": lambda: other.read_bytes()[:4],
    "open other": lambda: sqlite3.connect(other).execute("SELECT count(*) FROM search").fetchone(),
    "write other": lambda: other.open("r+b").close(),
    "list home": lambda: os.listdir(own.parent),
    "make a file": lambda: own.with_name("made").write_bytes(b"x"),
    "remove other": lambda: other.unlink(),
    "link other": lambda: os.link(other, own.with_name("link")),
    "read memory file": lambda: open(f"/proc/{victim}/mem", "rb").read(1),
    "read its pipes": lambda: os.listdir(f"/proc/{victim}/fd"),
    "read memory": memory_read,
    "trace": traced,
    "connect": connected,
    "start a program": lambda: subprocess.run(["/bin/cat", str(other)], capture_output=True).stdout[:4],
    "read own": lambda: own.read_bytes()[:6],
}
harmless = ("read other", "read own", "list home", "connect", "start a program")
before = {name: tried(deeds[name]) for name in harmless}
lock_down([own])
print(json.dumps({"before": before, "after": {name: tried(deed) for name, deed in deeds.items()}}))
"""


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[DeviceStores]:
    """A device with data in both views."""
    made = DeviceStores(tmp_path / "device.sqlite")
    pool = synthetic_pool(60, dim=DIM)
    made.searches.save("axolotl", NOW)
    made.searches.keep_meaning(SearchVector("search", "axolotl", "enc", pool.vectors[0], NOW))
    made.searches.opened("N1", NOW + timedelta(minutes=1))
    made.searches.keep_meaning(SearchVector("news", "N1", "enc", pool.vectors[1], NOW))
    made.clicks.add("N5", "feed", NOW)
    yield made
    made.close()


def job(stores: DeviceStores, **changes: object) -> ViewJob:
    pool, model = synthetic_pool(60, dim=DIM), view_model(DIM)
    made = ViewJob(
        view="searches",
        store=stores.search_database.path,
        encoder="enc",
        model="ranker.multi_view",
        graph=model.graphs["gradient"],
        parameters=model.shared,
        items=(tuple(card.id for card in pool.cards), pool.vectors),
        terms=ViewTerms(clip=0.5, sigma=1.0),
        negatives=4,
        samples_limit=16,
        seed=1,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def held_store(stores: DeviceStores, folder: Path) -> tuple[Path, sqlite3.Connection]:
    """A copy of the searches' store, and the connection that locks it: a view waits for it for BUSY_TIMEOUT_SEC."""
    path = folder / "held.sqlite"
    held, source = sqlite3.connect(path, isolation_level=None), sqlite3.connect(stores.search_database.path)
    source.backup(held)
    source.close()
    held.execute("PRAGMA journal_mode = DELETE")
    held.execute("BEGIN EXCLUSIVE")
    for ending in ("-wal", "-shm"):
        path.with_name(path.name + ending).touch()
    return path, held


@needs_landlock
def test_view_process_cannot_access_another_views_store_or_process(stores: DeviceStores) -> None:
    own, other = stores.database.path, stores.search_database.path
    secret = b"a secret of the other view's process"
    code = (
        "import sys, ctypes; kept = ctypes.create_string_buffer(sys.argv[1].encode()); "
        "print(ctypes.addressof(kept), flush=True); sys.stdin.read()"
    )
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    victim = subprocess.Popen(
        [sys.executable, "-c", code, secret.decode()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert victim.stdin is not None
    assert victim.stdout is not None
    try:
        address = victim.stdout.readline().strip()
        done = subprocess.run(
            [sys.executable, "-c", PROBE, own, other, str(victim.pid), str(listener.getsockname()[1]), address],
            cwd=ROOT,
            env=_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    finally:
        victim.stdin.close()
        victim.wait(10)
        victim.stdout.close()
        listener.close()
    tried = json.loads(done.stdout)
    assert all(each.startswith("did:") for each in tried["before"].values()), tried["before"]
    allowed = {name for name, each in tried["after"].items() if each.startswith("did:")}
    connects = {"connect"} if version() < 4 else set()
    assert allowed == {"read own"} | connects, tried["after"]
    assert tried["after"]["read own"] == "did: b'SQLite'"
    assert other.exists()
    assert not own.with_name("made").exists()


@needs_landlock
def test_view_process_answers_only_a_protected_gradient(stores: DeviceStores) -> None:
    found = SpawnedViews().gradient(job(stores, terms=ViewTerms(clip=0.5, sigma=1e-6)))
    assert found is not None
    assert {name: each.shape for name, each in found.items()} == {
        f"g.{name}": each.shape for name, each in view_model(DIM).shared.items()
    }
    assert np.sqrt(sum(float((each**2).sum()) for each in found.values())) <= 0.5 * (1 + 1e-4)
    kept = TowerStore(stores.search_database).get("ranker.multi_view")
    assert kept is not None, "the view's own process has written its own tower"
    assert TowerStore(stores.database).get("ranker.multi_view") is None


@needs_landlock
def test_each_answer_to_the_same_job_has_fresh_noise(stores: DeviceStores) -> None:
    still = job(stores, terms=ViewTerms(clip=0.5, sigma=1.0, tower_rate=0.0))
    one, two = (SpawnedViews().gradient(still) for _ in range(2))
    assert one is not None
    assert two is not None
    gap = np.concatenate([(one[name] - two[name]).ravel() for name in one])
    assert gap.std() == pytest.approx(0.5 * np.sqrt(2), abs=5 * 0.5 / np.sqrt(len(gap)))


@needs_landlock
def test_view_without_data_returns_none(stores: DeviceStores) -> None:
    assert SpawnedViews().gradient(job(stores, view="reading", store=stores.database.path)) is None


@needs_landlock
def test_graph_whose_weights_point_to_another_views_store_is_not_loaded(
    stores: DeviceStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    # ONNX lets a graph name a file of values, relative to where the process runs: a release could name a store.
    own, other = stores.search_database.path, stores.database.path
    monkeypatch.chdir(other.parent)
    shape = [16, DIM]
    stolen = TensorProto(name="stolen", data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
    for key, value in (("location", other.name), ("offset", "0"), ("length", str(4 * 16 * DIM))):
        stolen.external_data.add(key=key, value=value)
    model = view_model(DIM)
    graph = onnx.load_from_string(model.graphs["gradient"])
    graph.graph.initializer.append(stolen)
    graph.graph.node.append(helper.make_node("Identity", ["stolen"], ["copy"]))
    graph.graph.output.append(helper.make_tensor_value_info("copy", TensorProto.FLOAT, shape))
    thief = graph.SerializeToString()

    plain = onnxruntime.InferenceSession(thief, providers=["CPUExecutionProvider"])
    zeros = {
        each.name: np.zeros([axis if isinstance(axis, int) else 1 for axis in each.shape], np.float32)
        for each in plain.get_inputs()
    }
    seen = plain.run(["copy"], zeros)[0]
    assert seen.tobytes()[:6] == b"SQLite", "ONNX Runtime by itself would let a graph read the store"
    with pytest.raises(GraphMismatch, match="initializers has field 13, which a release"):
        shared_session(thief, threads=1)
    assert SpawnedViews().gradient(job(stores, store=own)) is not None
    with pytest.raises(ViewFailed, match="its process ended with 1"):
        SpawnedViews().gradient(job(stores, store=own, graph=thief))


@needs_landlock
@pytest.mark.parametrize(
    "broken",
    [{"store": Path("nowhere.sqlite")}, {"graph": b"no graph"}, {"negatives": 2}],
    ids=lambda each: next(iter(each)),
)
def test_failed_view_reports_only_that_it_failed(stores: DeviceStores, broken: Mapping[str, object]) -> None:
    with pytest.raises(ViewFailed) as failed:
        SpawnedViews().gradient(job(stores, **broken))
    assert str(failed.value) == "view searches: its process ended with 1"


@needs_landlock
def test_running_view_process_is_locked_down_and_its_memory_unreadable(stores: DeviceStores, tmp_path: Path) -> None:
    """It is inspected while it waits to read the store, which comes after the lockdown."""
    store, held = held_store(stores, tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-m", "device_app.training.multiview.worker"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_environment(), cwd=ROOT,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    try:
        write_frame(process.stdin.fileno(), to_bytes(job(stores, store=store)))
        until = time.monotonic() + 180
        locked = False
        while process.poll() is None and not locked and time.monotonic() < until:
            time.sleep(0.01)
            for view in children.read_text().split():
                with suppress(OSError):
                    locked = "NoNewPrivs:\t1" in Path(f"/proc/{view}/status").read_text()
        assert locked, "the view's process ended, or waited, before it was shut in"
        (view,) = children.read_text().split()
        os.kill(int(view), signal.SIGKILL)
        assert read_frame(process.stdout.fileno()) == b"\x01", "nothing was told but that it failed"
        process.stdin.close()
        assert process.wait(60) == 0, "the worker had gone on, and ended with its last job"
    finally:
        process.kill()
        process.wait(10)
        process.stdin.close()
        process.stdout.close()
        held.close()


@needs_landlock
def test_view_worker_has_one_thread_and_no_open_store(stores: DeviceStores) -> None:
    """A view's process is a copy of the worker, so another thread's lock, or an open store, would be copied too."""
    workers = ViewWorkers(most=1)
    try:
        assert SpawnedViews(workers).gradient(job(stores)) is not None
        ((_, process),) = workers._idle
        assert len(os.listdir(f"/proc/{process.pid}/task")) == 1
        opened = {os.readlink(f"/proc/{process.pid}/fd/{each}") for each in os.listdir(f"/proc/{process.pid}/fd")}
        assert not any("sqlite" in each for each in opened), opened
        assert SpawnedViews(workers).gradient(job(stores)) is not None, "the next job has the same worker"
        assert [each for _, each in workers._idle] == [process]
        process.kill()
        process.wait(10)
        assert SpawnedViews(workers).gradient(job(stores)) is not None, "a worker that has ended is replaced"
    finally:
        workers.close()
    assert process.poll() is not None


@needs_landlock
def test_view_that_times_out_is_ended_and_the_next_job_runs(
    stores: DeviceStores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck, held = held_store(stores, tmp_path)
    workers = ViewWorkers(most=1)
    try:
        monkeypatch.setattr("device_app.training.multiview.processes.LONGEST_SEC", 0.5)
        with pytest.raises(ViewFailed, match="could not be run"):
            SpawnedViews(workers).gradient(job(stores, store=stuck))
        monkeypatch.undo()
        assert SpawnedViews(workers).gradient(job(stores)) is not None
    finally:
        workers.close()
        held.close()


def test_device_without_landlock_has_no_views_and_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert version() == 0
    assert SpawnedViews().why_not() == NO_LOCKDOWN
    with pytest.raises(LockdownUnavailable, match="no Landlock"):
        lock_down([tmp_path])


def test_answer_of_a_view_process_with_other_tensors_is_refused(
    stores: DeviceStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    from safetensors.numpy import save

    answers = iter([save({"g.loss": np.zeros(3)}), b"ships and axolotls"])
    monkeypatch.setattr(ViewWorkers, "answer", lambda *_: (0, next(answers)))
    with pytest.raises(ViewFailed, match="different tensors"):
        SpawnedViews().gradient(job(stores))
    with pytest.raises(ViewFailed, match="no tensors"):
        SpawnedViews().gradient(job(stores))
    assert load(save({"a": np.ones(2)}))["a"].dtype == np.float64
