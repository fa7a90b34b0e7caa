"""The views of a device without their own processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from device_app.privacy.noise_sources import NoiseSource
from device_app.store.database import Database
from device_app.training.multiview.job import ViewJob
from device_app.training.multiview.view import view_gradient


class ViewsInProcess:
    """Computes every view in this one process, which sees all of them."""

    def __init__(self, source: NoiseSource, open_store: Callable[[Path], Database]) -> None:
        self._source, self._open_store = source, open_store

    def why_not(self) -> None:
        """Return nothing: views are not isolated here, so isolation can't fail."""

    def gradient(self, job: ViewJob) -> Mapping[str, NDArray[np.float64]] | None:
        """See ViewProcesses."""
        return view_gradient(job, self._open_store(job.store), self._source, np.random.default_rng(job.seed))
