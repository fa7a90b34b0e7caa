"""What the opened gradient of a head reveals about single articles (docs/decisions/013), and what it doesn't.

The server follows the protocol and sees only the opened sum. The pooled states behind the sum are public, so it can try
to solve for the articles; in the last test it also sends false states.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from device_app.privacy.noise_sources import SeededNoise
from device_app.privacy.private_parameters import shared_part
from device_app.privacy.protections.secure_sum import clip_norm, contribute
from device_app.training.gradients import OnnxGradients
from device_app.training.samples import ReaderSamples
from device_app.training.tasks.head_gradient import PooledNews
from device_app.training.tasks.news_gradient import NewsGradientTask
from device_app.training.tasks.split_gradient import NEWS_GRADIENT, SplitGradientTask
from device_app.training.tasks.task import Update
from protocol.protections import SecureSum
from protocol.releases import ModelEntry
from tests.doubles.graphs import kept_head_gradient
from tests.doubles.secure_sums import cohort, run_sum
from tests.doubles.split_world import (
    DIM,
    NEGATIVES,
    NEWS,
    WIDTH,
    drawn_by,
    head_parameters,
    news_id,
    parameters,
    pooled_states,
    reader,
    readers,
    table_gradient_graph,
    user_model,
)

ALL = [news_id(row) for row in range(NEWS)]
MODEL = ModelEntry(architecture="nrms", role="ranker", graphs={})
EXACT = SecureSum(clip=50.0, weight_limit=32, bits=64, fraction_bits=40, cohort_limit=5)
NOISY = SecureSum(clip=0.5, sigma=16_000, cohort_limit=5)
WEIGHT = "g.news.head.weight"
FITS = 1e-3
"""Of a state's length: what may be left of it beside the gradient's row space."""


@pytest.fixture(scope="module")
def states() -> np.ndarray:
    return pooled_states()


def outputs(states: np.ndarray) -> np.ndarray:
    """Return y = W p + b, whose direction is the vector."""
    made: np.ndarray = states.astype(np.float64) @ head_parameters()["head.weight"].T + head_parameters()["head.bias"]
    return made


def vectors(states: np.ndarray) -> np.ndarray:
    made = outputs(states)
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


@lru_cache
def graphs() -> tuple[bytes, bytes]:
    return table_gradient_graph(user_model()), kept_head_gradient(WIDTH, DIM)


def opened(updates: list[Update], protection: SecureSum) -> dict[str, np.ndarray]:
    """Return the means that the server opens."""
    size = sum(each.size for each in updates[0].tensors.values())
    agreed = protection.terms("round-1", cohort=len(updates), cohort_minimum=2, coordinates=size)
    server, devices = cohort(agreed)
    for seed, (device, update) in enumerate(zip(devices, updates, strict=True)):
        clipped = clip_norm(shared_part(update.tensors, MODEL), protection.clip)
        device.vector = contribute(clipped, update.samples, protection, agreed, SeededNoise(seed)).vector
    layout = protection.layout({name: each.shape for name, each in updates[0].tensors.items()}, agreed)
    return dict(layout.sums(run_sum(server, devices, {}).vector).mean().tensors)


def of_heads(people: list[ReaderSamples], states: np.ndarray) -> list[Update]:
    of_user, of_head = graphs()
    rows = {each: row for row, each in enumerate(ALL)}
    task = NewsGradientTask(PooledNews(head_parameters(), OnnxGradients(of_head), rows, states), NEGATIVES, 32)
    return [
        task.run(parameters(user_model()), one, OnnxGradients(of_user), np.random.default_rng(seed))
        for seed, one in enumerate(people)
    ]


def true_rows(people: list[ReaderSamples], states: np.ndarray) -> np.ndarray:
    """Return what the server would like to know: dL/dy of every article in the mean, as the paper's form sends it."""
    task = SplitGradientTask(ALL, vectors(states), NEGATIVES, 32)
    found = [
        task.run(parameters(user_model()), one, OnnxGradients(graphs()[0]), np.random.default_rng(seed))
        for seed, one in enumerate(people)
    ]
    slopes = np.sum([one.samples * one.tensors[NEWS_GRADIENT].astype(np.float64) for one in found], axis=0)
    slopes = slopes / sum(one.samples for one in found)
    units = vectors(states).astype(np.float64)
    across = slopes - units * (units * slopes).sum(axis=1, keepdims=True)
    rows: np.ndarray = across / np.linalg.norm(outputs(states), axis=1, keepdims=True)
    return rows


