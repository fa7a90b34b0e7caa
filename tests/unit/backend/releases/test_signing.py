"""The signing key: lost, foreign, or its rotation killed. Oracle: what `verify` and `follow` of the wire accept."""

from __future__ import annotations

import shutil
import stat
import threading
from itertools import count, pairwise
from pathlib import Path

import pytest
from sqlalchemy import Engine, func, select

from backend.db.engine import reading_session
from backend.db.tables import KeyRotationRow, ReleaseRow
from backend.releases.blobs import ReleaseDraft
from backend.releases.errors import NothingPublished, SigningKeyRefused
from backend.releases.rotation import key_history, replace_lost_key, rotate_key
from backend.releases.signing import KeyFile, public_half
from backend.releases.store import ReleaseStore
from backend.settings import BackendSettings
from protocol.chain import follow
from protocol.releases import SignedManifest, verify
from protocol.rounds import RoundOffer, verify_offer
from tests.doubles.kills import Killed, Kills, listen
from tests.doubles.small_release import migrated_engine, small_draft
from tests.doubles.wire_messages import ROUND

RACED = 4


class SigningServer:
    """A data folder and a process that works on it: `restart` is the next process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.settings = BackendSettings(data_dir=folder)
        self.key_path = folder / "signing.key"
        self.engine: Engine = migrated_engine(folder)

    def restart(self) -> ReleaseStore:
        self.engine.dispose()
        self.engine = migrated_engine(self.folder)
        return ReleaseStore.open(self.engine, self.settings)

    def publish(self) -> SignedManifest:
        store = self.restart()
        store.commit(small_draft(store), note="another")
        return newest(store)


def newest(store: ReleaseStore) -> SignedManifest:
    signed = store.current()
    assert signed is not None
    return signed


@pytest.fixture
def server(tmp_path: Path) -> SigningServer:
    made = SigningServer(tmp_path / "data")
    made.publish()
    return made


def test_lost_key_is_refused_by_its_path_and_not_replaced(server: SigningServer) -> None:
    server.key_path.unlink()
    with pytest.raises(SigningKeyRefused, match=r"signing\.key is missing.*backup.*docs/operate\.md") as refused:
        server.restart()
    assert str(server.key_path) in str(refused.value)
    assert not list(server.folder.glob("signing.key*"))


def test_error_for_an_unrelated_key_names_the_right_one(server: SigningServer, tmp_path: Path) -> None:
    right = server.key_path.read_bytes()
    wanted = newest(server.restart()).public_key.hex()
    server.key_path.unlink()
    KeyFile(server.key_path).load(None)
    with pytest.raises(SigningKeyRefused, match=f"is not the one that signed the newest release.*{wanted}"):
        server.restart()
    server.key_path.write_bytes(right)
    assert newest(server.restart()).public_key.hex() == wanted


def test_running_server_keeps_its_key_in_memory_if_the_file_is_lost(server: SigningServer) -> None:
    store = server.restart()
    signed = newest(store)
    server.key_path.unlink()
    store.commit(small_draft(store), note="the key is in memory still")
    assert newest(store).public_key == signed.public_key
    verify(newest(store), signed.public_key)


def test_key_is_created_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / "data" / "signing.key"
    first, second = KeyFile(path).load(None), KeyFile(path).load(None)

    assert first.private_bytes_raw() == second.private_bytes_raw()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["signing.key"]


def test_invalid_key_file_is_refused_and_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "signing.key"
    path.write_text("not a key")

    with pytest.raises(SigningKeyRefused, match="signing key"):
        KeyFile(path).load(None)
    assert path.read_text() == "not a key"


def test_rotation_publishes_the_same_content_and_leaves_one_key_file(server: SigningServer) -> None:
    store = server.restart()
    before = newest(store)
    manifest = rotate_key(store)
    after = newest(store)

    assert verify(after, after.public_key) == manifest
    assert ReleaseDraft.like(manifest) == ReleaseDraft.like(verify(before, before.public_key))
    assert after.public_key != before.public_key
    history = key_history(store)
    assert (history.public_key, follow(history, before.public_key)) == (after.public_key, (after.public_key, 1))
    assert [each.name for each in server.folder.glob("signing.key*")] == ["signing.key"]
    assert stat.S_IMODE(server.key_path.stat().st_mode) == 0o600
    assert public_half(server.restart().signing_key()) == after.public_key


def test_key_rotations_can_be_followed_from_any_earlier_key(server: SigningServer) -> None:
    store = server.restart()
    keys = [newest(store).public_key]
    for _ in range(3):
        rotate_key(store)
        keys.append(newest(store).public_key)
    history = key_history(store)
    assert len(set(keys)) == 4
    for number, key in enumerate(keys):
        assert follow(history, key, after=number) == (keys[-1], 3)


def test_running_server_signs_with_a_key_rotated_by_another_process(server: SigningServer) -> None:
    running = server.restart()
    running.signing_key()
    other = ReleaseStore.open(migrated_engine(server.folder), server.settings)
    rotate_key(other)

    running.commit(small_draft(running), note="the next release")
    assert newest(running).public_key == key_history(other).public_key
    verify(newest(running), key_history(other).public_key)
    offer = RoundOffer(manifest=ROUND, pseudonym="a" * 22)
    assert verify_offer(running.sign_offer(offer), key_history(other).public_key) == offer


def test_rotation_killed_at_any_point_leaves_the_old_or_the_new_key(server: SigningServer, tmp_path: Path) -> None:
    server.engine.dispose()
    old = newest(server.restart()).public_key
    server.engine.dispose()
    outcomes = []
    for point in count(1):
        folder = tmp_path / f"kill{point}"
        shutil.copytree(server.folder, folder)
        victim = SigningServer(folder)
        store = victim.restart()
        kills = Kills(folder, [("server", "", point)])
        kills.watch_server(victim.engine)
        kills.armed = True
        listen(kills)
        try:
            rotate_key(store)
        except Killed:
            pass
        finally:
            listen(None)
        if not kills.done:
            break
        victim = SigningServer(folder)
        after = victim.restart()  # raises if neither key is there
        signed = newest(after)
        verify(signed, signed.public_key)
        assert public_half(after.signing_key()) == signed.public_key
        with reading_session(victim.engine) as session:
            said = session.scalar(select(func.count()).select_from(KeyRotationRow))
        outcomes.append(signed.public_key != old)
        assert said == outcomes[-1], "the statement and its release are there both, or neither"
        assert follow(key_history(after), old) == (signed.public_key, said)
        rotate_key(after)
        assert follow(key_history(after), old) == (newest(after).public_key, said + 1)
        assert [each.name for each in folder.glob("signing.key*") if each.suffix != ".part"] == ["signing.key"]
        victim.engine.dispose()
    assert outcomes == sorted(outcomes), "the old key up to one point, the new one from there"
    assert {False, True} == set(outcomes)


def test_rotation_before_the_first_release_is_refused(tmp_path: Path) -> None:
    store = SigningServer(tmp_path / "data").restart()
    with pytest.raises(NothingPublished):
        rotate_key(store)


def test_key_is_replaced_only_if_lost_and_without_a_rotation(server: SigningServer) -> None:
    store = server.restart()
    before = newest(store).public_key
    with pytest.raises(SigningKeyRefused, match="rotate it instead"):
        replace_lost_key(store)

    server.key_path.unlink()
    with pytest.raises(SigningKeyRefused, match="missing"):
        rotate_key(ReleaseStore.unchecked(server.engine, server.settings))
    replace_lost_key(ReleaseStore.unchecked(server.engine, server.settings))
    store = server.restart()
    assert newest(store).public_key != before
    assert follow(key_history(store), before) == (before, 0), "no device is led from the lost key to the new one"
    rotate_key(store)


def test_replaced_key_file_is_set_aside_not_deleted(server: SigningServer) -> None:
    server.key_path.unlink()
    foreign = KeyFile(server.key_path).load(None)
    replace_lost_key(ReleaseStore.unchecked(server.engine, server.settings))
    (aside,) = server.folder.glob("signing.key.*.unused")
    assert KeyFile(aside).load(None).private_bytes_raw() == foreign.private_bytes_raw()
    assert stat.S_IMODE(aside.stat().st_mode) == 0o600


def test_releases_racing_rotations_are_signed_by_the_current_key(server: SigningServer) -> None:
    """Three processes publish and one rotates, all at once; whoever trusts the first key can follow to the last."""
    first = newest(server.restart()).public_key
    stores = [ReleaseStore.open(migrated_engine(server.folder), server.settings) for _ in range(4)]
    ready, failures = threading.Barrier(len(stores)), list[BaseException]()

    def work(number: int) -> None:
        try:
            ready.wait()
            for _ in range(RACED):
                if number:
                    stores[number].commit(small_draft(stores[number]), note="another")
                else:
                    rotate_key(stores[0])
        except BaseException as failed:
            failures.append(failed)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(stores))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for store in stores:
        store.engine.dispose()
    store = server.restart()
    with reading_session(store.engine) as session:
        rows = session.scalars(select(ReleaseRow).order_by(ReleaseRow.number)).all()
        renewed = set(session.scalars(select(KeyRotationRow.release)))
    assert len(rows) == 1 + 4 * RACED
    for row in rows:
        signed = SignedManifest(manifest=row.manifest, signature=row.signature, public_key=row.public_key)
        assert verify(signed, row.public_key).release == f"r{row.number}"
    changed = {after.number for before, after in pairwise(rows) if before.public_key != after.public_key}
    assert changed == renewed
    assert len(renewed) == RACED
    assert follow(key_history(store), first) == (rows[-1].public_key, RACED)
    assert public_half(store.signing_key()) == rows[-1].public_key
    assert sorted(path.name for path in server.folder.glob("signing.key*")) == ["signing.key"]
