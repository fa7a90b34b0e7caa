"""Decides which report mode applies: from the reader's settings and what releases state, never from clicks."""

from collections.abc import Callable

from device_app.privacy.accounting.limits import Ceilings
from device_app.privacy.reporter import Reporter
from device_app.reports.modes import MODES, PoolTerms, ReportMode
from device_app.reports.reporters import PublicVectors, ReportRelease, ReportTerms
from device_app.settings import PerformanceSettings, PrivacySettings
from protocol.recall_frontier import ListChoice
from protocol.releases import RecallProtocol, ReleaseManifest


class ReportPolicy:
    """Which mode, cost and ceilings apply now.

    Attributes:
        own: the settings that the reader set; their mode may stand for another.
    """

    def __init__(self, own: PrivacySettings, release: Callable[[], ReleaseManifest | None] = lambda: None) -> None:
        """release: returns the manifest of the release in use; None before the first."""
        self.own = own
        self.release = release

    @property
    def settings(self) -> PrivacySettings:
        """The reader's settings, with a mode that stands for another one replaced by it."""
        return in_force(self.own, self.choice())

    @property
    def mode(self) -> ReportMode:
        """The mode in effect."""
        return MODES[self.settings.mode]

    def choice(self) -> ListChoice | None:
        """The mode and list length that the reader's mode currently stands for; None if it stands for itself."""
        if MODES[self.own.mode].chooses is None or (manifest := self.release()) is None:
            return None
        return choice_of(self.own, manifest.news, manifest.recall)

    def ceilings(self) -> Ceilings:
        """What may be charged."""
        return Ceilings.of(self.own)

    def list_length(self, performance: PerformanceSettings) -> int:
        """The number of places on the default list.

        It is the mode's choice if the default list is the only one, else the configured limit.
        """
        choice = self.choice()
        alone = choice is not None and MODES[choice.mode].finds == "nobody"
        return choice.places if choice is not None and alone else performance.default_list_limit

    def keeps_pool(self, performance: PerformanceSettings, news: int) -> bool:
        """Whether this device keeps the codes of a pool of this size."""
        finds = self.mode.finds
        if finds == "nobody":
            return False
        return finds == "here" or (performance.pool_limit > 0 and news <= performance.pool_limit)


def choice_of(own: PrivacySettings, news: int | None, protocol: RecallProtocol) -> ListChoice | None:
    """The mode that the reader's mode stands for under a release whose pool has this size.

    None if the mode stands for itself, or if the release doesn't state the size.
    """
    chooses = MODES[own.mode].chooses
    if chooses is None or news is None:
        return None
    return chooses(PoolTerms(news, protocol, own.epsilon_per_report, own.bytes_per_list))


def in_force(own: PrivacySettings, choice: ListChoice | None) -> PrivacySettings:
    """Return the settings with a choice applied: its mode, and the lower of its epsilon and the reader's limit."""
    if choice is None:
        return own
    limit = min(own.epsilon_per_report, choice.epsilon) if choice.epsilon else own.epsilon_per_report
    return own.model_copy(update={"mode": choice.mode, "epsilon_per_report": limit})


def reporter_of(
    settings: PrivacySettings, protocol: RecallProtocol, spaces: PublicVectors, under: ReportRelease | None = None
) -> Reporter | None:
    """The reporter for the reader's mode under a release; None if the mode makes no reports or the release doesn't
    support it.

    The release proposes codebooks and their epsilons; only those within `epsilon_per_report` are used.
    """
    terms = ReportTerms(settings.epsilon_per_report, protocol, spaces, under or ReportRelease())
    return MODES[settings.mode].reporter_of(terms)
