"""The union of a cohort's news, the first round of Efficient-FedRec (ALGORITHMS 3.4, 3.6).

Owner counts in the open sum: for every news of the pool the server learns how many of the survivors can train on it.
That is more than marks would tell (owners_minimum 1: somebody holds it, or nobody), and it is what lets news of fewer
than three owners stay closed, so that no row of the gradients that follow is one device's alone. Noise in the counts
bounds all of it by an epsilon, but at cohorts of 60 any noise worth the name would open almost nothing: with one step a
device a news needs 27 owners, and the price is still 29. It is a field of the protection for cohorts of thousands.

Without noise no epsilon bounds the counts, and devices take part only if their readers allow exact sums.
"""

from __future__ import annotations

from dataclasses import replace

from backend.federation.strategies.news_union import NewsUnion
from backend.federation.systems.system import SystemSpec
from device_app.wire.union import UnionMarks

NEWS_UNION = SystemSpec(
    name="news_union",
    task="mark_news",
    protection=UnionMarks(owners_minimum=3),
    strategy=NewsUnion(follow="efficient_fedrec"),
)

NEWS_UNION_NOISY = replace(NEWS_UNION, name="news_union_noisy", strategy=NewsUnion(follow="efficient_fedrec_noisy"))
