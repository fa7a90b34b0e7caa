"""The page of counts: the range of their noise, and which stories it doesn't rank."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from types import SimpleNamespace

import numpy as np

from backend.console.counts_pages import counted_news
from backend.popularity.estimate import NoisyCounts
from tests.doubles.console_client import client_of
from tests.doubles.console_services import StandInCatalogue, StandInServices, fresh_services


def without_labels(page: str) -> str:
    """Remove the column names that each cell carries for phones."""
    return re.sub(r' data-label="[^"]*"', "", page)


def test_counts_of_pure_noise_rank_no_story() -> None:
    """Regression: each story was compared with a threshold for a single one, so about 25 of a thousand were ranked by
    chance."""
    noise, news = np.random.default_rng(0), 1_000
    catalogue = StandInCatalogue(
        keys=np.arange(news),
        lifts=np.zeros(news, dtype=np.float32),
        cards=tuple(json.dumps({"title": f"t{at}", "section": "sea"}).encode() for at in range(news)),
    )
    reported = 0
    for _ in range(20):
        clicks = noise.normal(0, np.sqrt(68.0), news)
        counts = SimpleNamespace(
            counted=lambda keys, now, clicks=clicks: (
                NoisyCounts(clicks, np.zeros(news), np.full(news, 68.0), np.full(news, 2_000.0)),
                np.ones(news, dtype=bool),
            )
        )
        found = counted_news(catalogue, counts, datetime.now(UTC))  # type: ignore[arg-type]
        assert sum(row.clicks > row.clicks_within for row in found) > 5
        reported += any(row.exceeds_noise for row in found)
    assert reported <= 4, "5 of 100 counts, and 5 or more of 20 once in four hundred times"


def test_counts_are_shown_with_noise_range_and_negative_values() -> None:
    text = without_labels(" ".join(client_of(StandInServices()).get("/console/counts").text.split()))
    first, second, third = (
        text.index(words) for words in ("Dredging of the east basin", "A quiet week", "Ferry fares")
    )
    apart = text.index("Not distinguishable from noise yet")
    assert first < apart < second < third, "9.8 and -4.1 openings are within the noise of 16.2"
    assert "1.11" not in text, "nothing is said of how popular those are"
    assert '<td class="num">61.2</td><td class="num">16.2</td>' in text, "1.96 standard deviations of 8.2"
    assert '<td class="num">-4.1</td>' in text
    assert "<strong>2.46</strong>" in text, "e to the lift"
    assert '<td class="num">44.7</td><td class="num">8.2</td>' in text
    empty = client_of(fresh_services()).get("/console/counts").text
    assert "No counts yet" in empty
