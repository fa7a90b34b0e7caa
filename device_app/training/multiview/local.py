"""The views of this device, as a round's task meets them: what each is asked, and what was handed over."""

from __future__ import annotations

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
Items = tuple[tuple[str, ...], NDArray[np.float32]]
ROUNDING = 1e-9


@dataclass(frozen=True)
class LocalViews:
    """The stores of the views, where they compute, and the log of what they gave.

    Args:
        stores: each view's own file, or None while the view has none.
        items: ids and vectors [n, D] of the item set by an encoder: the default list, the same on every device.
        prepare: brings the vectors in the views' stores up to an encoder.
        processes: where views compute.
        log: what was handed over.
        weakest_sigma: the least noise the reader accepts now.
        clock: the device's.
        searched: what the second view learns from, by name: saved searches, followed topics, news opened from results.
        source: of the noise that stands for a view that failed.
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
        """Raises NotEligible where views can't be kept apart, ProtectionTooWeak for less noise than is asked for."""
        if (why := self.processes.why_not()) is not None:
            raise NotEligible(why)
        least = self.weakest_sigma()
        if terms.sigma < least * (1 - ROUNDING):
            raise ProtectionTooWeak(
                f"each view would put noise of {terms.sigma:g} on its gradient; at least {least:g} is asked for."
            )

    def gradients(
        self,
        round_id: str,
        encoder: str,
        terms: ViewTerms,
        job: Callable[[View, Path, Items], ViewJob],
        rng: np.random.Generator,
    ) -> dict[View, NoisyGradient]:
        """A protected gradient of every view that has something to learn from. Raises NotEligible if none has.

        Where the terms have so many views at once, of those with a store a random subset of that size is asked, B_v of
        the paper; which, is seen by nobody outside this device.

        A view whose process fails gives a gradient of zeros, under the same noise: the graph is the server's, and
        may be made to fail on some clicks alone.
        """
        self.prepare(encoder)
        items = self.items(encoder)
        found: dict[View, NoisyGradient] = {}
        known = {view: store for view in VIEWS if view in terms.views and (store := self.stores[view]()) is not None}
        asked_of = list(known)
        if terms.at_once is not None and terms.at_once < len(known):
            asked_of = [asked_of[place] for place in sorted(rng.choice(len(known), terms.at_once, replace=False))]
        for view in asked_of:
            store = known[view]
            self.log.record(round_id, [view], clip=terms.clip, sigma=terms.sigma, at=self.clock())
            asked = job(view, store, items)
            try:
                gradient = self.processes.gradient(asked)
            except ViewFailed as failed:
                _log.warning("%s; it counts as zeros", failed)
                gradient = self._zeros(asked)
            if gradient is not None:
                found[view] = NoisyGradient(gradient)
        if not found:
            raise NotEligible("none of its views has anything to learn from.")
        return found

    def _zeros(self, asked: ViewJob) -> Mapping[str, NDArray[np.float64]]:
        protection = ViewProtection(asked.terms.clip, asked.terms.sigma)
        zeros = {f"g.{name}": np.zeros(each.shape) for name, each in asked.parameters.items()}
        return protection.noisy(protection.bounded(zeros), self.source).tensors
