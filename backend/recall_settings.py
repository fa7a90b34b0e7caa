"""The settings of recall, which `backend.settings` has with the server's others."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from device_app.settings_file import FileSettings


class RecallSettings(FileSettings):
    """What a release's recall model is made like, how reports become lists, and the threads that do it."""

    basis_size: int | None = Field(
        default=None, ge=2, le=512, description="B, the basic interests of a release's recall model; none: the usual."
    )
    cluster_distance: float | None = Field(
        default=None,
        gt=0,
        le=1_000,
        description="d, up to which clicks are one interest; none: one that gives readers of the pool's topics 3 to 4 "
        "interests.",
    )
    score_clip: float | None = Field(
        default=None, gt=0, le=1_000_000, description="delta, the bound of a score before its noise; none: the usual."
    )
    score_noise: float | None = Field(
        default=None,
        ge=0.000_001,
        le=1_000_000,
        description="lambda_I, the scale of the Laplace noise on scores; none: the usual.",
    )
    index: Literal["auto", "basis", "exact", "ivf", "fastscan"] = Field(
        default="auto",
        description="How the news nearest to an interest vector are found. 'auto': as 'basis', unless the basic "
        "interests are more than half as many as the vectors have dimensions; then exactly up to `exact_index_limit`, "
        "and beyond by the first of the others that finds nearly all of them. 'basis': exactly, by the coordinates of "
        "all vectors in the span of the basic interests. 'exact', 'ivf' (inverted lists of quantised vectors) and "
        "'fastscan' (four-bit codes): by that index, whatever the pool's size and what it misses, which the console "
        "shows.",
    )
    exact_index_limit: int = Field(
        default=20_000,
        ge=0,
        le=10_000_000,
        description="Up to so many news the index 'auto' is exact where it can't be 'basis'.",
    )
    score_decoder: Literal["posterior", "softmax"] = Field(
        default="posterior",
        description="What noisy scores on the basic interests are taken for. 'posterior': the mean of the scores that "
        "may stand behind them. 'softmax': the scores themselves, as Uni-FedRec's paper has it.",
    )
    recall_ranking: Literal["popularity", "inner_product"] = Field(
        default="popularity",
        description="How a channel's news are ordered: by nearness and popularity, or by their inner product with its "
        "interest vector alone, as in Uni-FedRec's paper.",
    )
    recall_merge: Literal["in_turns", "reference"] = Field(
        default="in_turns",
        description="How channels become one list. 'in_turns': each its quota of its best that no other has taken, "
        "then one each in turn. 'reference': as in the paper's published code, which passes over one story.",
    )
    search_threads: int = Field(
        default=1,
        ge=1,
        le=256,
        description="FAISS threads within one search. One is best where several readers ask at once.",
    )
    recall_workers: int = Field(
        default=2, ge=1, le=256, description="Recall requests computed at the same time, each in its own thread."
    )
    recall_waiting: int = Field(
        default=32,
        ge=1,
        le=10_000,
        description="Recall requests that wait behind those; every further one is answered 503 with Retry-After at "
        "once, before its body is read.",
    )
    recall_wait_ms: float = Field(
        default=50.0,
        ge=0.1,
        le=60_000,
        description="A recall request that has waited longer is answered 503, since its answer would come late.",
    )
    answers_kept_bytes: int = Field(
        default=64 * 1024 * 1024,
        ge=0,
        le=16 * 1024**3,
        description="Memory for recall's answers to reports by code, which are the same for everybody until the "
        "catalogue changes.",
    )
