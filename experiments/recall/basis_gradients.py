"""The basis that reports name, trained on readers without devices: their clicks, clipped gradients, votes.

Closed forms of what devices compute by their graph and task, for a whole cohort at once; tests hold one to the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device_app.wire.reported_basis import ReportLists, report_chances
from device_app.wire.sum_vectors import SHAPES, written
from experiments.recall.tower import Vectors, reader_vectors
from experiments.recall.warm import CLICKS_MOST, HELD_OUT_MOST, KEPT_LEAST, Rows
from models.recall.reported_basis import ASSIGNMENT

Floats = NDArray[np.float64]

VOTES_OF = 5
"""One click of so many is held out of gradients, as the release gate has it."""


@dataclass(frozen=True)
class ClickSamples:
    """Clicks of readers after those before them: reader [n], unit vectors of the earlier ones [n, D], the click's
    vector [n, D]; held [n]: kept for votes."""

    reader: Rows
    vectors: Vectors
    clicked: Vectors
    held: NDArray[np.bool_]

    @classmethod
    def of(cls, readers: Sequence[Rows], news: Vectors, seed: int) -> ClickSamples:
        """The last clicks of each reader, as the protocol holds them out, after the 50 before them."""
        places, histories, clicked = [], [], []
        for place, clicks in enumerate(readers):
            cut = len(clicks) - min(HELD_OUT_MOST, len(clicks) - KEPT_LEAST)
            for row in np.setdiff1d(clicks[cut:], clicks[:cut]):
                places.append(place)
                histories.append(clicks[:cut][-CLICKS_MOST:])
                clicked.append(row)
        held = np.random.default_rng(seed).random(len(places)) < 1 / VOTES_OF
        return cls(np.array(places), reader_vectors(news, histories), news[clicked], held)

    def of_readers(self, cohort: Rows, *, held: bool) -> ClickSamples:
        """Of these readers, those for gradients or those for votes; readers are numbered anew, from 0."""
        number = np.full(int(max(self.reader.max(), cohort.max())) + 1, -1)
        number[cohort] = np.arange(len(cohort))
        mine = (number[self.reader] >= 0) & (self.held == held)
        return ClickSamples(number[self.reader[mine]], self.vectors[mine], self.clicked[mine], self.held[mine])


def gradients(lists: ReportLists, samples: ClickSamples, readers: int, epsilon: float) -> Floats:
    """Of each reader's mean loss for where the basis goes along the axes: [readers, K, m], zeros without a sample."""
    basis, axes = lists.prototypes.astype(np.float64), lists.axes.astype(np.float64)
    users, clicked = samples.vectors.astype(np.float64), samples.clicked.astype(np.float64)
    near = ASSIGNMENT * users @ basis.T  # [n, K]
    soft = np.exp(near - np.logaddexp.reduce(near, axis=1, keepdims=True))
    chances = report_chances(lists.size, epsilon)
    scores = lists.sharpness * clicked @ basis.T - lists.log_normalisers
    terms = lists.log_posterior(epsilon)[None] + scores[:, None, :]  # [n, y, K]
    mixed = np.logaddexp.reduce(terms, axis=2)  # [n, y]
    by_list = -np.einsum("ny,nyk->nk", soft @ chances, np.exp(terms - mixed[:, :, None]))  # dL/d score
    told = -mixed @ chances.T  # dL/d soft, [n, K]
    by_report = ASSIGNMENT * soft * (told - (soft * told).sum(axis=1, keepdims=True))  # dL/d <u, v>
    by_click = lists.sharpness * by_list[:, :, None] * (clicked @ axes.T)[:, None, :]
    mine = (
        by_click
        - by_list[:, :, None] * (lists.slopes.astype(np.float64) @ axes.T)
        + by_report[:, :, None] * (users @ axes.T)[:, None, :]
    )
    along = by_list * (lists.sharpness * clicked @ basis.T - (lists.slopes * basis).sum(axis=1))
    along += by_report * (users @ basis.T)
    mine -= along[:, :, None] * (basis @ axes.T)  # prototypes keep length 1
    counts = np.maximum(np.bincount(samples.reader, minlength=readers), 1)[:, None, None]
    return np.asarray(_by_reader(samples.reader, readers, mine) / counts)


def clipped(updates: Floats, clip: float) -> Floats:
    """Each [K, m] scaled into the ball of that radius."""
    lengths = np.sqrt(np.square(updates).sum(axis=(1, 2), keepdims=True))
    return np.asarray(updates * np.minimum(1.0, clip / np.maximum(lengths, 1e-12)))


def votes(drafted: ReportLists, before: ReportLists, samples: ClickSamples, readers: int, epsilon: float) -> Floats:
    """Each reader's three numbers, in the order of SHAPES: [readers, 3], zeros without a click held out."""
    counts = np.bincount(samples.reader, minlength=readers)
    standings = []
    for lists in (drafted, before):
        true = np.argmax(samples.vectors @ lists.prototypes.T, axis=1)
        lifts = (report_chances(lists.size, epsilon)[true] * lists.lifts(samples.clicked, epsilon)).sum(axis=1)
        totals = np.bincount(samples.reader, weights=1 / (1 + np.exp(-lifts)), minlength=readers)
        standings.append(totals / np.maximum(counts, 1))
    found = np.zeros((readers, len(SHAPES)))
    for reader in np.flatnonzero(counts):
        numbers = written(standings[0][reader], standings[1][reader])
        found[reader] = [numbers[name] for name in SHAPES]
    return found


def _by_reader(reader: Rows, readers: int, values: Floats) -> Floats:
    totals = np.zeros((readers, *values.shape[1:]))
    order = np.argsort(reader, kind="stable")
    present, starts = np.unique(reader[order], return_index=True)
    if len(present):
        totals[present] = np.add.reduceat(values[order], starts, axis=0)
    return totals
