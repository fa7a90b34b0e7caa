"""Starts `split.adam_step` as a process and brings home what it made."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field
from safetensors.numpy import save_file

from backend.embedding.batch_executor import HERE, ExecutorSettings
from backend.embedding.encoder_files import read_description
from backend.errors import OwnfeedError, Unavailable
from backend.federation.optimizers import Memory

JOB, TITLES, VECTOR_GRADIENTS, MEMORY = "order.json", "titles.json", "vector_gradients.npy", "memory.safetensors"
GRADIENT = "gradient.safetensors"
VECTORS, NEW_MEMORY, DONE = "vectors.npy", "new_memory.safetensors", "done.json"


class SplitStepJob(BaseModel):
    """What to do.

    encoder_dir and encoder: where encoders lie, and the digest of the one to step. bert: as in the settings. rows:
    which of the titles the rows of G belong to; None where the gradient itself is given. niceness: how far other
    processes go first. executor: who computes its batches.
    """

    encoder_dir: Path
    encoder: str
    bert: str
    bert_sha256: str | None = None
    layers: int = Field(default=0, ge=0)
    learning_rate: float = Field(gt=0)
    threads: int = Field(default=1, ge=1)
    niceness: int = Field(default=10, ge=0, le=19)
    rows: tuple[int, ...] | None
    executor: ExecutorSettings = HERE


class Done(BaseModel):
    """What came of it: the new encoder's digest, lengths of gradient and step, and seconds by stage."""

    encoder: str
    gradient_l2: float
    change_l2: float
    states_made: int
    seconds: dict[str, float]


STEP_LIMIT_SEC = 1_800.0
CLUSTER_AWAY = 75
"""The code with which the process ends where the cluster doesn't answer: sysexits.h's for what may work later."""


class NewsModelFailed(OwnfeedError):
    """The process that steps the news model ended without a result."""

    code, status, title = "news-model-failed", 500, "The news model could not be trained"


class StepDelayed(Unavailable):
    """The process that steps the news model found no cluster; the round waits, and the same step is made later."""

    code, status, title = "news-model-waits", 503, "The news model waits for its cluster"


@dataclass(frozen=True)
class VectorGradients:
    """The gradient G [m, D] of news vectors: the encoder's own is made of it by a vector-Jacobian product.

    rows: which of the titles the rows of `gradients` belong to.
    """

    rows: Sequence[int]
    gradients: NDArray[np.floating[Any]]

    def lay_down(self, folder: Path) -> tuple[int, ...] | None:
        """Into the step's folder; returns what the job says of rows."""
        np.save(folder / VECTOR_GRADIENTS, self.gradients)
        return tuple(self.rows)


@dataclass(frozen=True)
class OwnGradient:
    """The gradient of some of the encoder's parameters itself, by torch name; the others stay as they are."""

    tensors: Mapping[str, NDArray[np.float64]]

    def lay_down(self, folder: Path) -> tuple[int, ...] | None:
        """Into the step's folder; returns what the job says of rows."""
        save_file({name: np.ascontiguousarray(each) for name, each in self.tensors.items()}, folder / GRADIENT)
        return None


@dataclass(frozen=True)
class Stepped:
    """What came of a step: its report, the optimizer's memory, and vectors [n, D] of all titles."""

    done: Done
    memory: Memory
    vectors: NDArray[np.float32]


def step_aside(
    folder: Path,
    *,
    encoder_dir: Path,
    encoder: str,
    titles: Sequence[str],
    gradient: VectorGradients | OwnGradient,
    memory: Memory,
    learning_rate: float,
    layers: int = 0,
    threads: int = 1,
    niceness: int = 10,
    executor: ExecutorSettings = HERE,
) -> Stepped:
    """One step of the news model, while this process goes on serving; blocks the calling thread until it is made.

    Args:
        folder: empty, for this step alone.
        encoder_dir, encoder: where encoders lie, and the digest of the one to step.
        titles: of the whole pool.
        gradient: that the encoder steps against, in the form in which the round has it.
        niceness: how far requests and everything else go first.
        executor: who computes its batches.

    Raises NewsModelFailed with the last line that the process said; StepDelayed where the cluster doesn't answer.
    """
    about = read_description(encoder_dir)
    job = SplitStepJob(
        encoder_dir=encoder_dir.absolute(),
        encoder=encoder,
        bert=about.get("bert", "packaged"),
        bert_sha256=about["bert_sha256"],
        layers=layers,
        learning_rate=learning_rate,
        threads=threads,
        niceness=niceness,
        rows=gradient.lay_down(folder),
        executor=executor,
    )
    (folder / JOB).write_text(job.model_dump_json(), encoding="utf-8")
    (folder / TITLES).write_text(json.dumps(list(titles)), encoding="utf-8")
    (folder / MEMORY).write_bytes(memory.to_bytes())
    # BLAS and OpenMP read these when they are loaded, so they are the process's environment.
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "false"}
    command = [sys.executable, "-m", "backend.federation.split.adam_step", str(folder)]
    try:
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=STEP_LIMIT_SEC)
    except subprocess.TimeoutExpired as late:
        raise NewsModelFailed(f"It took longer than {STEP_LIMIT_SEC:g} s.", limit=f"{STEP_LIMIT_SEC:g} s") from late
    if ended.returncode == CLUSTER_AWAY:
        raise StepDelayed(ended.stderr.strip().splitlines()[-1])
    if ended.returncode != 0 or not (folder / DONE).is_file():
        said = (ended.stderr.strip().splitlines() or ["nothing"])[-1]
        raise NewsModelFailed(f"The process ended with code {ended.returncode}: {said[:300]}")
    return Stepped(
        Done.model_validate_json((folder / DONE).read_text(encoding="utf-8")),
        Memory.from_bytes((folder / NEW_MEMORY).read_bytes()),
        np.load(folder / VECTORS),
    )
