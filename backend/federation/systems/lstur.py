"""LSTUR-ini (ACL 2019; ALGORITHMS 7), trained as FedNewsRec is: 393,984 parameters, and 256 that stay at home."""

from __future__ import annotations

from dataclasses import replace

from backend.federation.systems.fednewsrec import FEDNEWSREC

LSTUR = replace(FEDNEWSREC, name="lstur", architecture="lstur_ini", model="ranker.lstur")
