"""What the demo checks first, and its processes: one at a time, ports and disk, an ended process quoted."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import namedtuple
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import backend.demo
import backend.server.local_processes
from backend.demo import DEMO_DEVICE, DEMO_READERS, DEMO_ROUNDS, DemoPlan, demo_rankers, print_progress, start_demo
from backend.errors import BackendSettingsRefused
from backend.federation.rounds.selection import WINDOW_SEC
from backend.news.newspaper import GeneratedNewspaper
from backend.operations.admin_client import Operator, OperatorRefused
from backend.server.local_processes import LocalProcesses, StartRefused, single_start, watch
from backend.server.progress import SilentSteps, Steps
from backend.settings import BackendSettings, load_settings
from device_app.settings import DeviceSettings, PrivacySettings
from models.rankers import choices
from protocol.fleet_figures import FleetFigures, write_fleet_figures
from tests.doubles.small_world import free_port

ROOT = Path(__file__).parents[3]
HOLDS_THE_DEMO = """
import sys, time
from pathlib import Path
from backend.demo import DemoPlan
from backend.server.local_processes import single_start
with single_start(DemoPlan(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))):
    print("running", flush=True)
    time.sleep(60)
"""


class PreparesNothing(nullcontext["PreparesNothing"]):
    """Replaces the process that prepares."""

    def __init__(self, settings: BackendSettings, *, waits: bool) -> None:
        super().__init__(self)

    def news_are_here(self) -> None:
        pass

    def follow(self, steps: Steps) -> None:
        pass


@pytest.fixture
def plan(tmp_path: Path) -> DemoPlan:
    return DemoPlan(tmp_path / "demo", free_port(), free_port(), devices=0)


@contextmanager
def another_demo(plan: DemoPlan) -> Iterator[subprocess.Popen[str]]:
    """Run a demo in another process, in the same folder with other ports."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS_THE_DEMO, str(plan.data_dir), str(free_port()), str(free_port())],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()  # type: ignore[union-attr]


def one_line(refused: pytest.ExceptionInfo[StartRefused]) -> str:
    assert "\n" not in refused.value.detail
    assert refused.value.detail.rstrip(")").endswith((".", "log", "data-dir"))
    return refused.value.detail


def test_second_demo_is_refused_naming_the_running_one(plan: DemoPlan) -> None:
    with another_demo(plan) as first:
        note = (plan.data_dir / "demo.pid").read_text(encoding="utf-8")
        with pytest.raises(StartRefused, match="A demo already runs in") as refused, single_start(plan):
            pytest.fail("two demos in one folder")
        assert f"pid {first.pid}" in one_line(refused)
        assert "--data-dir" in refused.value.detail
        assert (plan.data_dir / "demo.pid").read_text(encoding="utf-8") == note
        assert first.poll() is None


def test_killed_demo_leaves_nothing_blocking_the_next(plan: DemoPlan) -> None:
    with another_demo(plan) as first:
        first.send_signal(signal.SIGKILL)
        first.wait()
        with single_start(plan):
            assert f"pid {os.getpid()}" in (plan.data_dir / "demo.pid").read_text(encoding="utf-8")
    assert not (plan.data_dir / "demo.pid").exists()


@pytest.mark.parametrize(
    ("option", "attribute"), [("--backend-port", "backend_port"), ("--device-port", "device_port")]
)
def test_port_in_use_is_named_in_the_error_with_its_option(plan: DemoPlan, option: str, attribute: str) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", getattr(plan, attribute)))
        holder.listen()
        with (
            pytest.raises(StartRefused, match=f"Port {getattr(plan, attribute)} is taken") as refused,
            single_start(plan),
        ):
            pytest.fail("started on a taken port")
    assert option in one_line(refused)
    assert not (plan.data_dir / "demo.pid").exists()
    with single_start(plan):
        pass


def test_full_disk_is_refused_before_writing(plan: DemoPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**12, 10**12, 5 * 2**20))
    with pytest.raises(StartRefused, match="has 5 MiB free; the demo needs 700 MiB") as refused, single_start(plan):
        pytest.fail("started on a full disk")
    assert one_line(refused).endswith("Nothing was written.")
    assert {path.name for path in plan.data_dir.iterdir()} <= {"demo.lock"}


