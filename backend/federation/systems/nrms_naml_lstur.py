"""Three more rankers, trained as FedNewsRec is: another model and nothing else (ALGORITHMS 7).

NRMS (EMNLP 2019): 248,977 parameters. NAML's user model (IJCAI 2019): 51,601. LSTUR-ini (ACL 2019): 393,984, and 256
that stay at home.
"""

from __future__ import annotations

from dataclasses import replace

from backend.federation.systems.fednewsrec import FEDNEWSREC

NRMS = replace(FEDNEWSREC, name="nrms", architecture="nrms", model="ranker.nrms")
NAML = replace(FEDNEWSREC, name="naml", architecture="naml", model="ranker.naml")
LSTUR = replace(FEDNEWSREC, name="lstur", architecture="lstur_ini", model="ranker.lstur")
