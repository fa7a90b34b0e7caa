"""Folders of the newer version opened by the older one's programs: refused in words, and not a byte of them changed."""

from __future__ import annotations

import os
import re
import shutil
from hashlib import sha256
from pathlib import Path

from tests.integration.version_skew.trees import Tree

DEVICE = """
import sys
from pathlib import Path
from device_app.composition import build_device
from device_app.settings import DeviceSettings
build_device(DeviceSettings(data_dir=Path(sys.argv[1]), profile=sys.argv[2], backend_url="http://127.0.0.1:9"))
"""
BACKEND = """
import sys
from backend.composition import build_services
from backend.settings import load_settings
build_services(load_settings(data_dir=sys.argv[1]))
"""
LOCKS = re.compile(r"\.(lock|pid)$|^server\.log$|-(wal|shm)$")
"""What a program that only looks may leave beside the data."""


def refused(old: Tree, backend: Path, devices: Path, profile: str, home: Path) -> tuple[list[str], list[str]]:
    """The old version's programs at folders of the new one: what they said, and what was wrong."""
    done, wrong = [], []
    for name, source, arguments in (
        ("device", devices, ("-c", DEVICE, "FOLDER", profile)),
        ("backend", backend, ("-c", BACKEND, "FOLDER")),
        ("ownfeed serve", backend, ("-m", "ownfeed", "serve", "--data-dir", "FOLDER", "--port", "8499")),
        ("ownfeed ingest newsroom", backend, ("-m", "ownfeed", "ingest", "newsroom", "--data-dir", "FOLDER")),
    ):
        folder = home / f"newer {name}"
        shutil.copytree(source, folder)
        before = _contents(folder)
        ended = old.run(*(str(folder) if each == "FOLDER" else each for each in arguments), check=False)
        said = (ended.stderr.strip() or ended.stdout.strip()).splitlines()[-1:]
        if not ended.returncode:
            wrong.append(f"the old {name} has opened a folder of the new version")
        if not re.search(r"newer version|does not know|of a newer Ownfeed", " ".join(said)):
            wrong.append(f"the old {name} refuses a folder of the new version in other words: {said}")
        if changed := sorted(str(path) for path, _ in before.items() ^ _contents(folder).items()):
            wrong.append(f"the old {name} has changed {changed}")
        done.append(f"the old {name} at the new version's folder: {' '.join(said)[:300]}")
    return done, wrong


def _contents(folder: Path) -> dict[Path, str]:
    """Every file's hash."""
    found = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            if not LOCKS.search(name):
                found[path.relative_to(folder)] = sha256(path.read_bytes()).hexdigest()
    return found
