"""Models by name. Components take numbers, presets take nothing."""

from __future__ import annotations

from models.builders.rankers import cosine_ranker, nrms, nrms_256
from models.builders.recall import basis_recall, uni_fedrec_recall

__all__ = ["basis_recall", "cosine_ranker", "nrms", "nrms_256", "uni_fedrec_recall"]
