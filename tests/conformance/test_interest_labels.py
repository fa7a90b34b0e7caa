"""Both devices label interests alike, also when names contain characters that are special in regular expressions.

Oracle: the Python device.
"""

from __future__ import annotations

import pytest

from device_app.reading.interest_labels import distinct_labels
from protocol.news import NewsCard
from tests.conformance.node_end import ask_node
from tests.doubles.news import card

pytestmark = pytest.mark.node


def _told(name: str, count: int) -> list[NewsCard]:
    return [
        card(f"{len(name)}-{at}", title=f"The storm reaches {name} on day {at}", topic="storms") for at in range(count)
    ]


def test_interests_of_one_topic_get_hyphenated_names_to_distinguish_them() -> None:
    """Regression: a hyphen made the browser's regular expression invalid, so no page was made."""
    groups = [_told("Port-Lazare", 3), _told("Saint-Denis", 2), _told("O'Brien", 2)]
    labels = distinct_labels(groups, {})
    assert labels[0] == "storms: Port-Lazare"
    asked = [[one.model_dump(mode="json") for one in group] for group in groups]
    assert ask_node([("feed_labels", asked)]) == [list(labels)]
