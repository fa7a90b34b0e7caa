"""Every architecture that exports, by name.

These are the rankers of releases (`models.rankers`) and those listed here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from torch import nn

from exporters.exported import Kind
from exporters.graphs import (
    basis_graphs,
    octopus_graphs,
    one_vector_graphs,
    pooled_head_graphs,
    ranker_graphs,
    reported_basis_graphs,
    word_model_graphs,
)
from exporters.signature import GraphSpec
from models.builders import news, rankers, recall, user
from models.news.plm import PooledHead
from models.news.words import WordVectorLstur, WordVectorNaml, WordVectorNews
from models.one_vector import CosineResidual
from models.rankers import RANKERS
from models.recall.baselines import Ebnr, Huita, Octopus, SasRec, YoutubeNet
from models.recall.basis import BasisRecall, ReportedBasis
from models.shapes import NEWS_DIM
from models.user.candidate_attention import CandidateAttention
from models.user.papers import FedNewsRecUser, LsturConUser, NrmsUser

STATE_DIM = 384  # S of all-MiniLM-L6-v2


@dataclass(frozen=True)
class Architecture:
    """A preset and its graphs.

    `recurrent`: training is unrolled over the clicks, so its graphs are larger. `branch`: the class with which a
    CosineResidual corrects the mean click.
    """

    kind: Kind
    model: type[nn.Module]
    build: Callable[[], nn.Module]
    graphs: Callable[[nn.Module], list[GraphSpec]]
    recurrent: bool = False
    branch: type[nn.Module] | None = None

    def fits(self, model: nn.Module) -> bool:
        """Return whether `model` has this architecture's classes."""
        return type(model) is self.model and (self.branch is None or type(model.branch) is self.branch)


OTHER_ARCHITECTURES: dict[str, Architecture] = {
    "candidate_attention": Architecture("ranker", CandidateAttention, rankers.candidate_attention, ranker_graphs),
    "nrms_400": Architecture("ranker", NrmsUser, user.nrms_400, ranker_graphs),
    "lstur_con": Architecture("ranker", LsturConUser, lambda: user.lstur_user("con"), ranker_graphs, recurrent=True),
    # A release's graphs of this name have the size below; tables of graphs show the paper's size.
    "fednewsrec": Architecture("ranker", FedNewsRecUser, user.fednewsrec_user_400, ranker_graphs, recurrent=True),
    "fednewsrec_256": Architecture("ranker", FedNewsRecUser, user.fednewsrec_user, ranker_graphs, recurrent=True),
    "basis": Architecture("recall", BasisRecall, recall.uni_fedrec_recall, basis_graphs),
    "reported_basis": Architecture("recall", ReportedBasis, recall.reported_basis, reported_basis_graphs),
    "youtubenet": Architecture("recall", YoutubeNet, recall.youtubenet, one_vector_graphs),
    "huita": Architecture("recall", Huita, recall.huita, one_vector_graphs),
    "ebnr": Architecture("recall", Ebnr, recall.ebnr, one_vector_graphs, recurrent=True),
    "sasrec": Architecture("recall", SasRec, recall.sasrec, one_vector_graphs),
    "octopus": Architecture("recall", Octopus, recall.octopus, octopus_graphs),
    "youtubenet_residual": Architecture(
        "recall", CosineResidual, recall.youtubenet_residual, one_vector_graphs, branch=YoutubeNet
    ),
    "ebnr_residual": Architecture(
        "recall", CosineResidual, recall.ebnr_residual, one_vector_graphs, recurrent=True, branch=Ebnr
    ),
    "sasrec_residual": Architecture("recall", CosineResidual, recall.sasrec_residual, one_vector_graphs, branch=SasRec),
    "fednewsrec_words": Architecture(
        "news", WordVectorNews, lambda: news.fednewsrec_words(STATE_DIM), word_model_graphs
    ),
    "naml_words": Architecture("news", WordVectorNaml, lambda: news.naml_words(STATE_DIM), word_model_graphs),
    "lstur_words": Architecture("news", WordVectorLstur, lambda: news.lstur_words(STATE_DIM), word_model_graphs),
    "pooled_head": Architecture("news", PooledHead, lambda: PooledHead.sized(STATE_DIM, NEWS_DIM), pooled_head_graphs),
}


def architectures() -> dict[str, Architecture]:
    """Return every architecture by name, the rankers of releases first."""
    rankers_of_releases = {
        each.architecture: Architecture(
            "ranker", each.model_class(), partial(each.build, NEWS_DIM), ranker_graphs, recurrent=each.recurrent
        )
        for each in RANKERS.values()
    }
    return rankers_of_releases | OTHER_ARCHITECTURES


def name_of(model: nn.Module, kind: Kind) -> str:
    """Return the first architecture of this kind that fits the model's class.

    Raises ValueError if there is none.
    """
    for name, each in architectures().items():
        if each.kind == kind and each.fits(model):
            return name
    raise ValueError(f"no {kind} architecture has models of class {type(model).__name__}")
