"""Registry of the rankers that a release can carry, by name. To add a ranker, add an entry.

Settings, releases and the exporter read this registry. This module never imports torch: it names classes and presets as
entry points do, `module:name`, and imports them only when it builds a model. A server that has all its graphs therefore
never loads torch.
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
    """A ranker of a release.

    Args:
        architecture: name of its graphs in the release (`exporters.architectures`).
        model: `module:class` of the torch module.
        preset: `module:function` that takes D, the size of a news vector, and returns a ranker at its start.
        recurrent: training is unrolled over the clicks, so its graphs are larger.
        always: small enough to be in every release; the operator chooses among the others.
        views: the reader's views with a user tower each in the release; empty for rankers with one tower or none.
        groups: number of groups of readers, each with its own model; 0 without groups.
        news_over_words: architecture of the news model over words that can train together with this ranker and is
            prepared with it; None if there is none.
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
        """Return the class of its models. Imports torch."""
        return cast("type[nn.Module]", pkgutil.resolve_name(self.model))

    def build(self, dim: int) -> nn.Module:
        """Return a ranker at its start, for news vectors of this size. Imports torch."""
        return cast("Callable[[int], nn.Module]", pkgutil.resolve_name(self.preset))(dim)


RANKERS: dict[str, RankerSpec] = {
    DEFAULT: RankerSpec(
        "feature_ranker",
        "models.user.candidate_attention:FeatureRanker",
        "models.builders.rankers:feature_ranker",
        always=True,
    ),
    "ranker.cosine": RankerSpec(
        "cosine",
        "models.user.candidate_attention:CosineRanker",
        "models.builders.rankers:cosine_ranker",
        always=True,
    ),
    "ranker.nrms": RankerSpec("nrms", "models.user.papers:NrmsUser", "models.builders.rankers:nrms_user"),
    "ranker.naml": RankerSpec(
        "naml",
        "models.user.papers:NamlUser",
        "models.builders.user:naml_user",
        news_over_words="naml_words",
    ),
    "ranker.lstur": RankerSpec(
        "lstur_ini",
        "models.user.papers:LsturIniUser",
        "models.builders.user:lstur_ini",
        recurrent=True,
        news_over_words="lstur_words",
    ),
    "ranker.fednewsrec": RankerSpec(
        "fednewsrec",
        "models.user.papers:FedNewsRecUser",
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
    # Groups: with cohorts of 60 about 15 readers a group and round; 8 as published on the paper's models.
    "ranker.finding": RankerSpec(
        "feature_ranker",
        "models.user.candidate_attention:FeatureRanker",
        "models.builders.rankers:feature_ranker",
        groups=4,
    ),
    "ranker.finding_nrms": RankerSpec(
        "nrms", "models.user.papers:NrmsUser", "models.builders.rankers:nrms_user", groups=8
    ),
    "ranker.finding_naml": RankerSpec(
        "naml", "models.user.papers:NamlUser", "models.builders.user:naml_user", groups=8
    ),
}


def choices() -> tuple[str, ...]:
    """Return the rankers an operator can choose: all except the small ones that every release carries."""
    return tuple(name.removeprefix("ranker.") for name, spec in RANKERS.items() if not spec.always)


def release_name(choice: str) -> str:
    """Return the release's name of the ranker that an operator chooses by this name.

    Raises ValueError that lists the choices for an unknown name.
    """
    if choice not in choices():
        raise ValueError(f"no ranker is called {choice!r}; choose one of {', '.join(choices())}")
    return f"ranker.{choice}"


def offered(choices: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the rankers in a release, without repeats: the small ones, then the operator's choice."""
    always = (name for name, spec in RANKERS.items() if spec.always)
    return tuple(dict.fromkeys((*always, *map(release_name, choices))))
