"""What rows of article vectors reveal when one device owns them (docs/decisions/013), and what the remedies leave.

The server follows the protocol and sees only the opened sum of five devices.
"""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np
import pytest
import torch

from device_app.privacy.noise_sources import SeededNoise
from device_app.privacy.private_parameters import shared_part
from device_app.privacy.protections.secure_sum import clip_norm, contribute
from device_app.privacy.protections.union_marks import mark
from device_app.training.gradients import OnnxGradients, no_gradients
from device_app.training.samples import ReaderSamples
from device_app.training.tasks.mark_news import MarkNewsTask
from device_app.training.tasks.split_gradient import NEWS_GRADIENT, SplitGradientTask
from device_app.training.tasks.task import Update
from device_app.training.union_draws import UnionDraw, UnionDraws
from protocol.protections import SecureSum
from protocol.releases import ModelEntry
from protocol.union import NEWS as UNION
from protocol.union import UnionMarks, opened_rows
from tests.doubles.secure_sums import cohort, run_sum
from tests.doubles.split_world import (
    NEGATIVES,
    NEWS,
    news_id,
    news_model,
    parameters,
    reader,
    readers,
    table_gradient_graph,
    token_states,
    user_model,
)

ALL = [news_id(row) for row in range(NEWS)]
OWN = [20, 21, 22, 23]
"""Shown to the fifth reader alone, and no part of its history."""
MODEL = ModelEntry(architecture="nrms", role="ranker", graphs={})


@pytest.fixture(scope="module")
def table() -> np.ndarray:
    with torch.no_grad():
        return news_model()(*token_states()).numpy().astype(np.float32)


@pytest.fixture(scope="module")
def everybody(table: np.ndarray) -> list[ReaderSamples]:
    """Four readers of the first twenty articles; the fifth clicked one of those, then article 20 out of 20 to 23: n_u =
    1."""
    lonely = reader(9, table, feeds=1, rows=range(6))
    late = reader(10, table, feeds=2, rows=range(6))
    last = late.feeds[1]
    alone = ReaderSamples(
        feeds=(late.feeds[0], type(last)(last.feed_id, last.at, tuple(ALL[row] for row in OWN), (ALL[20],))),
        clicks=(*late.clicks[: len(late.feeds[0].clicked)], type(late.clicks[0])(99, ALL[20], last.feed_id, last.at)),
        vectors=lonely.vectors,
    )
    assert alone.available == 1
    return [*readers(table)[:4], alone]


@lru_cache
def graph() -> bytes:
    return table_gradient_graph(user_model())


def opened_gradients(
    everybody: list[ReaderSamples], ids: list[str], table: np.ndarray, protection: SecureSum, noise: int = 0
) -> dict[str, np.ndarray]:
    """Return the means that the server opens."""
    weights, gradients = parameters(user_model()), OnnxGradients(graph())
    vectors = table[[int(one[1:]) for one in ids]]
    updates: list[Update] = [
        SplitGradientTask(ids, vectors, NEGATIVES, 32, draw=marked(samples, seed)[1]).run(
            weights, samples, gradients, np.random.default_rng(noise)
        )
        for seed, samples in enumerate(everybody)
    ]
    size = sum(each.size for each in updates[0].tensors.values())
    agreed = protection.terms("round-1", cohort=len(everybody), cohort_minimum=2, coordinates=size)
    server, devices = cohort(agreed)
    for seed, (device, update) in enumerate(zip(devices, updates, strict=True)):
        clipped = clip_norm(shared_part(update.tensors, MODEL), protection.clip)
        device.vector = contribute(clipped, update.samples, protection, agreed, SeededNoise(100 * noise + seed)).vector
    layout = protection.layout({name: each.shape for name, each in updates[0].tensors.items()}, agreed)
    return dict(layout.sums(run_sum(server, devices, {}).vector).mean().tensors)


def marked(samples: ReaderSamples, seed: int) -> tuple[np.ndarray, UnionDraw]:
    """Return a device's marks, and the draw that it keeps."""
    draws = UnionDraws()
    task = MarkNewsTask(ALL, UnionMarks().rows_limit, NEGATIVES, 32, partial(draws.keep, "round-1"))
    found = task.run({}, samples, no_gradients, np.random.default_rng(seed))
    assert found.paid is not None
    found.paid()
    return found.tensors[UNION], draws.of("round-2", "round-1")


def opened_union(everybody: list[ReaderSamples], protection: UnionMarks) -> list[str]:
    """Return the articles whose rows the server opens."""
    agreed = protection.terms("round-1", cohort=len(everybody), cohort_minimum=2, coordinates=NEWS)
    server, devices = cohort(agreed)
    for seed, (device, samples) in enumerate(zip(devices, everybody, strict=True)):
        device.vector = mark(marked(samples, seed)[0], protection, agreed, SeededNoise(0)).vector
    found = (
        protection.layout({UNION: (NEWS,)}, agreed)
        .sums(run_sum(server, devices, {}).vector, len(devices))
        .tensors[UNION]
    )
    return [ALL[row] for row in opened_rows(protection, found, len(devices))]


