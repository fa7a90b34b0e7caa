"""Recall: a device's report of its interests, and the candidates it gets back.

A report is a tagged union: the server reads `kind` and decodes by it. Every kind has its mode in
`device_app.reports.modes`, its guarantee and its cost in `device_app.privacy.mechanisms`, and its decoder in
`backend.recall.decode`.

The statistics of the lists returned for codebook reports are public: a few vectors, the same for every device. A list
ranks the pool by P(i | y) = sum_k w_k(y) P(i | k), P(i | k) = pop(i) exp(s <v_k, d_i>) / Z_k. A device has single
articles but not the pool. From log Z_k it computes how much more likely a list shows an article than popularity alone
would, and from the gradient of log Z_k with respect to v_k how a change of v_k changes that.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationInfo, ValidatorFunctionWrapHandler, WrapValidator, model_validator

from protocol.ids import Message, ReleaseId, ShortRelease
from protocol.news import NewsCard
from protocol.tensors import TensorError, TensorSpec, pack, unpack

GRAPH, BASIS, BEFORE = "basis.gradient", "basis", "before"
"""Materials of a round: the ONNX graph of the gradient, the new basis, and the basis in use."""
STEPS = "steps"
"""The trained parameter: the steps of the basic interests along the axes, [K, m]."""
DIMENSIONS_LIMIT = 4_096
BLOB_LIMIT_BYTES = 16 * 1024 * 1024

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ReportLists:
    """K basic interests, and the pool's statistics for each.

    prototypes float32 [K, D], rows of length 1. log_normalisers float32 [K]: log sum_i pop(i) exp(s <v_k, d_i>), with
    pop adding up to 1 over the pool. slopes float32 [K, D]: the gradients of log_normalisers with respect to v_k, which
    are s times the mean article of P(. | k). shares float32 [K]: the share of readers at each prototype, adding up to
    1. axes float32 [m, D], orthonormal: directions that a round may move prototypes in; none if nothing is trained.
    sharpness: s.
    """

    prototypes: NDArray[np.float32]
    log_normalisers: NDArray[np.float32]
    slopes: NDArray[np.float32]
    shares: NDArray[np.float32]
    axes: NDArray[np.float32]
    sharpness: float

    @property
    def size(self) -> int:
        """K."""
        return len(self.prototypes)

    def log_posterior(self, epsilon: float) -> Floats:
        """Return log w_k(y), [K, K], one row for each report y.

        It is Bayes' rule after randomised response at epsilon.
        """
        logs = np.log(self.shares.astype(np.float64))[None, :] + epsilon * np.eye(self.size)
        return np.asarray(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True))

    def lifts(self, clicked: NDArray[np.float32], epsilon: float) -> Floats:
        """Return log P(i | y) - log pop(i), [n, K], of clicked articles [n, D].

        P(i | y) is the article's probability in the list of report y.
        """
        scores = self.sharpness * (clicked @ self.prototypes.T).astype(np.float64) - self.log_normalisers  # [n, K]
        return np.asarray(np.logaddexp.reduce(self.log_posterior(epsilon)[None] + scores[:, None, :], axis=2))

    def pack(self) -> bytes:
        """Pack as data for a round."""
        tensors = {name: getattr(self, name) for name in _NAMES}
        return pack(
            {name: each.astype(np.float32) for name, each in tensors.items()}
            | {"sharpness": np.array([self.sharpness], dtype=np.float32)}
        )

    @classmethod
    def unpack(cls, blob: bytes) -> Self:
        """Read the output of `pack`. Raises TensorError for anything else."""
        specs = {
            "prototypes": TensorSpec("float32", (None, None), axis_limit=DIMENSIONS_LIMIT),
            "log_normalisers": TensorSpec("float32", (None,), axis_limit=CODEBOOK_LIMIT),
            "slopes": TensorSpec("float32", (None, None), axis_limit=DIMENSIONS_LIMIT),
            "shares": TensorSpec("float32", (None,), axis_limit=CODEBOOK_LIMIT),
            "axes": TensorSpec("float32", (None, None), axis_limit=DIMENSIONS_LIMIT),
            "sharpness": TensorSpec("float32", (1,)),
        }
        found = unpack(blob, specs, limit_bytes=BLOB_LIMIT_BYTES)
        (size, dim), sharpness = found["prototypes"].shape, float(found.pop("sharpness")[0])
        wanted = {"log_normalisers": (size,), "slopes": (size, dim), "shares": (size,)}
        for name, shape in wanted.items():
            if found[name].shape != shape:
                raise TensorError(f"tensor {name}: shape {found[name].shape}, expected {shape}")
        if found["axes"].shape[1] != dim:
            raise TensorError(f"tensor axes: {found['axes'].shape[1]} dimensions, expected {dim}")
        if not found["shares"].min() > 0:
            raise TensorError("tensor shares: every share must be above 0")
        return cls(**found, sharpness=sharpness)


_NAMES = ("prototypes", "log_normalisers", "slopes", "shares", "axes")


def report_chances(size: int, epsilon: float) -> Floats:
    """Return P(y | k) [K, K] of randomised response, one row per true code k.

    The true code is e^eps times as likely as any other.
    """
    odds = np.where(np.eye(size, dtype=bool), 1.0, math.exp(-epsilon))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


CHANNELS_LIMIT = 5
BASIS_LIMIT = 512
CANDIDATES_LIMIT = 1_000
CLICKS_LIMIT = 50
CLICKS_AXIS = "clicks"
"""The name of a free axis of clicks in a release's graphs; CLICKS_LIMIT long if a GRU's training is unrolled."""
RECALL_REQUEST_LIMIT_BYTES = 64 * 1024
CODEBOOK_LIMIT = 1_024

BasisScore = Annotated[float, Field(ge=-1e4, le=1e4)]


class BasisLaplaceReport(Message):
    """Uni-FedRec's report: noisy scores and the number of clicks of each interest channel.

    scores is C x B (C at most 5); counts are |H_c|, from which the server computes quotas (Uni-FedRec, "News Recall").
    The counts and C carry no noise: see `privacy.mechanisms.basis_laplace`.
    """

    kind: Literal["basis_laplace"] = "basis_laplace"
    scores: tuple[tuple[BasisScore, ...], ...] = Field(min_length=1, max_length=CHANNELS_LIMIT)
    counts: tuple[Annotated[int, Field(ge=1, le=CLICKS_LIMIT)], ...] = Field(min_length=1, max_length=CHANNELS_LIMIT)

    @model_validator(mode="after")
    def _one_count_a_channel_and_equal_widths(self) -> Self:
        if len(self.counts) != len(self.scores):
            raise ValueError(f"counts has {len(self.counts)} entries for {len(self.scores)} channels of scores")
        widths = {len(channel) for channel in self.scores}
        if len(widths) != 1 or not 1 <= next(iter(widths)) <= BASIS_LIMIT:
            raise ValueError(f"every channel of scores needs the same width, 1 to {BASIS_LIMIT}; got {sorted(widths)}")
        return self


class BasisL1Report(Message):
    """Uni-FedRec's report with its privacy gaps closed.

    It always has C_max channels of B noisy scores, including empty ones. shares are noisy shares of the clicks by
    channel (a negative one counts as 0); none: all channels have equal weight.
    """

    kind: Literal["basis_l1"] = "basis_l1"
    scores: tuple[tuple[BasisScore, ...], ...] = Field(min_length=1, max_length=CHANNELS_LIMIT)
    shares: tuple[BasisScore, ...] = Field(default=(), max_length=CHANNELS_LIMIT)

    @model_validator(mode="after")
    def _one_share_a_channel_and_equal_widths(self) -> Self:
        if self.shares and len(self.shares) != len(self.scores):
            raise ValueError(f"shares has {len(self.shares)} entries for {len(self.scores)} channels of scores")
        widths = {len(channel) for channel in self.scores}
        if len(widths) != 1 or not 1 <= next(iter(widths)) <= BASIS_LIMIT:
            raise ValueError(f"every channel of scores needs the same width, 1 to {BASIS_LIMIT}; got {sorted(widths)}")
        return self


class CodeReport(Message):
    """The number of the reader's nearest of K prototypes, or another one by randomised response.

    codebook is K and names the release's codebook of that size; code is 0 .. K - 1.
    """

    kind: Literal["code"] = "code"
    codebook: int = Field(ge=2, le=CODEBOOK_LIMIT)
    code: int = Field(ge=0, lt=CODEBOOK_LIMIT)

    @model_validator(mode="after")
    def _a_code_of_the_codebook(self) -> Self:
        if self.code >= self.codebook:
            raise ValueError(f"code {self.code} is not in a codebook of {self.codebook}")
        return self


class TopicsReport(Message):
    """One merged topic histogram with noise.

    weights[k] is the noisy share of the clicks nearest to prototype k. codebook is K; weights has K entries, which may
    be negative and need not add up to 1.
    """

    kind: Literal["topics"] = "topics"
    codebook: int = Field(ge=2, le=BASIS_LIMIT)
    weights: tuple[BasisScore, ...] = Field(min_length=2, max_length=BASIS_LIMIT)

    @model_validator(mode="after")
    def _one_weight_a_prototype(self) -> Self:
        if len(self.weights) != self.codebook:
            raise ValueError(f"weights has {len(self.weights)} entries for a codebook of {self.codebook}")
        return self


class SubsetReport(Message):
    """A random set of topics, ascending, that is more likely to contain the reader's topic.

    The mechanism is subset selection.
    """

    kind: Literal["subset"] = "subset"
    codebook: int = Field(ge=2, le=CODEBOOK_LIMIT)
    topics: tuple[Annotated[int, Field(ge=0, lt=CODEBOOK_LIMIT)], ...] = Field(min_length=1, max_length=CODEBOOK_LIMIT)

    @model_validator(mode="after")
    def _distinct_topics_of_the_codebook(self) -> Self:
        if list(self.topics) != sorted(set(self.topics)):
            raise ValueError("topics must be distinct and ascending")
        if self.topics[-1] >= self.codebook or len(self.topics) >= self.codebook:
            raise ValueError(f"topics must be fewer than the codebook's {self.codebook} and within it")
        return self


class NoReport(Message):
    """A report with nothing about the reader; the answer is the default list, the same for every device."""

    kind: Literal["none"] = "none"


Report = Annotated[
    BasisLaplaceReport | BasisL1Report | CodeReport | TopicsReport | SubsetReport | NoReport,
    Field(discriminator="kind"),
]


class RecallRequest(Message):
    """POST /v1/recall.

    Of the values chosen by the server, it repeats only the release modulo 16 and the codebook's size.
    """

    release: Annotated[ShortRelease, Field(strict=True)]
    limit: int = Field(default=400, ge=1, le=CANDIDATES_LIMIT)
    report: Report


class CardReader(Protocol):
    """Parses cards, or returns ones that were parsed before.

    It is passed as the validation context, because most cards of an answer were in the previous one.
    """

    def card(self, raw: Any, read: ValidatorFunctionWrapHandler) -> NewsCard:
        """Return the card for the JSON value `raw`, parsed by `read` unless it was parsed before."""
        ...


def _card(raw: Any, read: ValidatorFunctionWrapHandler, info: ValidationInfo) -> NewsCard:
    reader: CardReader | None = info.context
    card: NewsCard = read(raw) if reader is None else reader.card(raw, read)
    return card


class RecallAnswer(Message):
    """Candidates in merge order, and their vectors as one safetensors blob.

    vectors holds `codes` int8 [R, D] and `scales` float32 [R]; vector r is codes[r] * scales[r].
    """

    release: ReleaseId
    encoder: str = Field(max_length=80, description="Digest of the news encoder the vectors come from.")
    candidates: tuple[Annotated[NewsCard, WrapValidator(_card)], ...]
    vectors: bytes


DEFAULT_LIST_LENGTH = 600
"""The length at which a device gets the default list's changes; a list of another length is always whole."""


