"""A sample source that returns given samples."""

from __future__ import annotations

from dataclasses import dataclass

from device_app.training.samples import Samples


@dataclass(frozen=True)
class FixedSamples:
    """Replaces a reader's sample source: every draw returns these samples."""

    samples: Samples

    def draw(self, **wanted: object) -> Samples:
        """Return the samples."""
        return self.samples
