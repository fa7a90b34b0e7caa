"""Mode `auto` against a server that lies about its pool's size, and its choices by the packaged figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from numpy.typing import NDArray

from device_app.errors import BudgetSpent
from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.noise_sources import SeededNoise
from device_app.privacy.reporter import ReportInput
from device_app.privacy.sealed_reports import seal_report
from device_app.privacy.settings import PrivacySettings
from device_app.reports.modes import MODES
from device_app.reports.policy import ReportPolicy, reporter_of
from device_app.reports.reporters import PublicVectors, ReportRelease
from device_app.settings import PerformanceSettings
from device_app.store.database import Database
from device_app.store.ledger_entries import LedgerRepository
from device_app.store.report_memo import DrawnReports, ReportMemo
from device_app.view_models.modes import measured_worth, report_worth
from protocol.recall import CANDIDATES_LIMIT
from protocol.recall_frontier import ListChoice, packaged_frontier
from protocol.releases import BlobRef, Codebook, RecallProtocol, ReleaseManifest
from tests.doubles.clock import StillClock

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
D = 12
CLAIMED_SIZES = (None, 0, 1, 500, 12_312, 40_000, 99_312, 10**7, 10**15)
"""What a release may say of its pool's size."""
HONEST = ((16, 4.0), (64, 8.0))


def protocol(books: tuple[tuple[int, float], ...] = HONEST, mark: int = 0) -> RecallProtocol:
    return RecallProtocol(
        basis_size=2,
        channels_limit=5,
        cluster_distance=1,
        score_clip=0.2,
        score_noise=1.2,
        codebooks=tuple(
            Codebook(size=size, epsilon=epsilon, prototypes=BlobRef(sha256=f"{mark:02x}" * 32, size_bytes=1))
            for size, epsilon in books
        ),
        pool_codes=True,
    )


def stating(news: int | None, recall: RecallProtocol) -> ReleaseManifest:
    """A release, as far as the policy reads it."""
    return cast(ReleaseManifest, SimpleNamespace(news=news, recall=recall))