class DefaultListAnswer(RecallAnswer):
    """GET /v1/news/front: the default list, whole or as its changes since the list that the device has.

    order: None for the whole list. Otherwise the list, each article by its place in the earlier list followed by
    `candidates`, which are then only the articles that the earlier list lacks, or has with another card or vector.
    """

    order: tuple[Annotated[int, Field(ge=0, lt=2 * CANDIDATES_LIMIT)], ...] | None = Field(
        default=None, max_length=CANDIDATES_LIMIT
    )

    def listed(self, earlier: Sequence[str]) -> list[str]:
        """Return the ids of the list in order. earlier: those of the list that the device has.

        Raises ValueError for a place that neither list has, and for an article listed twice.
        """
        ids = [card.id for card in self.candidates]
        if self.order is None:
            return ids
        both = [*earlier, *ids]
        if any(place >= len(both) for place in self.order):
            raise ValueError(f"order: places 0 to {len(both) - 1}, got {max(self.order)}")
        found = [both[place] for place in self.order]
        if len(set(found)) < len(found):
            raise ValueError("order: lists an article twice")
        return found


def onto_l1_ball(point: NDArray[np.float64], radius: float) -> NDArray[np.float64]:
    """Return the nearest point with L1 norm at most `radius`.

    Source: Duchi et al., ICML 2008, figure 1.
    """
    sizes = np.abs(point)
    if sizes.sum() <= radius:
        return point
    falling = np.sort(sizes)[::-1]
    excess = np.cumsum(falling) - radius
    last = np.flatnonzero(falling > excess / np.arange(1, len(point) + 1))[-1]
    projected: NDArray[np.float64] = np.sign(point) * np.maximum(sizes - excess[last] / (last + 1), 0.0)
    return projected
