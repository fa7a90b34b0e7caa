"""Defines the graphs of each kind of model: purposes, inputs, outputs.

C_max = 5, K = 4 and the lengths of texts are fixed in the graphs. Free axes: "batch" is any number of readers or
samples, "news" any number of candidates or distinct articles, "clicks" any number of clicks up to 50, so that a device
need not compute padding. Only graphs that unroll a GRU's training always take 50 clicks.
"""

from collections.abc import Callable
from typing import cast

from torch import Tensor, nn
from torch.nn.functional import embedding

from exporters.signature import GraphInput, GraphSpec, MethodOrName, call
from models.dssm import ViewRanker
from models.layers.words import TextCnn, WordEmbedding
from models.news.plm import PooledHead
from models.news.words import WordVectorLstur, WordVectorNaml, WordVectorNews
from models.one_vector import CosineResidual, OneVectorModel, UserModel
from models.recall.baselines import Ebnr, Octopus
from models.recall.basis import BasisRecall, ReportedBasis
from models.shapes import ABSTRACT_WORDS, CHANNELS_LIMIT, CLICKS, NEGATIVES, TITLE_WORDS
from models.user.candidate_attention import CandidateAttention, CosineRanker, FeatureRanker
from models.user.papers import LsturUser
from protocol.recall import CLICKS_AXIS


def table_loss(
    model: nn.Module, table: Tensor, click_rows: Tensor, click_mask: Tensor, candidate_rows: Tensor, *features: Tensor
) -> Tensor:
    """model.loss with vectors taken from a table.

    table [n, D]; click_rows int64 [b, H], any row where click_mask [b, H] is 0; candidate_rows int64 [b, 1 + K];
    features [b, 1 + K, F] for rankers that take them -> [].
    """
    loss = cast(Callable[..., Tensor], model.loss)
    return loss(embedding(click_rows, table), click_mask, embedding(candidate_rows, table), *features)


def vectors_product(model: nn.Module, *inputs: Tensor) -> Tensor:
    """sum_i <e_i, G_i> -> [], for a news model's vectors e [n, D] and G [n, D], the last input.

    Like `models.news.plm.PooledHead.product`: if G is the gradient of a loss for the vectors, its gradient for the
    model is the loss's (Efficient-FedRec, eq. 6), and its gradient for G is the vectors.
    """
    *read, slopes = inputs
    return (cast(Tensor, model(*read)) * slopes).sum()


CANDIDATE_ROWS = GraphInput("candidate_rows", ("batch", 1 + NEGATIVES), indexes="news")


def recall_graphs(dim: int) -> list[GraphSpec]:
    """Uni-FedRec's three graphs, split where the device clusters and where it clips and adds noise."""
    membership = GraphInput("membership", ("batch", CHANNELS_LIMIT, CLICKS_AXIS))
    quotas = GraphInput("quotas", ("batch", CHANNELS_LIMIT))
    contexts = GraphInput("contexts", ("batch", CLICKS_AXIS, dim))
    inputs = (*_clicks(dim), membership, quotas, _sample(dim))
    return [
        GraphSpec("context", "contexts", _clicks(dim), "contexts"),
        GraphSpec("decompose", "decompose", (contexts, membership), "scores"),
        GraphSpec("gradient", "loss", inputs, "loss", with_gradients=True),
    ]


def basis_graphs(model: nn.Module) -> list[GraphSpec]:
    """`recall_graphs` at the model's D."""
    return recall_graphs(cast(BasisRecall, model).basis_keys.shape[1])


def reported_basis_graphs(model: nn.Module) -> list[GraphSpec]:
    """The training graph of the basis that reports refer to, on clicks and the server's data about its lists."""
    basis = cast(ReportedBasis, model)
    (size, axes), dim = basis.steps.shape, basis.dim
    inputs = (
        *_clicks(dim),
        GraphInput("clicked", ("batch", dim)),
        GraphInput("basis", (size, dim)),
        GraphInput("axes", (axes, dim)),
        GraphInput("log_normalisers", (size,)),
        GraphInput("slopes", (size, dim)),
        GraphInput("chances", (size, size)),
        GraphInput("log_posterior", (size, size)),
    )
    return [GraphSpec("gradient", "loss", inputs, "loss", with_gradients=True)]


def ranker_graphs(model: nn.Module) -> list[GraphSpec]:
    """Graphs of a ranker: scores, the user vector if it has one, and training.

    Scores are of any number of candidates. Training gives loss and gradients on one positive and K negatives a row,
    with given vectors and with a table of distinct ones. The cosine ranker is not trained.
    """
    if isinstance(model, CosineRanker):
        return [_score(model.dim)]
    if isinstance(model, FeatureRanker):
        return _trained(model.matching.dim, CLICKS_AXIS, len(model.features), exact_table=True)
    if isinstance(model, ViewRanker):
        return _trained(model.dim, CLICKS_AXIS, exact=True, exact_table=True)
    if isinstance(model, CandidateAttention):
        return _trained(model.dim, CLICKS_AXIS)
    dim = cast(UserModel, model).dim
    return [GraphSpec("user", "user_vector", _clicks(dim), "user"), *_trained(dim, _trained_history(model))]


def one_vector_graphs(model: nn.Module) -> list[GraphSpec]:
    """The reader's vector, with which recall queries the pool, and training."""
    dim = cast(OneVectorModel, model).dim
    inputs = (*_clicks(dim, _trained_history(model)), _sample(dim))
    return [
        GraphSpec("user", "user_vector", _clicks(dim), "user"),
        GraphSpec("gradient", "loss", inputs, "loss", with_gradients=True),
    ]


