"""Make the server's training step of Efficient-FedRec.

Usage: `python -m backend.federation.split.adam_step DIR`

It takes the gradient of the news encoder, computed by a vector-Jacobian product or opened by the round, makes one step
of Adam, and embeds the whole pool with the new encoder (Efficient-FedRec, eqs. 6 and 7). It is a separate process since
it needs torch, which the server does without, and since a process can be slowed down in favour of the feed better than
a thread: it runs at a low priority (`niceness`) on a given number of cores.

DIR holds the job (`SplitStepJob` as order.json), the titles (titles.json), the gradient and the optimizer's state. The
results are written there, too: vectors of the new encoder, the optimizer's new state, and last done.json.
"""

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
from backend.federation.optimizers import Adam, Memory, PublishedAdam
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
    SplitStepJob,
    StepResult,
)
from backend.federation.split.torch_tasks import Batch, FrozenStates, ModuleInputs, ModuleVectors, vector_jacobian
from models.news.plm import UpperEncoder

BATCH = 256
BERT_BATCH = 64


def run(folder: Path) -> StepResult:
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
    optimizer = PublishedAdam(job.learning_rate) if job.printed else Adam(job.learning_rate)
    after, new_memory = optimizer.advance(before, gradient, carried)
    upper.load_state_dict({name: torch.from_numpy(value) for name, value in after.items()}, strict=False)
    lap("step")
    vectors = encode(upper, store, titles, executor)
    lap("encode")
    digest = keep(job.encoder_dir, upper, after, weights)
    (folder / NEW_MEMORY).write_bytes(new_memory.to_bytes())
    np.save(folder / VECTORS, vectors)
    lap("keep")
    done = StepResult(
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
    """Return the optimizer's state with layers renamed, as `joined` were added below them."""

    def renamed(name: str) -> str:
        kind, parameter = name.split(".", 1)
        return f"{kind}.{shifted(parameter, joined)}" if parameter.startswith(LAYERS_PREFIX) else name

    return Memory(memory.steps, {renamed(name): each for name, each in memory.tensors.items()})


def make_states(
    store: StateStore, titles: Sequence[str], weights: BertWeights, frozen: FrozenStates, executor: BatchExecutor
) -> int:
    """Run the frozen part of BERT over the titles whose states aren't stored; returns how many."""
    missing = store.missing(titles)
    if not missing:
        return 0
    from backend.embedding.initial_encoder import load_tokenizer  # slow import, not needed for a head

    batches = list(length_buckets(load_tokenizer(weights), missing, BERT_BATCH))
    found: dict[int, NDArray[np.float16]] = {}
    for batch, states in zip(batches, executor.map(frozen, batches), strict=True):
        found.update(zip(batch.rows.tolist(), states, strict=True))
    store.put(missing, [found[row] for row in range(len(missing))])
    return len(missing)


def state_batches(store: StateStore, titles: Sequence[str]) -> Iterator[Batch]:
    """Yield every title once, in batches of encoder inputs."""
    for batch in store.batches(titles, BATCH):
        yield batch.rows, (batch.states, batch.mask)


def encode(
    upper: UpperEncoder, store: StateStore, titles: Sequence[str], executor: BatchExecutor
) -> NDArray[np.float32]:
    """Return the vectors [n, D] of all titles."""
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
