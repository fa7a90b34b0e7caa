"""A second process on a profile in use names the first, ends, and changes nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from device_app.composition import build_device
from device_app.errors import ProfileInUse
from device_app.fleet.fleet import Fleet
from device_app.settings import DeviceSettings

HOLDER = """
import sys
from pathlib import Path
from device_app.composition import build_device
from device_app.settings import DeviceSettings
device = build_device(DeviceSettings(profile="anna", data_dir=Path(sys.argv[1])))
print("open", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    yield process
    if process.poll() is None:
        process.kill()
    process.communicate()


def settings(folder: Path, profile: str = "anna") -> DeviceSettings:
    return DeviceSettings(profile=profile, data_dir=folder)


def test_second_device_names_the_process_using_the_profile_and_exits_1(
    tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    command = [
        sys.executable,
        "-m",
        "ownfeed",
        "device",
        "--profile",
        "anna",
        "--data-dir",
        str(tmp_path),
        "--port",
        "0",
    ]
    second = subprocess.run(command, capture_output=True, text=True, check=False)
    assert second.returncode == 1
    assert f"in use: process {holder.pid} has it open" in second.stderr.replace("\n", " ")
    assert "Traceback" not in second.stderr
    assert holder.poll() is None


def test_killed_process_leaves_no_lock(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(ProfileInUse):
        build_device(settings(tmp_path))
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    build_device(settings(tmp_path)).close()
    build_device(settings(tmp_path)).close()


def test_fleet_and_device_cannot_share_a_profile(tmp_path: Path) -> None:
    fleet = Fleet(settings(tmp_path), 2, seed=1)
    with pytest.raises(ProfileInUse, match="fleet-0001"):
        build_device(settings(tmp_path, "fleet-0001"))
    with pytest.raises(ProfileInUse, match="fleet-0000"):
        Fleet(settings(tmp_path), 2, seed=1)
    fleet.close()
    build_device(settings(tmp_path, "fleet-0001")).close()
