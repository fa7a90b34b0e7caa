"""The rankers that a release may carry, by their names in it, at their starts. Brings torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from torch import nn

from backend.settings import RankerName
from models.builders.dssm import fl_dssm_ranker, multi_view_ranker
from models.builders.rankers import cosine_ranker, feature_ranker, nrms_256
from models.builders.user import fednewsrec_user_256, lstur_user, naml_user

DEFAULT = "ranker.features"
ALWAYS = (DEFAULT, "ranker.cosine")
"""Small, so every release carries them; the papers' models are the operator's choice (BackendSettings.rankers)."""

RANKERS: Mapping[str, Callable[[], nn.Module]] = {
    DEFAULT: feature_ranker,
    "ranker.cosine": cosine_ranker,
    "ranker.nrms": nrms_256,
    "ranker.naml": naml_user,
    "ranker.lstur": lambda: lstur_user("ini"),
    "ranker.fednewsrec": fednewsrec_user_256,
    "ranker.multi_view": multi_view_ranker,
    "ranker.fl_dssm": fl_dssm_ranker,
    "ranker.finding": feature_ranker,
}


def chosen(rankers: Sequence[RankerName]) -> dict[str, nn.Module]:
    """The rankers of a release for which the operator chose these, each at its start."""
    names = dict.fromkeys((*ALWAYS, *(f"ranker.{name}" for name in rankers)))
    return {name: RANKERS[name]() for name in names}
