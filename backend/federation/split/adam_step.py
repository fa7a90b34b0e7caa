"""The server's half of an Efficient-FedRec step: `python -m backend.federation.split.adam_step DIR`.

Gradient of the news encoder by vector-Jacobian product, or as the round has opened it, one step of Adam, the whole
pool under the new encoder (Efficient-FedRec, eqs. 6 and 7). A process, because it brings torch, which the server does
without, and because it can be nicer to the feed than any thread: it runs at the lowest priority on as many cores as it
is told.

DIR holds a job (`SplitStepJob` as order.json), the titles (titles.json), the gradient and the optimizer's memory. What
comes back lies there too: vectors of the new encoder, memory, and done.json, which is written last.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file

from backend.embedding.batch_executor import BatchExecutor, ClusterUnavailable
from backend.embedding.embedder import length_buckets, state_store
from backend.embedding.state_store import StateStore
from backend.embedding.weights import BertWeights, find_weights
from backend.federation.optimizers import Adam, Memory
from backend.federation.split.jacobian import Batch, vector_jacobian
from backend.federation.split.news_model_files import LAYERS_PREFIX, StoredEncoder, keep, named_weights, shifted
from backend.federation.split.process import (
    CLUSTER_AWAY,
    DONE,
    GRADIENT,
    JOB,
    MEMORY,
    NEW_MEMORY,
    TITLES,
    VECTOR_GRADIENTS,
    VECTORS,
    Done,
    SplitStepJob,
)
from backend.federation.split.torch_tasks import FrozenStates, ModuleInputs, ModuleVectors
from models.news.upper import UpperEncoder

BATCH = 256
BERT_BATCH = 64


def run(folder: Path) -> Done:
    """Do the job that lies in `folder`."""
    job = SplitStepJob.model_validate_json((folder / JOB).read_text(encoding="utf-8"))
    torch.set_num_threads(job.threads)
    titles: list[str] = json.loads((folder / TITLES).read_text(encoding="utf-8"))
    seconds: dict[str, float] = {}
    started = time.perf_counter()

    def lap(stage: str) -> None:
        nonlocal started
        seconds[stage] = round(time.perf_counter() - started, 3)
        started = time.perf_counter()

    weights = find_weights(job.bert, job.bert_sha256)
    stored = StoredEncoder.find(job.encoder_dir, job.encoder)
    upper = stored.load(weights, job.layers)
    lap("load")
    store = state_store(job.encoder_dir, job.layers)
    executor = job.executor.open(job.threads)
    frozen = FrozenStates(job.bert, job.bert_sha256, job.layers, upper.head.in_features)
    made = make_states(store, titles, weights, frozen, executor)
    lap("states")
    if job.rows is None:
        gradient = load_file(folder / GRADIENT)
    else:
        union = [titles[row] for row in job.rows]
        gradient = vector_jacobian(upper, state_batches(store, union), np.load(folder / VECTOR_GRADIENTS), executor)
    lap("jacobian")
    before = named_weights(upper)
    memory = folder / MEMORY
    carried = Memory.from_bytes(memory.read_bytes()) if memory.is_file() else Memory()
    if stored.layers:
        carried = carried_on(carried, job.layers - stored.layers)
    after, new_memory = Adam(job.learning_rate).advance(before, gradient, carried)
    upper.load_state_dict({name: torch.from_numpy(value) for name, value in after.items()}, strict=False)
    lap("step")
    vectors = encode(upper, store, titles, executor)
    lap("encode")
    digest = keep(job.encoder_dir, upper, after, weights)
    (folder / NEW_MEMORY).write_bytes(new_memory.to_bytes())
    np.save(folder / VECTORS, vectors)
    lap("keep")
    done = Done(
        encoder=digest,
        gradient_l2=_length(gradient),
        change_l2=_length({name: after[name].astype(np.float64) - before[name] for name in after}),
        states_made=made,
        seconds=seconds,
    )
    half = folder / f"{DONE}.half"
    half.write_text(done.model_dump_json(), encoding="utf-8")
    os.replace(half, folder / DONE)
    return done


def carried_on(memory: Memory, joined: int) -> Memory:
    """The moments of layers by the names that these have after so many others joined them from below."""

    def renamed(name: str) -> str:
        kind, parameter = name.split(".", 1)
        return f"{kind}.{shifted(parameter, joined)}" if parameter.startswith(LAYERS_PREFIX) else name

    return Memory(memory.steps, {renamed(name): each for name, each in memory.tensors.items()})


def make_states(
    store: StateStore, titles: Sequence[str], weights: BertWeights, frozen: FrozenStates, executor: BatchExecutor
) -> int:
    """Run BERT's frozen part over titles whose states aren't kept; returns how many."""
    missing = store.missing(titles)
    if not missing:
        return 0
    from backend.embedding.initial_encoder import load_tokenizer  # transformers takes seconds, and a head needs none

    batches = list(length_buckets(load_tokenizer(weights), missing, BERT_BATCH))
    found: dict[int, NDArray[np.float16]] = {}
    for batch, states in zip(batches, executor.map(frozen, batches), strict=True):
        found.update(zip(batch.rows.tolist(), states, strict=True))
    store.put(missing, [found[row] for row in range(len(missing))])
    return len(missing)


def state_batches(store: StateStore, titles: Sequence[str]) -> Iterator[Batch]:
    """Every title once, as an encoder's inputs."""
    for batch in store.batches(titles, BATCH):
        yield batch.rows, (batch.states, batch.mask)


def encode(
    upper: UpperEncoder, store: StateStore, titles: Sequence[str], executor: BatchExecutor
) -> NDArray[np.float32]:
    """Vectors [n, D] of all titles."""
    places: list[NDArray[np.int64]] = []

    def inputs() -> Iterator[ModuleInputs]:
        for rows, each in state_batches(store, titles):
            places.append(rows)
            yield each

    parts = list(executor.map(ModuleVectors(upper, upper.head.out_features), inputs()))
    vectors = np.zeros((len(titles), upper.head.out_features), dtype=np.float32)
    for rows, part in zip(places, parts, strict=True):
        vectors[rows] = part
    return vectors


def _length(tensors: dict[str, NDArray[np.float64]]) -> float:
    return float(np.sqrt(sum(float(np.square(each).sum()) for each in tensors.values())))


if __name__ == "__main__":
    place = Path(sys.argv[1])
    os.nice(SplitStepJob.model_validate_json((place / JOB).read_text(encoding="utf-8")).niceness)
    try:
        run(place)
    except ClusterUnavailable as away:
        sys.stderr.write(f"{away.detail}\n")
        sys.exit(CLUSTER_AWAY)
