"""The tasks this program knows, by the name that a round's manifest uses."""

from __future__ import annotations

from collections.abc import Callable

from device_app.sync.release import Release
from device_app.training.gradients import BoundGraph
from device_app.training.tasks.full_gradient import FullGradientTask
from device_app.training.tasks.recall import RecallTask
from device_app.training.tasks.task import LocalTask
from device_app.wire.releases import Role
from device_app.wire.rounds import RoundManifest


def recall_task(release: Release, manifest: RoundManifest, threads: int) -> LocalTask:
    """The recall task on a release's `context` graph."""
    context = BoundGraph(release.graph(manifest.model, "context"), threads=threads)
    return RecallTask(
        contexts=lambda params, clicks, mask: context(params, clicks=clicks, click_mask=mask)["contexts"],
        protocol=release.manifest.recall,
        negatives=manifest.negatives,
        samples_limit=manifest.samples_limit,
    )


def full_gradient_task(release: Release, manifest: RoundManifest, threads: int) -> LocalTask:
    """Any ranker of the release."""
    return FullGradientTask(
        negatives=manifest.negatives,
        samples_limit=manifest.samples_limit,
        features=release.manifest.models[manifest.model].features,
    )


TASKS: dict[str, Callable[[Release, RoundManifest, int], LocalTask]] = {
    "recall": recall_task,
    "full_gradient": full_gradient_task,
}
TRAINS: dict[str, Role] = {"recall": "recall", "full_gradient": "ranker"}
"""Which models of a release a task is for."""
