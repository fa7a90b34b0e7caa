"""NRMS (EMNLP 2019; ALGORITHMS 7), 248,977 parameters, trained as FedNewsRec is: another model and nothing else."""

from __future__ import annotations

from dataclasses import replace

from backend.federation.systems.fednewsrec import FEDNEWSREC

NRMS = replace(FEDNEWSREC, name="nrms", architecture="nrms", model="ranker.nrms")
