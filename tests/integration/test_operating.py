"""Runs the commands of the operator's guide in a shell, beside a running backend and a syncing device."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import numpy as np
import pytest
from safetensors.numpy import save

from backend.releases.errors import SigningKeyRefused
from backend.releases.rotation import rotate_key
from backend.releases.store import ReleaseStore
from device_app.composition import utc_now
from device_app.errors import ReleaseRefused
from device_app.store.byte_log import ByteLog
from device_app.store.database import Database
from device_app.store.releases import InstalledReleases
from device_app.sync.release_sync import ReleaseSync
from device_app.uplink.http import HttpClient
from protocol.releases import ModelEntry
from tests.doubles.graphs import context_graph, cosine_score_graph, decompose_graph
from tests.doubles.news import NOW
from tests.doubles.recall_app import Running, running_server
from tests.doubles.recall_world import BASIS_SIZE, DIMENSIONS, recall_draft
from tests.doubles.small_release import migrated_engine

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "operate.md").read_text(encoding="utf-8")
SHELL = f'set -eu\nownfeed() {{ {shlex.quote(sys.executable)} -m ownfeed "$@"; }}\n'


def commands(heading: str) -> str:
    """Return the shell block below a heading of the guide."""
    section = re.split(r"^#+ ", GUIDE.split(f"# {heading}\n", 1)[1], maxsplit=1, flags=re.M)[0]
    (block,) = re.findall(r"^```sh\n(.*?)^```", section, re.M | re.S)
    return str(block)


@dataclass
class GuidedOperator:
    """Follows the guide; `data` and `backup` are its $DATA and $BACKUP."""

    data: Path
    backup: Path

    def does(self, heading: str) -> str:
        done = subprocess.run(
            ["bash", "-c", SHELL + commands(heading)],
            env=os.environ | {"DATA": str(self.data), "BACKUP": str(self.backup), "PYTHONPATH": str(ROOT)},
            cwd=self.backup,
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def publish(store: ReleaseStore) -> str:
    """Publish a release that a device can run: the small server's, with real graphs."""
    draft = recall_draft(store)
    graphs = {"context": context_graph(DIMENSIONS), "decompose": decompose_graph(DIMENSIONS, BASIS_SIZE)}
    recall = draft.models["recall"].model_copy(
        update={"graphs": {name: store.add_blob(graph) for name, graph in graphs.items()}}
    )
    cosine = ModelEntry(
        architecture="cosine",
        role="ranker",
        graphs={"score": store.add_blob(cosine_score_graph(DIMENSIONS))},
        weights=store.add_blob(save({"beta": np.array(8.0, np.float32)})),
    )
    models = {"recall": recall, "ranker.cosine": cosine}
    return store.commit(replace(draft, models=models), note="test").release


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[Running]:
    with running_server(tmp_path / "data", news=40, releases=0) as one:
        publish(one.services.releases)
        yield one


@pytest.fixture
def operator(backend: Running, tmp_path: Path) -> GuidedOperator:
    (tmp_path / "backup").mkdir()
    return GuidedOperator(backend.folder, tmp_path / "backup")


@dataclass
class InstalledReader:
    """The part of a reader's device that deals with releases."""

    backend: Running
    store: InstalledReleases

    def sync(self, backend_key: str | None = None) -> bool:
        log = ByteLog(self.store._database)
        client = HttpClient("http://testserver", log, lambda: NOW, httpx.MockTransport(self._asked))
        pinned = None if backend_key is None else bytes.fromhex(backend_key)
        return ReleaseSync(client, self.store, utc_now, pinned).refresh()

    def _asked(self, request: httpx.Request) -> httpx.Response:
        answer = self.backend.client.get(request.url.path, headers=dict(request.headers))
        return httpx.Response(answer.status_code, content=answer.content)

    @property
    def release(self) -> str:
        current = self.store.current()
        assert current is not None
        return current.manifest.release


@pytest.fixture
def reader(backend: Running, tmp_path: Path) -> Iterator[InstalledReader]:
    database = Database(tmp_path / "device.sqlite")
    yield InstalledReader(backend, InstalledReleases(database))
    database.close()


def shown_key(text: str) -> str:
    return re.findall(r"^public_key\s+([0-9a-f]{64})$", text, re.M)[-1]


def restarted(backend: Running) -> ReleaseStore:
    """Return the device that the next process opens; raises if it refuses."""
    return ReleaseStore.open(backend.services.engine, backend.services.settings)


def test_signing_key_is_shown_backed_up_lost_and_restored(
    backend: Running, operator: GuidedOperator, reader: InstalledReader
) -> None:
    assert reader.sync()
    key = shown_key(operator.does("The signing key"))
    assert bytes.fromhex(key) == reader.store.pinned_key()
    operator.does("Back it up")

    file = operator.data / "signing.key"
    file.unlink()
    with pytest.raises(SigningKeyRefused, match=re.escape(str(file))):
        restarted(backend)
    assert not file.exists()
    assert shown_key(operator.does("Put it back")) == key
    assert file.stat().st_mode & 0o777 == 0o600
    publish(restarted(backend))
    assert reader.sync()
    assert bytes.fromhex(key) == reader.store.pinned_key()


def test_device_that_slept_through_key_rotations_follows_them(
    backend: Running, operator: GuidedOperator, reader: InstalledReader
) -> None:
    assert reader.sync()
    first = reader.store.pinned_key()
    rotate_key(ReleaseStore.open(migrated_engine(operator.data), backend.services.settings))
    second = shown_key(operator.does("Rotate it"))
    backup = operator.backup / "signing.key"
    assert backup.read_bytes() == (operator.data / "signing.key").read_bytes()
    publish(backend.services.releases)  # by the process that has run all the time

    assert reader.sync()
    assert (reader.release, reader.store.pinned_key()) == ("r4", bytes.fromhex(second))
    assert first != reader.store.pinned_key()


def test_device_accepts_a_replacement_for_a_lost_key_only_from_its_reader(
    backend: Running, operator: GuidedOperator, reader: InstalledReader
) -> None:
    assert reader.sync()
    (operator.data / "signing.key").unlink()
    new = shown_key(operator.does("If it is lost, and there is no backup"))
    with pytest.raises(ReleaseRefused, match="no rotation leads to"):
        reader.sync()
    assert reader.release == "r1"
    assert reader.sync(new)
    assert reader.release == "r2"
