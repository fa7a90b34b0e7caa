"""The rankers that a release can carry, by their name there. A new one is an entry here; nothing here imports torch.

Settings, releases and the exporter read this one registry. A class and a preset are therefore named as entry points
are, `module:name`, and found when a model is made: a server with all its graphs never brings torch.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from torch import nn

DEFAULT: Final = "ranker.features"


@dataclass(frozen=True)
class RankerSpec:
    """A ranker of a release, at its start.

    Args:
        architecture: what the release calls its graphs (`exporters.architectures`).
        model: `module:class` of the module in torch.
        preset: `module:function` that takes D, the size of a news vector, and returns one at its start.
        recurrent: training is unrolled over the clicks, so its graphs are larger.
        always: small, so that every release carries it; the others are the operator's choice.
        views: of a reader that have a user tower each in the release; none where one tower, or none, is in it.
        groups: how many groups of readers have a model of it each; 0: none.
        news_over_words: the architecture of the news model over words that it is trained together with, too, and that
            is prepared with it; None where there is none.
    """

    architecture: str
    model: str
    preset: str
    recurrent: bool = False
    always: bool = False
    views: tuple[str, ...] = ()
    groups: int = 0
    news_over_words: str | None = None

    def model_class(self) -> type[nn.Module]:
        """The class of its models. Brings torch."""
        return cast("type[nn.Module]", pkgutil.resolve_name(self.model))

    def build(self, dim: int) -> nn.Module:
        """One at its start, for news vectors of that size. Brings torch."""
        return cast("Callable[[int], nn.Module]", pkgutil.resolve_name(self.preset))(dim)


RANKERS: dict[str, RankerSpec] = {
    DEFAULT: RankerSpec(
        "feature_ranker",
        "models.user.feature_ranker:FeatureRanker",
        "models.builders.rankers:feature_ranker",
        always=True,
    ),
    "ranker.cosine": RankerSpec(
        "cosine",
        "models.user.candidate_attention:CosineRanker",
        "models.builders.rankers:cosine_ranker",
        always=True,
    ),
    "ranker.nrms": RankerSpec("nrms", "models.user.nrms_naml_lstur:NrmsUser", "models.builders.rankers:nrms_user"),
    "ranker.naml": RankerSpec(
        "naml",
        "models.user.nrms_naml_lstur:NamlUser",
        "models.builders.user:naml_user",
        news_over_words="naml_words",
    ),
    "ranker.lstur": RankerSpec(
        "lstur_ini",
        "models.user.nrms_naml_lstur:LsturIniUser",
        "models.builders.user:lstur_ini",
        recurrent=True,
        news_over_words="lstur_words",
    ),
    "ranker.fednewsrec": RankerSpec(
        "fednewsrec",
        "models.user.fednewsrec:FedNewsRecUser",
        "models.builders.user:fednewsrec_user",
        recurrent=True,
        news_over_words="fednewsrec_words",
    ),
    "ranker.multi_view": RankerSpec(
        "multi_view", "models.dssm:SemiViewRanker", "models.builders.dssm:multi_view_ranker"
    ),
    "ranker.fl_dssm": RankerSpec("fl_dssm_news", "models.dssm:ViewRanker", "models.builders.dssm:fl_dssm_ranker"),
    "ranker.fl_mv_dssm": RankerSpec(
        "fl_mv_dssm_news",
        "models.dssm:SharedViewsRanker",
        "models.builders.dssm:fl_mv_dssm_ranker",
        views=("reading", "searches"),
    ),
    # Groups: with cohorts of 60 about 15 readers a group and round.
    "ranker.finding": RankerSpec(
        "feature_ranker",
        "models.user.feature_ranker:FeatureRanker",
        "models.builders.rankers:feature_ranker",
        groups=4,
    ),
    "ranker.finding_nrms": RankerSpec(
        "nrms", "models.user.nrms_naml_lstur:NrmsUser", "models.builders.rankers:nrms_user", groups=4
    ),
    "ranker.finding_naml": RankerSpec(
        "naml", "models.user.nrms_naml_lstur:NamlUser", "models.builders.user:naml_user", groups=4
    ),
}


def choices() -> tuple[str, ...]:
    """What an operator can choose: all but the small ones, which every release carries."""
    return tuple(name.removeprefix("ranker.") for name, spec in RANKERS.items() if not spec.always)


def release_name(choice: str) -> str:
    """What a release calls the ranker that an operator chooses by this name.

    Raises ValueError, naming those there are, for a name that is none of them.
    """
    if choice not in choices():
        raise ValueError(f"no ranker is called {choice!r}; there are {', '.join(choices())}")
    return f"ranker.{choice}"


def offered(choices: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the rankers in a release whose operator chose these, without repeats: the small ones, and then these."""
    always = (name for name, spec in RANKERS.items() if spec.always)
    return tuple(dict.fromkeys((*always, *map(release_name, choices))))