def octopus_graphs(model: nn.Module) -> list[GraphSpec]:
    """Channel vectors (zero for an inactive channel), scores, and training."""
    dim = cast(Octopus, model).dim
    inputs = (*_clicks(dim), _sample(dim))
    return [
        GraphSpec("channels", "channel_vectors", _clicks(dim), "channels"),
        _score(dim),
        GraphSpec("gradient", "loss", inputs, "loss", with_gradients=True),
    ]


def pooled_head_graphs(model: nn.Module) -> list[GraphSpec]:
    """The head's gradient, given the gradients of its news vectors."""
    head = cast(PooledHead, model).head
    inputs = (GraphInput("pooled", ("news", head.in_features)), GraphInput("slopes", ("news", head.out_features)))
    return [GraphSpec("gradient", "product", inputs, "loss", with_gradients=True, wrt=("slopes",))]


def word_model_graphs(model: nn.Module) -> list[GraphSpec]:
    """The news model's gradient, given those of its vectors (see `pooled_head_graphs`), for a few articles at a
    time.
    """
    inputs = (*_word_inputs(model, "batch", TITLE_WORDS, ABSTRACT_WORDS), GraphInput("slopes", ("batch", _size(model))))
    return [GraphSpec("gradient", vectors_product, inputs, "loss", with_gradients=True, wrt=("slopes",))]


def word_model_vectors(model: nn.Module) -> GraphSpec:
    """News vectors from word vectors, of texts padded to the longest; the server computes its pool's vectors
    with it.
    """
    return GraphSpec("news", "forward", _word_inputs(model, "news", "length", "abstract_length"), "vectors")


def _word_inputs(model: nn.Module, news: str, words: int | str, abstract_words: int | str) -> tuple[GraphInput, ...]:
    """The inputs of a news model on word vectors, for titles and abstracts of this many words."""

    def text(name: str, length: int | str) -> tuple[GraphInput, GraphInput]:
        return GraphInput(f"{name}_vectors", (news, length, word_dim)), GraphInput(f"{name}_mask", (news, length))

    def topics(category: WordEmbedding, subcategory: WordEmbedding) -> tuple[GraphInput, GraphInput]:
        tables = {"category": category, "subcategory": subcategory}
        first, second = (GraphInput(name, (news,), indexes=len(table.weight)) for name, table in tables.items())
        return first, second

    word_dim = cast(TextCnn, cast(WordVectorNews, model).title.layers[0]).dim
    if isinstance(model, WordVectorNaml):
        ids = topics(model.category.elements, model.subcategory.elements)
        return (*text("word", words), *text("abstract", abstract_words), *ids)
    if isinstance(model, WordVectorLstur):
        return (*text("word", words), *topics(model.category, model.subcategory))
    return text("word", words)


def _size(model: nn.Module) -> int:
    """D of a news model on word vectors."""
    if isinstance(model, WordVectorNaml | WordVectorLstur):
        return model.joined.out_features
    return cast(WordVectorNews, model).title.pooling.hidden.in_features


def _trained(
    dim: int, history: int | str, features: int = 0, *, exact: bool = False, exact_table: bool = False
) -> list[GraphSpec]:
    """Scores and the two gradient graphs; `exact` computes in float64."""
    known = (GraphInput("features", ("batch", "news", features)),) if features else ()
    sample = (GraphInput("features", ("batch", 1 + NEGATIVES, features)),) if features else ()
    table = GraphInput("table", ("news", dim))
    return [
        _score(dim, *known),
        GraphSpec(
            "gradient",
            in_float64("loss") if exact else "loss",
            (*_clicks(dim, history), _sample(dim), *sample),
            "loss",
            with_gradients=True,
        ),
        GraphSpec(
            "table_gradient",
            in_float64(table_loss) if exact_table else table_loss,
            (table, *_click_rows(history), CANDIDATE_ROWS, *sample),
            "loss",
            with_gradients=True,
            wrt=("table",),
        ),
    ]


def _score(dim: int, *features: GraphInput) -> GraphSpec:
    candidates = GraphInput("candidates", ("batch", "news", dim))
    return GraphSpec("score", "forward", (*_clicks(dim), candidates, *features), "scores")


def _trained_history(model: nn.Module) -> int | str:
    """H of a gradient graph."""
    user = model.branch if isinstance(model, CosineResidual) else model
    return CLICKS if isinstance(user, Ebnr | LsturUser) else CLICKS_AXIS


def _clicks(dim: int, history: int | str = CLICKS_AXIS) -> tuple[GraphInput, GraphInput]:
    return GraphInput("clicks", ("batch", history, dim)), _click_mask(history)


def _click_rows(history: int | str) -> tuple[GraphInput, GraphInput]:
    return GraphInput("click_rows", ("batch", history), indexes="news"), _click_mask(history)


def _click_mask(history: int | str) -> GraphInput:
    return GraphInput("click_mask", ("batch", history))


def _sample(dim: int) -> GraphInput:
    return GraphInput("candidates", ("batch", 1 + NEGATIVES, dim))


def in_float64(method: MethodOrName) -> MethodOrName:
    """Compute a loss in float64 with float32 inputs and results.

    Needed where gamma or repeated rows make gradients above 2, which float32 can't hold to 2e-6.
    """

    def compute(model: nn.Module, *inputs: Tensor) -> Tensor:
        exact = {name: each.double() for name, each in model.named_parameters()}
        fed = [each.double() if each.is_floating_point() else each for each in inputs]
        return call(model, method, exact, fed).float()

    return compute
