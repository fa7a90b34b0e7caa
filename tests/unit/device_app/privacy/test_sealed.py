"""Only the privacy package can make sealed messages."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from hashlib import sha256

import pytest

from device_app.privacy.requests import seal_check_in
from device_app.privacy.sealed import Charge, Sealed
from protocol.rounds import CheckIn
from tests.doubles.sealing import seal_nothing


def test_sealed_message_cannot_be_made_outside_the_privacy_package() -> None:
    with pytest.raises(TypeError, match=r"only device_app\.privacy"):
        Sealed("clicks", b"clicks", "text/plain", Charge("none", "none"), "clicks")
    with pytest.raises(TypeError, match=r"only device_app\.privacy"):
        Sealed("clicks", b"clicks", "text/plain", Charge("none", "none"), "clicks", token=object())


def test_seal_cannot_be_changed_copied_or_pickled() -> None:
    sealed = seal_nothing(release="r1", limit=400)
    with pytest.raises(dataclasses.FrozenInstanceError):
        sealed.payload = b"clicks"  # type: ignore[misc]
    with pytest.raises(TypeError, match=r"only device_app\.privacy"):
        dataclasses.replace(sealed, payload=b"clicks")
    with pytest.raises(TypeError, match="copied or pickled"):
        copy.copy(sealed)
    with pytest.raises(TypeError, match="copied or pickled"):
        copy.deepcopy(sealed)
    with pytest.raises(TypeError, match="copied or pickled"):
        pickle.dumps(sealed)


def test_request_without_a_report_has_the_same_bytes_for_everybody() -> None:
    sealed = seal_nothing(release="r1", limit=400)
    assert sealed.payload == b'{"release":1,"limit":400,"report":{"kind":"none"}}'
    assert sealed.charge.epsilon == 0
    assert sealed.sha256 == sha256(sealed.payload).hexdigest()


def test_check_in_holds_only_protocol_release_tasks_and_round() -> None:
    sealed = seal_check_in(CheckIn(protocol=4, release=4, tasks=("recall",), round="round-2"))
    assert sealed.payload == b'{"protocol":4,"release":4,"tasks":["recall"],"round":"round-2"}'
    assert (sealed.charge.channel, sealed.charge.epsilon) == ("none", 0)
