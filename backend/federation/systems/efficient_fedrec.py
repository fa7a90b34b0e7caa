"""Efficient-FedRec (EMNLP 2021, section 3.3): a user model and a news model trained apart, K = 4, cohorts of 50.

Deviation: the paper steps the user model by FedAdam (eq. 5) and the news model by Adam (eq. 7); here both are stepped
by Adam, with the paper's rate of 5e-5. NRMS is the user model, 248,977 parameters on news vectors of 256 numbers (the
paper's 561,601 on 400, by the setting `news_dimensions`), and the news model stands above BERT.

`efficient_fedrec` trains the news model's head, 98,560 numbers, by the paper's step: devices make its gradient of
public pooled states and their own gradients of news vectors, and the secure sum opens that and the user model's, in one
round that names no news.

`efficient_fedrec_rows` is the paper's form, for whatever else of the news model is to train: pooling and head, 172,673
numbers, and as many top layers of BERT as the setting `news_layers` says (the paper's: 6 to 11). Devices send rows of
gradients of news vectors, and what keeps most single readers out of the rows is the minimum of owners in the round
before, `news_union`, the union of a cohort's news (section 3.4).

No noise, devices weighed by n_u: no epsilon bounds what the sums tell, and devices take part only if their readers
allow exact sums. `efficient_fedrec_noisy` and `efficient_fedrec_rows_noisy` have a share of noise in every number of
the gradients besides, and cost epsilon 1.62 at delta 1e-6 with 60 survivors; at so few the noise is some 60 times as
long as the gradient (a length of 0.01 sqrt(d) for d a third of a million, where the mean is at most 0.1), so it shows
what the price buys rather than trains.

Fixed point: 18 fraction bits in a ring of 32; n C n_u 2^18 < 2^31 for 250 devices at C = 1 and n_u = 32.

Owner counts in the open sum: for every news of the pool the server learns how many of the survivors can train on it.
That is more than marks would tell (owners_minimum 1: somebody holds it, or nobody), and it is what lets news of fewer
than three owners stay closed. Samples are drawn for the union, and the gradients that follow are of that draw, by its
devices alone, so each owner of a row gives something in it; one that is gone when gradients are summed doesn't, and a
row of three is then one device's alone if two of them are (`wire.union.alone_chance`). Noise in the counts
bounds all of it by an epsilon, but at cohorts of 60 any noise worth the name would open almost nothing: with one step a
device a news needs 27 owners, and the price is still 29. It is a field of the protection for cohorts of thousands.

So `news_union_noisy` opens exact owner counts, too, and has no epsilon: it is named after the noisy round of gradients
that follows it.

`efficient_fedrec_rows_as_printed` follows a union by marks as eq. 8 has it, random ring elements in the place of ones
(`news_union_as_printed`): the sum tells which news somebody can train on and not how many can, and every row is opened,
those of one device too, which are that device's gradients in clear.
"""

from __future__ import annotations

from dataclasses import replace

from backend.federation.optimizers import Adam
from backend.federation.strategies.news_head import NewsHead
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
    strategy=NewsUnion(follow="efficient_fedrec_rows"),
    negatives=4,
    samples_limit=32,
)

NEWS_UNION_NOISY = replace(
    NEWS_UNION, name="news_union_noisy", strategy=NewsUnion(follow="efficient_fedrec_rows_noisy")
)


NEWS_UNION_AS_PRINTED = replace(
    NEWS_UNION,
    name="news_union_as_printed",
    protection=UnionMarks(owners_minimum=1),
    strategy=NewsUnion(follow="efficient_fedrec_rows_as_printed"),
)


EFFICIENT_FEDREC = SystemSpec(
    name="efficient_fedrec",
    task="head_gradient",
    protection=SecureSum(clip=1.0, weight_limit=32, fraction_bits=18, cohort_limit=250),
    strategy=NewsHead(learning_rate=5e-5),
    architecture="nrms",
    model="ranker.nrms",
    graph="table_gradient",
    optimizer=Adam(learning_rate=5e-5),
    negatives=4,
    samples_limit=32,
    gate=GATE_ROUND,
)

NOISY = SecureSum(clip=0.1, sigma=4_900)

EFFICIENT_FEDREC_NOISY = replace(EFFICIENT_FEDREC, name="efficient_fedrec_noisy", protection=NOISY)

EFFICIENT_FEDREC_ROWS = replace(
    EFFICIENT_FEDREC,
    name="efficient_fedrec_rows",
    task="split_gradient",
    strategy=NewsSplit(learning_rate=5e-5),
    begins_with="news_union",
)

EFFICIENT_FEDREC_ROWS_NOISY = replace(
    EFFICIENT_FEDREC_ROWS, name="efficient_fedrec_rows_noisy", protection=NOISY, begins_with="news_union_noisy"
)


EFFICIENT_FEDREC_ROWS_AS_PRINTED = replace(
    EFFICIENT_FEDREC_ROWS, name="efficient_fedrec_rows_as_printed", begins_with="news_union_as_printed"
)

IN_ROWS = (EFFICIENT_FEDREC_ROWS, EFFICIENT_FEDREC_ROWS_NOISY, EFFICIENT_FEDREC_ROWS_AS_PRINTED)


def with_news_layers(layers: int) -> dict[str, SystemSpec]:
    """The systems in rows where so many top layers of BERT train besides pooling and head, by name."""
    rows = NewsSplit(learning_rate=5e-5, layers=layers)
    return {each.name: replace(each, strategy=rows) for each in IN_ROWS}