def test_error_for_a_disk_that_fills_up_during_preparation_says_the_next_start_resumes(
    plan: DemoPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(GeneratedNewspaper, "open", full)
    monkeypatch.setattr(backend.demo, "FirstStartProcess", PreparesNothing)
    processes = LocalProcesses(plan.data_dir / "logs")
    try:
        with pytest.raises(StartRefused, match=r"No space left on device\. The next start continues from here"):
            start_demo(plan, processes, SilentSteps())
        assert list(processes.running) == ["device"], "the device needs no preparing; the backend never started"
    finally:
        processes.stop()


def started_environments(plan: DemoPlan, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, str]]:
    """Return the environment with which a start of the demo runs each of its processes."""
    started: dict[str, dict[str, str]] = {}

    class Recording(LocalProcesses):
        def start(self, name: str, arguments: list[str], environment: dict[str, str]) -> None:
            started[name] = environment

        def wait_until_served(self, *_: object, **__: object) -> None:
            pass

    settings = plan.backend_settings()
    page_key = plan.data_dir / "devices" / "reader" / "page.key"
    for written in (settings.admin_token_file, page_key):
        written.parent.mkdir(parents=True, exist_ok=True)
        written.write_text("secret", encoding="utf-8")
    monkeypatch.setattr(GeneratedNewspaper, "open", lambda *_, **__: 0)
    monkeypatch.setattr(backend.demo, "FirstStartProcess", PreparesNothing)
    start_demo(plan, Recording(plan.data_dir / "logs"), SilentSteps())
    return started


def test_demo_reader_has_the_products_privacy_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = DemoPlan(tmp_path / "demo", free_port(), free_port(), devices=3)
    started = started_environments(plan, monkeypatch)

    def privacy_in(environment: dict[str, str]) -> PrivacySettings:
        for name in [name for name in os.environ if name.startswith("OWNFEED_")]:
            monkeypatch.delenv(name)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        return DeviceSettings(data_dir=tmp_path).privacy

    assert privacy_in(started["device"]) == PrivacySettings()
    assert not PrivacySettings().training
    fleet = privacy_in(started["fleet"])
    assert (fleet.training, fleet.secure_sum) == (True, "exact"), "the simulated readers take part in everything"


