"""What `split.process` and `split.step` say to each other, as files of one folder."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, Field

ORDER, TITLES, SLOPES, MEMORY = "order.json", "titles.json", "slopes.npy", "memory.safetensors"
VECTORS, NEW_MEMORY, DONE = "vectors.npy", "new_memory.safetensors", "done.json"


class Order(BaseModel):
    """What to do.

    encoder_dir and encoder: where encoders lie, and the digest of the one to step. bert: as in the settings. rows:
    which of the titles the rows of G belong to. niceness: how far other processes go first.
    """

    encoder_dir: Path
    encoder: str
    bert: str
    bert_sha256: str | None = None
    layers: int = Field(default=0, ge=0)
    learning_rate: float = Field(gt=0)
    threads: int = Field(default=1, ge=1)
    niceness: int = Field(default=10, ge=0, le=19)
    rows: tuple[int, ...]


class Done(BaseModel):
    """What came of it: the new encoder's digest, lengths of gradient and step, and seconds by stage."""

    encoder: str
    gradient_l2: float
    change_l2: float
    states_made: int
    seconds: dict[str, float]
