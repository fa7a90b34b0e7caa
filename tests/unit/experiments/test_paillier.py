"""Paillier, packing and FINDING-HE. Oracles: integers, plain means, and FINDING in plaintext. Keys are short."""

from __future__ import annotations

import math
import secrets
from fractions import Fraction

import numpy as np
import pytest
from gmpy2 import mpz
from hypothesis import given, settings
from hypothesis import strategies as some
from numpy.typing import NDArray

from backend.federation.grouping import Clusters, Layers, TimeAndLayer, nearest, transitions, unit
from backend.federation.optimizers import Sgd
from experiments.papers.finding.finding_he import EncryptedServer, KeyHolder, rounded
from experiments.papers.finding.paillier import (
    CapacityExceeded,
    Encrypted,
    Packing,
    PrivateKey,
    decrypt,
    encrypt,
    weighted_sum,
)
from experiments.simulation.strategies.finding import Finding
from tests.doubles.quadratics import LOW, TOP, Quadratics

BITS = 512
KEY = PrivateKey.generate(BITS)
PUBLIC = KEY.public
HALF = int(PUBLIC.n) // 2


@given(some.integers(-HALF, HALF), some.integers(-(2**200), 2**200), some.integers(-1000, 1000))
@settings(max_examples=25, deadline=None)
def test_ciphertexts_add_and_multiply_their_messages(message: int, other: int, factor: int) -> None:
    assert KEY.decrypt(KEY.encrypt(message)) == message
    assert KEY.decrypt(PUBLIC.encrypt(message)) == message
    total = PUBLIC.add(KEY.encrypt(other), PUBLIC.encrypt(other))
    assert KEY.decrypt(total) == 2 * other
    assert KEY.decrypt(PUBLIC.times(KEY.encrypt(other), factor)) == factor * other


def test_keys_and_ciphertexts_satisfy_pailliers_definition() -> None:
    """Oracle: the definition. n has the requested bits, and both ways to encrypt give (1 + n)^m times an n-th power."""
    n, p, q = int(PUBLIC.n), int(KEY.p), int(KEY.q)
    assert n == p * q
    assert n.bit_length() == BITS
    assert math.gcd(n, (p - 1) * (q - 1)) == 1
    order = (p - 1) * (q - 1)  # of the group of n-th powers mod n^2
    for key in (KEY, PUBLIC):
        message = 12345
        cipher = int(key.encrypt(message))
        blinding = cipher * pow(1 + n, -message, n * n) % (n * n)
        assert pow(blinding, order, n * n) == 1
        assert blinding != 1
    assert "p=" not in repr(KEY)
    with pytest.raises(ValueError, match="bits: even and at least 256"):
        PrivateKey.generate(255)
    with pytest.raises(ValueError, match=r"cipher: between 0 and n\^2"):
        KEY.decrypt(mpz(n * n))


def test_encryption_never_repeats_a_ciphertext() -> None:
    assert len({int(key.encrypt(7)) for key in (KEY, PUBLIC) for _ in range(20)}) == 40


def test_randomness_comes_from_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def below(limit: int) -> int:
        asked.append(limit)
        return 4

    monkeypatch.setattr(secrets, "randbelow", below)
    assert KEY.encrypt(3) == KEY.encrypt(3)
    assert asked == [int(KEY.p) - 1, int(KEY.q) - 1] * 2


