"""Round offers signed by the release key. A forger is anybody without that key."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import ValidationError

from protocol.protections import SecureSum
from protocol.releases import SignatureRefused, SignedManifest, verify
from protocol.rounds import DOMAIN, RoundManifest, RoundOffer, SignedOffer, sign_offer, verify_offer

KEY = Ed25519PrivateKey.generate()
TRUSTED = KEY.public_key().public_bytes_raw()
PROTECTION = SecureSum(clip=0.1, sigma=4_900)
OFFER = RoundOffer(
    manifest=RoundManifest(
        round="round-1",
        release="r1",
        system="small_ranker/secure/median",
        task="full_gradient",
        model="ranker.features",
        shapes={"g.weights": (262,)},
        protection=PROTECTION,
        closes_at=datetime(2026, 11, 21, 8, tzinfo=UTC),
        terms=PROTECTION.terms("round-1", cohort=60, cohort_minimum=10, coordinates=262),
    ),
    pseudonym="p" * 22,
)


def test_device_reads_exactly_what_the_server_signed() -> None:
    signed = SignedOffer.model_validate_json(sign_offer(OFFER, KEY).model_dump_json())
    assert verify_offer(signed, TRUSTED) == OFFER


def test_all_devices_of_a_round_get_the_same_signed_bytes() -> None:
    one = sign_offer(OFFER, KEY)
    other = sign_offer(OFFER.model_copy(update={"pseudonym": "q" * 22}), KEY)
    assert (one.manifest, one.signature, one.public_key) == (other.manifest, other.signature, other.public_key)


@pytest.mark.parametrize(
    ("before", "after"),
    [('"sigma":4900', '"sigma":4901'), ('"cohort":60', '"cohort":61'), ('"samples_limit":32', '"samples_limit":33')],
)
def test_altered_term_is_refused(before: str, after: str) -> None:
    signed = sign_offer(OFFER, KEY)
    assert before in signed.manifest
    altered = signed.model_copy(update={"manifest": signed.manifest.replace(before, after)})
    with pytest.raises(SignatureRefused, match="does not match its bytes"):
        verify_offer(altered, TRUSTED)


def test_forger_with_its_own_key_is_refused_whichever_key_it_names() -> None:
    forged = sign_offer(OFFER, Ed25519PrivateKey.generate())
    with pytest.raises(SignatureRefused, match="not signed by"):
        verify_offer(forged, TRUSTED)
    with pytest.raises(SignatureRefused, match="does not match its bytes"):
        verify_offer(forged.model_copy(update={"public_key": TRUSTED}), TRUSTED)


def test_signatures_of_offers_and_releases_are_not_interchangeable() -> None:
    text = OFFER.manifest.model_dump_json()
    as_release = SignedOffer(manifest=text, signature=KEY.sign(text.encode()), public_key=TRUSTED, pseudonym="p" * 22)
    with pytest.raises(SignatureRefused):
        verify_offer(as_release, TRUSTED)
    release = SignedManifest(manifest=text, signature=sign_offer(OFFER, KEY).signature, public_key=TRUSTED)
    with pytest.raises(SignatureRefused):
        verify(release, TRUSTED)


def test_invalid_field_of_a_signed_offer_is_named_in_the_error() -> None:
    text = '{"round": "round-1"}'
    signature = KEY.sign(DOMAIN + text.encode())
    with pytest.raises(ValidationError, match="release"):
        verify_offer(SignedOffer(manifest=text, signature=signature, public_key=TRUSTED, pseudonym="p" * 22), TRUSTED)
