"""A malicious server wants devices to trust its own key.

Forged, replayed and stolen rotations of the signing key. The attacker answers every request of the device and has its
own keys; where a test says so, also the private half of a key that the operator once used. Oracle: which key the
device's own store trusts afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from device_app.errors import ReleaseRefused
from device_app.store.byte_log import ByteLog
from device_app.store.database import Database
from device_app.store.releases import InstalledReleases
from device_app.sync.release_sync import ReleaseSync
from device_app.uplink.http import HttpClient
from protocol.chain import KeyHistory, KeyRotation, SignedRotation, sign_rotation
from tests.doubles.backend import FakeBackend
from tests.doubles.news import NOW

KEYS = [Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32) for number in range(1, 5)]
FIRST, SECOND, THIRD, ATTACKER = KEYS


def public(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes_raw()


def statement(number: int, old: Ed25519PrivateKey, new: Ed25519PrivateKey) -> KeyRotation:
    return KeyRotation(number=number, old_key=public(old), new_key=public(new), rotated_at=NOW)


def rotation(number: int, old: Ed25519PrivateKey, new: Ed25519PrivateKey) -> SignedRotation:
    return sign_rotation(statement(number, old, new), old, new)


def forged(said: KeyRotation, by_old: Ed25519PrivateKey, by_new: Ed25519PrivateKey) -> SignedRotation:
    """Return a statement over two keys, signed by whichever keys the attacker has."""
    text = said.model_dump_json()
    return SignedRotation(
        rotation=text,
        by_old_key=by_old.sign(b"ownfeed key rotation, old key\n" + text.encode()),
        by_new_key=by_new.sign(b"ownfeed key rotation, new key\n" + text.encode()),
    )


@dataclass
class AnyServer:
    """A server with releases under any key and any history of keys."""

    backend: FakeBackend = field(default_factory=FakeBackend)
    rotations: tuple[SignedRotation, ...] = ()
    asked: int = 0

    def sign_with(self, key: Ed25519PrivateKey, *rotations: SignedRotation) -> None:
        """Publish a release under this key, with this history of keys."""
        self.backend.key, self.rotations = key, rotations
        self.backend.publish()

    def answer(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/keys":
            self.asked += 1
            assert self.backend.key is not None
            said = KeyHistory(public_key=public(self.backend.key), rotations=self.rotations)
            return httpx.Response(200, content=said.model_dump_json())
        return self.backend.answer(request)


@pytest.fixture
def server() -> AnyServer:
    made = AnyServer()
    made.sign_with(FIRST)
    return made


@pytest.fixture
def store(tmp_path: Path) -> InstalledReleases:
    return InstalledReleases(Database(tmp_path / "device.sqlite"))


Sync = Callable[..., bool]


@pytest.fixture
def sync(server: AnyServer, store: InstalledReleases) -> Sync:
    log = ByteLog(store._database)

    def once(key: Ed25519PrivateKey | None = None) -> bool:
        client = HttpClient("http://backend.example", log, lambda: NOW, httpx.MockTransport(server.answer))
        try:
            return ReleaseSync(client, store, lambda: NOW, None if key is None else public(key)).refresh()
        finally:
            client.close()

    return once


def in_use(store: InstalledReleases) -> str:
    current = store.current()
    assert current is not None
    return current.manifest.release


def test_device_follows_two_rotations_at_once(server: AnyServer, store: InstalledReleases, sync: Sync) -> None:
    assert sync()
    server.sign_with(THIRD, rotation(1, FIRST, SECOND), rotation(2, SECOND, THIRD))
    assert sync()
    assert (in_use(store), store.pinned_key()) == (server.backend.releases[-1], public(THIRD))
    server.sign_with(THIRD, *server.rotations)
    assert sync()
    assert server.asked == 1, "a key that is trusted needs no history"


@pytest.mark.parametrize(
    "history",
    [
        pytest.param([], id="no rotation at all"),
        pytest.param([forged(statement(1, FIRST, ATTACKER), ATTACKER, ATTACKER)], id="the old key never signed it"),
        pytest.param([forged(statement(1, FIRST, ATTACKER), SECOND, ATTACKER)], id="signed by some other key"),
        pytest.param([rotation(1, SECOND, ATTACKER)], id="from a key that nobody trusts"),
        pytest.param([rotation(1, FIRST, SECOND), rotation(2, ATTACKER, THIRD)], id="a chain with a gap"),
        pytest.param(
            [rotation(1, FIRST, SECOND), forged(statement(2, SECOND, ATTACKER), ATTACKER, ATTACKER)],
            id="a true rotation, then a forged one",
        ),
        pytest.param([rotation(1, FIRST, SECOND)], id="a true rotation to another key than the attacker's"),
        pytest.param(
            [
                rotation(1, FIRST, SECOND).model_copy(
                    update={"rotation": statement(1, FIRST, ATTACKER).model_dump_json()}
                )
            ],
            id="the signatures of a true rotation under other words",
        ),
    ],
)
def test_attackers_key_is_never_trusted(
    server: AnyServer, store: InstalledReleases, sync: Sync, history: list[SignedRotation]
) -> None:
    assert sync()
    before = in_use(store)
    server.sign_with(ATTACKER, *history)
    with pytest.raises(ReleaseRefused, match="not signed by the pinned key"):
        sync()
    assert (in_use(store), store.pinned_key()) == (before, public(FIRST))


def test_new_key_that_did_not_sign_for_itself_is_refused(
    server: AnyServer, store: InstalledReleases, sync: Sync
) -> None:
    assert sync()
    server.sign_with(SECOND, forged(statement(1, FIRST, SECOND), FIRST, FIRST))
    with pytest.raises(ReleaseRefused, match="rotation 1 is not signed by its new key"):
        sync()
    assert store.pinned_key() == public(FIRST)


def test_stolen_old_key_has_no_effect_after_a_rotation(server: AnyServer, store: InstalledReleases, sync: Sync) -> None:
    assert sync()
    server.sign_with(SECOND, rotation(1, FIRST, SECOND))
    assert sync()
    before = in_use(store)
    for key, history in (
        (FIRST, (rotation(1, FIRST, SECOND),)),  # a release of the old key, with the true history
        (ATTACKER, (rotation(2, FIRST, ATTACKER),)),  # the old key names the attacker's as its successor
        (ATTACKER, (rotation(1, FIRST, SECOND), rotation(2, FIRST, ATTACKER))),
    ):
        server.sign_with(key, *history)
        with pytest.raises(ReleaseRefused, match="not signed by"):
            sync()
        assert (in_use(store), store.pinned_key()) == (before, public(SECOND))


def test_replayed_older_rotation_is_refused(server: AnyServer, store: InstalledReleases, sync: Sync) -> None:
    """An operator went back to an earlier key; the thief of the key in between replays the rotations."""
    assert sync()
    there, back = rotation(1, FIRST, SECOND), rotation(2, SECOND, FIRST)
    server.sign_with(SECOND, there)
    assert sync()
    server.sign_with(FIRST, there, back)
    assert sync()
    assert store.pinned_key() == public(FIRST)
    server.sign_with(SECOND, there)
    with pytest.raises(ReleaseRefused, match="no rotation leads to"):
        sync()
    assert store.pinned_key() == public(FIRST)


def test_device_does_not_pin_the_new_key_if_the_rotations_release_is_forged(
    server: AnyServer, store: InstalledReleases, sync: Sync
) -> None:
    assert sync()
    server.sign_with(SECOND, rotation(1, FIRST, SECOND))
    server.backend.signed = server.backend.signed.model_copy(update={"signature": bytes(64)})
    with pytest.raises(ReleaseRefused, match="signature does not match"):
        sync()
    assert store.pinned_key() == public(FIRST)


def test_key_from_the_settings_is_followed_through_its_rotations(
    server: AnyServer, store: InstalledReleases, sync: Sync
) -> None:
    server.sign_with(SECOND, rotation(1, FIRST, SECOND))
    assert sync(FIRST)
    assert store.pinned_key() == public(SECOND)
    server.sign_with(SECOND, *server.rotations)
    assert sync(FIRST)
    assert server.asked == 1, "the settings still name the first key, and the way from it is kept"
    server.sign_with(FIRST)
    with pytest.raises(ReleaseRefused):
        sync(FIRST)


def test_key_in_the_settings_recovers_a_device_that_trusts_an_attackers_key(
    server: AnyServer, store: InstalledReleases, sync: Sync
) -> None:
    """The thief of the trusted key acted before the operator's rotation; until then no device can tell them apart."""
    assert sync()
    server.sign_with(ATTACKER, rotation(1, FIRST, ATTACKER))
    assert sync()
    assert store.pinned_key() == public(ATTACKER)
    server.sign_with(SECOND, rotation(1, FIRST, SECOND))
    with pytest.raises(ReleaseRefused, match="set backend_key"):
        sync()
    assert sync(SECOND)
    assert in_use(store) == server.backend.releases[-1]
    server.sign_with(ATTACKER, rotation(1, FIRST, ATTACKER))
    with pytest.raises(ReleaseRefused):
        sync(SECOND)
    trusted = store.trusted_key(public(SECOND))
    assert trusted is not None
    assert trusted.public_key == public(SECOND)


