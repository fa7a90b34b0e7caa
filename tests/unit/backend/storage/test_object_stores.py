"""One suite for every store of objects: a folder, a mounted one by URL, and S3.

Oracle: the stored bytes; S3's protocol is moto's, some of whose answers are 503.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.errors import BackendSettingsRefused
from backend.releases.blobs import BlobStore, digest
from backend.releases.errors import BlobDamaged, UnknownBlob
from backend.settings import load_settings
from backend.storage import opening
from backend.storage.object_store import LocalFolder, ObjectStore, StorageUnavailable
from backend.storage.opening import RemoteFolder, open_storage
from tests.doubles.s3_server import S3Server, s3_server
from tests.doubles.small_world import free_port

EVERY = 5
"""So many-th requests are told to come again."""


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server(refuses_every=EVERY) as one:
        yield one


@pytest.fixture(params=["data folder", "file", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    if request.param != "s3":
        url = None if request.param == "data folder" else f"file://{tmp_path}/with%20space"
        yield open_storage(url, tmp_path / "data")
        return
    s3: S3Server = request.getfixturevalue("server")
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    opening._file_system.cache_clear()
    yield open_storage(f"{s3.url}/{re.sub(r'[^a-z]', '-', request.node.name)}", tmp_path / "data")
    opening._file_system.cache_clear()


def keys(store: ObjectStore) -> set[str]:
    return {each.key for each in store.list()}


def test_object_can_be_put_read_listed_and_deleted(store: ObjectStore) -> None:
    rounds = store.under("rounds")
    assert keys(rounds) == set()
    rounds.put("round-1/a.bin", b"first")
    rounds.put("round-1/a.bin", memoryview(b"second"))
    rounds.put("round-2/b.bin", bytes(range(256)) * 1_000)
    assert rounds.read("round-1/a.bin") == b"second"
    assert keys(rounds) == {"round-1/a.bin", "round-2/b.bin"}
    assert keys(store.under("rounds").under("round-2")) == {"b.bin"}
    rounds.put("round-20/c.bin", b"third")
    assert {each.key for each in rounds.list("round-2")} == {"round-2/b.bin"}
    assert not list(rounds.list("round-3"))
    rounds.delete("round-20/c.bin")
    assert rounds.path("round-2/b.bin").read_bytes() == bytes(range(256)) * 1_000
    buffer = bytearray(6)
    rounds.read_into("round-1/a.bin", memoryview(buffer))
    assert bytes(buffer) == b"second"
    for _ in range(2):
        rounds.delete("round-1/a.bin")
    for ask in (rounds.read, rounds.path):
        with pytest.raises(FileNotFoundError):
            ask("round-1/a.bin")
    with pytest.raises(FileNotFoundError):
        rounds.read_into("round-1/a.bin", memoryview(buffer))
    assert keys(rounds) == {"round-2/b.bin"}


def test_concurrent_writers_of_one_object_leave_one_complete(store: ObjectStore) -> None:
    contents = [bytes([number]) * 50_000 for number in range(6)]
    threads = [threading.Thread(target=store.put, args=("one", content)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.read("one") in contents


def test_folders_deleted_during_a_listing_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalFolder(tmp_path)
    for key in ("round-1/a.bin", "round-2/b.bin", "c.bin"):
        store.put(key, b"content")
    scandir = os.scandir

    def ended_meanwhile(path: str) -> object:
        if Path(path).name == "round-1":
            store.delete("round-1/a.bin")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", ended_meanwhile)
    assert keys(store) == {"round-2/b.bin", "c.bin"}


def test_blobs_are_stored_once_checked_and_cleaned_up_with_local_copies(store: ObjectStore) -> None:
    blobs = BlobStore(store.under("blobs"))
    kept, gone = blobs.add(b"kept"), blobs.add(b"gone")
    assert blobs.add(b"kept") == kept
    assert kept.sha256 == digest(b"kept")
    assert [blobs.read(each.sha256) for each in (kept, gone)] == [b"kept", b"gone"]
    assert blobs.sweep({kept.sha256}, older_than_sec=-5.0) == 1
    assert keys(store.under("blobs")) == {kept.sha256}
    with pytest.raises(UnknownBlob):
        blobs.path(gone.sha256)
    store.under("blobs").put(gone.sha256, b"something else")
    with pytest.raises(BlobDamaged):
        blobs.path(gone.sha256)
    assert blobs.add(b"gone") == gone
    assert blobs.read(gone.sha256) == b"gone"


def test_blob_deleted_by_another_machine_is_stored_again(store: ObjectStore, tmp_path: Path) -> None:
    if not isinstance(store, RemoteFolder):
        pytest.skip("a folder has no copies")
    blobs = BlobStore(store.under("blobs"))
    one = blobs.add(b"a blob")
    assert blobs.read(one.sha256) == b"a blob"
    RemoteFolder(store._files, store._root, tmp_path / "another machine").under("blobs").delete(one.sha256)
    with pytest.raises(UnknownBlob):
        blobs.require(one.sha256)
    assert blobs.add(b"a blob") == one
    blobs.require(one.sha256)


def test_stored_files_are_private_to_their_owner(store: ObjectStore, tmp_path: Path) -> None:
    rounds = store.under("rounds")
    rounds.put("round-1/a.bin", b"a single reader's update")
    rounds.path("round-1/a.bin")
    made = [path for path in tmp_path.rglob("*") if path.is_file() or path.name in ("rounds", "round-1")]
    assert len(made) >= 3
    if not isinstance(store, RemoteFolder):
        assert all(path.stat().st_mode & 0o077 == 0 for path in made)
    assert all(path.stat().st_mode & 0o077 == 0 for path in made if path.is_file())


def test_damaged_local_copy_is_replaced(store: ObjectStore) -> None:
    if not isinstance(store, RemoteFolder):
        pytest.skip("a folder has no copies")
    blobs = BlobStore(store.under("blobs"))
    one = blobs.add(b"a blob")
    blobs.path(one.sha256).write_bytes(b"damaged")
    assert blobs.read(one.sha256) == b"a blob"


def test_unreachable_storage_raises_one_plain_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = S3Server(f"http://127.0.0.1:{free_port()}")
    for name, value in nowhere.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(opening.S3_OPTIONS, "config_kwargs", {"retries": {"mode": "standard", "max_attempts": 1}})
    opening._file_system.cache_clear()
    store = open_storage(nowhere.url, tmp_path)
    with pytest.raises(StorageUnavailable, match="doesn't answer"):
        store.put("key", b"content")
    opening._file_system.cache_clear()


@pytest.mark.parametrize("url", ["file://mnt/ownfeed", "file:mnt/ownfeed", "file://", "file:///"])
def test_relative_mounted_folder_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(BackendSettingsRefused, match="three slashes"):
        open_storage(url, tmp_path)


@pytest.mark.parametrize("url", ["", "/mnt/ownfeed", "ownfeed", "s3://", "s3:///folder"])
def test_storage_without_a_bucket_or_folder_is_refused(tmp_path: Path, url: str) -> None:
    """Regression: a bare name became a folder wherever the server happened to be started."""
    with pytest.raises(BackendSettingsRefused, match=f"Setting storage: '{url}' is not a storage address"):
        open_storage(url, tmp_path)


def test_error_for_an_unsupported_storage_url_names_the_setting(tmp_path: Path) -> None:
    settings = load_settings(data_dir=tmp_path, storage="carrier-pigeon://somewhere")
    with pytest.raises(BackendSettingsRefused, match="Setting storage"):
        settings.open_storage()
