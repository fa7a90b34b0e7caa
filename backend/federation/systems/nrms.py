"""NRMS (EMNLP 2019), trained like FedNewsRec's user model; only the model differs.

It has 248,977 parameters.
"""

from dataclasses import replace

from backend.federation.systems.composition import System, ranker_forms
from backend.federation.systems.fednewsrec import FEDNEWSREC_USER

MODEL = "ranker.nrms"
NRMS = System(
    replace(FEDNEWSREC_USER.base, name="nrms", architecture="nrms", model=MODEL),
    forms=ranker_forms(MODEL),
)
