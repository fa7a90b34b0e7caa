"""The device's views for a round's task: their stores, processes and log of contributions."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from device_app.errors import NotEligible, ProtectionTooWeak
from device_app.privacy.local_aggregate import NoisyGradient, ViewProtection
from device_app.privacy.noise_sources import NoiseSource, SystemNoise
from device_app.store.participations import ViewLog
from device_app.training.multiview.job import VIEWS, View, ViewFailed, ViewJob, ViewProcesses, ViewTerms

_log = logging.getLogger(__name__)
Parameters = Mapping[str, NDArray[np.float32]]
Items = tuple[tuple[str, ...], NDArray[np.float32]]
ROUNDING = 1e-9


@dataclass(frozen=True)
class LocalViews:
    """The stores of the views, their processes, and the log of what they contributed.

    Args:
        stores: each view's own file, or None while the view has none.
        items: ids and vectors [n, D] of the item set by an encoder: the default list, the same on every device.
        prepare: updates the vectors in the views' stores to an encoder.
        processes: where views compute.
        log: log of contributions.
        weakest_sigma: the least noise that the reader currently accepts.
        clock: the device's.
        searched: what the second view learns from, by name: saved searches, followed topics, articles opened from
            results.
        source: source of the noise for a view that has nothing to contribute, or failed.
    """

    stores: Mapping[View, Callable[[], Path | None]]
    items: Callable[[str], Items]
    prepare: Callable[[str], None]
    processes: ViewProcesses
    log: ViewLog
    weakest_sigma: Callable[[], float]
    clock: Callable[[], datetime]
    searched: Callable[[], frozenset[str]] = frozenset
    source: NoiseSource = field(default_factory=SystemNoise)

    def check(self, terms: ViewTerms) -> None:
        """Raise NotEligible if views can't be isolated here.

        Raises ProtectionTooWeak for less noise than the reader requires.
        """
        if (why := self.processes.why_not()) is not None:
            raise NotEligible(why)
        least = self.weakest_sigma()
        if terms.sigma < least * (1 - ROUNDING):
            raise ProtectionTooWeak(
                f"each view would put noise of {terms.sigma:g} on its gradient; the settings require at least "
                f"{least:g}."
            )

    def gradients(
        self,
        round_id: str,
        encoder: str,
        terms: ViewTerms,
        parameters: Callable[[View], Parameters],
        job: Callable[[View, Path, Items], ViewJob],
        rng: np.random.Generator,
    ) -> dict[View, NoisyGradient]:
        """Return a protected gradient of each view that takes part (`asked`), in the order of VIEWS.

        A view without a store, without anything to learn from, or whose process fails gives zeros under the same noise,
        and is charged like any other. (The graph comes from the server, which could make it fail for certain clicks
        only.)

        Formal guarantees: which views take part, what is charged to each, and the noise on each gradient depend only on
        the terms and `rng`. Whether a view has data changes only the gradient under the noise, by at most C.
        """
        self.prepare(encoder)
        items = self.items(encoder)
        found: dict[View, NoisyGradient] = {}
        for view in asked(terms, rng):
            self.log.record(round_id, [view], clip=terms.clip, sigma=terms.sigma, at=self.clock())
            gradient = None
            if (store := self.stores[view]()) is not None:
                try:
                    gradient = self.processes.gradient(job(view, store, items))
                except ViewFailed as failed:
                    _log.warning("%s; it counts as zeros", failed)
            found[view] = self.zeros(parameters(view), terms) if gradient is None else NoisyGradient(gradient)
        return found

    def noise(
        self, terms: ViewTerms, parameters: Callable[[View], Parameters], rng: np.random.Generator
    ) -> dict[View, NoisyGradient]:
        """Return what `gradients` returns on a device without any data.

        No view computes, so none is charged.
        """
        return {view: self.zeros(parameters(view), terms) for view in asked(terms, rng)}

    def zeros(self, parameters: Parameters, terms: ViewTerms) -> NoisyGradient:
        """Return a gradient of zeros for these parameters, under a view's noise."""
        protection = ViewProtection(terms.clip, terms.sigma)
        zeros = {f"g.{name}": np.zeros(each.shape) for name, each in parameters.items()}
        return protection.noisy(protection.bounded(zeros), self.source)


def asked(terms: ViewTerms, rng: np.random.Generator) -> list[View]:
    """Return the views that take part in a round.

    These are all that the terms name, or a random subset of at_once of them (the paper's B_v). It doesn't depend on a
    device's data, because a server sees from the user towers which views were drawn.
    """
    named = [view for view in VIEWS if view in terms.views]
    if terms.at_once is None or terms.at_once >= len(named):
        return named
    return [named[place] for place in sorted(rng.choice(len(named), terms.at_once, replace=False))]