def cosines(rows: np.ndarray) -> np.ndarray:
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    found: np.ndarray = unit @ unit.T
    return found


EXACT = SecureSum(clip=50.0, weight_limit=32, bits=64, fraction_bits=40, cohort_limit=5)


def test_rows_held_by_only_one_device_reveal_its_clicks_in_an_exact_sum(
    everybody: list[ReaderSamples], table: np.ndarray
) -> None:
    ids = opened_union(everybody, UnionMarks())
    own = [ids.index(ALL[row]) for row in OWN if ALL[row] in ids]
    assert ids[own[0]] == ALL[OWN[0]]
    assert len(own) >= 3, "the union has them, as somebody holds them: four draws with replacement out of three"
    rows = opened_gradients(everybody, ids, table, EXACT)[NEWS_GRADIENT][own]
    assert (np.linalg.norm(rows, axis=1) > 0).all()
    found = cosines(rows)
    assert np.abs(found) == pytest.approx(np.ones_like(found), abs=1e-5), "all are multiples of one vector"
    assert (found[0, 1:] < -0.99).all(), "and the clicked one points the other way"


def test_rows_held_by_fewer_devices_than_the_minimum_are_not_requested(
    everybody: list[ReaderSamples], table: np.ndarray
) -> None:
    ids = opened_union(everybody, UnionMarks(owners_minimum=2))
    assert ids
    assert not set(ids) & {ALL[row] for row in OWN}
    rows = opened_gradients(everybody, ids, table, EXACT)[NEWS_GRADIENT]
    touched = rows[np.linalg.norm(rows, axis=1) > 0]
    found = np.abs(cosines(touched)[np.triu_indices(len(touched), 1)])
    assert len(touched) > 5
    assert np.median(found) < 0.9, "rows of several readers are no longer multiples of one vector"


def test_noise_in_the_sum_hides_which_row_was_clicked(everybody: list[ReaderSamples], table: np.ndarray) -> None:
    ids = opened_union(everybody, UnionMarks())
    noisy = SecureSum(clip=0.5, sigma=16_000, cohort_limit=5)  # 0.55 in the sum, a coordinate
    own = [ids.index(ALL[row]) for row in OWN if ALL[row] in ids]
    signs, sizes = [], []
    for again in range(30):
        rows = opened_gradients(everybody, ids, table, noisy, noise=again)[NEWS_GRADIENT][own]
        between = cosines(rows)[0, 1:]
        signs.append(between[0] < 0)
        sizes.append(np.abs(between).mean())
    # Cosines of pure noise in 16 dimensions: |cos| is 0.2 on average; without noise it is 1.
    assert np.mean(sizes) < 0.3
    assert 6 <= sum(signs) <= 24, "a coin's sign, to 3.3 standard deviations; without noise it is always negative"
    assert noisy.epsilon(5, len(ids) * 16) < 12


def test_dummies_hide_row_owners_but_not_their_exact_gradients(
    everybody: list[ReaderSamples], table: np.ndarray
) -> None:
    few = [everybody[0], everybody[4]]
    held = opened_union(few, UnionMarks())
    ids = opened_union(few, UnionMarks(dummies=8))
    drawn = sorted(set(ids) - set(held))
    assert set(held) <= set(ids)
    assert len(drawn) >= 4, "of some ten news that neither holds; the list tells nobody which"
    rows = opened_gradients(few, ids, table, EXACT)[NEWS_GRADIENT]
    assert not rows[[ids.index(one) for one in drawn]].any(), "the server sees by their zeros which were drawn"
    own = rows[[ids.index(ALL[row]) for row in OWN if ALL[row] in held]]
    found = cosines(own[np.linalg.norm(own, axis=1) > 0])
    assert np.abs(found) == pytest.approx(np.ones_like(found), abs=1e-5), "and rows of one owner are as they were"


def test_dummies_and_noise_make_real_and_dummy_rows_indistinguishable(
    everybody: list[ReaderSamples], table: np.ndarray
) -> None:
    few = [everybody[0], everybody[4]]
    held = opened_union(few, UnionMarks())
    ids = opened_union(few, UnionMarks(dummies=8))
    noisy = SecureSum(clip=0.5, sigma=16_000, cohort_limit=5)
    of_held, of_drawn = [], []
    for again in range(20):
        sizes = np.linalg.norm(opened_gradients(few, ids, table, noisy, noise=again)[NEWS_GRADIENT], axis=1)
        of_held += [size for size, one in zip(sizes, ids, strict=True) if one in held]
        of_drawn += [size for size, one in zip(sizes, ids, strict=True) if one not in held]
    assert min(of_drawn) > 0
    higher = np.mean([np.searchsorted(np.sort(of_drawn), size) / len(of_drawn) for size in of_held])
    assert 0.4 < higher < 0.6, "a coin: .5, with a deviation of .03 over some 80 and 300 rows; exact sums give 1"
