"""Recall: what a device reports of its interests, and the candidates it gets back.

A report is a tagged union: the server reads `kind` and decodes by it. Every kind has its guarantee and its cost in
`device_app.privacy.mechanisms` and its decoder in `backend.recall.compose`.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from device_app.wire.ids import Message, ReleaseId
from device_app.wire.news import NewsCard

CHANNELS_LIMIT = 5
BASIS_LIMIT = 512
CANDIDATES_LIMIT = 1_000
CLICKS_LIMIT = 50
RECALL_REQUEST_LIMIT_BYTES = 64 * 1024

Score = Annotated[float, Field(ge=-1e4, le=1e4)]


class BasisLaplaceReport(Message):
    """Uni-FedRec's report: per interest channel B noisy scores, and how many clicks each channel holds.

    scores is C x B (C at most 5); counts are the |H_c| of ALGORITHMS 2.3 step 7, from which the server makes quotas.
    The counts and C carry no noise: see `privacy.mechanisms.basis_laplace`.
    """

    kind: Literal["basis_laplace"] = "basis_laplace"
    scores: tuple[tuple[Score, ...], ...] = Field(min_length=1, max_length=CHANNELS_LIMIT)
    counts: tuple[Annotated[int, Field(ge=1, le=CLICKS_LIMIT)], ...] = Field(min_length=1, max_length=CHANNELS_LIMIT)

    @model_validator(mode="after")
    def _one_count_a_channel_and_equal_widths(self) -> Self:
        if len(self.counts) != len(self.scores):
            raise ValueError(f"counts has {len(self.counts)} entries for {len(self.scores)} channels of scores")
        widths = {len(channel) for channel in self.scores}
        if len(widths) != 1 or not 1 <= next(iter(widths)) <= BASIS_LIMIT:
            raise ValueError(f"every channel of scores needs the same width, 1 to {BASIS_LIMIT}; got {sorted(widths)}")
        return self


class NoReport(Message):
    """Nothing about the reader: answered by the front list, the same for everybody."""

    kind: Literal["none"] = "none"


Report = Annotated[BasisLaplaceReport | NoReport, Field(discriminator="kind")]


class RecallRequest(Message):
    """POST /v1/recall."""

    release: ReleaseId
    limit: int = Field(default=400, ge=1, le=CANDIDATES_LIMIT)
    report: Report


class RecallAnswer(Message):
    """Candidates in merge order, and their vectors as one safetensors blob.

    vectors holds `codes` int8 [R, D] and `scales` float32 [R]; vector r is codes[r] * scales[r].
    """

    release: ReleaseId
    encoder: str = Field(max_length=80, description="Digest of the news encoder the vectors come from.")
    candidates: tuple[NewsCard, ...]
    vectors: bytes