@given(some.lists(some.integers(-(2**30), 2**30), min_size=1, max_size=15), some.integers(1, 15))
@settings(max_examples=50, deadline=None)
def test_packed_integers_are_recovered_also_from_sums(values: list[int], copies: int) -> None:
    packing = Packing(BITS, slot_bits=34)
    assert packing.slots == 15
    message = packing.pack(values)
    assert packing.unpack(message, len(values)) == values
    few = [value // 16 for value in values]
    assert packing.unpack(copies * packing.pack(few), len(few)) == [copies * each for each in few]


def test_full_slot_is_detected_before_it_overflows() -> None:
    packing = Packing(BITS, slot_bits=34)
    full = encrypt(np.full(3, 0.9), KEY, packing, bound=1.0)
    assert full.bound == 2**16 + 1
    np.testing.assert_allclose(decrypt(weighted_sum([(2**17 - 3, full)], PUBLIC), KEY), 0.9 * (2**17 - 3), rtol=1e-4)
    with pytest.raises(CapacityExceeded, match="35 bits a slot, only 34 are available"):
        weighted_sum([(2**17 - 1, full)], PUBLIC)
    with pytest.raises(ValueError, match="does not fit its slots"):
        packing.unpack(packing.pack([1, 2, 3]), 2)
    with pytest.raises(ValueError, match="slot_bits: above the 16 fraction bits"):
        Packing(BITS, slot_bits=17)
    with pytest.raises(ValueError, match="slot_bits: at most 510 for this key"):
        Packing(BITS, slot_bits=511)


def test_invalid_client_values_are_refused() -> None:
    packing = Packing(BITS, slot_bits=34)
    for values in (np.array([1.5]), np.array([np.nan]), np.array([-np.inf])):
        with pytest.raises(ValueError, match=r"values: must be finite and within 1\.0"):
            encrypt(values, KEY, packing, bound=1.0)
    one = encrypt(np.zeros(1), KEY, packing, bound=1.0)
    with pytest.raises(ValueError, match="must have the same length and packing"):
        weighted_sum([(1, one), (1, encrypt(np.zeros(2), KEY, packing, bound=1.0))], PUBLIC)


def test_encrypted_mean_equals_the_plain_mean_up_to_the_encoding_step() -> None:
    """The encoding's bound: |HE mean - plain mean| <= the step, for 60 clients weighted by n_u."""
    rng = np.random.default_rng(0)
    packing = Packing(BITS, slot_bits=62)
    assert packing.slots >= 8
    counts = rng.integers(1, 33, 60)
    vectors = rng.uniform(-1, 1, (60, 20))
    sent = [
        encrypt(vector, KEY, packing, bound=1.0, weight=int(count))
        for vector, count in zip(vectors, counts, strict=True)
    ]
    total = int(counts.sum())
    mean = decrypt(weighted_sum([(Fraction(1, total), each) for each in sent], PUBLIC), KEY)
    plain = np.average(vectors, axis=0, weights=counts)
    assert np.abs(mean - plain).max() <= packing.step
    assert np.abs(mean - plain).max() > 0  # so something was rounded
    assert sent[0].size_bytes == math.ceil(20 / packing.slots) * BITS // 4


class Quantised(TimeAndLayer):
    """lambda as the server under encryption rounds it."""

    def coefficients(self, round_number: int, layers: Layers) -> NDArray[np.float64]:
        exact = super().coefficients(round_number, layers)
        return np.array([float(rounded(share)) for share in exact])


def test_encrypted_finding_equals_finding_in_plaintext() -> None:
    """Nine rounds with two clusterings and fresh encryptions, compared with the experiments' FINDING with SGD."""
    readers, groups, layers, protection = 12, 3, Layers(("low", "top")), Quantised(1.1)
    quadratics = Quadratics.some(readers, ripple=0.1)
    quadratics = Quadratics(quadratics.slopes / 4, quadratics.centres / 4, quadratics.samples, 0.1)
    start = {LOW: np.array([0.4, -1.0]), TOP: np.array([1.5])}
    labels = [np.random.default_rng(number).integers(0, groups, readers) for number in range(4)]
    rate = float(rounded(0.25))
    order = iter(labels)
    plain = Finding(
        quadratics,
        start,
        Sgd(rate),
        groups=groups,
        personalisation=protection,
        layers=layers,
        recluster_every=4,
        vectors_at=lambda weights: np.zeros((readers, 1), np.float32),
        clustering=lambda vectors: Clusters(np.zeros((groups, 1), np.float32), next(order)),
    )
    packing = Packing(BITS, slot_bits=60)
    assert packing.slots >= 8
    clients = KeyHolder(KEY, packing, weight_bound=4.0, gradient_bound=2.0)
    server = EncryptedServer(PUBLIC, clients.hide(start), groups, rate=rate)
    fresh = 0
    for number in range(9):
        cohort = [int(reader) for reader in np.random.default_rng(100 + number).choice(readers, 5, replace=False)]
        now = plain.clusters.labels.copy()
        plain.run_round(number, cohort)
        # What round after round of fractions needs, the slots do not have: clients encrypt the models again.
        server.take(
            clients.hide(clients.read(server.shared)), [clients.hide(clients.read(group)) for group in server.groups]
        )
        fresh += 1
        server.interpolate(dict(zip((LOW, TOP), protection.coefficients(number + 1, layers), strict=True)))
        readable = [clients.read(group) for group in server.groups]
        sent = []
        for reader in cohort:
            group = int(now[reader])
            update = quadratics.update(readable[group], reader, number)
            gradient = {name.removeprefix("g."): each for name, each in update.tensors.items()}
            sent.append(clients.gradient(group, update.samples, gradient))
        server.step(sent)
        if (number + 1) % 4 == 0:
            server.take(
                clients.hide(clients.read(server.shared)),
                [clients.hide(clients.read(group)) for group in server.groups],
            )
            server.reinitialise(transitions(now, plain.clusters.labels, groups, groups))
        # Each round rounds a gradient and a model once: a step at most, each.
        tolerance = 2 * (number + 2) * packing.step
        for ours, theirs in zip(server.groups, plain.models.groups, strict=True):
            for name in (LOW, TOP):
                np.testing.assert_allclose(clients.read(ours)[name], theirs.weights[name], rtol=0, atol=tolerance)
        np.testing.assert_allclose(
            clients.read(server.shared)[LOW], plain.models.shared.weights[LOW], rtol=0, atol=tolerance
        )
    assert fresh == 9
    assert (
        max(float(np.abs(group.weights[LOW] - plain.models.shared.weights[LOW]).max()) for group in plain.models.groups)
        > 0.05
    )


def test_too_many_multiplications_raise_an_error_and_keep_the_values() -> None:
    clients = KeyHolder(KEY, Packing(BITS, slot_bits=60))
    server = EncryptedServer(PUBLIC, clients.hide({"low": np.ones(2)}), 1, rate=0.5)
    for _ in range(3):
        server.interpolate({"low": 0.3})
    with pytest.raises(CapacityExceeded, match="encrypt it again"):
        server.interpolate({"low": 0.3})
    assert isinstance(server.groups[0]["low"], Encrypted)  # what was there before is still there
    np.testing.assert_allclose(clients.read(server.groups[0])["low"], 1.0)


def test_encrypted_votes_cluster_readers_like_plain_k_means() -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 3, 18)
    vectors = unit(np.eye(3, 6)[truth] + 0.05 * rng.normal(size=(18, 6)))
    clients = KeyHolder(KEY, Packing(BITS, slot_bits=34))
    centroids = unit(np.eye(3, 6) + 0.4 * rng.normal(size=(3, 6)))
    for _ in range(3):
        votes = [clients.vote(centroids, vector) for vector in vectors]
        assert len({vote.ciphers for vote in votes}) == 18
        centroids = clients.centroids(votes, centroids)
    moves = transitions(truth, nearest(centroids, vectors), 3, 3)
    assert (moves > 0).sum() == 3  # the same partition, up to names
