"""FINDING-HE as a method of the study. Oracles: real keys beside plaintext messages, and FINDING with SGD."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gmpy2 import mpz
from numpy.typing import NDArray

from backend.federation.grouping import Clusters, Layers, TimeAndLayer, unit
from backend.federation.optimizers import Sgd
from experiments.papers.finding.finding_he import PACKING, EncryptedFinding, KeyHolder, rounded, summed_votes
from experiments.papers.finding.paillier import (
    KEY_BITS,
    CheckedPrivateKey,
    Packing,
    PlaintextKey,
    PrivateKey,
    ResultDiffers,
    decrypt,
    encrypt,
    weighted_sum,
)
from experiments.simulation.strategies.finding import Finding
from tests.doubles.quadratics import LOW, TOP, Quadratics, start

READERS, K, DIM = 12, 3, 4
KEY = PrivateKey.generate(512)
SMALL = Packing(512, slot_bits=64)
LAYERS, PROTECTION = Layers(("low", "top")), TimeAndLayer(1.1)
QUADRATICS = replace(
    Quadratics.some(READERS), slopes=Quadratics.some(READERS).slopes / 8, centres=Quadratics.some(READERS).centres / 8
)
FIRST = unit(np.random.default_rng(3).normal(size=(K, DIM)))


def vectors_at(weights: object) -> NDArray[np.float32]:
    rng = np.random.default_rng(5)
    low = np.asarray(weights[LOW], np.float64)  # type: ignore[index]
    return unit(rng.normal(size=(READERS, DIM)) + 0.4 * rng.normal(size=(READERS, 2)) @ low[:, None])


def encrypted(real_rounds: int = 0, rate: float = 0.25, *, real_voters: int = 0) -> EncryptedFinding:
    return EncryptedFinding(
        QUADRATICS,
        start(),
        rate,
        PROTECTION,
        LAYERS,
        FIRST,
        3,
        vectors_at,
        real_rounds=real_rounds,
        real_voters=real_voters,
        packing=SMALL,
        make_key=lambda: KEY,
    )


def cohort(number: int) -> list[int]:
    return [int(each) for each in np.random.default_rng((1, number)).choice(READERS, 5, replace=False)]


def test_encrypted_and_plaintext_rounds_are_bitwise_equal() -> None:
    """Seven rounds with two clusterings: all under Paillier, the first two, and none."""
    runs = [encrypted(7, real_voters=READERS), encrypted(2, real_voters=5), encrypted()]
    for run in runs:
        for number in range(7):
            run.run_round(number, cohort(number))
    everybody = np.arange(READERS)
    first, *others = [run.known(everybody) for run in runs]
    for other in others:
        np.testing.assert_array_equal(first.which, other.which)
        for ours, theirs in zip(first.models, other.models, strict=True):
            for name in (LOW, TOP):
                np.testing.assert_array_equal(ours[name], theirs[name])
    assert [run.cost.rounds for run in runs] == [7, 2, 0]
    assert runs[1].cost.up_bytes == 10 * 2 * 128  # two parameters of one ciphertext each, n^2 of 1,024 bits
    assert "2 rounds" in str(runs[1].cost)
    assert [(run.cost.clusterings, run.cost.votes) for run in runs] == [(2, 2 * READERS), (2, 10), (0, 0)], (
        "the first clustering, and the first after three rounds"
    )
    assert "10 votes in 2 clusterings" in str(runs[1].cost)
    assert max(float(np.abs(model[TOP] - first.models[0][TOP]).max()) for model in first.models) > 1e-3


def test_fixed_point_rounds_equal_finding_by_sgd_up_to_encoding_steps() -> None:
    run, rounds = encrypted(rate=0.25), 7
    labels = [run.clusters]

    def clustering(vectors: NDArray[np.float32]) -> Clusters:
        return labels[-1]

    plain = Finding(
        QUADRATICS,
        start(),
        Sgd(0.25),
        groups=K,
        personalisation=PROTECTION,
        layers=LAYERS,
        recluster_every=1_000,
        vectors_at=vectors_at,
        clustering=clustering,
    )
    for number in range(rounds):
        run.run_round(number, cohort(number))
        plain.run_round(number, cohort(number))
        if (number + 1) % 3 == 0:
            labels.append(run.clusters)
            plain._recluster()
    everybody = np.arange(READERS)
    ours, theirs = run.known(everybody), plain.known(everybody)
    for reader in range(READERS):
        for name in (LOW, TOP):
            # A step for each model and gradient rounded, and lambda to 2^-13 of what a group is away from everybody.
            np.testing.assert_allclose(
                ours.models[ours.which[reader]][name], theirs.models[theirs.which[reader]][name], rtol=0, atol=1e-3
            )


def test_ciphertext_that_decrypts_to_another_value_than_the_plaintext_run_raises_an_error() -> None:
    twin = CheckedPrivateKey(KEY)
    real, message = twin.encrypt(41)
    assert twin.decrypt((real, message)) == 41
    both = twin.public.add((real, message), twin.public.times(twin.encrypt(-3), 7))
    assert twin.decrypt(both) == 20
    with pytest.raises(ResultDiffers, match="decrypted to 41, but the same steps in plaintext give 42"):
        twin.decrypt((real, mpz(42)))


def test_plaintext_sums_of_packed_vectors_match_encrypted_ones() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.uniform(-1, 1, (4, 9))
    found = []
    for key in (KEY, PlaintextKey()):
        sent = [encrypt(each, key, SMALL, bound=1.0, weight=place + 1) for place, each in enumerate(vectors)]
        found.append(decrypt(weighted_sum([(place - 2, each) for place, each in enumerate(sent)], key.public), key))
    np.testing.assert_array_equal(found[0], found[1])


def test_summed_votes_match_encrypted_votes() -> None:
    clients, vectors = KeyHolder(KEY, SMALL), vectors_at(start())
    votes = [clients.vote(FIRST, vector) for vector in vectors]
    opened = decrypt(weighted_sum([(1, vote) for vote in votes], KEY.public), KEY).reshape(K, -1)[:, :-1]
    np.testing.assert_array_equal(opened, summed_votes(FIRST, vectors, SMALL.fraction_bits))


def test_round_of_fifty_readers_with_32_samples_each_fits_the_packing_slots() -> None:
    clients = KeyHolder(PlaintextKey(), PACKING, weight_bound=64.0)
    run = replace(encrypted(), packing=PACKING)
    sent = [clients.gradient(0, 32, {name: np.ones_like(value) for name, value in start().items()}) for _ in range(50)]
    run.server.interpolate({LOW: 0.999, TOP: 0.001})
    run.server.step(sent)
    for name, value in start().items():
        assert run.weights_of(run.server.shared)[name] == pytest.approx(value - float(rounded(0.25)), abs=1e-4)
    assert PACKING.slots == 31
    assert PACKING.key_bits == KEY_BITS
