"""The thief of a signing key, rotated since, waits for a device that is restored from yesterday's copy.

The thief answers in the server's place from the moment of the restore, with the old private key and everything that was
ever published. Oracle: which release the device uses afterwards, and which key its own store trusts.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from device_app.composition import build_device
from device_app.device import Device
from device_app.errors import DeviceError, ReleaseRefused
from device_app.restoring import restore_copies
from device_app.settings import DeviceSettings
from device_app.store.database_copy import DatabaseCopy
from protocol.chain import KeyHistory, KeyRotation, SignedRotation, sign_rotation
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.news import NOW

OLD, NEW, THIEF = (Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32) for number in (1, 2, 9))


def public(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes_raw()


def rotated(number: int, old: Ed25519PrivateKey, new: Ed25519PrivateKey) -> SignedRotation:
    said = KeyRotation(number=number, old_key=public(old), new_key=public(new), rotated_at=NOW)
    return sign_rotation(said, old, new)


class CopiedReader:
    """A reader's profile, and the server that it contacts."""

    def __init__(self, folder: Path) -> None:
        self.settings = DeviceSettings(data_dir=folder)
        self.clock = StillClock(NOW)
        self.backend = FakeBackend(key=OLD)
        self.rotations: tuple[SignedRotation, ...] = ()
        self.device = self._opened()

    def answer(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/keys":
            assert self.backend.key is not None
            said = KeyHistory(public_key=public(self.backend.key), rotations=self.rotations)
            return httpx.Response(200, content=said.model_dump_json())
        return self.backend.answer(request)

    def sign_with(self, key: Ed25519PrivateKey, *rotations: SignedRotation) -> None:
        self.backend.key, self.rotations = key, rotations
        self.backend.publish()

    def _opened(self) -> Device:
        return build_device(self.settings, transport=httpx.MockTransport(self.answer), clock=self.clock)

    def restore(self) -> None:
        """Lose the database and restore its last copy, hours later."""
        self.device.close()
        self.clock.go_on(3_600.0)
        self.settings.database.unlink()
        restore_copies(self.settings, self.clock())
        self.device = self._opened()

    @property
    def in_use(self) -> str:
        release = self.device.release()
        assert release is not None
        return release.id

    @property
    def trusts(self) -> bytes | None:
        return self.device.parts.stores.releases.pinned_key()


@pytest.fixture
def profile(tmp_path: Path) -> Iterator[CopiedReader]:
    made = CopiedReader(tmp_path)
    made.device.sync()
    assert made.device.copy_step()
    yield made
    made.device.close()


def forged_by_the_old_key(profile: CopiedReader) -> None:
    profile.sign_with(OLD)


def forged_rotation(profile: CopiedReader) -> None:
    profile.sign_with(THIEF, rotated(1, OLD, THIEF))


ATTACKS: list[Callable[[CopiedReader], None]] = [forged_by_the_old_key, forged_rotation]


@pytest.mark.parametrize("forged", ATTACKS, ids=lambda forged: forged.__name__)
@pytest.mark.parametrize("restarted", [False, True])
def test_device_restored_from_a_copy_does_not_trust_a_replaced_key(
    profile: CopiedReader, forged: Callable[[CopiedReader], None], restarted: bool
) -> None:
    profile.sign_with(NEW, rotated(1, OLD, NEW))
    assert profile.device.sync()
    if restarted:
        profile.device.close()
        profile.device = profile._opened()
    profile.restore()
    assert profile.trusts == public(NEW)
    before = profile.in_use
    forged(profile)
    with pytest.raises(ReleaseRefused, match="not signed by"):
        profile.device.sync()
    assert (profile.in_use, profile.trusts) == (before, public(NEW))
    profile.sign_with(NEW, rotated(1, OLD, NEW))
    with suppress(ReleaseRefused):
        profile.device.sync()  # the thief's releases stand in this server's chain
    assert profile.trusts == public(NEW)


def test_device_restored_from_a_copy_refuses_replayed_older_releases(profile: CopiedReader) -> None:
    """A replay needs no key: the release was published after the copy, but is older than the one in use."""
    replayed = [profile.backend.signed]
    for _ in range(3):
        profile.sign_with(OLD)
        replayed.append(profile.backend.signed)
        assert profile.device.sync()
    newest = profile.in_use
    profile.restore()
    assert profile.in_use == newest
    for older in replayed[:-1]:
        profile.backend.signed = older
        with suppress(DeviceError):
            profile.device.sync()
        assert profile.in_use == newest
    profile.sign_with(OLD)
    assert profile.device.sync(), "the next one follows"
    assert len(profile.device.reading.feed().items) == 30


def test_rotation_is_recorded_in_the_copy_even_if_its_release_is_refused(profile: CopiedReader) -> None:
    profile.backend.created_at = NOW + timedelta(days=300)
    profile.sign_with(NEW, rotated(1, OLD, NEW))
    with pytest.raises(ReleaseRefused, match="two days ahead"):
        profile.device.sync()
    profile.restore()
    assert profile.trusts == public(NEW)


def test_copy_that_cannot_be_written_is_deleted(profile: CopiedReader) -> None:
    copy = DatabaseCopy(profile.settings.database)
    with closing(sqlite3.connect(copy.path)) as connection:
        connection.execute("ALTER TABLE pinned_key ADD COLUMN of_a_later_version TEXT")
    profile.sign_with(NEW, rotated(1, OLD, NEW))
    assert profile.device.sync()
    assert not copy.path.exists(), "rather none than one that trusts the old key"
    assert profile.device.copy_step()
    profile.restore()
    assert profile.trusts == public(NEW)


def test_copy_is_written_only_after_changes(profile: CopiedReader) -> None:
    copy = DatabaseCopy(profile.settings.database)
    before = copy.path.read_bytes()
    for _ in range(3):
        profile.device.sync()
    assert copy.path.read_bytes() == before
    profile.sign_with(OLD)
    assert profile.device.sync()
    assert copy.path.read_bytes() != before
