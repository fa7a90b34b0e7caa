"""Backs up a backend's folder while it runs and restores it, as the operator's guide says.

Oracles: devices that used releases from before and after the backup, which accept the next release or, without the
chain's file, refuse it; the released parts' own hashes; a kill at every change of a file.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from backend.operations.backup import OPERATORS_TOKEN, BackupRefused, PartMissing, back_up, check_backup, restore
from backend.releases.blobs import blob_refs
from backend.releases.chain_file import ChainFile, NotedRelease
from backend.releases.errors import ChainFileRefused
from backend.releases.store import ReleaseStore
from backend.settings import load_settings
from backend.storage.opening import COPIES_FOLDER, open_storage
from backend.terminal.backup_commands import backup_app
from device_app.errors import ReleaseRefused
from device_app.store.database import Database
from device_app.store.releases import InstalledReleases
from tests.doubles.kills import Killed, Kills, listen
from tests.doubles.long_form import by_length
from tests.doubles.migrated import migrated
from tests.doubles.recall_app import Running, running_server
from tests.doubles.recall_world import settings_in
from tests.doubles.small_release import migrated_engine
from tests.integration.test_operating import GuidedOperator, InstalledReader, publish


@pytest.fixture
def chain_file(tmp_path: Path) -> Path:
    return tmp_path / "other-disk" / "chain.jsonl"


@pytest.fixture
def backend(tmp_path: Path, chain_file: Path) -> Iterator[Running]:
    with running_server(tmp_path / "data", news=20, releases=0, chain_file=chain_file) as one:
        publish(one.services.releases)
        yield one


@pytest.fixture
def readers(backend: Running, tmp_path: Path) -> Iterator[list[InstalledReader]]:
    databases = [Database(tmp_path / f"reader-{at}.sqlite") for at in range(3)]
    yield [InstalledReader(backend, InstalledReleases(each)) for each in databases]
    for each in databases:
        each.close()


def folder_with(key: Path, folder: Path) -> Path:
    """Make a folder with only a signing key."""
    folder.mkdir(mode=0o700)
    shutil.copy(key, folder / "signing.key")
    return folder


def test_devices_accept_releases_after_the_documented_restore(
    backend: Running, readers: list[InstalledReader], tmp_path: Path, chain_file: Path
) -> None:
    early, late, apart = readers
    operator = GuidedOperator(backend.folder, tmp_path / "backup")
    operator.backup.mkdir()
    operator.does("Back it up")
    assert [each.sync() for each in readers] == [True, True, True]
    operator.does("Make a backup")
    operator.does("Make a backup")  # brings it up to date
    publish(backend.services.releases)
    publish(backend.services.releases)
    assert [late.sync(), apart.sync()] == [True, True]
    assert (early.release, late.release) == ("r1", "r3")
    copied = {path.name for path in (operator.backup / "ownfeed").iterdir()}
    assert "signing.key" not in copied
    assert "admin.token" not in copied, "whoever finds a copy rules no backend with it"
    open_to_others = [path for path in (operator.backup / "ownfeed").rglob("*") if path.stat().st_mode & 0o077]
    assert not open_to_others

    elsewhere = GuidedOperator(tmp_path / "elsewhere", operator.backup)
    elsewhere.does("Put a backup back")
    with running_server(elsewhere.data, news=0, releases=0, chain_file=chain_file) as restored:
        assert restored.services.releases.require_current().release == "r4"
        for reader in (early, late):
            reader.backend = restored
            assert reader.sync()
            assert reader.release == "r4"
        publish(restored.services.releases)
        assert late.sync()
        assert late.release == "r5"

    third = GuidedOperator(tmp_path / "third", operator.backup)
    third.does("Put a backup back")
    with running_server(third.data, news=0, releases=0, chain_file=tmp_path / "nothing.jsonl") as without:
        publish(without.services.releases)
        publish(without.services.releases)
        publish(without.services.releases)
        apart.backend = without
        with pytest.raises(ReleaseRefused, match="differ from those this device was shown"):
            apart.sync()


def test_new_database_continues_after_the_last_published_release(
    backend: Running, readers: list[InstalledReader], tmp_path: Path, chain_file: Path
) -> None:
    reader = readers[0]
    publish(backend.services.releases)
    assert reader.sync()
    empty = folder_with(backend.folder / "signing.key", tmp_path / "new")
    with running_server(empty, news=20, releases=0, chain_file=chain_file) as again:
        publish(again.services.releases)
        reader.backend = again
        assert reader.sync()
        assert reader.release == "r3"


def test_restore_command_says_that_the_operators_token_is_missing(backend: Running, tmp_path: Path) -> None:
    token = backend.folder / OPERATORS_TOKEN
    token.write_text("t" * 40)
    back_up(backend.services.settings, tmp_path / "backup")
    target = tmp_path / "elsewhere"
    done = CliRunner().invoke(backup_app, ["restore", str(tmp_path / "backup"), "--data-dir", str(target)])
    assert done.exit_code == 0, done.output
    assert "The next start makes a new operator's token: the copy holds none." in " ".join(done.output.split())
    assert not (target / OPERATORS_TOKEN).exists()
    assert "t" * 40 not in done.output


def test_operators_token_under_another_file_name_is_not_copied(backend: Running, tmp_path: Path) -> None:
    token = backend.folder / "token-of-mine"
    token.write_text("t" * 40)
    settings = backend.services.settings.model_copy(update={"admin_token_file": token})
    back_up(settings, tmp_path / "copy")
    assert (tmp_path / "copy" / "backup.json").exists()
    assert not any(b"t" * 40 in path.read_bytes() for path in (tmp_path / "copy").rglob("*") if path.is_file())


def test_backup_made_while_publishing_is_complete(backend: Running, tmp_path: Path) -> None:
    stop = threading.Event()

    def publishing() -> None:
        while not stop.is_set():
            publish(backend.services.releases)

    thread = threading.Thread(target=publishing)
    thread.start()
    try:
        made = [back_up(backend.services.settings, tmp_path / "backup") for _ in range(4)]
    finally:
        stop.set()
        thread.join()
    numbers = [int((each.newest_release or "r0")[1:]) for each in made]
    assert numbers == sorted(numbers)
    assert check_backup(backend.services.settings, tmp_path / "backup").facts == made[-1].facts


def test_backup_with_a_storage_checks_the_storage_and_restores_the_rest(tmp_path: Path) -> None:
    storage = f"memory://{tmp_path.name}"
    with running_server(tmp_path / "data", news=20, releases=0, storage=storage) as one:
        publish(one.services.releases)
        settings, key = one.services.settings, tmp_path / "data" / "signing.key"
        parts = {ref.sha256 for ref in blob_refs(one.services.releases.require_current())}
        for part in parts:
            one.services.releases.blob_path(part)  # this machine has copies of all
        made = back_up(settings, tmp_path / "backup")
        assert made.newest_release == "r1"
        elsewhere = load_settings(data_dir=folder_with(key, tmp_path / "elsewhere"), storage=storage)
        restore(elsewhere, tmp_path / "backup")
        assert {path.name for path in elsewhere.data_dir.iterdir()} >= {"signing.key", "ownfeed.sqlite"}
        assert not (elsewhere.data_dir / COPIES_FOLDER).exists()
        open_storage(storage, tmp_path / "another machine").under("blobs").delete(min(parts))
        with pytest.raises(PartMissing):
            back_up(settings, tmp_path / "backup")


def test_storage_inside_the_data_folder_is_left_out_of_the_backup(tmp_path: Path) -> None:
    within = tmp_path / "data" / "storage"
    with running_server(tmp_path / "data", news=20, releases=0, storage=within.as_uri()) as one:
        publish(one.services.releases)
        one.services.storage.under("rounds").put("round-1/a.safetensors", b"of a single reader")
        back_up(one.services.settings, tmp_path / "backup")
    assert list(within.rglob("*.safetensors"))
    assert not (tmp_path / "backup" / "storage").exists()
    assert (tmp_path / "backup" / "ownfeed.sqlite").is_file()


def killed_at(step: int, folder: Path, work: Callable[[], object]) -> bool:
    """Run until the n-th change of a file below `folder` kills the process; return whether it was killed."""
    kills = Kills(folder, {("server", "", step)}, armed=True)
    listen(kills)
    try:
        work()
    except Killed:
        return True
    finally:
        listen(None)
    return False


@pytest.mark.long_form
def test_backup_killed_at_any_step_leaves_a_complete_or_resumable_copy(backend: Running, tmp_path: Path) -> None:
    """Every second step in the short form."""
    settings, folder = backend.services.settings, tmp_path / "backup"
    make = partial(back_up, settings, folder)
    assert killed_at(4, folder, make)
    make()
    publish(backend.services.releases)
    step, killed = 1, True
    while killed:
        copy = shutil.copytree(folder, tmp_path / f"copy-{step}")
        killed = killed_at(step, copy, partial(back_up, settings, copy))
        assert check_backup(settings, copy).newest_release in (("r1", "r2") if killed else ("r2",)), step
        step += by_length(2, long=1)
    assert step > 5
    make()

    key, places = settings.data_dir / "signing.key", tmp_path / "places"
    places.mkdir()
    step, killed = 1, True
    while killed:
        new = settings_in(folder_with(key, places / str(step)), chain_file=settings.chain_file)
        killed = killed_at(step, places, partial(restore, new, folder))
        if not (new.data_dir / "ownfeed.sqlite").exists():
            restore(new, folder)
        assert (new.data_dir / "signing.key").read_bytes() == key.read_bytes(), step
        store = ReleaseStore.open(migrated_engine(new.data_dir), new)
        assert store.require_current().release == "r2", step
        step += by_length(2, long=1)
    assert step > 20


def test_unfinished_files_of_an_interrupted_backup_are_removed_next_time(backend: Running, tmp_path: Path) -> None:
    """Regression: the next copy of a file reused its name; other unfinished files, or those with random names, stayed
    forever."""
    settings, folder = backend.services.settings, tmp_path / "backup"
    back_up(settings, folder)
    for name in ("blobs/0123.part", "backup.json.4567.part", "ownfeed.sqlite.part"):
        (folder / name).write_bytes(b"half of it")
    back_up(settings, folder)
    assert list(folder.rglob("*.part")) == []


def test_files_staged_by_an_interrupted_restore_are_not_mixed_with_another_copy(
    backend: Running, tmp_path: Path
) -> None:
    settings, (before, after) = backend.services.settings, (tmp_path / "before", tmp_path / "after")
    back_up(settings, before)
    publish(backend.services.releases)
    back_up(settings, after)
    key, places = settings.data_dir / "signing.key", tmp_path / "places"
    places.mkdir()
    step, staged, killed = 1, 0, True
    while killed:
        new = settings_in(folder_with(key, places / str(step)), chain_file=settings.chain_file)
        killed = killed_at(step, places, partial(restore, new, before))
        if (places / f"{step}.restored").is_dir():
            staged += 1
            assert restore(new, after).newest_release == "r2"
            assert (new.data_dir / "signing.key").read_bytes() == key.read_bytes(), step
            assert ReleaseStore.unchecked(migrated_engine(new.data_dir), new).require_current().release == "r2", step
            assert not (places / f"{step}.restored").exists()
        step += 1
    assert staged > 2


def test_kill_while_clearing_an_interrupted_restore_keeps_the_key(backend: Running, tmp_path: Path) -> None:
    settings, folder = backend.services.settings, tmp_path / "backup"
    back_up(settings, folder)
    key, places = settings.data_dir / "signing.key", tmp_path / "places"
    step, killed = 1, True
    while killed:
        new = settings_in(places / str(step) / "data")
        shutil.copytree(folder, new.data_dir.with_name("data.restored"))
        shutil.copy(key, new.data_dir.with_name("data.restored") / "signing.key")
        killed = killed_at(step, places, partial(restore, new, folder))
        if killed and step % 9 == 1:
            restore(new, folder)
        if not killed or step % 9 == 1:
            assert (new.data_dir / "signing.key").read_bytes() == key.read_bytes(), step
        step += 1
    assert step > 20


def test_damaged_part_of_a_copy_is_copied_again(backend: Running, tmp_path: Path) -> None:
    settings, folder = backend.services.settings, tmp_path / "backup"
    back_up(settings, folder)
    part = next((folder / "blobs").iterdir())
    kept, whole = part.stat(), part.read_bytes()
    part.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    os.utime(part, ns=(kept.st_atime_ns, kept.st_mtime_ns))  # what a disk loses changes no time
    back_up(settings, folder)
    assert part.read_bytes() == whole


def test_unsuitable_backup_folder_is_refused_and_left_unchanged(backend: Running, tmp_path: Path) -> None:
    settings, folder = backend.services.settings, tmp_path / "backup"
    with pytest.raises(BackupRefused, match="is inside the folder"):
        back_up(settings, settings.data_dir / "backup")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letters.txt").touch()
    with pytest.raises(BackupRefused, match="something other than a backup"):
        back_up(settings, tmp_path / "other")
    back_up(settings, folder)
    with pytest.raises(BackupRefused, match=r"contains .*\. Move all but signing.key away"):
        restore(settings, folder)

    part = next((folder / "blobs").iterdir())
    whole = part.read_bytes()
    part.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(BackupRefused, match="lacks a part of r1, or it is damaged"):
        check_backup(settings, folder)
    part.write_bytes(whole)
    database = folder / "ownfeed.sqlite"
    content = database.read_bytes()
    os.truncate(database, len(content) // 2)
    with pytest.raises(BackupRefused, match=r"ownfeed\.sqlite"):
        check_backup(settings, folder)
    database.write_bytes(content)
    (folder / "backup.json").write_text("{}")
    with pytest.raises(BackupRefused, match="no complete backup"):
        restore(settings_in(tmp_path / "new"), folder)
    assert not (tmp_path / "new" / "ownfeed.sqlite").exists()


def test_mismatched_chain_file_stops_the_start(backend: Running, chain_file: Path) -> None:
    settings = backend.services.settings
    for _ in range(3):
        publish(backend.services.releases)
    lines = chain_file.read_text().splitlines()

    def opened(content: list[str]) -> str:
        chain_file.write_text("\n".join(content))
        return ReleaseStore.open(migrated_engine(settings.data_dir), settings).require_current().release

    later = lines[-1].replace('"r4"', '"r6"')
    for damaged, why in (
        (
            [*lines[:-1], lines[-1].replace('"head":"', '"head":"0')[:-3] + '"}'],
            "is not a release|differs from the database's",
        ),
        ([lines[0], "nonsense}", *lines[1:]], "line 2 is not a release"),
        ([*lines, later], "r5 is missing"),
        ([*lines, lines[-1].replace('"r4"', '"r5"')], "r5 doesn't follow r4"),
        ([lines[0], lines[3].replace('"r4"', '"r2"')], "its r2 differs from the database's"),
    ):
        with pytest.raises(ChainFileRefused, match=why):
            opened(damaged)
    assert opened([*lines, later[:40]]) == "r4"  # a write that a kill has cut short
    assert opened(lines[:1]) == "r4"
    assert chain_file.read_text().splitlines() == lines


def test_server_started_while_another_publishes_uses_the_next_release_number(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other server has recorded r2 but not committed it, so the server that starts now takes it for lost."""
    settings = settings_in(tmp_path / "data", database_url=database_url)
    engines = [migrated(database_url) for _ in range(2)]
    one, another = (ReleaseStore.unchecked(engine, settings) for engine in engines)
    publish(one)
    noted, looked, going_on = threading.Event(), threading.Event(), threading.Event()
    add, lost = ChainFile.add, ChainFile.lost

    def noting(file: ChainFile, releases: Iterable[NotedRelease]) -> None:
        add(file, releases)
        if threading.current_thread() is publishing:
            noted.set()
            assert going_on.wait(60)

    def looking(file: ChainFile, published: Sequence[NotedRelease]) -> list[NotedRelease]:
        found = lost(file, published)
        assert [each.release for each in found] == ["r2"]
        looked.set()
        return found

    monkeypatch.setattr(ChainFile, "add", noting)
    monkeypatch.setattr(ChainFile, "lost", looking)
    publishing = threading.Thread(target=publish, args=[one])
    publishing.start()
    assert noted.wait(60)
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(another.follow_chain_file)
        assert looked.wait(60)
        with suppress(TimeoutError):  # time in which it would publish, if it didn't wait for the other
            following.result(0.5)
        going_on.set()
        following.result(60)
    publishing.join()
    assert [each.release for each in one.chain(16).releases] == ["r1", "r2"]
    for engine in engines:
        engine.dispose()
