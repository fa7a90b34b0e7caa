"""NAML's user model (IJCAI 2019; ALGORITHMS 7), 51,601 parameters, trained as FedNewsRec is."""

from __future__ import annotations

from dataclasses import replace

from backend.federation.systems.fednewsrec import FEDNEWSREC

NAML = replace(FEDNEWSREC, name="naml", architecture="naml", model="ranker.naml")