def test_folder_with_a_release_is_served_before_its_newspaper_opens(
    plan: DemoPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    class Listed(LocalProcesses):
        def start(self, name: str, arguments: list[str], environment: dict[str, str]) -> None:
            done.append(name)

        def wait_until_served(self, name: str, *_: object, **__: object) -> None:
            done.append(f"{name} is served")

    for written in (plan.backend_settings().admin_token_file, plan.data_dir / "devices" / "reader" / "page.key"):
        written.parent.mkdir(parents=True, exist_ok=True)
        written.write_text("secret", encoding="utf-8")
    opened = threading.Event()
    monkeypatch.setattr(backend.demo, "is_published", lambda engine: True)

    def newspaper(*_: object) -> None:
        done.append("newspaper")
        opened.set()

    monkeypatch.setattr(GeneratedNewspaper, "open", newspaper)
    monkeypatch.setattr(GeneratedNewspaper, "step", lambda *_: 0)
    running = start_demo(plan, Listed(plan.data_dir / "logs"), SilentSteps())
    assert done == ["device", "backend", "backend is served", "device is served"]
    with running.newspaper.publishing():
        assert opened.wait(60)
    assert done[4:] == ["newspaper"] * (len(done) - 4)


def test_demo_reports_once_that_fleet_and_preparation_are_ready(
    plan: DemoPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = datetime.now(UTC)
    reported: list[str] = []
    task = {"task": "vectors", "stage": "working", "done": 512, "total": 900, "trouble": None}
    failed = {"task": "ranker.nrms", "stage": "failed", "trouble": "No."}
    answers: Iterator[Any] = iter([[], [task], OperatorRefused("busy"), [task | {"stage": "published"}, failed]])

    def backfill(operator: Operator) -> list[dict[str, Any]]:
        answer: Any = next(answers)
        if isinstance(answer, OperatorRefused):
            raise answer
        tasks: list[dict[str, Any]] = answer
        ready = 60 if len(reported) or len(tasks) == 2 else 59
        write_fleet_figures(plan.fleet_figures, FleetFigures(readers=60, began=began, ready=ready))
        return tasks

    plan.backend_settings().admin_token_file.parent.mkdir(parents=True, exist_ok=True)
    plan.backend_settings().admin_token_file.write_text("secret", encoding="utf-8")
    write_fleet_figures(plan.fleet_figures, FleetFigures(readers=60, began=began - timedelta(days=1), ready=60))
    monkeypatch.setattr(Operator, "backfill", backfill)
    monkeypatch.setattr(backend.demo, "LOOK_SEC", 0.0)
    print_progress(replace(plan, devices=60), LocalProcesses(plan.data_dir / "logs"), reported.append, began)
    assert reported == [
        "Prepared in the background, 1 of 2: vectors.",
        "Prepared in the background, 2 of 2: ranker.nrms failed: No.",
        "The fleet is ready: 60 simulated readers take part in rounds.",
    ]


@pytest.mark.parametrize("name", ["demo", "demo/inner"])
def test_folder_that_cannot_be_created_is_named_in_the_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "demo").write_text("a file is in the way", encoding="utf-8")
    with pytest.raises(StartRefused, match="can't be made") as refused, single_start(DemoPlan(tmp_path / name)):
        pytest.fail("started in a file")
    assert refused.value.field == "data_dir"


def run_instead(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str) -> None:
    """Make the processes' `python -m ownfeed` run this code."""
    (tmp_path / "stand_in").mkdir()
    (tmp_path / "stand_in" / "ownfeed.py").write_text(code, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "stand_in"))
    monkeypatch.chdir(tmp_path / "stand_in")


def wait_for_end(processes: LocalProcesses) -> None:
    for process in processes.running.values():
        process.wait(20)


def test_error_for_an_ended_process_names_its_exit_code_and_last_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_instead(monkeypatch, tmp_path, "import sys\nprint('first')\nprint('the disk is full\\n\\n')\nsys.exit(3)")
    processes = LocalProcesses(tmp_path / "logs")
    processes.start("backend", ["serve"], {})
    wait_for_end(processes)
    with pytest.raises(StartRefused, match="The backend exited with code 3: the disk is full") as refused:
        watch(processes)
    assert str(tmp_path / "logs" / "backend.log") in one_line(refused)
    processes.stop()


def test_process_killed_without_output_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_instead(monkeypatch, tmp_path, "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    processes = LocalProcesses(tmp_path / "logs")
    processes.start("fleet", ["fleet"], {})
    wait_for_end(processes)
    with pytest.raises(StartRefused, match=r"The fleet exited with code -9: it said nothing \(see "):
        processes.check()
    processes.stop()


def test_process_that_does_not_answer_in_time_is_named_in_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_instead(monkeypatch, tmp_path, "import time\nprint('still thinking', flush=True)\ntime.sleep(60)")
    processes = LocalProcesses(tmp_path / "logs")
    processes.start("device", ["device"], {})
    try:
        while b"thinking" not in (tmp_path / "logs" / "device.log").read_bytes():
            time.sleep(0.02)
        with pytest.raises(StartRefused, match=r"did not answer within 0.3 s: still thinking"):
            processes.wait_until_served("device", f"http://127.0.0.1:{free_port()}/", within_sec=0.3)
    finally:
        processes.stop()
    assert processes.running["device"].returncode is not None


def test_stopping_ends_every_process_and_kills_unresponsive_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        "import signal, sys, time\n"
        "stubborn = sys.argv[1] == 'stubborn'\n"
        "signal.signal(signal.SIGTERM, lambda *_: None if stubborn else sys.exit(0))\n"
        "print('ready', flush=True)\n"
        "while True: time.sleep(0.05)\n"
    )
    run_instead(monkeypatch, tmp_path, code)
    monkeypatch.setattr(backend.server.local_processes, "STOP_SEC", 1.0)
    processes = LocalProcesses(tmp_path / "logs")
    for name in ("backend", "stubborn", "fleet"):
        processes.start(name, [name], {})
        while b"ready" not in (tmp_path / "logs" / f"{name}.log").read_bytes():
            time.sleep(0.02)
    processes.stop()
    codes = {name: process.returncode for name, process in processes.running.items()}
    assert codes == {"backend": 0, "stubborn": -signal.SIGKILL, "fleet": 0}