def test_key_from_the_settings_stays_trusted_after_its_removal(
    server: AnyServer, store: InstalledReleases, sync: Sync
) -> None:
    """The thief waits until settings are lost; the device must not trust the stolen key again by itself."""
    assert sync()
    server.sign_with(ATTACKER, rotation(1, FIRST, ATTACKER))
    assert sync()
    server.sign_with(SECOND)
    assert sync(SECOND)
    before = in_use(store)
    server.sign_with(ATTACKER, rotation(1, FIRST, ATTACKER))
    with pytest.raises(ReleaseRefused, match="not signed by"):
        sync()
    assert (in_use(store), store.pinned_key()) == (before, public(SECOND))
    server.sign_with(SECOND)
    assert sync(), "the operator's go on being taken"


def test_switching_between_two_servers_works_with_both_keys(
    server: AnyServer, store: InstalledReleases, sync: Sync
) -> None:
    there = AnyServer()
    here = server.backend, server.rotations
    for key, backend in ((FIRST, here[0]), (THIRD, there.backend), (FIRST, here[0]), (THIRD, there.backend)):
        server.backend = backend
        server.sign_with(key)
        assert sync(key)
        assert in_use(store) == backend.releases[-1]
        server.sign_with(key)
        assert sync(key), "and its next release follows"


def test_older_releases_are_refused_after_a_rotation_back_to_an_earlier_key(
    server: AnyServer, store: InstalledReleases, sync: Sync
) -> None:
    """The attacker in the operator's place has no key, only releases and statements signed before."""
    assert sync(FIRST)
    old = server.backend.signed
    there, back = rotation(1, FIRST, SECOND), rotation(2, SECOND, FIRST)
    server.sign_with(FIRST)
    newer = server.backend.signed
    assert sync(FIRST)
    server.sign_with(SECOND, there)
    assert sync(FIRST)
    server.sign_with(FIRST, there, back)
    true = server.backend.signed
    before = in_use(store)
    for replayed in (newer, old, newer, old):
        server.backend.signed = replayed
        with suppress(ReleaseRefused):
            sync(FIRST)
        assert in_use(store) == before
    server.backend.signed = true
    assert sync(FIRST)
    assert in_use(store) == server.backend.releases[-1]
