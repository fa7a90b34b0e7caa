"""Mode `auto` against a server that lies about its pool's size, and what it makes of the packaged figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from device_app.errors import BudgetSpent
from device_app.privacy.ledger import Ledger
from device_app.privacy.modes import MODES
from device_app.privacy.modes.mode import PublicVectors, ReportInput, ReportRelease
from device_app.privacy.noise_sources import SeededNoise
from device_app.privacy.reports import reporter_of, seal_report
from device_app.privacy.settings import PrivacySettings
from device_app.recall_frontier import ListChoice, packaged_frontier
from device_app.settings import PerformanceSettings, keeps_pool, list_length
from device_app.store.database import Database
from device_app.store.drawn_reports import DrawnReports
from device_app.store.ledger_entries import LedgerRepository
from device_app.store.report_memo import ReportMemo
from device_app.view_models.modes import report_worth
from device_app.wire.recall import CANDIDATES_LIMIT
from device_app.wire.releases import BlobRef, Codebook, RecallProtocol
from tests.doubles.clock import StillClock

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
D = 12
LIES = (None, 0, 1, 500, 12_312, 40_000, 99_312, 10**7, 10**15)
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


def vectors(size: int, mark: int) -> NDArray[np.float32]:
    rows = np.random.default_rng(mark).normal(size=(size, D)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@dataclass
class ServerOfFalseSizes:
    """Says what it likes of its pool, and brings another codebook each time."""

    ledger: Ledger
    database: Database
    news: int | None = None
    mark: int = 0
    books: tuple[tuple[int, float], ...] = HONEST

    def __post_init__(self) -> None:
        self.ledger.choose_by(lambda own: own.choice(self.news, protocol(self.books, self.mark)))

    def draws(self, reader: ReportInput) -> float:
        """What the device was charged for the report that it makes under this release; 0 where it makes none."""
        before = self.ledger.total("reports")
        offered = protocol(self.books, self.mark)
        spaces = PublicVectors({size: vectors(size, self.mark) for size, _ in self.books})
        release = f"r{self.mark + 1}"
        reporter = reporter_of(self.ledger.settings, offered, spaces, ReportRelease(release, "encoder", str(self.mark)))
        if reporter is not None:
            sealed = seal_report(
                reporter, reader, release=release, limit=400, ledger=self.ledger, noise=SeededNoise(self.mark),
                memo=ReportMemo(self.database), drawn=DrawnReports(self.database), clicks=1,
            )  # fmt: skip
            assert sealed.charge.epsilon == pytest.approx(self.ledger.total("reports") - before)
        return self.ledger.total("reports") - before


@pytest.fixture
def lying(tmp_path: Path) -> Iterator[ServerOfFalseSizes]:
    database = Database(tmp_path / "device.sqlite")
    settings = PrivacySettings(mode="auto", epsilon_lifetime_reports=20.0, codebooks_per_day=100)
    yield ServerOfFalseSizes(Ledger(LedgerRepository(database), settings, StillClock(NOW)), database)
    database.close()


def test_whatever_a_server_says_of_its_pool_no_report_costs_more_than_the_reader_allows(
    lying: ServerOfFalseSizes,
) -> None:
    reader = ReportInput(np.ones((4, D), dtype=np.float32))
    for mark, (news, books) in enumerate(product(LIES, (HONEST, ((16, 60.0), (64, 4.0)), ((4, 4.0), (16, 0.5)), ()))):
        lying.news, lying.books, lying.mark = news, books, mark % 250
        try:
            cost = lying.draws(reader)
        except BudgetSpent:
            continue
        assert cost <= lying.ledger.own.epsilon_per_report
        assert lying.ledger.settings.epsilon_per_report <= lying.ledger.own.epsilon_per_report
    assert 0 < lying.ledger.spent_today("reports") <= lying.ledger.own.epsilon_per_day_reports * (1 + 1e-9)
    assert lying.ledger.own.mode == "auto", "the reader's own choice stands"


def test_the_choice_says_nothing_of_clicks_and_asks_for_no_list_that_is_too_long(lying: ServerOfFalseSizes) -> None:
    for news in LIES[1:]:
        lying.news = news
        choice = lying.ledger.choice()
        assert choice is not None
        assert choice == lying.ledger.choice()
        assert MODES[choice.mode].chooses is None, "it stands for no other chooser"
        assert choice.places <= CANDIDATES_LIMIT
        assert choice.epsilon <= lying.ledger.own.epsilon_per_report
        assert choice.weight <= lying.ledger.own.bytes_per_list


def test_until_a_release_tells_its_size_nothing_is_reported_and_no_pool_is_kept(lying: ServerOfFalseSizes) -> None:
    lying.news = None
    held, performance = lying.ledger.settings, PerformanceSettings()
    assert (held.mode, MODES[held.mode].finds) == ("auto", "nobody")
    assert not keeps_pool(held, performance, 0)
    assert lying.draws(ReportInput(np.ones((4, D), dtype=np.float32))) == 0
    assert list_length(lying.ledger.choice(), performance) == performance.default_list_limit


def test_other_modes_stand_for_themselves_whatever_is_said(lying: ServerOfFalseSizes) -> None:
    for name in MODES:
        lying.ledger.own = PrivacySettings(mode=name)
        for news in LIES:
            lying.news = news
            if MODES[name].chooses is None:
                assert lying.ledger.settings is lying.ledger.own


def test_a_list_for_everybody_is_as_long_as_its_mode_chooses_and_only_where_nothing_else_is_looked_for() -> None:
    def choice(mode: str) -> ListChoice:
        return ListChoice(
            news=1, mode=mode, codebook=None, places=1_000, epsilon=0, weight=1, found=1, silent=1, best=1
        )

    performance = PerformanceSettings()
    assert list_length(choice("none"), performance) == 1_000
    assert list_length(choice("code"), performance) == list_length(None, performance) == 600


def test_figures_between_measured_pools_lie_between_theirs_and_beyond_them_stay() -> None:
    frontier = packaged_frontier()
    figures = tuple(float(size) for size in frontier.pools)
    assert frontier.at(figures, 1) == figures[0]
    assert frontier.at(figures, 10**9) == figures[-1]
    middle = round((frontier.pools[0] * frontier.pools[1]) ** 0.5)
    assert frontier.at(figures, middle) == pytest.approx((figures[0] + figures[1]) / 2, rel=1e-3)
    assert [frontier.at(figures, size) for size in frontier.pools] == list(figures)


def test_a_reader_who_allows_no_report_and_few_bytes_gets_everybodys_list() -> None:
    frontier = packaged_frontier()
    for news in (100, *frontier.pools):
        chosen = frontier.choose(news, epsilon_limit=0.1, bytes_limit=1, codebooks=HONEST, pool_codes=True)
        assert (chosen.mode, chosen.epsilon) == ("none", 0)
        assert chosen.places == min(each.places for each in frontier.lists)


@pytest.mark.parametrize("news", [1, 150, 200, 201, 400])
def test_where_the_usual_list_holds_the_whole_pool_nothing_is_told_for_it(news: int) -> None:
    chosen = packaged_frontier().choose(
        news, epsilon_limit=8.0, bytes_limit=2_500_000, codebooks=HONEST, pool_codes=True
    )
    assert (chosen.mode, chosen.epsilon, chosen.found, chosen.silent) == ("none", 0, 100, 100)
    assert chosen.places >= news, "the list holds all of it"
    assert report_worth("code", *HONEST[0], news) == (
        f"Everybody's list of 400 holds all {news} stories on offer, so it brings nothing here."
    )


def test_what_was_measured_elsewhere_is_said_to_be() -> None:
    frontier = packaged_frontier()
    least, most = frontier.pools[0], frontier.pools[-1]
    told = {news: report_worth("code", *HONEST[0], news) for news in (0, 401, least, least + 1, most, 10 * most)}
    assert told[0] == "", "of an empty pool nothing is said"
    between = f"as measured for {least:,} and for {frontier.pools[1]:,} stories on offer, between which lie the "
    assert f"{between}{least + 1:,} here: of 100 " in told[least + 1]
    assert f"as measured for {least:,} stories on offer, where here are 401: of 100 " in told[401]
    assert f"as measured for {least:,} stories on offer: of 100 " in told[least]
    assert f"as measured for {most:,} stories on offer: of 100 " in told[most]
    assert f"as measured for {most:,} stories on offer, where here are {10 * most:,}: of 100 " in told[10 * most]
