"""The views of this reader, as the privacy page tells of them: what each holds, where it weighs, what it has given."""

from __future__ import annotations

from dataclasses import dataclass

from device_app.privacy.local_aggregate import composed_epsilon
from device_app.prose import Prose
from device_app.settings import PrivacySettings
from device_app.stores import DeviceStores
from device_app.training.multiview.lockdown import version
from device_app.view_models.searches import use_of

WORDS = Prose("device_app.view_models", "words.toml")

DELTA = 1e-3
"""The paper's, for the account of a view."""


@dataclass(frozen=True)
class SourceFacts:
    """One view.

    holds is what it keeps, in words; weighs says whether the next report is made with it, and where else it counts.
    rounds it took part in, and the epsilon at DELTA that its noisy gradients have cost it towards the other view.
    """

    title: str
    holds: str
    weighs: str
    rounds: int
    epsilon: float


@dataclass(frozen=True)
class SourcesView:
    """Both views; apart says whether this system can keep their computations apart."""

    sources: tuple[SourceFacts, ...]
    delta: float
    apart: bool


def sources_view(stores: DeviceStores, settings: PrivacySettings) -> SourcesView:
    """A few counts."""
    clicks, saved = stores.clicks.count(), len(stores.searches.saved())
    topics = len(stores.stances.followed_topics())
    reading, searches = WORDS.table("reading_weighs"), WORDS.table("searches_weigh")
    use = use_of(settings)
    if use == "mode":
        use = "reports_off" if settings.mode == "none" else "clicks_alone"
    return SourcesView(
        sources=(
            _facts(stores, "reading", _counted(clicks, "click"), reading.get(settings.mode, reading["other"])),
            _facts(
                stores,
                "searches",
                f"{_counted(saved, 'search', 'searches')}, {_counted(topics, 'topic')}",
                searches[use],
            ),
        ),
        delta=DELTA,
        apart=version() > 0,
    )


def _facts(stores: DeviceStores, view: str, holds: str, weighs: str) -> SourceFacts:
    sigmas = stores.view_log.sigmas(view)
    return SourceFacts(WORDS.table("views")[view], holds, weighs, len(sigmas), composed_epsilon(sigmas, DELTA))


def _counted(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
