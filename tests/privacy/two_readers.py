"""Tries to distinguish an idle reader's sessions from an active one's by the times of requests.

`python -m tests.privacy.two_readers`: each kind has 200 sessions of two simulated hours, with times from the system's
randomness, over servers that are kind, busy, slow, or all of it. The classifier is a logistic regression with an L2
penalty over counts by path and by window, gaps, times since a reader's action (drawn in the same way for an idle one)
and pairs of consecutive paths. Its AUC is computed on held-out sessions (five folds), with a 95 % bootstrap interval.
Fails above AUC .55.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.doubles.read_sessions import SESSION_SEC, TROUBLE_KINDS, ReceivedRequest, act_times, session

BAR = 0.55
FOLDS, PENALTY, STEPS, RESAMPLES = 5, 10.0, 25, 2_000
WINDOWS = 12
SINCE_SEC = (1.0, 5.0, 30.0)
Floats = NDArray[np.float64]


def features(received: Sequence[ReceivedRequest], acts: Sequence[float], session_sec: float) -> dict[str, float]:
    """Return what an attacker counts and times in one session."""
    at = np.array([one.at_sec for one in received])
    found: dict[str, float] = {"count": float(len(at))}
    for name, n in Counter(one.asked for one in received).items():
        mine = np.array([one.at_sec for one in received if one.asked == name])
        gaps = np.diff(mine)
        found |= {f"n {name}": float(n), f"first {name}": float(mine[0])}
        if len(gaps):
            found |= {f"gap {name}": float(gaps.mean()), f"spread {name}": float(gaps.std())}
        found |= {f"{name} within {span:g} s": _within(mine, acts, span) for span in SINCE_SEC}
    for (one, other), n in Counter(
        zip([h.asked for h in received], [h.asked for h in received][1:], strict=False)
    ).items():
        found[f"{one} > {other}"] = float(n)
    counts, _ = np.histogram(at, bins=WINDOWS, range=(0, session_sec))
    found |= {f"window {number}": float(n) for number, n in enumerate(counts)}
    waits = [float(at[at >= act].min() - act) for act in acts if (at >= act).any()]
    if waits:
        found |= {"after an act": float(np.mean(waits)), "median after an act": float(np.median(waits))}
    return found


def _within(at: Floats, acts: Sequence[float], span: float) -> float:
    return float(sum(((at >= act) & (at < act + span)).any() for act in acts))


def matrix(rows: Sequence[dict[str, float]]) -> tuple[Floats, list[str]]:
    """Return features [n, features], of mean 0 and deviation 1, and their names; missing values become the mean."""
    names = sorted({name for row in rows for name in row})
    found = np.array([[row.get(name, np.nan) for name in names] for row in rows])
    found = np.where(np.isnan(found), np.nanmean(found, axis=0), found)
    deviation = found.std(axis=0)
    kept = deviation > 0
    scaled = (found[:, kept] - found[:, kept].mean(axis=0)) / deviation[kept]
    return scaled, [name for name, keeps in zip(names, kept, strict=True) if keeps]


def fitted(x: Floats, y: Floats) -> Floats:
    """Return weights of a logistic regression with an L2 penalty by Newton's method, the intercept last."""
    x = np.column_stack([x, np.ones(len(x))])
    penalty = PENALTY * np.eye(x.shape[1])
    penalty[-1, -1] = 1e-9
    w = np.zeros(x.shape[1])
    for _ in range(STEPS):
        p = 1 / (1 + np.exp(-np.clip(x @ w, -30, 30)))
        w += np.linalg.solve((x * (p * (1 - p))[:, None]).T @ x + penalty, x.T @ (y - p) - penalty @ w)
    return w


