"""A device in a secure sum: what it refuses, tolerates and reveals. Oracle: the protocol's rules."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from backend.federation.errors import SumMessageRefused
from backend.federation.secagg.secure_sum import SecureSumServer
from device_app.errors import SumAborted
from device_app.privacy.secagg.messages import Step
from protocol.pairing import channel_keys, close_box, open_box, sign_keys
from protocol.secagg import (
    Agreements,
    Box,
    Complaints,
    MemberSignature,
    Roster,
    SecaggError,
    Sharers,
    Shares,
    Survivors,
)
from protocol.shamir import PRIME, SHARE_BYTES
from tests.doubles.secure_sums import (
    SumDevice,
    answer,
    cohort,
    deliver,
    random_vector,
    run_until,
    terms,
)


def roster_of(server: SecureSumServer, device: SumDevice) -> Roster:
    found = answer(server, device)
    assert isinstance(found, Roster)
    return found


def with_other_keys(roster: Roster, member: int, **keys: bytes) -> Roster:
    """Return the roster with some keys of one member exchanged."""
    entries = tuple(
        entry.model_copy(update={"keys": entry.keys.model_copy(update=keys)}) if entry.member == member else entry
        for entry in roster.members
    )
    return roster.model_copy(update={"members": entries})


def key_of(roster: Roster, member: int) -> bytes:
    return next(entry.keys.mask_key for entry in roster.members if entry.member == member)


LIES_ABOUT_THE_ROSTER: dict[str, tuple[Callable[[Roster], Roster], str]] = {
    "another round's": (lambda one: one.model_copy(update={"round": "round-2"}), "the roster is for round-2"),
    "a member left out": (
        lambda one: one.model_copy(update={"members": one.members[:-1]}),
        "names 3 members; with a cohort of 4",
    ),
    "too few members": (lambda one: one.model_copy(update={"cohort": 1, "members": one.members[:1]}), "1 members"),
    "a threshold of one": (lambda one: one.model_copy(update={"threshold": 1}), "threshold is 1"),
    "a threshold below two thirds": (lambda one: one.model_copy(update={"threshold": 2}), "threshold is 2"),
    "a threshold nobody reaches": (lambda one: one.model_copy(update={"threshold": 5}), "threshold is 5"),
    "a key of the server's own": (
        lambda one: with_other_keys(one, 3, mask_key=b"\x09" * 32),
        "not signed for this round",
    ),
    "one key for two members": (lambda one: with_other_keys(one, 3, mask_key=key_of(one, 2)), "same key"),
    "this device's key exchanged": (
        lambda one: with_other_keys(one, 1, mask_key=b"\x09" * 32),
        "other keys for this device",
    ),
    "this device under another number": (lambda one: one.model_copy(update={"me": 2}), "other keys for this device"),
}


@pytest.mark.parametrize(("forged", "words"), LIES_ABOUT_THE_ROSTER.values(), ids=LIES_ABOUT_THE_ROSTER.keys())
def test_device_leaves_a_sum_with_a_false_roster(forged: Callable[[Roster], Roster], words: str) -> None:
    server, devices = run_until("keys")
    with pytest.raises(SumAborted, match=words):
        devices[0].receive(forged(roster_of(server, devices[0])))


def test_device_leaves_a_sum_with_a_low_order_key_even_without_signatures() -> None:
    server, devices = run_until("keys", "semi_honest")
    false = with_other_keys(roster_of(server, devices[0]), 3, encryption_key=bytes(32))
    with pytest.raises(SumAborted, match="low order"):
        devices[0].receive(false)


def test_device_leaves_a_sum_whose_roster_omits_a_member() -> None:
    server, devices = cohort(terms(4, mode="active"))
    known = {device.state.keys.verify_key for device in devices}
    devices[0].directory, devices[1].directory = known, known - {devices[3].state.keys.verify_key}
    for device in devices:
        device.start()
        deliver(server, device)
    server.close()
    devices[0].receive(answer(server, devices[0]))
    with pytest.raises(SumAborted, match="member 4 is not in the directory"):
        devices[1].receive(answer(server, devices[1]))


def test_keys_of_one_round_are_refused_in_another() -> None:
    earlier = SumDevice.new(0, terms(4, round="round-1"), random_vector(4)).start().state.keys
    server = SecureSumServer.begin(terms(4, round="round-2"))
    with pytest.raises(SumMessageRefused, match="not signed for this round"):
        server.advertise("a" * 22, earlier)


def test_server_refuses_a_member_repeating_anothers_key() -> None:
    server, devices = cohort(terms(4))
    first = devices[0].start().state.keys
    server.advertise(devices[0].pseudonym, first)
    thief = Ed25519PrivateKey.generate()
    stolen = sign_keys(server.record.terms.digest(), thief, first.encryption_key, b"\x09" * 32)
    with pytest.raises(SumMessageRefused, match="another member's"):
        server.advertise(devices[1].pseudonym, stolen)


def boxes_of(server: SecureSumServer, device: SumDevice) -> Shares:
    found = answer(server, device)
    assert isinstance(found, Shares)
    return found


def test_altered_box_is_reported_and_its_sender_excluded() -> None:
    server, devices = run_until("shares")
    honest = boxes_of(server, devices[0])
    for place in (0, 40, len(honest.boxes[0].box) - 1):
        altered = bytearray(honest.boxes[0].box)
        altered[place] ^= 1
        boxes = (Box(member=honest.boxes[0].member, box=bytes(altered)), *honest.boxes[1:])
        device = devices[0].revived()
        assert complained_of(device.receive(Shares(boxes=boxes))) == (2,)
        assert [one.member for one in device.state.held] == [1, 3, 4]
        with pytest.raises(SumAborted, match="member 2 is listed in the sum, but this device holds no share"):
            device.revived().receive(Sharers(members=(1, 2, 3, 4)))
        with pytest.raises(SumAborted, match="the server left this device out"):
            device.revived().receive(Sharers(members=(3, 4)))
        again = device.revived()
        again.receive(Sharers(members=(1, 3, 4)))
        assert (again.state.stage, [one.member for one in again.state.held]) == ("masked", [1, 3, 4])
        assert len(again.ledger.charges) == 1
        assert device.ledger.charges == []


def test_box_whose_contents_are_not_field_elements_is_reported() -> None:
    server, devices = run_until("shares")
    honest, roster = boxes_of(server, devices[0]), devices[0].state.roster
    assert roster is not None
    sender = X25519PrivateKey.from_private_bytes(devices[1].state.encryption_secret)
    to_one = channel_keys(server.record.terms.digest(), sender, roster.members[0].keys.encryption_key, (2, 1))[1]
    boxes = {
        value: close_box(to_one, 2, 1, value.to_bytes(SHARE_BYTES, "big"), bytes(SHARE_BYTES)).box
        for value in (PRIME - 1, PRIME, 2**263)
    }
    said = {
        value: complained_of(devices[0].revived().receive(Shares(boxes=(Box(member=2, box=box), *honest.boxes[1:]))))
        for value, box in boxes.items()
    }
    assert said == {PRIME - 1: (), PRIME: (2,), 2**263: (2,)}


def test_complaint_contains_only_member_numbers() -> None:
    server, devices = run_until("shares")
    honest = boxes_of(server, devices[0])
    step = devices[0].receive(Shares(boxes=(Box(member=2, box=bytes(90)), *honest.boxes[1:])))
    assert step.sealed.payload == b'{"members":[2]}'
    assert step.sealed.charge.epsilon == 0


def complained_of(step: Step) -> tuple[int, ...]:
    return Complaints.model_validate_json(step.sealed.payload).members


def test_box_with_a_wrong_sender_or_receiver_is_reported() -> None:
    server, devices = run_until("shares")
    mine, yours = boxes_of(server, devices[0]), boxes_of(server, devices[1])
    from_three = next(box for box in yours.boxes if box.member == 3)
    misled = tuple(from_three if b.member == 3 else b for b in mine.boxes)
    assert complained_of(devices[0].revived().receive(Shares(boxes=misled))) == (3,)
    two, three = mine.boxes[0], mine.boxes[1]
    exchanged = (Box(member=2, box=three.box), Box(member=3, box=two.box), *mine.boxes[2:])
    assert complained_of(devices[0].revived().receive(Shares(boxes=exchanged))) == (2, 3)


def test_device_leaves_a_sum_with_too_few_boxes_or_boxes_from_strangers_or_itself() -> None:
    server, devices = run_until("shares")
    honest = boxes_of(server, devices[0])
    with pytest.raises(SumAborted, match="2 members shared their keys, at least 3 are needed"):
        devices[0].revived().receive(Shares(boxes=honest.boxes[:1]))
    for member in (1, 5):
        boxes = tuple(sorted((*honest.boxes, Box(member=member, box=bytes(90))), key=lambda box: box.member))
        with pytest.raises(SumAborted, match=f"box from member {member}"):
            devices[0].revived().receive(Shares(boxes=boxes))


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ((1, 2, 5), "has not shared its keys"),
        ((2, 3, 4), "this device's vector is not in the sum"),
        ((1, 2), "2 members survived, at least 3 are needed"),
    ],
)
def test_device_leaves_a_sum_with_an_impossible_list_of_survivors(members: tuple[int, ...], words: str) -> None:
    _, devices = run_until("masked")
    with pytest.raises(SumAborted, match=words):
        devices[0].receive(Survivors(members=members))


def test_device_leaves_a_sum_with_fewer_survivors_than_the_minimum_cohort() -> None:
    _, devices = run_until("masked", "semi_honest", 6, cohort_minimum=6)
    with pytest.raises(SumAborted, match="5 members survived"):
        devices[0].receive(Survivors(members=(1, 2, 3, 4, 5)))


def test_two_devices_given_different_survivors_detect_it() -> None:
    _, devices = run_until("masked", size=6)
    reported = {place: (1, 2, 3, 4, 5, 6) if place % 2 else (1, 2, 3, 4, 5) for place in range(5)}
    signatures = []
    for place, members in reported.items():
        step = devices[place].receive(Survivors(members=members))
        assert step.state.stage == "agree"
        signed = type(step.sealed.message).model_validate_json(step.sealed.payload)  # type: ignore[attr-defined]
        signatures.append(MemberSignature(member=place + 1, signature=signed.signature))
    for place in range(5):
        with pytest.raises(SumAborted, match="did not sign this list of survivors"):
            devices[place].revived().receive(Agreements(signatures=tuple(signatures)))
        alike = tuple(one for one in signatures if reported[one.member - 1] == reported[place])
        with pytest.raises(SumAborted, match=r"[23] members agreed on the survivors, the threshold is 5"):
            devices[place].revived().receive(Agreements(signatures=alike))


def test_signature_of_a_member_that_dropped_out_makes_the_device_leave() -> None:
    _, devices = run_until("masked", size=6)
    devices[0].receive(Survivors(members=(1, 2, 3, 4, 5)))
    with pytest.raises(SumAborted, match="member 6 signed but is not a survivor"):
        devices[0].receive(Agreements(signatures=(MemberSignature(member=6, signature=bytes(64)),)))


def test_device_reveals_shares_of_only_one_secret() -> None:
    _, devices = run_until("masked", "semi_honest", 6)
    device = devices[0]
    first = device.receive(Survivors(members=(1, 2, 3, 4, 5)))
    assert first.state.revealed is not None
    assert [one.member for one in first.state.revealed.keys] == [6]
    with pytest.raises(SumAborted, match="no message is expected"):
        device.receive(Survivors(members=(1, 2, 3, 4, 5, 6)))
    again = device.revived()
    assert again.step is not None
    assert again.step.sealed.payload == first.sealed.payload, "after a kill it's the same answer"
    with pytest.raises(SumAborted, match="no message is expected"):
        again.receive(Survivors(members=(1, 2, 3, 4, 5, 6)))


def test_device_leaves_a_sum_after_an_answer_of_another_stage() -> None:
    server, devices = run_until("keys")
    with pytest.raises(SumAborted, match="answered Survivors where Roster was due"):
        devices[0].receive(Survivors(members=(1, 2)))
    with pytest.raises(SumAborted, match="answered NoneType where Roster was due"):
        devices[1].receive(None)
    assert devices[2].receive(answer(server, devices[2])).state.stage == "shares"


def test_forged_sender_or_receiver_in_a_box_is_detected() -> None:
    key = bytes(range(32))
    shares = b"\0" + b"k" * 32, b"\0" + b"s" * 32
    honest = close_box(key, 2, 1, *shares)
    assert (honest.member, open_box(key, 2, 1, honest.box)) == (1, shares)
    outside = (2).to_bytes(4, "big") + (1).to_bytes(4, "big")
    for sender, receiver in ((3, 1), (2, 4)):
        inside = sender.to_bytes(4, "big") + receiver.to_bytes(4, "big")
        malicious = ChaCha20Poly1305(key).encrypt(bytes(12), inside + bytes(66), outside)
        with pytest.raises(SecaggError, match="does not name 2 as its sender and 1 as its receiver"):
            open_box(key, 2, 1, malicious)
