"""One release's models, loaded and bound, as serving uses them."""

from __future__ import annotations

from dataclasses import dataclass

from device_app.interests.decomposition import RecallModel
from device_app.ranking.ranker import Ranker
from device_app.wire.releases import ReleaseManifest


@dataclass(frozen=True)
class ServingModels:
    """Replaced whole when a release is swapped in, so that no feed mixes two of them."""

    manifest: ReleaseManifest
    recall: RecallModel
    ranker: Ranker

    @property
    def release(self) -> str:
        """The release's id."""
        return self.manifest.release

    @property
    def encoder(self) -> str:
        """Digest of the encoder whose vectors these models understand."""
        return self.manifest.encoder

    @property
    def dimensions(self) -> int:
        """D."""
        return self.manifest.dimensions
