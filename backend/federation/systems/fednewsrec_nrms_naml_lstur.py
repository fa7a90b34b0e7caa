"""FedNewsRec (EMNLP Findings 2020, section 3.2): delta 0.005, lambda 0.015, eta 0.5, H = 4.

`fednewsrec` trains its user model of 256-d on frozen news vectors: 693,794 parameters. The paper's budget of
2 delta / lambda = 0.667 is for one coordinate; a whole upload costs 462,529 in pure epsilon, which is what a device
charges. Deviation: devices count alike, where the paper weighs them by n_u (see `strategies.fedavg`).

`fednewsrec_whole` trains the news model on the devices, too, as the paper does: text CNN of 400 filters, self-attention
and attention over the title's words, whose vectors stand still; 820,001 parameters on BERT's word pieces, 1,513,795
with the user model, and 1,009,197 in pure epsilon an upload. Deviations besides: news vectors have length 1, since
recall serves by them, and 256 numbers, or the paper's 400 by the setting `news_dimensions`; and the model begins where
its vectors are near those that are served.

`fednewsrec_whole_exact` is the same without noise, devices weighed by n_u inside a secure sum: no epsilon bounds what
the sum tells, and devices take part only if their readers allow exact sums.

NRMS, NAML and LSTUR are trained as it is: another model and nothing else. NRMS (EMNLP 2019): 248,977
parameters. NAML's user model (IJCAI 2019): 51,601. LSTUR-ini (ACL 2019): 393,984, and 256 that stay at home: the
reader's own vector, which in half of the rounds is left out whole (p = 0.5 in the paper, a sample at a time; here a
round is one step).

`naml_whole` and `lstur_whole` train their news models, too, as `fednewsrec_whole` does, `_exact` without noise: NAML's
views of title, abstract, category and subcategory, 1,452,804 parameters with the user model; LSTUR's title, category
and subcategory, 1,143,585. Ids of categories are those of the release's vocabulary.
"""

from __future__ import annotations

from dataclasses import replace

from backend.federation.optimizers import Sgd
from backend.federation.strategies.fedavg import FedAvg
from backend.federation.strategies.news_words import NewsWords
from backend.federation.systems.release_gate import GATE_ROUND
from backend.federation.systems.system import SystemSpec
from device_app.wire.protections import LOCAL_NOISE, SecureSum

FEDNEWSREC = SystemSpec(
    name="fednewsrec",
    architecture="fednewsrec",
    model="ranker.fednewsrec",
    task="full_gradient",
    protection=LOCAL_NOISE["ranker.fednewsrec"],
    strategy=FedAvg(),
    optimizer=Sgd(learning_rate=0.5),
    negatives=4,
    samples_limit=32,
    gate=GATE_ROUND,
)

FEDNEWSREC_WHOLE = replace(
    FEDNEWSREC, name="fednewsrec_whole", task="word_gradient", strategy=NewsWords(), graph="table_gradient"
)
FEDNEWSREC_WHOLE_EXACT = replace(
    FEDNEWSREC_WHOLE,
    name="fednewsrec_whole_exact",
    protection=SecureSum(clip=1.0, weight_limit=32, fraction_bits=18, cohort_limit=250),
)

NRMS = replace(FEDNEWSREC, name="nrms", architecture="nrms", model="ranker.nrms")
NAML = replace(FEDNEWSREC, name="naml", architecture="naml", model="ranker.naml")
LSTUR = replace(FEDNEWSREC, name="lstur", architecture="lstur_ini", model="ranker.lstur", dropout=0.5)

NAML_WHOLE = replace(
    NAML,
    name="naml_whole",
    task="word_gradient",
    strategy=NewsWords("naml_words", "naml"),
    graph="table_gradient",
)
NAML_WHOLE_EXACT = replace(NAML_WHOLE, name="naml_whole_exact", protection=FEDNEWSREC_WHOLE_EXACT.protection)

LSTUR_WHOLE = replace(
    LSTUR,
    name="lstur_whole",
    task="word_gradient",
    strategy=NewsWords("lstur_words", "lstur"),
    graph="table_gradient",
)
LSTUR_WHOLE_EXACT = replace(LSTUR_WHOLE, name="lstur_whole_exact", protection=FEDNEWSREC_WHOLE_EXACT.protection)
