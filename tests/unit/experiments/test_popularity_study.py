"""`ownfeed evaluate popularity`, without data, and on planted impressions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from backend.federation.systems import COMPOSED
from experiments.datasets.mind import Impressions, Mind, NewsTable, RaggedArray
from experiments.ranking.evaluation import metrics
from experiments.ranking.popularity import counted_by, popularity_table, replace_sigma, weighed
from experiments.ranking.popularity_curve import curve_table
from ownfeed import app
from protocol.protections import SecureSum

PRIVATE_COUNTS = COMPOSED["private_counts/secure/huber"]

READERS, NEWS, SHOWN = 300, 40, 8


def planted_mind() -> Mind:
    """Readers who see eight of forty articles, half of which are opened five times as often as the others."""
    rng = np.random.default_rng(0)
    rates = np.where(np.arange(NEWS) % 2, 0.5, 0.1)
    shown = [rng.choice(NEWS, SHOWN, replace=False) for _ in range(READERS)]
    clicked = np.concatenate([rng.random(SHOWN) < rates[rows] for rows in shown]).astype(np.int64)
    blank = ("",) * NEWS
    news = NewsTable(tuple(f"N{row:02d}" for row in range(NEWS)), blank, blank, blank, blank)
    names = tuple(str(reader) for reader in range(READERS))
    none = RaggedArray.of([[] for _ in names])
    dev = Impressions(names, names, np.zeros(READERS, dtype=np.int64), none, RaggedArray.of(shown), clicked)
    return Mind(news, dev, dev)


def protection(sigma: int) -> SecureSum:
    live = PRIVATE_COUNTS.protection
    assert isinstance(live, SecureSum)
    return replace_sigma(live, sigma)


def test_command_without_its_data_prints_one_line_and_no_table(tmp_path: Path) -> None:
    found = CliRunner().invoke(app, ["evaluate", "popularity", "--data", str(tmp_path / "nowhere")])
    assert found.exit_code == 1
    assert "news.tsv does not exist" in found.stderr
    assert not found.stdout


def test_counts_without_noise_are_exact_up_to_each_readers_limit() -> None:
    mind = planted_mind()
    given = counted_by(mind, protection(0), seed=1)
    own = np.stack([each["clicked"] for each in given.own])
    shown = np.bincount(mind.dev.candidates.values, minlength=NEWS)
    np.testing.assert_allclose(list(given.opened.clicks.values()), own.sum(axis=0), atol=1e-9)
    np.testing.assert_allclose(list(given.opened.displays.values()), shown, atol=1e-9)
    of_reader = np.add.reduceat(mind.dev.clicked, mind.dev.candidates.offsets[:-1])
    assert own.sum(axis=1).tolist() == np.minimum(of_reader, 5).tolist()
    assert of_reader.max() > 5


def test_private_popularity_improves_ranking_and_noise_reduces_the_gain() -> None:
    dev = (mind := planted_mind()).dev
    found = [metrics(dev, weighed(dev, counted_by(mind, protection(sigma), seed=2))).auc for sigma in (0, 40, 20_000)]
    assert found[0] > 0.72
    assert abs(found[0] - found[1]) < 0.03
    assert 0.4 < found[2] < 0.6


def test_table_shows_each_rows_cost_and_whether_the_target_is_met() -> None:
    mind = planted_mind()
    table = popularity_table(mind, np.zeros(len(mind.dev.candidates.values)), draws=1)
    costs = {str(row[0]): row[6] for row in table.rows}
    assert costs["counts, no noise"] is None
    assert float(str(costs["counts, noise sd 2.83"])) > float(str(costs["counts, noise sd 8"]))
    assert any("Bar: AUC at noise sd 2.83 >= 0.67" in note for note in table.notes)


def test_popularity_curve_rises_with_devices_and_shows_the_expected_reliability() -> None:
    mind = planted_mind()
    nothing = np.zeros(len(mind.dev.candidates.values))
    table = curve_table(mind, nothing, draws=2, sizes=(5, 20_000))
    few, many = table.rows
    assert float(str(many[2])) > 0.7
    assert float(str(many[2])) > float(str(few[2])) + 0.1
    assert float(str(many[8])) > 0.95
    assert float(str(few[6])) < float(str(many[6]))
    assert few[4] is few[7] is None, "five devices are one sum"
    assert float(str(many[4])) == pytest.approx(float(str(many[2])), abs=0.02)
    assert 0.97 < float(str(many[7])) / float(str(many[6])) < 1.06, "groups make the noise 1.026 times as large at most"
    assert any("without counts: auc 0.5000" in note.lower() for note in table.notes)
