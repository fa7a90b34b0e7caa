"""Efficient-FedRec (EMNLP 2021, section 3.3): user and news model trained separately.

K = 4, cohorts of 50.

NRMS is the user model, with 248,977 parameters on news vectors of 256 numbers (the paper's has 561,601 on 400, by the
setting `news_dimensions`), and the news model is on top of BERT. Outside the preset Adam trains both, at the paper's
rate of 5e-5.

`news_head` trains the news model's head, 98,560 numbers, by the paper's step: devices compute its gradient from public
pooled states and their own gradients of news vectors. The secure sum opens this and the user model's gradient in one
round that names no article.

`news_rows` is the paper's step, for training more of the news model: pooling and head, 172,673 numbers, and as many top
layers of BERT as the setting `news_layers` says (the paper's: 6 to 11). Devices send rows of gradients of news vectors.
The minimum of holders in the round before, `news_union` (the union of a cohort's articles, section 3.4), keeps most
single readers out of the rows.

Under `exact` there is no noise and devices are weighted by n_u: no epsilon bounds what the sums reveal, and devices
take part only if their readers allow exact sums. Under `secure` both have a share of noise in every number of the
gradients, and cost epsilon 1.62 at delta 1e-6 with 60 survivors. With so few, the noise is some 60 times as long as the
gradient (a length of 0.01 sqrt(d) for d a third of a million, where the mean is at most 0.1), so it shows what the
privacy costs in accuracy and hardly trains.

Fixed point: 18 fraction bits in a ring of 32; n C n_u 2^18 < 2^31 for 250 devices at C = 1 and n_u = 32.

Exact counts of holders: for every article of the pool the server learns how many of the survivors can train on it. That
is more than marks would reveal (owners_minimum 1: whether any device holds it), but it keeps articles of fewer than
three holders closed. Samples are drawn for the union, and the gradients that follow use the same draw and devices, so
each holder of a row contributes to it. A holder that drops out before gradients are summed does not, so a row of three
holders is a single device's if two of them drop out (`protocol.union.alone_chance`). Noise in the counts would bound
all of this by an epsilon, but with cohorts of 60 any useful noise would open almost nothing: with one step a device an
article needs 27 holders, and epsilon is still 29. The noise is a field of the protection for cohorts of thousands.

So `news_union_secure` also opens exact counts of holders and has no epsilon; it is named after the noisy round of
gradients that follows it.

The preset `efficient_fedrec` is the paper's. Devices mark all articles that they displayed, with random ring elements
as in eq. 8 (`news_union_marks`), so the sum reveals which articles were displayed to anybody, but not to how many;
every row is opened. A row that only one device holds reveals that device's gradients in clear. n_u counts every sample
of the last 50 feeds with clicks, nothing is clipped (the fixed point of 64 bits holds gradients up to a length of
1,000), and eqs. 5 and 7 step both models. A device's graph has no dropout. The paper's group is `--cohort 50`.
"""

from collections.abc import Mapping
from dataclasses import replace

from backend.federation.optimizers import Adam, PublishedAdam
from backend.federation.strategies.news_head import NewsHead
from backend.federation.strategies.news_split import NewsSplit, NewsUnion
from backend.federation.systems.composition import (
    EVERY_SAMPLE,
    EXACT,
    NOISY_SUM,
    SECURE,
    UNCLIPPED_SUM,
    WEIGHTED_SUM,
    Form,
    System,
    SystemSpec,
)
from backend.federation.systems.release_gate import GATE_ROUND
from protocol.union import UnionMarks

NEWS_UNION = SystemSpec(
    name="news_union",
    task="mark_news",
    protection=UnionMarks(owners_minimum=3),
    strategy=NewsUnion(follow="news_rows/exact/mean"),
    negatives=4,
    samples_limit=32,
)
NEWS_UNION_SECURE = replace(NEWS_UNION, name="news_union_secure", strategy=NewsUnion(follow="news_rows/secure/mean"))
NEWS_UNION_MARKS = replace(
    NEWS_UNION,
    name="news_union_marks",
    task="mark_displayed",
    protection=UnionMarks(owners_minimum=1, rows_limit=65_536),
    samples_limit=EVERY_SAMPLE,
    strategy=NewsUnion(follow="efficient_fedrec"),
)

NEWS_HEAD = System(
    SystemSpec(
        name="news_head",
        task="head_gradient",
        protection=WEIGHTED_SUM,
        strategy=NewsHead(learning_rate=5e-5),
        architecture="nrms",
        model="ranker.nrms",
        graph="table_gradient",
        optimizer=Adam(learning_rate=5e-5),
        negatives=4,
        samples_limit=32,
        gate=GATE_ROUND,
    ),
    forms={EXACT: Form(WEIGHTED_SUM), SECURE: Form(NOISY_SUM)},
)
NEWS_ROWS = System(
    replace(NEWS_HEAD.base, name="news_rows", task="split_gradient", strategy=NewsSplit(learning_rate=5e-5)),
    forms={
        EXACT: Form(WEIGHTED_SUM, changes={"begins_with": NEWS_UNION.name}),
        SECURE: Form(NOISY_SUM, changes={"begins_with": NEWS_UNION_SECURE.name}),
    },
)
EFFICIENT_FEDREC = replace(
    NEWS_ROWS.compose(EXACT),
    name="efficient_fedrec",
    begins_with=NEWS_UNION_MARKS.name,
    protection=UNCLIPPED_SUM,
    strategy=NewsSplit(learning_rate=5e-5, printed=True),
    optimizer=PublishedAdam(learning_rate=5e-5),
    samples_limit=EVERY_SAMPLE,
)


def with_news_layers(systems: Mapping[str, SystemSpec], layers: int) -> dict[str, SystemSpec]:
    """Return the row-wise systems, by name, with this many trained top layers of BERT, besides pooling and head."""
    return {
        name: replace(each, strategy=replace(each.strategy, layers=layers))
        for name, each in systems.items()
        if isinstance(each.strategy, NewsSplit)
    }
