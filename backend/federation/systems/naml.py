"""NAML (IJCAI 2019), trained like FedNewsRec; only the model differs.

`naml` trains its user model, 51,601 parameters. `naml_whole` trains the news model too, like `fednewsrec_whole`: its
views of title, abstract, category and subcategory, 1,452,804 parameters with the user model. Category ids are those of
the release's vocabulary.
"""

from dataclasses import replace

from backend.federation.strategies.news_words import NewsWords
from backend.federation.systems.composition import System, ranker_forms
from backend.federation.systems.fednewsrec import FEDNEWSREC_USER, FEDNEWSREC_WHOLE

MODEL = "ranker.naml"
NAML = System(
    replace(FEDNEWSREC_USER.base, name="naml", architecture="naml", model=MODEL),
    forms=ranker_forms(MODEL),
)
NAML_WHOLE = System(
    replace(
        FEDNEWSREC_WHOLE.base,
        name="naml_whole",
        architecture="naml",
        model=MODEL,
        strategy=NewsWords("naml_words", "naml"),
    ),
    forms=ranker_forms(MODEL),
)
