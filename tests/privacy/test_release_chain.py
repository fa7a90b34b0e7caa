"""A malicious server replays, rewrites, misdates and forks its releases, or gives each device its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from device_app.device import Device
from device_app.errors import ReleaseForked, ReleaseRefused
from protocol.chain import fingerprint
from protocol.ids import PROTOCOL_HEADER, PROTOCOL_VERSION
from protocol.rounds import OpenRounds, RoundStatus
from tests.doubles.clock import StillClock
from tests.doubles.long_form import by_length
from tests.doubles.malicious_publisher import MaliciousPublisher, default_device, read_articles
from tests.doubles.news import NOW


@pytest.fixture
def server() -> MaliciousPublisher:
    return MaliciousPublisher(refuse_old=False)


@pytest.fixture
def clock() -> StillClock:
    return StillClock(NOW)


@pytest.fixture
def device(server: MaliciousPublisher, clock: StillClock, tmp_path: Path) -> Iterator[Device]:
    opened = default_device(server, tmp_path, clock)
    yield opened
    opened.close()


def in_use(device: Device) -> str:
    release = device.release()
    assert release is not None
    return release.id


def test_replayed_older_release_is_not_used(server: MaliciousPublisher, device: Device, clock: StillClock) -> None:
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


def test_reused_release_number_is_refused_with_an_alert(
    server: MaliciousPublisher, device: Device, clock: StillClock
) -> None:
    device.sync()
    server.releases.clear()
    server.head, server.chain = None, []
    server.created_at += timedelta(seconds=1)
    server.publish()
    clock.go_on(3_601)
    with pytest.raises(ReleaseForked, match="its content differs from an earlier release with the same number"):
        device.sync()
    assert in_use(device) == "r1"
    assert device.status().shield == "red"
    assert any("differs from an earlier release" in trouble.words for trouble in device.status().alerts)


def test_release_dated_2020_or_next_year_is_refused(
    server: MaliciousPublisher, device: Device, clock: StillClock
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


def test_device_recovers_once_its_wrong_clock_is_corrected(
    server: MaliciousPublisher, device: Device, clock: StillClock
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


def test_release_history_rewritten_for_one_device_is_refused_as_a_fork(
    server: MaliciousPublisher, device: Device, clock: StillClock
) -> None:
    device.sync()
    server.publish()
    assert device.sync()
    shown = device.privacy.overview().chain
    assert shown is not None
    other = MaliciousPublisher(
        refuse_old=False, key=server.key, created_at=NOW + timedelta(seconds=1), blobs=server.blobs
    )
    for _ in range(4):
        other.publish()
    server.signed, server.releases, server.chain = other.signed, other.releases, other.chain
    clock.go_on(3_601)
    with pytest.raises(ReleaseForked, match="the list of releases that the server shows everybody doesn't have it"):
        device.sync()
    assert (in_use(device), device.privacy.overview().chain) == ("r2", shown)
    assert "different history" in device.status().shield_words


def test_chain_that_contradicts_the_release_is_refused_as_a_fork(
    server: MaliciousPublisher, device: Device, clock: StillClock
) -> None:
    device.sync()
    server.publish()
    honest = list(server.chain)
    server.head = "ab" * 32  # what it has signed comes after something else
    server.publish()
    server.chain = [*honest, server.chain[-1]]
    clock.go_on(3_601)
    with pytest.raises(ReleaseForked, match="differ from those this device was shown up to r1"):
        device.sync()
    assert in_use(device) == "r1"


def test_chain_head_is_the_same_whenever_a_reader_started(
    server: MaliciousPublisher, device: Device, clock: StillClock, tmp_path: Path
) -> None:
    device.sync()
    for _ in range(20):  # more than one look at the list shows
        server.publish()
    device.sync()
    later = default_device(server, tmp_path / "later", clock)
    later.sync()
    assert device.privacy.overview().chain == later.privacy.overview().chain
    assert device.privacy.overview().chain is not None
    lengths = {path for path in server.paths() if path == "/v1/releases/chain"}
    assert lengths
    later.close()


DEVICES = by_length(18, long=64)
"""More than the sixteen numbers that a request can tell apart."""
SPOKEN = {PROTOCOL_HEADER: str(PROTOCOL_VERSION), "content-type": "application/json"}


@pytest.mark.long_form
def test_release_number_in_requests_reveals_at_most_four_bits_about_a_device(tmp_path: Path) -> None:
    asked: dict[bytes, int] = {}
    rest: set[bytes] = set()
    for at in range(DEVICES):
        server, clock = MaliciousPublisher(refuse_old=False), StillClock(NOW)
        server.releases.clear()
        server.head = None
        server.chain.clear()
        number = 1_000_003 + 7 * at
        server.publish(number=number)
        device = default_device(server, tmp_path / str(at), clock)
        read_articles(device, server, range(4), clock)
        device.recall_step()
        device.close()
        (body,) = server.asked()
        asked[body] = asked.get(body, 0) + 1
        short = b'"release":%d,' % (number % 16)
        assert short in body
        rest.add(body.replace(short, b""))
        assert not any(str(number) in path for path in server.paths()), "nor does any other request name it"
    assert len(asked) == 16
    assert len(rest) == 1, "and otherwise they are the same bytes"


@dataclass
class RoundsForOne(MaliciousPublisher):
    """A server with a round always running, for the named release, that gives nobody a place."""

    round_of: str = "r0"
    check_ins: list[bytes] = field(default_factory=list)

    def answer(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/rounds/check-in":
            self.check_ins.append(request.read())
            return httpx.Response(204, headers=SPOKEN)
        if request.url.path == "/v1/rounds/current":
            status = RoundStatus(
                round="round-1",
                system="private_counts/secure/huber",
                task="count",
                state="keys",
                stages="sum",
                release=self.round_of,
                cohort=60,
                cohort_minimum=10,
                joined=0,
                uploaded=0,
                received_bytes=0,
                opened_at=NOW,
                closes_at=NOW + timedelta(hours=1),
            )
            rounds = OpenRounds(rounds=(status,)).model_dump_json()
            return httpx.Response(200, content=rounds, headers=SPOKEN)
        return super().answer(request)


def test_check_in_for_a_count_does_not_reveal_the_devices_release(tmp_path: Path) -> None:
    """Twenty devices, each with a release of its own, are offered a count under a release that none has, then under
    their own.

    Regression: all checked in to the first as well, and revealed four bits of their release.
    """
    another: set[bytes] = set()
    own: set[bytes] = set()
    for at in range(20):
        server, clock = RoundsForOne(refuse_old=False), StillClock(NOW)
        server.releases.clear()
        server.head = None
        server.chain.clear()
        server.publish(number=1_000_003 + 7 * at)
        device = default_device(server, tmp_path / str(at), clock)
        device.sync()
        for named in ("r1000001", *server.releases):
            server.round_of = named
            device.parts.trainer.step()
        device.close()
        first, second = server.check_ins
        another.add(first)
        own.add(second)
    assert len(another) == 1, "the same bytes from every device, whatever it holds"
    assert len(own) == 16, "four bits of what the server itself has named"


def test_devices_held_back_at_different_releases_show_heads_with_different_numbers(
    server: MaliciousPublisher, device: Device, clock: StillClock, tmp_path: Path
) -> None:
    """This is no fork: each device is held back at a number of its own. Readers who compare see different numbers."""
    device.sync()
    server.publish()
    ahead = default_device(server, tmp_path / "ahead", clock)
    ahead.sync()
    mine, theirs = device.privacy.overview().chain, ahead.privacy.overview().chain
    ahead.close()
    assert mine is not None
    assert theirs is not None
    assert (mine.release, theirs.release) == ("r1", "r2")
    assert mine.head != theirs.head
    clock.go_on(3_601)
    assert device.sync()
    assert device.privacy.overview().chain == theirs, "an honest server's device catches up within the hour"


def test_devices_trusting_different_keys_show_different_fingerprints(
    server: MaliciousPublisher, device: Device, clock: StillClock, tmp_path: Path
) -> None:
    device.sync()
    impostor = MaliciousPublisher(refuse_old=False)
    other = default_device(impostor, tmp_path / "other", clock)
    other.sync()
    shown = []
    for each, asked in ((device, server), (other, impostor)):
        chain = each.privacy.overview().chain
        assert chain is not None
        assert chain.key == fingerprint(asked.signed.public_key), "what `ownfeed keys show` prints"
        assert not chain.rotated
        shown.append(chain.key)
    other.close()
    assert shown[0] != shown[1]