def held_out_scores(x: Floats, y: Floats, seed: int = 7) -> Floats:
    """Return each session's score by a classifier that has not seen it. Sessions of a pair share a fold."""
    fold = np.random.default_rng(seed).permutation(len(y) // 2) % FOLDS
    fold = np.concatenate([fold, fold])
    scores = np.empty(len(y))
    for number in range(FOLDS):
        out = fold == number
        w = fitted(x[~out], y[~out])
        scores[out] = x[out] @ w[:-1] + w[-1]
    return scores


def auc(scores: Floats, y: Floats) -> float:
    """Return the probability that an active session scores above an idle one; ties count half."""
    over = scores[y == 1][:, None] - scores[y == 0][None, :]
    return float((over > 0).mean() + (over == 0).mean() / 2)


def interval(scores: Floats, y: Floats, seed: int = 7) -> tuple[float, float]:
    """Return the 95 % interval of the AUC over resampled sessions."""
    dice, kinds = np.random.default_rng(seed), [np.flatnonzero(y == kind) for kind in (0, 1)]
    found = []
    for _ in range(RESAMPLES):
        rows = np.concatenate([dice.choice(kind, len(kind)) for kind in kinds])
        found.append(auc(scores[rows], y[rows]))
    low, high = np.percentile(found, (2.5, 97.5))
    return float(low), float(high)


def separate(
    idle: Sequence[Sequence[ReceivedRequest]],
    reading: Sequence[Sequence[ReceivedRequest]],
    acts: Sequence[Sequence[float]],
    session_sec: float = SESSION_SEC,
) -> tuple[float, float, float]:
    """Return AUC and interval; the sessions of a pair have the same actions, which an idle reader leaves out."""
    x, y, _ = table(idle, reading, acts, session_sec)
    scores = held_out_scores(x, y)
    return auc(scores, y), *interval(scores, y)


def table(
    idle: Sequence[Sequence[ReceivedRequest]],
    reading: Sequence[Sequence[ReceivedRequest]],
    acts: Sequence[Sequence[float]],
    session_sec: float,
) -> tuple[Floats, Floats, list[str]]:
    """Return features, whether their reader reads, and the features' names."""
    rows = [
        features(received, when, session_sec)
        for kind in (idle, reading)
        for received, when in zip(kind, acts, strict=True)
    ]
    x, names = matrix(rows)
    return x, np.repeat([0.0, 1.0], [len(idle), len(reading)]), names


def weights(
    idle: Sequence[Sequence[ReceivedRequest]],
    reading: Sequence[Sequence[ReceivedRequest]],
    acts: Sequence[Sequence[float]],
    session_sec: float = SESSION_SEC,
    most: int = 12,
) -> str:
    """Return the features with the largest weights in a fit of all sessions, each with its AUC alone."""
    x, y, names = table(idle, reading, acts, session_sec)
    w = fitted(x, y)[:-1]
    rows = np.argsort(-np.abs(w))[:most]
    return "\n".join(f"{w[row]:+.2f}, AUC {auc(x[:, row], y):.3f}  {names[row]}" for row in rows)


def report(
    idle: Sequence[Sequence[ReceivedRequest]],
    reading: Sequence[Sequence[ReceivedRequest]],
    acts: Sequence[Sequence[float]],
    session_sec: float = SESSION_SEC,
) -> tuple[float, str]:
    """Return the AUC, and a line that reports it."""
    value, low, high = separate(idle, reading, acts, session_sec)
    asked = sum(len(received) for kind in (idle, reading) for received in kind)
    figures = f"AUC {value:.3f} ({low:.3f} .. {high:.3f}), bar {BAR:g}"
    return value, f"{len(idle)} sessions of each kind, {asked} requests: {figures}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the sessions and print the classifier's result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=200, help="of each kind")
    sessions = parser.parse_args(argv).sessions
    kinds: dict[bool, list[list[ReceivedRequest]]] = {False: [], True: []}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(sessions):
            for reads, found in kinds.items():
                own = Path(folder) / f"{seed}-{reads}"
                found.append(session(own, seed, TROUBLE_KINDS[seed % len(TROUBLE_KINDS)], reads=reads))
    value, line = report(kinds[False], kinds[True], [act_times(seed) for seed in range(sessions)])
    sys.stdout.write(f"{line}\n")
    return int(value > BAR)


if __name__ == "__main__":
    sys.exit(main())
