"""Every architecture that exports, by name.

These are the rankers of releases (`models.rankers`) and those listed here. Word tables have VOCABULARY rows here; a
release's vocabulary only changes that axis of the inputs `p.*.weight`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace

import torch
from torch import nn

from exporters.exported import Kind
from exporters.graphs import (
    basis_graphs,
    end_to_end_graphs,
    multi_view_graphs,
    news_graphs,
    octopus_graphs,
    one_vector_graphs,
    plm_head_graphs,
    pooled_head_graphs,
    ranker_graphs,
    reported_basis_graphs,
    tower_graphs,
    user_tower_graphs,
    view_graphs,
    word_model_graphs,
)
from exporters.signature import GraphSpec
from models.builders import dssm, news, rankers, recall, user
from models.dssm import Dssm, MultiViewDssm, SemiDssm, SemiMultiViewDssm, Tower
from models.layers.words import WordEmbedding
from models.news.plm import PlmNewsEncoder, PooledHead
from models.news.words import NamlNews, TitleEncoder, TopicNews, WordVectorLstur, WordVectorNaml, WordVectorNews
from models.one_vector import CosineResidual
from models.rankers import RANKERS
from models.recall.baselines import Ebnr, Huita, Octopus, SasRec, YoutubeNet
from models.recall.basis import BasisRecall, ReportedBasis
from models.scoring import EndToEnd
from models.shapes import NEWS_DIM
from models.user.candidate_attention import CandidateAttention
from models.user.papers import FedNewsRecUser, LsturConUser, NrmsUser

VOCABULARY = 1_000
WORD_SPREAD = 0.1
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


class GivenStates(nn.Module):
    """Replaces the language model in an encoder that starts from token states."""

    config = SimpleNamespace(hidden_size=STATE_DIM)


def plm_head(dim: int) -> PlmNewsEncoder:
    """Return the pooling and head of a PLM encoder.

    The module exporters/news_encoder.py exports the language model.
    """
    return PlmNewsEncoder(GivenStates(), dim)


def nrms_title() -> TitleEncoder:
    return news.nrms_title_encoder(
        vocabulary=VOCABULARY, word_dim=news.WORD_DIM, heads=16, head_dim=16, attention_dim=200
    )


def naml_news() -> NamlNews:
    return news.naml(
        vocabulary=VOCABULARY,
        categories=news.CATEGORIES,
        subcategories=news.SUBCATEGORIES,
        word_dim=news.WORD_DIM,
        element_dim=100,
        filters=NEWS_DIM,
        attention_dim=news.POOLING_DIM,
    )


def lstur_news() -> TitleEncoder:
    return news.cnn_title(
        vocabulary=VOCABULARY, word_dim=news.WORD_DIM, filters=NEWS_DIM, attention_dim=news.POOLING_DIM
    )


def lstur_topic_news() -> TopicNews:
    return news.topic_news(
        vocabulary=VOCABULARY,
        categories=news.CATEGORIES,
        subcategories=news.SUBCATEGORIES,
        word_dim=news.WORD_DIM,
        topic_dim=32,
        filters=192,
        attention_dim=news.POOLING_DIM,
    )


def fednewsrec_news() -> TitleEncoder:
    return news.fednewsrec_title(
        vocabulary=VOCABULARY,
        word_dim=news.WORD_DIM,
        filters=400,
        heads=20,
        head_dim=20,
        attention_dim=news.POOLING_DIM,
        train_words=False,
        rectified=False,
    )


def end_to_end(news_encoder: nn.Module, user_model: nn.Module) -> EndToEnd:
    """Return news encoder and user model together, with small word vectors.

    With word vectors from N(0, 1), the start without GloVe, losses and gradients exceed 1, and an absolute tolerance
    says nothing about float32 (docs/decisions/030).
    """
    with torch.no_grad():
        for each in news_encoder.modules():
            if isinstance(each, WordEmbedding):
                each.weight.mul_(WORD_SPREAD)
    return EndToEnd(news_encoder, user_model)


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
    "nrms_title": Architecture("news", TitleEncoder, nrms_title, news_graphs),
    "naml_news": Architecture("news", NamlNews, naml_news, news_graphs),
    "lstur_news": Architecture("news", TitleEncoder, lstur_news, news_graphs),
    "lstur_topic_news": Architecture("news", TopicNews, lstur_topic_news, news_graphs),
    "fednewsrec_news": Architecture("news", TitleEncoder, fednewsrec_news, news_graphs),
    "fednewsrec_words": Architecture(
        "news", WordVectorNews, lambda: news.fednewsrec_words(STATE_DIM), word_model_graphs
    ),
    "naml_words": Architecture("news", WordVectorNaml, lambda: news.naml_words(STATE_DIM), word_model_graphs),
    "lstur_words": Architecture("news", WordVectorLstur, lambda: news.lstur_words(STATE_DIM), word_model_graphs),
    "plm_head": Architecture("news", PlmNewsEncoder, lambda: plm_head(NEWS_DIM), plm_head_graphs),
    "nrms_end_to_end": Architecture(
        "end to end", EndToEnd, lambda: end_to_end(nrms_title(), rankers.nrms_user()), end_to_end_graphs
    ),
    "naml_end_to_end": Architecture(
        "end to end", EndToEnd, lambda: end_to_end(naml_news(), user.naml_user()), end_to_end_graphs
    ),
    "lstur_end_to_end": Architecture(
        "end to end",
        EndToEnd,
        lambda: end_to_end(lstur_news(), user.lstur_user("ini")),
        end_to_end_graphs,
        recurrent=True,
    ),
    "lstur_con_end_to_end": Architecture(
        "end to end",
        EndToEnd,
        lambda: end_to_end(lstur_topic_news(), user.lstur_user("con")),
        end_to_end_graphs,
        recurrent=True,
    ),
    "fednewsrec_end_to_end": Architecture(
        "end to end",
        EndToEnd,
        lambda: end_to_end(fednewsrec_news(), user.fednewsrec_user_400()),
        end_to_end_graphs,
        recurrent=True,
    ),
    "dssm_item": Architecture("towers", Tower, dssm.dssm_item, tower_graphs),
    "dssm_user_1": Architecture("towers", Tower, lambda: dssm.dssm_user(23), user_tower_graphs),
    "dssm_user_2": Architecture("towers", Tower, lambda: dssm.dssm_user(30), user_tower_graphs),
    "dssm_view_1": Architecture("towers", Dssm, lambda: dssm.fl_dssm(23), view_graphs),
    "dssm_view_2": Architecture("towers", Dssm, lambda: dssm.fl_dssm(30), view_graphs),
    "dssm_strict_view_1": Architecture("towers", Dssm, lambda: dssm.dssm_strict_view(23), view_graphs),
    "dssm_strict_view_2": Architecture("towers", Dssm, lambda: dssm.dssm_strict_view(30), view_graphs),
    "semi_dssm_view_1": Architecture("towers", SemiDssm, lambda: dssm.semi_fl_dssm(23), view_graphs),
    "semi_dssm_view_2": Architecture("towers", SemiDssm, lambda: dssm.semi_fl_dssm(30), view_graphs),
    "fl_mv_dssm": Architecture("towers", MultiViewDssm, dssm.fl_mv_dssm, multi_view_graphs),
    "semi_fl_mv_dssm": Architecture("towers", SemiMultiViewDssm, dssm.semi_fl_mv_dssm, multi_view_graphs),
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
