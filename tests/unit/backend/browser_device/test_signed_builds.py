"""GET /reader/builds.json lists the served builds, signed with the release key. Oracle: cryptography's Ed25519."""

from __future__ import annotations

import json
import threading
from base64 import b64decode
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from backend.browser_device.builds import DOMAIN, FILE, BuildHistory
from backend.releases.errors import NothingPublished
from backend.storage.object_store import LocalFolder
from protocol.releases import SignedManifest
from tests.doubles.recall_app import Running, running_server

ONE, TWO = "1" * 64, "2" * 64


def history(server: Running, folder: Path) -> BuildHistory:
    """Return the history as of any machine: they share the database and the storage."""
    return BuildHistory(server.services.engine, LocalFolder(folder), server.services.releases)


def test_build_list_is_signed_by_the_release_key_without_duplicates(tmp_path: Path) -> None:
    with running_server(tmp_path, news=20) as server:
        folder = tmp_path / "history"
        folder.mkdir()
        for build in (ONE, ONE, TWO, ONE):
            BuildHistory(server.services.engine, LocalFolder(folder), server.services.releases).note(
                build
            )  # each as after a restart
        signed = BuildHistory(server.services.engine, LocalFolder(folder), server.services.releases).signed()
        release = SignedManifest.model_validate_json(server.client.get("/v1/releases/current").content)
    assert [each["build"] for each in json.loads(signed["builds"])] == [ONE, TWO, ONE]
    key = Ed25519PublicKey.from_public_bytes(b64decode(signed["public_key"]))
    text, signature = signed["builds"].encode(), b64decode(signed["signature"])
    key.verify(signature, DOMAIN + text)
    for other in (text, DOMAIN + text.replace(b"2", b"3")):
        with pytest.raises(InvalidSignature):
            key.verify(signature, other)
    assert b64decode(signed["public_key"]) == release.public_key


def test_concurrently_noted_builds_are_both_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """During an upgrade one process has read the list while another writes it."""
    (folder := tmp_path / "history").mkdir()
    with running_server(tmp_path / "data", news=0, releases=0) as server:
        known, read, late_begins = BuildHistory._known, threading.Event(), threading.Event()

        def reading(history: BuildHistory) -> list[dict[str, str]]:
            found = known(history)
            if threading.current_thread() is early:
                read.set()
                late_begins.wait(60)
                late.join(0.5)  # time in which it would write, if it didn't wait for its turn
            return found

        monkeypatch.setattr(BuildHistory, "_known", reading)
        histories = [
            BuildHistory(server.services.engine, LocalFolder(folder), server.services.releases) for _ in range(2)
        ]
        early, late = (
            threading.Thread(target=one.note, args=(build,)) for one, build in zip(histories, (ONE, TWO), strict=True)
        )
        early.start()
        assert read.wait(60)
        late.start()
        late_begins.set()
        early.join()
        late.join()
        listed = json.loads((folder / FILE).read_text(encoding="utf-8"))
    assert [each["build"] for each in listed] == [ONE, TWO]


def test_before_the_first_release_there_is_no_key_to_sign_with(tmp_path: Path) -> None:
    with running_server(tmp_path, news=0, releases=0) as server, pytest.raises(NothingPublished):
        history(server, tmp_path).signed()
