"""FedNewsRec (EMNLP Findings 2020, section 3.2): delta 0.005, lambda 0.015, eta 0.5, H = 4.

`fednewsrec_user` trains its user model of 256 dimensions on frozen news vectors: 693,794 parameters. The paper's budget
of 2 delta / lambda = 0.667 is for one coordinate; a whole upload costs 462,529 in pure epsilon, which is what a device
charges. Deviation outside the preset: devices have equal weights (see `strategies.fedavg`).

`fednewsrec_whole` also trains the news model on the devices, as the paper does: a text CNN with 400 filters,
self-attention and attention over the title's words, whose vectors are frozen. It has 820,001 parameters on BERT's word
pieces, 1,513,795 with the user model; an upload costs 1,009,197 in pure epsilon. Further deviations: news vectors have
length 1, since recall uses them, and 256 numbers, or the paper's 400 by the setting `news_dimensions`; and the model
starts where its vectors are close to the served ones.

The preset `fednewsrec` is the paper's configuration: the whole model under local noise, r = 2 %, devices weighted by
n_u (eq. 6). Each device sends n_u in clear, which no epsilon bounds, so devices take part only if their readers allow
exact sums. The loss is a mean over samples, as in the authors' code: the sum of eq. 2 would weight by n_u twice.

Under `exact` there is no noise and devices are weighted by n_u inside a secure sum: no epsilon bounds what the sum
reveals, and devices take part only if their readers allow exact sums.
"""

from dataclasses import replace

from backend.federation.optimizers import Sgd
from backend.federation.strategies.fedavg import FedAvg
from backend.federation.strategies.news_words import NewsWords
from backend.federation.systems.composition import EVERY_SAMPLE, System, SystemSpec, ranker_forms
from backend.federation.systems.release_gate import GATE_ROUND
from protocol.protections import LOCAL_NOISE

MODEL = "ranker.fednewsrec"
FEDNEWSREC_USER = System(
    SystemSpec(
        name="fednewsrec_user",
        architecture="fednewsrec",
        model=MODEL,
        task="full_gradient",
        protection=LOCAL_NOISE[MODEL],
        strategy=FedAvg(),
        optimizer=Sgd(learning_rate=0.5),
        negatives=4,
        samples_limit=32,
        gate=GATE_ROUND,
    ),
    forms=ranker_forms(MODEL),
)
FEDNEWSREC_WHOLE = System(
    replace(
        FEDNEWSREC_USER.base,
        name="fednewsrec_whole",
        task="word_gradient",
        strategy=NewsWords(),
        graph="table_gradient",
    ),
    forms=ranker_forms(MODEL),
)
FEDNEWSREC = replace(
    FEDNEWSREC_WHOLE.compose("local", "mean"),
    name="fednewsrec",
    protection=LOCAL_NOISE[MODEL].model_copy(update={"weight_limit": EVERY_SAMPLE}),
    samples_limit=EVERY_SAMPLE,
    participation=0.02,
)
