"""What was measured on this data before the first line of code: AUC and nDCG@10 on dev, AUC on its natural sample.

Standard error of an AUC: .011 on dev, .009 on the natural sample. None is comparable with leaderboards of the
full MIND.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PublishedAuc:
    """What was measured before; None where it was not."""

    dev_auc: float
    dev_ndcg10: float | None = None
    natural_auc: float | None = None


PUBLISHED: dict[str, PublishedAuc] = {
    "random": PublishedAuc(0.502, 0.362, 0.490),
    "click rate in train impressions": PublishedAuc(0.518, 0.377, 0.531),
    "history-category count": PublishedAuc(0.533, 0.384, 0.604),
    "mean cosine": PublishedAuc(0.618, 0.450, 0.640),
    "softmax(8) cosine": PublishedAuc(0.608, 0.444, 0.645),
    "live popularity + softmax(8) cosine": PublishedAuc(0.689, 0.505, 0.704),
    "NRMS, random start, central": PublishedAuc(0.575, None, 0.606),
    "NRMS, random start, federated": PublishedAuc(0.579, None, 0.603),
    "NRMS, cosine start, federated": PublishedAuc(0.600, 0.438, 0.628),
    "FedNewsRec, random start, central": PublishedAuc(0.575, 0.419, 0.599),
    "candidate attention 384, central": PublishedAuc(0.618, 0.451, 0.651),
    "candidate attention 384, private": PublishedAuc(0.613, 0.446, 0.648),
}
"""By the name of the row that is closest to it."""