def test_demo_addresses_are_on_this_machine(plan: DemoPlan) -> None:
    assert plan.feed_url == f"http://127.0.0.1:{plan.device_port}/"
    assert plan.backend_url == f"http://127.0.0.1:{plan.backend_port}"
    settings = plan.backend_settings()
    assert (settings.host, settings.port) == ("127.0.0.1", plan.backend_port)
    assert settings.data_dir == plan.data_dir / "backend"


@pytest.mark.parametrize(("named", "index"), [(None, "fastscan"), ("ivf", "ivf")])
def test_index_chosen_for_a_demo_overrides_the_operators(
    plan: DemoPlan, monkeypatch: pytest.MonkeyPatch, named: str | None, index: str
) -> None:
    monkeypatch.setenv("OWNFEED_BACKEND_INDEX", "fastscan")
    assert replace(plan, index=named).backend_settings().index == index


def test_unknown_index_is_refused_in_one_line_before_anything_starts(plan: DemoPlan) -> None:
    processes = LocalProcesses(plan.data_dir / "logs")
    with pytest.raises(BackendSettingsRefused, match=r"'auto', 'basis', 'exact', 'ivf' or 'fastscan', not 'hnsw'"):
        start_demo(replace(plan, index="hnsw"), processes, SilentSteps())
    assert not processes.running


def test_as_published_setting_is_passed_to_backend_device_and_fleet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = started_environments(DemoPlan(tmp_path / "demo", free_port(), free_port(), devices=3), monkeypatch)
    assert not any("AS_PUBLISHED" in name for given in started.values() for name in given)
    plan = DemoPlan(tmp_path / "printed", free_port(), free_port(), devices=3, as_published="uni_fedrec")
    started = started_environments(plan, monkeypatch)
    assert set(started) == {"backend", "device", "fleet"}
    for name, given in started.items():
        for variable in [each for each in os.environ if each.startswith("OWNFEED_")]:
            monkeypatch.delenv(variable)
        for variable, value in given.items():
            monkeypatch.setenv(variable, value)
        if name == "backend":
            reported = load_settings()
            assert (reported.score_decoder, reported.rounds_system) == ("softmax", "uni_fedrec")
        else:
            privacy = DeviceSettings(data_dir=tmp_path).privacy
            assert (privacy.mode, privacy.training) == ("basis_laplace", name == "fleet")
    assert plan.backend_settings().cluster_distance == 1.0


def test_demo_device_polls_count_as_one_device() -> None:
    """Regression: its polls counted as fifteen devices, so a round of at least ten opened without any."""
    pace, usual = "OWNFEED_DEVICE_PERFORMANCE__TRAINING_POLL_SEC", DeviceSettings().performance.training_poll_sec
    counted = float(DEMO_ROUNDS["OWNFEED_BACKEND_ROUNDS_POLLS_PER_DEVICE"])
    assert WINDOW_SEC / float(DEMO_DEVICE.get(pace, usual)) / counted <= 2
    assert float(DEMO_READERS[pace]) < usual


def test_demo_offers_without_torch_what_needs_none_and_says_what_is_missing(
    plan: DemoPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert demo_rankers(plan.backend_settings()) == choices()
    assert plan.left_out == ""
    monkeypatch.setattr(backend.demo, "training_is_installed", lambda: False)
    assert demo_rankers(plan.backend_settings()) == ("finding",), "the default ranker, in groups"
    assert plan.left_out.startswith(f"{len(choices()) - 1} of the papers' models")
    monkeypatch.setenv("OWNFEED_BACKEND_INSTALL_TRAINING", "make torch")
    assert demo_rankers(plan.backend_settings()) == choices()
    assert plan.left_out == ""
