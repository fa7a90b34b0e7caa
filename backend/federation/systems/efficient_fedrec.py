"""Efficient-FedRec (EMNLP 2021, section 3.3): Adam with 5e-5 on both models, K = 4, a cohort of 50 in the paper.

NRMS of 256-d as the user model, 248,977 parameters, on the devices; pooling and head of the news model, 172,673, on the
server. The paper's sizes are 561,601 and BERT's layers 6 to 11 besides; `NewsSplit.layers` lets top layers train too.

`efficient_fedrec` is the paper's form: no noise, devices weighed by n_u. What keeps single readers out of the rows is
the minimum of owners in the round before. `efficient_fedrec_noisy` has a share of noise in every number besides, and
costs epsilon 1.62 at delta 1e-6 with 60 survivors; at so few the noise is some 70 times as long as the gradient (a
length of 0.01 sqrt(d) for d a million, where the mean is at most 0.1), so it shows what the price buys rather than
trains.

Fixed point: 18 fraction bits in a ring of 32; n C n_u 2^18 < 2^31 for 250 devices at C = 1 and n_u = 32.

`news_union` is its first round, the union of a cohort's news (section 3.4).

Owner counts in the open sum: for every news of the pool the server learns how many of the survivors can train on it.
That is more than marks would tell (owners_minimum 1: somebody holds it, or nobody), and it is what lets news of fewer
than three owners stay closed, so that no row of the gradients that follow is one device's alone. Noise in the counts
bounds all of it by an epsilon, but at cohorts of 60 any noise worth the name would open almost nothing: with one step a
device a news needs 27 owners, and the price is still 29. It is a field of the protection for cohorts of thousands.

Without noise no epsilon bounds the counts, and devices take part only if their readers allow exact sums.
"""

from __future__ import annotations

from dataclasses import replace

from backend.federation.optimizers import Adam
from backend.federation.strategies.news_split import NewsSplit
from backend.federation.strategies.news_union import NewsUnion
from backend.federation.systems.release_gate import GATE_ROUND
from backend.federation.systems.system import SystemSpec
from device_app.wire.protections import SecureSum
from device_app.wire.union import UnionMarks

NEWS_UNION = SystemSpec(
    name="news_union",
    task="mark_news",
    protection=UnionMarks(owners_minimum=3),
    strategy=NewsUnion(follow="efficient_fedrec"),
)

NEWS_UNION_NOISY = replace(NEWS_UNION, name="news_union_noisy", strategy=NewsUnion(follow="efficient_fedrec_noisy"))


EFFICIENT_FEDREC = SystemSpec(
    name="efficient_fedrec",
    task="split_gradient",
    protection=SecureSum(clip=1.0, weight_limit=32, fraction_bits=18, cohort_limit=250),
    strategy=NewsSplit(learning_rate=5e-5),
    architecture="nrms",
    model="ranker.nrms",
    graph="table_gradient",
    optimizer=Adam(learning_rate=5e-5),
    negatives=4,
    samples_limit=32,
    begins_with="news_union",
    gate=GATE_ROUND,
)

EFFICIENT_FEDREC_NOISY = replace(
    EFFICIENT_FEDREC,
    name="efficient_fedrec_noisy",
    protection=SecureSum(clip=0.1, sigma=4_900),
    begins_with="news_union_noisy",
)