def named(people: list[ReaderSamples]) -> set[int]:
    return {int(each[1:]) for seed, one in enumerate(people) for each in drawn_by(one, seed).ids}


def that_fit(gradient: np.ndarray, states: np.ndarray) -> set[int]:
    """The attack: return articles whose state is in the row space of the opened gradient [D, S]."""
    _, sizes, directions = np.linalg.svd(gradient)
    space = directions[: int((sizes > 1e-6 * sizes[0]).sum())]
    exact = states.astype(np.float64)
    left = np.linalg.norm(exact - (exact @ space.T) @ space, axis=1) / np.linalg.norm(exact, axis=1)
    return set(np.flatnonzero(left < FITS).tolist())


def few(states: np.ndarray) -> list[ReaderSamples]:
    """Two readers with eight articles between them, fewer than a state has dimensions."""
    held = vectors(states)
    return [reader(3, held, 4, range(8)), reader(4, held, 4, range(8))]


def test_exact_sum_over_few_articles_reveals_each_row(states: np.ndarray) -> None:
    people = few(states)
    assert len(named(people)) < WIDTH
    gradient = opened(of_heads(people, states), EXACT)[WEIGHT]
    found = that_fit(gradient, states)
    assert found == named(people), "the union, by nothing but the sum and what is public"
    rows = sorted(found)
    solved = np.linalg.lstsq(states[rows].astype(np.float64).T, gradient.T, rcond=None)[0]
    assert np.abs(solved - true_rows(people, states)[rows]).max() < 1e-4, "and each row of it"


def test_exact_sum_over_many_articles_reveals_no_row(states: np.ndarray) -> None:
    people = readers(vectors(states))
    held = named(people)
    assert WIDTH < len(held) < NEWS
    gradient = opened(of_heads(people, states), EXACT)[WEIGHT]
    assert that_fit(gradient, states) == set(range(NEWS)), "news that nobody has fit as well as those somebody has"
    wanted = true_rows(people, states)
    rows = sorted(held)  # even who were told the union could not tell its rows: there are more of them than equations
    solved = np.linalg.lstsq(states[rows].astype(np.float64).T, gradient.T, rcond=None)[0]
    off = np.linalg.norm(solved - wanted[rows]) / np.linalg.norm(wanted[rows])
    assert off > 0.3


def test_noise_in_the_sum_hides_which_articles_were_read(states: np.ndarray) -> None:
    people = few(states)
    gradient = opened(of_heads(people, states), NOISY)[WEIGHT]
    assert that_fit(gradient, states) == set(range(NEWS)), "the noise fills every direction"


def test_states_invented_by_the_server_reveal_at_most_one_row_per_dimension(
    states: np.ndarray,
) -> None:
    """Devices can't detect this: the server provides the same states to everybody. The bound is S rows a round."""
    chosen = list(range(WIDTH))
    invented = np.zeros_like(states)
    invented[chosen, chosen] = 1.0
    people = readers(vectors(invented + np.where(invented.any(axis=1, keepdims=True), 0, states).astype(np.float16)))
    # The other news are in no shard: no gradient of theirs is mixed into the columns.
    of_user, of_head = graphs()
    rows = {ALL[row]: row for row in chosen}
    task = NewsGradientTask(
        PooledNews(head_parameters(), OnnxGradients(of_head), rows, invented[chosen]), NEGATIVES, 32
    )
    updates = [
        task.run(parameters(user_model()), one, OnnxGradients(of_user), np.random.default_rng(seed))
        for seed, one in enumerate(people)
    ]
    columns = opened(updates, EXACT)[WEIGHT].T
    held = {row for row in named(people) if row in chosen}
    assert {row for row in chosen if np.abs(columns[row]).max() > 1e-9} == held, "a column is a news' row"


def test_message_shapes_do_not_depend_on_what_was_read(states: np.ndarray) -> None:
    sent = of_heads([*few(states), *readers(vectors(states))], states)
    forms = {tuple((name, each.shape, each.dtype.str) for name, each in sorted(one.tensors.items())) for one in sent}
    assert len(forms) == 1
    assert not any(name == "g.news" or name.startswith("g.table") for name in sent[0].tensors), "and no news in it"
