"""Makes the first news encoder of a data folder.

It has pretrained BERT, uniform pooling, and a PCA head from the pool's own headlines.

With uniform attention the pooled vector is the mean of the token states, for which all-MiniLM-L6-v2 was trained. The
PCA head keeps the directions in which the pool's headlines vary most, as many as news vectors have dimensions, or all
that BERT has; a fixed rotation then spreads them evenly over the models' attention heads. So cosines are meaningful
before any training.

The graph of the packaged BERT travels with Ownfeed (`exporters.shipped`). That of any other BERT is exported, which
imports torch, and compared with it.
"""

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from backend.embedding.embedder import (
    BATCH_SIZE,
    GRAPH_FILE,
    HEAD_FILE,
    HEAD_GRADIENT_FILE,
    PIECES_LIMIT,
    TOKENIZER_FILE,
    OnnxEmbedder,
    encoder_digest,
    length_buckets,
)
from backend.embedding.encoder_files import GRAPH, HASHES, TOKENIZER, hashes_of, sha256_of
from backend.embedding.encoder_task import EncoderTask
from backend.embedding.state_store import DESCRIPTION_FILE
from backend.embedding.weights import WEIGHTS_FILE, BertWeights, find_weights
from backend.errors import OwnfeedError, require_training
from backend.settings import BackendSettings
from backend.storage.durable_files import put_folder
from exporters.graph_cache import CachedGraphs, GraphCache, entry_name
from exporters.shipped import encoder_entry, filled, shipped
from models.starts import fitted_head, uniform_attention
from protocol.tensors import pack

FIT_TITLES = 1_000
CHECKED_TITLES = 64
ENCODER, HEAD_GRADIENT = "encoder", "head_gradient"
"""Purposes in the cache of graphs, and in the entry that travels with Ownfeed."""
LEAST_COSINE = 0.9999
SEED = 7


class EncoderDiffers(OwnfeedError):
    """The exported graph does not give torch's vectors; nothing was kept."""

    code, status, title = "encoder-differs", 500, "The exported news encoder is wrong"

    def __init__(self, cosine: float) -> None:
        super().__init__(
            f"A headline's vector from the exported graph has cosine {cosine:.6f} to torch's.",
            field="vectors",
            limit=f"at least {LEAST_COSINE}",
        )


@dataclass(frozen=True)
class _Graphs:
    """The encoder's graph and the graph that trains its head; entry: of the cache, None for graphs that are shipped."""

    encoder: bytes
    head_gradient: bytes
    entry: str | None = None


def make_initial_encoder(settings: BackendSettings, titles: Callable[[], Sequence[str]]) -> None:
    """Make this data folder's encoder: check BERT's weights, take or export its graph, fit the head on `titles`, save.

    An exported graph is compared with torch. titles: called once everything that needs no titles is done. The folder
    appears whole or not at all. Raises WeightsRefused, TrainingNotInstalled or EncoderDiffers, and what `titles`
    raises.
    """
    weights = find_weights(settings.bert, settings.bert_sha256)
    tokenizer = load_tokenizer(weights)
    cache = GraphCache(settings.graphs_dir)
    graphs = _shipped(weights, settings.news_dimensions) or _exported(weights, settings.news_dimensions, cache)
    sample = _spread(titles(), FIT_TITLES)
    target = settings.encoder_dir
    scratch = Path(tempfile.mkdtemp(prefix="encoder-", dir=target.parent))
    try:
        (scratch / GRAPH_FILE).write_bytes(graphs.encoder)
        (scratch / HEAD_GRADIENT_FILE).write_bytes(graphs.head_gradient)
        head = _fitted(scratch / GRAPH_FILE, weights, tokenizer, sample, settings)
        _describe(scratch, head, weights, settings.bert)
        if graphs.entry is not None:
            _compare(scratch, head, weights, tokenizer, sample[:CHECKED_TITLES], settings.embed_threads)
        shutil.rmtree(target, ignore_errors=True)  # a folder without a description was left by an interrupted first run
        put_folder(scratch, target)
    except EncoderDiffers:
        if graphs.entry is not None:
            cache.forget(graphs.entry)
        raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _shipped(weights: BertWeights, dimensions: int) -> _Graphs | None:
    """The graphs that travel with Ownfeed; None for another BERT."""
    from safetensors.numpy import load_file

    found = shipped(encoder_entry(weights.sha256, dimensions))
    if found is None:
        return None
    bert = load_file(weights.folder / WEIGHTS_FILE)
    graph = filled(found.graphs[ENCODER], found.facts["holes"], bert, found.facts["sha256"])
    return _Graphs(graph, found.graphs[HEAD_GRADIENT])