def vectors(size: int, mark: int) -> NDArray[np.float32]:
    rows = np.random.default_rng(mark).normal(size=(size, D)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@dataclass
class ServerOfFalseSizes:
    """States a false pool size, and a different codebook each time."""

    policy: ReportPolicy
    database: Database
    news: int | None = None
    mark: int = 0
    books: tuple[tuple[int, float], ...] = HONEST

    def __post_init__(self) -> None:
        self.ledger = Ledger(LedgerRepository(self.database), self.policy.ceilings, StillClock(NOW))
        self.policy.release = lambda: stating(self.news, protocol(self.books, self.mark))

    def draws(self, reader: ReportInput) -> float:
        """Return the charge for the report that the device makes under this release; 0 if it makes none."""
        before = self.ledger.total("reports")
        offered = protocol(self.books, self.mark)
        spaces = PublicVectors({size: vectors(size, self.mark) for size, _ in self.books})
        release = f"r{self.mark + 1}"
        reporter = reporter_of(self.policy.settings, offered, spaces, ReportRelease(release, "encoder", str(self.mark)))
        if reporter is not None:
            sealed = seal_report(
                reporter, reader, settings=lambda: self.policy.settings, release=release,
                limit=400, ledger=self.ledger, noise=SeededNoise(self.mark),
                memo=ReportMemo(self.database), drawn=DrawnReports(self.database), clicks=1, sent="",
            )  # fmt: skip
            assert sealed.charge.epsilon == pytest.approx(self.ledger.total("reports") - before)
        return self.ledger.total("reports") - before


@pytest.fixture
def claimed(tmp_path: Path) -> Iterator[ServerOfFalseSizes]:
    database = Database(tmp_path / "device.sqlite")
    settings = PrivacySettings(mode="auto", epsilon_lifetime_reports=20.0, codebooks_per_day=100)
    yield ServerOfFalseSizes(ReportPolicy(settings), database)
    database.close()


def test_auto_mode_report_never_exceeds_the_readers_limit(
    claimed: ServerOfFalseSizes,
) -> None:
    reader = ReportInput(np.ones((4, D), dtype=np.float32))
    for mark, (news, books) in enumerate(
        product(CLAIMED_SIZES, (HONEST, ((16, 60.0), (64, 4.0)), ((4, 4.0), (16, 0.5)), ()))
    ):
        claimed.news, claimed.books, claimed.mark = news, books, mark % 250
        try:
            cost = claimed.draws(reader)
        except BudgetSpent:
            continue
        assert cost <= claimed.policy.own.epsilon_per_report
        assert claimed.policy.settings.epsilon_per_report <= claimed.policy.own.epsilon_per_report
    assert 0 < claimed.ledger.spent_today("reports") <= claimed.policy.own.epsilon_per_day_reports * (1 + 1e-9)
    assert claimed.policy.own.mode == "auto", "the reader's own choice stands"


def test_choice_of_auto_mode_does_not_depend_on_clicks_and_bounds_the_list(claimed: ServerOfFalseSizes) -> None:
    for news in CLAIMED_SIZES[1:]:
        claimed.news = news
        choice = claimed.policy.choice()
        assert choice is not None
        assert choice == claimed.policy.choice()
        assert MODES[choice.mode].chooses is None, "it stands for no other chooser"
        assert choice.places <= CANDIDATES_LIMIT
        assert choice.epsilon <= claimed.policy.own.epsilon_per_report
        assert choice.weight <= claimed.policy.own.bytes_per_list


def test_before_the_pool_size_is_known_nothing_is_reported_or_kept(claimed: ServerOfFalseSizes) -> None:
    claimed.news = None
    held, performance = claimed.policy.settings, PerformanceSettings()
    assert (held.mode, MODES[held.mode].finds) == ("auto", "nobody")
    assert not claimed.policy.keeps_pool(performance, 0)
    assert claimed.draws(ReportInput(np.ones((4, D), dtype=np.float32))) == 0
    assert claimed.policy.list_length(performance) == performance.default_list_limit


def test_explicitly_chosen_modes_do_not_depend_on_the_pool_size(claimed: ServerOfFalseSizes) -> None:
    for name in MODES:
        claimed.policy.own = PrivacySettings(mode=name)
        for news in CLAIMED_SIZES:
            claimed.news = news
            if MODES[name].chooses is None:
                assert claimed.policy.settings is claimed.policy.own


def test_default_list_is_longer_in_modes_that_fetch_nothing_else() -> None:
    class FixedModePolicy(ReportPolicy):
        def __init__(self, mode: str) -> None:
            super().__init__(PrivacySettings(mode="auto"))
            self.stands_for = mode

        def choice(self) -> ListChoice:
            return ListChoice(
                news=1,
                mode=self.stands_for,
                codebook=None,
                places=1_000,
                epsilon=0,
                weight=1,
                found=1,
                silent=1,
                best=1,
            )

    performance = PerformanceSettings()
    assert FixedModePolicy("none").list_length(performance) == 1_000
    assert FixedModePolicy("interest").list_length(performance) == 600
    assert ReportPolicy(PrivacySettings(mode="none")).list_length(performance) == 600


def test_figures_are_interpolated_between_measured_pools() -> None:
    frontier = packaged_frontier()
    figures = tuple(float(size) for size in frontier.pools)
    assert frontier.at(figures, 1) == figures[0]
    assert frontier.at(figures, 10**9) == figures[-1]
    middle = round((frontier.pools[0] * frontier.pools[1]) ** 0.5)
    assert frontier.at(figures, middle) == pytest.approx((figures[0] + figures[1]) / 2, rel=1e-3)
    assert [frontier.at(figures, size) for size in frontier.pools] == list(figures)


def test_reader_allowing_no_report_and_few_bytes_gets_the_default_list() -> None:
    frontier = packaged_frontier()
    for news in (100, *frontier.pools):
        chosen = frontier.choose(news, epsilon_limit=0.1, bytes_limit=1, codebooks=HONEST, pool_codes=True)
        assert (chosen.mode, chosen.epsilon) == ("none", 0)
        assert chosen.places == min(each.places for each in frontier.lists)


@pytest.mark.parametrize("news", [1, 150, 200, 201, 400])
def test_no_report_is_sent_when_the_default_list_covers_the_whole_pool(news: int) -> None:
    chosen = packaged_frontier().choose(
        news, epsilon_limit=8.0, bytes_limit=2_500_000, codebooks=HONEST, pool_codes=True
    )
    assert (chosen.mode, chosen.epsilon, chosen.found, chosen.silent) == ("none", 0, 100, 100)
    assert chosen.places >= news, "the list holds all of it"
    assert report_worth("interest", *HONEST[0], news) == (
        f"The list everyone gets (400 stories) already contains all {news} stories, so a report adds nothing here."
    )


def test_extrapolated_figures_are_labelled_as_such() -> None:
    frontier = packaged_frontier()
    least, most = frontier.pools[0], frontier.pools[-1]
    said = {news: measured_worth("interest", *HONEST[0], news) for news in (0, 401, least, least + 1, most, 10 * most)}
    assert said[0] == "", "nothing is said of an empty pool"
    between = f"Measured with {least:,} and with {frontier.pools[1]:,} stories (here there are {least + 1:,}): of the "
    assert said[least + 1].startswith(between)
    assert said[401].startswith(f"Measured with {least:,} stories (here there are 401): of the ")
    assert said[least].startswith(f"Measured with {least:,} stories: of the ")
    assert said[most].startswith(f"Measured with {most:,} stories: of the ")
    assert said[10 * most].startswith(f"Measured with {most:,} stories (here there are {10 * most:,}): of the ")


def test_benefit_of_a_report_is_stated_in_whole_stories_per_hundred() -> None:
    for news in packaged_frontier().pools:
        gain = packaged_frontier().gain("interest", *HONEST[0], news)
        assert gain is not None
        said = report_worth("interest", *HONEST[0], news)
        assert f"about {gain[0]:.0f} more of every 100 stories" in said if gain[0] >= 0.5 else "hardly" in said
