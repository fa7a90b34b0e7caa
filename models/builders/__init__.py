"""Builders of the papers' models. Component builders take sizes; presets take nothing or D."""

from __future__ import annotations

from models.builders.dssm import dssm_item, dssm_strict, dssm_tower, dssm_user, fl_dssm, fl_mv_dssm, semi_fl_mv_dssm
from models.builders.rankers import candidate_attention, cosine_ranker, feature_ranker, nrms, nrms_user
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
from models.builders.user import (
    fednewsrec,
    fednewsrec_user,
    fednewsrec_user_400,
    lstur,
    lstur_user,
    naml,
    naml_user,
    nrms_400,
)

__all__ = [
    "basis_recall",
    "candidate_attention",
    "cosine_ranker",
    "dense_recall",
    "dssm_item",
    "dssm_strict",
    "dssm_tower",
    "dssm_user",
    "ebnr",
    "ebnr_residual",
    "feature_ranker",
    "fednewsrec",
    "fednewsrec_user",
    "fednewsrec_user_400",
    "fl_dssm",
    "fl_mv_dssm",
    "huita",
    "lstur",
    "lstur_user",
    "mean_recall",
    "naml",
    "naml_user",
    "nrms",
    "nrms_400",
    "nrms_user",
    "octopus",
    "sasrec",
    "sasrec_residual",
    "semi_fl_mv_dssm",
    "sequence_recall",
    "uni_fedrec_recall",
    "youtubenet",
    "youtubenet_residual",
]
