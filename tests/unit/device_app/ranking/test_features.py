"""Features as columns, each compared with a count written out in Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from device_app.ranking.ranker import FEATURES, FeatureContext, feature_columns, share_of_clicks

few = st.lists(st.integers(-3, 3), max_size=12)


@given(few, few)
def test_affinity_is_the_share_of_clicks_with_the_same_topic_or_section(column: list[int], clicked: list[int]) -> None:
    found = share_of_clicks(np.array(column, np.int64), np.array(clicked, np.int64))
    wanted = [clicked.count(name) / len(clicked) if clicked else 0.0 for name in column]
    np.testing.assert_allclose(found, wanted)


@given(few, few)
def test_features_are_between_0_and_1_in_the_requested_order(column: list[int], clicked: list[int]) -> None:
    names, rows = np.array(column, np.int64), np.array(clicked, np.int64)
    seen = FeatureContext(names, names, rows, rows, np.linspace(0, 1, len(names)), np.linspace(1, 0, len(names)))
    for order in (tuple(FEATURES), tuple(FEATURES)[::-1]):
        found = feature_columns(order, seen)
        assert found.shape == (len(names), len(FEATURES))
        assert found.dtype == np.float32
        assert ((found >= 0) & (found <= 1)).all()
        np.testing.assert_array_equal(found[:, order.index("popularity")], seen.popularity.astype(np.float32))
        np.testing.assert_array_equal(found[:, order.index("recency")], seen.recency.astype(np.float32))


def test_device_computes_exactly_the_released_rankers_features() -> None:
    from models.user.candidate_attention import FEATURES as RELEASED

    assert set(RELEASED) == set(FEATURES)