def _exported(weights: BertWeights, dimensions: int, cache: GraphCache) -> _Graphs:
    """The graphs as the cache has them, or exported. BERT is part of one, with any pooling and head."""
    require_training("The graph of another BERT than the packaged one")
    entry = entry_name("news encoder", weights.sha256, dimensions, PIECES_LIMIT)

    def make() -> CachedGraphs:
        from backend.embedding.torch_encoder import export_encoder  # imports torch, needed once

        graph, head_gradient = export_encoder(weights, dimensions)
        return CachedGraphs({ENCODER: graph, HEAD_GRADIENT: head_gradient}, {})

    kept = cache.kept(entry, make).graphs
    return _Graphs(kept[ENCODER], kept[HEAD_GRADIENT], entry)


def load_tokenizer(weights: BertWeights) -> Tokenizer:
    """Load the model's own tokenizer, which truncates at PIECES_LIMIT word pieces."""
    tokenizer = Tokenizer.from_file(str(weights.folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(PIECES_LIMIT)
    return tokenizer


def _spread(titles: Sequence[str], most: int) -> list[str]:
    """At most `most` titles, evenly spaced over the whole pool."""
    step = max(1, len(titles) // most)
    return list(titles[::step][:most])


def _fitted(
    graph: Path, weights: BertWeights, tokenizer: Tokenizer, titles: Sequence[str], settings: BackendSettings
) -> dict[str, NDArray[np.float32]]:
    """The parameters besides BERT's: uniform pooling, and the head fitted to the titles' mean token states."""
    width = json.loads((weights.folder / "config.json").read_bytes())["hidden_size"]
    head = {f"pooling.{name}": value for name, value in uniform_attention(width, max(width // 2, 1), SEED).items()}
    head["head.weight"] = np.zeros((settings.news_dimensions, width), dtype=np.float32)
    head["head.bias"] = np.zeros(settings.news_dimensions, dtype=np.float32)
    run = EncoderTask(graph, sha256_of(graph), head, settings.news_dimensions, states=True).open(settings.embed_threads)
    pooled = np.zeros((len(titles), width), dtype=np.float32)
    for batch in length_buckets(tokenizer, titles, BATCH_SIZE):
        _, states = run({"pieces": batch.pieces, "piece_mask": batch.mask})
        assert states is not None
        pooled[batch.rows] = np.stack([each.astype(np.float32).mean(axis=0) for each in states])
    weight, _ = fitted_head(pooled, settings.news_dimensions)
    return head | {"head.weight": weight.astype(np.float32)}


def _describe(folder: Path, head: Mapping[str, NDArray[np.float32]], weights: BertWeights, bert: str) -> None:
    packed = pack(head)
    (folder / HEAD_FILE).write_bytes(packed)
    shutil.copyfile(weights.folder / "tokenizer.json", folder / TOKENIZER_FILE)
    about = {
        "digest": encoder_digest(weights.sha256, packed),
        "dimensions": len(head["head.weight"]),
        "bert": bert,
        "bert_sha256": weights.sha256,
        "parameters": {name: list(value.shape) for name, value in head.items()},
        HASHES: hashes_of(folder, {GRAPH: GRAPH_FILE, TOKENIZER: TOKENIZER_FILE}),
    }
    (folder / DESCRIPTION_FILE).write_text(json.dumps(about, indent=1), encoding="utf-8")


def _compare(
    folder: Path,
    head: dict[str, NDArray[np.float32]],
    weights: BertWeights,
    tokenizer: Tokenizer,
    titles: Sequence[str],
    threads: int,
) -> None:
    from backend.embedding.torch_encoder import torch_vectors  # imports torch, needed once

    ours = OnnxEmbedder(folder, threads=threads).encode(titles)
    cosine = float((ours * torch_vectors(weights, head, tokenizer, titles, threads)).sum(axis=1).min())
    if not cosine >= LEAST_COSINE:
        raise EncoderDiffers(cosine)
