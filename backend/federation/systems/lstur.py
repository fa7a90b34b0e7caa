"""LSTUR-ini (ACL 2019), trained like FedNewsRec; only the model differs.

`lstur` trains its user model: 393,984 parameters, and 256 that stay on the device, the reader's own vector, which is
masked in half of the rounds (p = 0.5; the paper masks it per sample, but here a round is one step). `lstur_whole`
trains the news model too, like `fednewsrec_whole`: title, category and subcategory, 1,143,585 parameters with the user
model. Category ids are those of the release's vocabulary.
"""

from dataclasses import replace

from backend.federation.strategies.news_words import NewsWords
from backend.federation.systems.composition import System, ranker_forms
from backend.federation.systems.fednewsrec import FEDNEWSREC_USER, FEDNEWSREC_WHOLE

MODEL = "ranker.lstur"
LSTUR = System(
    replace(FEDNEWSREC_USER.base, name="lstur", architecture="lstur_ini", model=MODEL, dropout=0.5),
    forms=ranker_forms(MODEL),
)
LSTUR_WHOLE = System(
    replace(
        FEDNEWSREC_WHOLE.base,
        name="lstur_whole",
        architecture="lstur_ini",
        model=MODEL,
        strategy=NewsWords("lstur_words", "lstur"),
        dropout=0.5,
    ),
    forms=ranker_forms(MODEL),
)
