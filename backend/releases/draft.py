"""A release that isn't published yet, and the blobs that a release names."""

from __future__ import annotations

from dataclasses import dataclass

from backend.releases.errors import ReleaseNotPublished
from device_app.wire.releases import BlobRef, ModelEntry, RecallProtocol, ReleaseManifest


@dataclass(frozen=True)
class ReleaseDraft:
    """A release without its number, its time and its signature."""

    encoder: str
    dimensions: int
    opset: int
    recall: RecallProtocol
    models: dict[str, ModelEntry]
    default_ranker: str
    vocabulary: BlobRef | None = None
    categories: BlobRef | None = None
    kinship_floor: float | None = None

    @classmethod
    def like(cls, manifest: ReleaseManifest, models: dict[str, ModelEntry] | None = None) -> ReleaseDraft:
        """The same release again, with other models if given."""
        return cls(
            encoder=manifest.encoder,
            dimensions=manifest.dimensions,
            opset=manifest.opset,
            recall=manifest.recall,
            models=manifest.models if models is None else models,
            default_ranker=manifest.default_ranker,
            vocabulary=manifest.vocabulary,
            categories=manifest.categories,
            kinship_floor=manifest.kinship_floor,
        )

    def check(self) -> None:
        """Raise ReleaseNotPublished unless the default ranker is one of its rankers."""
        default = self.models.get(self.default_ranker)
        if default is None or default.role != "ranker":
            raise ReleaseNotPublished(f"{self.default_ranker!r} is no ranker of this release.", field="default_ranker")


def blob_refs(release: ReleaseDraft | ReleaseManifest) -> list[BlobRef]:
    """Every blob that this release names: graphs, weights, codebooks, projection, vocabulary, categories."""
    models, recall = release.models.values(), release.recall
    refs = [ref for entry in models for ref in entry.graphs.values()]
    refs += [entry.weights for entry in models if entry.weights is not None]
    refs += [ref for entry in models if entry.groups is not None for ref in entry.groups.blobs]
    refs += [codebook.prototypes for codebook in recall.codebooks]
    refs += [] if recall.projection is None else [recall.projection.matrix]
    return refs + [ref for ref in (release.vocabulary, release.categories) if ref is not None]
