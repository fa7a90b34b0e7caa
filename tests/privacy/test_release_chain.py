"""A server that replays, rewrites, misdates and forks its releases, or gives each device one of its own."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from device_app.device import Device
from device_app.errors import ReleaseForked, ReleaseRefused
from device_app.wire.rotations import fingerprint
from tests.doubles.clock import StillClock
from tests.doubles.lying_codebooks import LyingPublisher, default_device, read
from tests.doubles.news import NOW


@pytest.fixture
def server() -> LyingPublisher:
    return LyingPublisher(refuse_old=False)


@pytest.fixture
def clock() -> StillClock:
    return StillClock(NOW)


@pytest.fixture
def device(server: LyingPublisher, clock: StillClock, tmp_path: Path) -> Iterator[Device]:
    opened = default_device(server, tmp_path, clock)
    yield opened
    opened.close()


def in_use(device: Device) -> str:
    release = device.release()
    assert release is not None
    return release.id


def test_a_replayed_older_release_is_not_used_again(server: LyingPublisher, device: Device, clock: StillClock) -> None:
    first = server.signed
    device.sync()
    server.publish()
    unseen = server.signed
    server.publish()
    device.sync()
    for replayed in (first, unseen):
        server.signed = replayed
        clock.go_on(3_601)
        if replayed is first:  # as by a worker that is behind the others
            assert not device.sync()
        else:
            with pytest.raises(ReleaseRefused, match="number is not above that of r3"):
                device.sync()
        assert in_use(device) == "r3"
    assert device.status().shield == "red"


def test_other_content_under_one_number_is_refused_and_said(
    server: LyingPublisher, device: Device, clock: StillClock
) -> None:
    device.sync()
    server.releases.clear()
    server.head, server.chain = None, []
    server.created_at += timedelta(seconds=1)
    server.publish()
    clock.go_on(3_601)
    with pytest.raises(ReleaseForked, match="other content than before under the same number"):
        device.sync()
    assert in_use(device) == "r1"
    assert device.status().shield == "red"
    assert any("other content" in trouble.words for trouble in device.status().alerts)


def test_a_release_of_2020_or_of_next_year_is_refused(
    server: LyingPublisher, device: Device, clock: StillClock
) -> None:
    device.sync()
    before, head, chain = server.created_at, server.head, list(server.chain)
    for wrong, why in ((NOW.replace(year=2020), "before that of r1"), (NOW.replace(year=2027), "ahead of this device")):
        server.releases[1:], server.head, server.chain, server.created_at = [], head, list(chain), wrong
        server.publish()
        clock.go_on(3_601)
        with pytest.raises(ReleaseRefused, match=why):
            device.sync()
        assert in_use(device) == "r1"
    server.releases[1:], server.head, server.chain, server.created_at = [], head, list(chain), before
    server.publish()
    assert device.sync()


def test_a_device_whose_clock_was_wrong_goes_on_once_it_is_right(
    server: LyingPublisher, device: Device, clock: StillClock
) -> None:
    right = clock.now
    clock.now = right.replace(year=2001)
    with pytest.raises(ReleaseRefused, match="if that clock is wrong, set it"):
        device.sync()
    clock.now = right.replace(year=2040)
    device.sync()
    clock.now = right
    server.publish()
    assert device.sync(), "nothing that it took while its clock was ahead stands in the way"


def test_a_history_rewritten_for_one_device_is_a_fork_and_its_release_stays(
    server: LyingPublisher, device: Device, clock: StillClock
) -> None:
    device.sync()
    server.publish()
    assert device.sync()
    shown = device.privacy().chain
    assert shown is not None
    other = LyingPublisher(refuse_old=False, key=server.key, created_at=NOW + timedelta(seconds=1), blobs=server.blobs)
    for _ in range(4):
        other.publish()
    server.signed, server.releases, server.chain = other.signed, other.releases, other.chain
    clock.go_on(3_601)
    with pytest.raises(ReleaseForked, match="the list of releases that the server shows everybody doesn't have it"):
        device.sync()
    assert (in_use(device), device.privacy().chain) == ("r2", shown)
    assert "another history" in device.status().shield_words


def test_a_list_that_fits_the_device_but_not_the_release_is_a_fork_too(
    server: LyingPublisher, device: Device, clock: StillClock
) -> None:
    device.sync()
    server.publish()
    honest = list(server.chain)
    server.head = "ab" * 32  # what it has signed comes after something else
    server.publish()
    server.chain = [*honest, server.chain[-1]]
    clock.go_on(3_601)
    with pytest.raises(ReleaseForked, match="others than those that this device was shown up to r1"):
        device.sync()
    assert in_use(device) == "r1"


def test_two_readers_see_the_same_head_whenever_they_came(
    server: LyingPublisher, device: Device, clock: StillClock, tmp_path: Path
) -> None:
    device.sync()
    for _ in range(20):  # more than one look at the list shows
        server.publish()
    device.sync()
    later = default_device(server, tmp_path / "later", clock)
    later.sync()
    assert device.privacy().chain == later.privacy().chain
    assert device.privacy().chain is not None
    lengths = {path for path in server.paths() if path == "/v1/releases/chain"}
    assert lengths
    later.close()


DEVICES = 64


def test_a_release_for_each_of_64_devices_is_a_mark_of_four_bits_at_most(tmp_path: Path) -> None:
    asked: dict[bytes, int] = {}
    rest: set[bytes] = set()
    for at in range(DEVICES):
        server, clock = LyingPublisher(refuse_old=False), StillClock(NOW)
        server.releases.clear()
        server.head = None
        server.chain.clear()
        number = 1_000_003 + 7 * at
        server.publish(number=number)
        device = default_device(server, tmp_path / str(at), clock)
        read(device, server, range(4), clock)
        device.feed(refresh=True)
        device.close()
        (body,) = server.asked()
        asked[body] = asked.get(body, 0) + 1
        short = b'"release":%d,' % (number % 16)
        assert short in body
        rest.add(body.replace(short, b""))
        assert not any(str(number) in path for path in server.paths()), "nor does any other request name it"
    assert len(asked) == 16
    assert len(rest) == 1, "and otherwise they are the same bytes"


def test_two_readers_who_trust_different_keys_see_different_fingerprints(
    server: LyingPublisher, device: Device, clock: StillClock, tmp_path: Path
) -> None:
    device.sync()
    impostor = LyingPublisher(refuse_old=False)
    other = default_device(impostor, tmp_path / "other", clock)
    other.sync()
    shown = []
    for each, asked in ((device, server), (other, impostor)):
        chain = each.privacy().chain
        assert chain is not None
        assert chain.key == fingerprint(asked.signed.public_key), "what `ownfeed keys show` prints"
        assert not chain.rotated
        shown.append(chain.key)
    other.close()
    assert shown[0] != shown[1]
