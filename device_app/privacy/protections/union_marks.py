"""A device's part in the union of articles (Efficient-FedRec, eq. 8).

It consists of marks, or of counts with a share of noise.
"""

import math
import secrets

import numpy as np
from numpy.typing import NDArray

from device_app.errors import NotEligible
from device_app.privacy.accounting.cost_of_sums import DELTA, sum_prices
from device_app.privacy.noise_share import BoundedCode, add_noise_share
from device_app.privacy.noise_sources import NoiseSource
from device_app.privacy.sealed import Charge
from device_app.privacy.secagg.messages import Contribution
from protocol.protections import Protection
from protocol.ring import from_integers, mark_rows
from protocol.secagg import SumTerms
from protocol.union import UnionMarks

NAME = "union_marks"


def union_marks_of(protection: Protection, otherwise: str) -> UnionMarks:
    """Return the protection itself, for a task that marks articles.

    Raises NotEligible, with `otherwise` as its message.
    """
    if not isinstance(protection, UnionMarks):
        raise NotEligible(otherwise)
    return protection


def mark(
    held: NDArray[np.float32], protection: UnionMarks, terms: SumTerms, source: NoiseSource, *, delta: float = DELTA
) -> Contribution:
    """Return the vector to be masked, and what the opened sum costs.

    Args:
        held: [n], 1 at this device's articles and 0 elsewhere; at most `rows_limit` ones.
        protection, terms: the round's, checked against each other before (`training.eligibility`).
        source: cryptographic on a device; used for noise only, marks and dummies are drawn by `secrets`.
        delta: at which this device prices sums.

    Raises ValueError unless `held` is such a vector of zeros and ones: nothing is released.

    Formal guarantees: for marks those of `protocol.ring.mark_rows`: the opened sum reveals which articles at least one
    device of the cohort holds, but not how many do, so an article that only this device holds is in the union. No
    epsilon bounds that, and the charge is 0 for this reason, not because it reveals nothing. With dummies a device can
    deny, towards those who see the union, that it holds an article in it, and no epsilon bounds that either
    (`UnionMarks.dummies`). For counts without noise the sum reveals how many hold each article, and again no epsilon
    bounds it. For counts with noise (epsilon, delta)-differential privacy for replacing all of this reader's articles,
    with the noise of `cohort_minimum` survivors of whom none reveals its share (`UnionMarks.rho`), and never less than
    with this device's own share alone, whose cost is in the charge too. Participation is not hidden.
    """
    if held.shape != (terms.length,):
        raise ValueError(f"held: shape {held.shape}, expected ({terms.length},)")
    if not np.isin(held, (0.0, 1.0)).all():
        raise ValueError("held: only 0 and 1")
    rows = np.flatnonzero(held)
    if len(rows) > protection.rows_limit:
        raise ValueError(f"held: {len(rows)} articles, at most {protection.rows_limit} may be marked")
    parameters = {
        "owners_minimum": float(protection.owners_minimum),
        "sigma": float(protection.sigma),
        "news": float(len(rows)),
        "survivors_at_least": float(terms.cohort_minimum),
    }
    if not protection.counts:
        others = np.flatnonzero(held == 0).tolist()
        dummies = secrets.SystemRandom().sample(others, min(protection.dummies, len(others)))
        parameters["dummies"] = float(len(dummies))
        vector = mark_rows([*rows.tolist(), *dummies], terms.length, terms.bits)
        return Contribution(vector, Charge("training", NAME, parameters, subject=terms.round))
    ones = from_integers(held.astype(np.int64), terms.bits)
    if not protection.sigma:
        return Contribution(ones, Charge("training", NAME, parameters, subject=terms.round))
    noisy = add_noise_share(BoundedCode(ones, math.sqrt(protection.rows_limit)), protection.sigma, source, terms.bits)
    prices = sum_prices(protection, terms.cohort_minimum, terms.length, delta)
    if not prices.possible:
        raise ValueError(
            f"sigma: noise of {protection.sigma} costs epsilon {prices.epsilon:g}, or {prices.alone:g} if all "
            "other devices are fake"
        )
    parameters |= prices.parameters
    return Contribution(noisy, Charge("training", NAME, parameters, prices.epsilon, delta, subject=terms.round))
