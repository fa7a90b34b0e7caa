"""Models by name. Components take numbers, presets take nothing."""

from __future__ import annotations

from models.builders.dssm import dssm_item, dssm_strict, dssm_tower, dssm_user, fl_dssm, fl_mv_dssm, semi_fl_mv_dssm
from models.builders.rankers import cosine_ranker, nrms, nrms_256
from models.builders.recall import (
    basis_recall,
    dense_recall,
    ebnr,
    ebnr_residual,
    huita,
    mean_recall,
    octopus,
    sasrec,
    sasrec_residual,
    sequence_recall,
    uni_fedrec_recall,
    youtubenet,
    youtubenet_residual,
)

__all__ = [
    "basis_recall",
    "cosine_ranker",
    "dense_recall",
    "dssm_item",
    "dssm_strict",
    "dssm_tower",
    "dssm_user",
    "ebnr",
    "ebnr_residual",
    "fl_dssm",
    "fl_mv_dssm",
    "huita",
    "mean_recall",
    "nrms",
    "nrms_256",
    "octopus",
    "sasrec",
    "sasrec_residual",
    "semi_fl_mv_dssm",
    "sequence_recall",
    "uni_fedrec_recall",
    "youtubenet",
    "youtubenet_residual",
]
