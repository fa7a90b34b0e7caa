"""Run `split.adam_step` as a process and read its results."""

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
    """The job of the process.

    encoder_dir and encoder: the folder of encoders, and the digest of the one to train. bert: as in the settings. rows:
    for each row of G the index of its title; None if the gradient of the encoder itself is given. niceness: of the
    process, so that other processes have priority. executor: computes its batches. printed: whether the step is eq. 7
    as published instead of Adam's.
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
    printed: bool = False
    executor: ExecutorSettings = HERE


class StepResult(BaseModel):
    """The result of the job.

    It holds the new encoder's digest, the lengths of gradient and step, and seconds by stage.
    """

    encoder: str
    gradient_l2: float
    change_l2: float
    states_made: int
    seconds: dict[str, float]


STEP_LIMIT_SEC = 1_800.0
CLUSTER_AWAY = 75
"""Exit code of the process if the cluster doesn't answer: sysexits.h's code for temporary failures."""


class NewsModelFailed(OwnfeedError):
    """The process that trains the news model ended without a result."""

    code, status, title = "news-model-failed", 500, "The news model could not be trained"


class StepDelayed(Unavailable):
    """The process that trains the news model found no cluster.

    The round waits, and the step is repeated later.
    """

    code, status, title = "news-model-waits", 503, "The news model waits for its cluster"


@dataclass(frozen=True)
class VectorGradients:
    """The gradient G [m, D] of news vectors.

    A vector-Jacobian product gives the encoder's gradient from it.

    rows: for each row of `gradients` the index of its title.
    """

    rows: Sequence[int]
    gradients: NDArray[np.floating[Any]]

    def write_to(self, folder: Path) -> tuple[int, ...] | None:
        """Write the gradient to the step's folder; returns `SplitStepJob.rows`."""
        np.save(folder / VECTOR_GRADIENTS, self.gradients)
        return tuple(self.rows)


@dataclass(frozen=True)
class OwnGradient:
    """The gradient of some of the encoder's parameters, by torch name.

    The other parameters stay unchanged.
    """

    tensors: Mapping[str, NDArray[np.float64]]

    def write_to(self, folder: Path) -> tuple[int, ...] | None:
        """Write the gradient to the step's folder; returns `SplitStepJob.rows`."""
        save_file({name: np.ascontiguousarray(each) for name, each in self.tensors.items()}, folder / GRADIENT)
        return None


@dataclass(frozen=True)
class SplitStepResult:
    """The result of a step: its report, the optimizer's state, and vectors [n, D] of all titles."""

    done: StepResult
    memory: Memory
    vectors: NDArray[np.float32]


def run_step(
    folder: Path,
    *,
    encoder_dir: Path,
    encoder: str,
    titles: Sequence[str],
    gradient: VectorGradients | OwnGradient,
    memory: Memory,
    learning_rate: float,
    printed: bool = False,
    layers: int = 0,
    threads: int = 1,
    niceness: int = 10,
    executor: ExecutorSettings = HERE,
) -> SplitStepResult:
    """Make one step of the news model in another process.

    Blocks the calling thread until it is done.

    Args:
        folder: an empty folder for this step.
        encoder_dir, encoder: the folder of encoders, and the digest of the one to train.
        titles: the titles of the whole pool.
        gradient: the gradient in the form that the round gives.
        niceness: that of the process, so that requests and everything else go first.
        executor: computes its batches.

    Raises NewsModelFailed with the last line of the process's output, and StepDelayed if the cluster doesn't answer.
    """
    about = read_description(encoder_dir)
    job = SplitStepJob(
        encoder_dir=encoder_dir.absolute(),
        encoder=encoder,
        bert=about.get("bert", "packaged"),
        bert_sha256=about["bert_sha256"],
        layers=layers,
        learning_rate=learning_rate,
        printed=printed,
        threads=threads,
        niceness=niceness,
        rows=gradient.write_to(folder),
        executor=executor,
    )
    (folder / JOB).write_text(job.model_dump_json(), encoding="utf-8")
    (folder / TITLES).write_text(json.dumps(list(titles)), encoding="utf-8")
    (folder / MEMORY).write_bytes(memory.to_bytes())
    # BLAS and OpenMP read these when they are loaded, so they must be in the environment of the process.
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "false"}
    command = [sys.executable, "-m", "backend.federation.split.adam_step", str(folder)]
    try:
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=STEP_LIMIT_SEC)
    except subprocess.TimeoutExpired as late:
        raise NewsModelFailed(f"It took longer than {STEP_LIMIT_SEC:g} s.", limit=f"{STEP_LIMIT_SEC:g} s") from late
    if ended.returncode == CLUSTER_AWAY:
        raise StepDelayed(ended.stderr.strip().splitlines()[-1])
    if ended.returncode != 0 or not (folder / DONE).is_file():
        error = (ended.stderr.strip().splitlines() or ["nothing"])[-1]
        raise NewsModelFailed(f"The process ended with code {ended.returncode}: {error[:300]}")
    return SplitStepResult(
        StepResult.model_validate_json((folder / DONE).read_text(encoding="utf-8")),
        Memory.from_bytes((folder / NEW_MEMORY).read_bytes()),
        np.load(folder / VECTORS),
    )
