"""Makes the first news encoder of a data folder.

It has pretrained BERT, uniform pooling, and a PCA head from the pool's own headlines.

With uniform attention the pooled vector is the mean of the token states, for which all-MiniLM-L6-v2 was trained. The
PCA head keeps the directions in which the pool's headlines vary most, as many as news vectors have dimensions, or all
that BERT has; a fixed rotation then spreads them evenly over the models' attention heads. So cosines are meaningful
before any training. Imports torch and transformers; needed once per data folder.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from transformers import AutoModel

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
from backend.embedding.encoder_files import GRAPH, HASHES, TOKENIZER, hashes_of
from backend.embedding.state_store import DESCRIPTION_FILE
from backend.embedding.weights import BertWeights, find_weights
from backend.errors import OwnfeedError
from backend.settings import BackendSettings
from backend.storage.durable_files import put_folder
from exporters.graph_cache import GraphCache, KeptGraphs, entry_name
from exporters.news_encoder import export_news_encoder, head_parameters
from exporters.package import export_head_gradient
from models.news.plm import PlmNewsEncoder
from protocol.tensors import pack

FIT_TITLES = 1_000
CHECKED_TITLES = 64
ENCODER, HEAD_GRADIENT = "encoder", "head_gradient"
"""Purposes in the cache of graphs."""
LEAST_COSINE = 0.9999


class EncoderDiffers(OwnfeedError):
    """The exported graph does not give torch's vectors; nothing was kept."""

    code, status, title = "encoder-differs", 500, "The exported news encoder is wrong"

    def __init__(self, cosine: float) -> None:
        super().__init__(
            f"A headline's vector from the exported graph has cosine {cosine:.6f} to torch's.",
            field="vectors",
            limit=f"at least {LEAST_COSINE}",
        )


def make_initial_encoder(settings: BackendSettings, titles: Callable[[], Sequence[str]]) -> None:
    """Make this data folder's encoder: check BERT's weights, export, fit the head on `titles`, compare, save.

    titles: called once everything that needs no titles is done. The folder appears whole or not at all. Raises
    WeightsRefused or EncoderDiffers, and what `titles` raises.
    """
    torch.set_num_threads(settings.embed_threads)
    weights = find_weights(settings.bert, settings.bert_sha256)
    tokenizer = load_tokenizer(weights)
    encoder = PlmNewsEncoder(load_bert(weights), settings.news_dimensions)
    cache, entry = GraphCache(settings.graphs_dir), _entry(encoder, weights)
    graphs = cache.kept(entry, lambda: _graphs(encoder))
    sample = _spread(titles(), FIT_TITLES)
    encoder.fit_head(_pooled(encoder, tokenizer, sample))
    target = settings.encoder_dir
    scratch = Path(tempfile.mkdtemp(prefix="encoder-", dir=target.parent))
    try:
        _write(scratch, encoder, weights, settings.bert, graphs)
        _compare(OnnxEmbedder(scratch, threads=settings.embed_threads), encoder, tokenizer, sample[:CHECKED_TITLES])
        shutil.rmtree(target, ignore_errors=True)  # a folder without a description was left by an interrupted first run
        put_folder(scratch, target)
    except EncoderDiffers:
        cache.forget(entry)
        raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _entry(encoder: PlmNewsEncoder, weights: BertWeights) -> str:
    """The name of the encoder's graphs in the cache: BERT is part of one, with any pooling and head."""
    return entry_name("news encoder", weights.sha256, encoder.head.out_features, encoder.unit_length, PIECES_LIMIT)


def _graphs(encoder: PlmNewsEncoder) -> KeptGraphs:
    """The graph of BERT with its weights, pooling and head as inputs, and the graph with which devices train the
    head."""
    dimensions, width = encoder.head.weight.shape
    graph = export_news_encoder(encoder).SerializeToString(deterministic=True)
    return KeptGraphs({ENCODER: graph, HEAD_GRADIENT: export_head_gradient(width, dimensions)}, {})


def load_bert(weights: BertWeights) -> torch.nn.Module:
    """Load the checked BERT without its pooler, with attention written out, as the exporter needs it."""
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # the report of unused pooler weights is expected: pooling is ours
    bert: torch.nn.Module = AutoModel.from_pretrained(
        weights.folder,
        attn_implementation="eager",
        add_pooling_layer=False,
        use_safetensors=True,
        local_files_only=True,
    )
    return bert.eval()


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


def _pooled(encoder: PlmNewsEncoder, tokenizer: Tokenizer, titles: Sequence[str]) -> torch.Tensor:
    def pool(pieces: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        states = encoder.states(pieces, mask)
        return encoder.pool(states, mask.to(states.dtype))

    return torch.from_numpy(_through(pool, tokenizer, titles))


def _through(step: Any, tokenizer: Tokenizer, titles: Sequence[str]) -> NDArray[np.float32]:
    rows: list[tuple[NDArray[np.int64], NDArray[np.float32]]] = []
    with torch.inference_mode():
        for batch in length_buckets(tokenizer, titles, BATCH_SIZE):
            out = step(torch.from_numpy(batch.pieces), torch.from_numpy(batch.mask))
            rows.append((batch.rows, out.numpy()))
    result = np.zeros((len(titles), rows[0][1].shape[1]), dtype=np.float32)
    for at, values in rows:
        result[at] = values
    return result


def _write(folder: Path, encoder: PlmNewsEncoder, weights: BertWeights, bert: str, kept: KeptGraphs) -> None:
    head = {name: value.numpy() for name, value in head_parameters(encoder).items()}
    packed = pack(head)
    (folder / GRAPH_FILE).write_bytes(kept.graphs[ENCODER])
    (folder / HEAD_GRADIENT_FILE).write_bytes(kept.graphs[HEAD_GRADIENT])
    (folder / HEAD_FILE).write_bytes(packed)
    shutil.copyfile(weights.folder / "tokenizer.json", folder / TOKENIZER_FILE)
    about = {
        "digest": encoder_digest(weights.sha256, packed),
        "dimensions": encoder.head.out_features,
        "bert": bert,
        "bert_sha256": weights.sha256,
        "parameters": {name: list(value.shape) for name, value in head.items()},
        HASHES: hashes_of(folder, {GRAPH: GRAPH_FILE, TOKENIZER: TOKENIZER_FILE}),
    }
    (folder / DESCRIPTION_FILE).write_text(json.dumps(about, indent=1), encoding="utf-8")


def _compare(embedder: OnnxEmbedder, encoder: PlmNewsEncoder, tokenizer: Tokenizer, titles: Sequence[str]) -> None:
    ours, torchs = embedder.encode(titles), _through(encoder, tokenizer, titles)
    cosine = float((ours * torchs).sum(axis=1).min())
    if not cosine >= LEAST_COSINE:
        raise EncoderDiffers(cosine)
