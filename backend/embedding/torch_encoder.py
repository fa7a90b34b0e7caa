"""The news encoder in torch: BERT loaded for training, and the graphs of encoders that no version ships.

Imports torch and transformers (`backend.errors.require_training`).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from transformers import AutoModel

from backend.embedding.embedder import BATCH_SIZE, length_buckets
from backend.embedding.weights import BertWeights
from exporters.news_encoder import export_news_encoder
from exporters.package import export_head_gradient
from models.news.plm import PlmNewsEncoder


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


def export_encoder(weights: BertWeights, dimensions: int) -> tuple[bytes, bytes]:
    """Export the graph of BERT with its weights, pooling and head as inputs, and the graph that trains the head.

    D = `dimensions`. Raises ParityError if the second differs from torch.
    """
    encoder = PlmNewsEncoder(load_bert(weights), dimensions)
    graph = export_news_encoder(encoder).SerializeToString(deterministic=True)
    return graph, export_head_gradient(encoder.head.in_features, dimensions)


def torch_vectors(
    weights: BertWeights,
    head: dict[str, NDArray[np.float32]],
    tokenizer: Tokenizer,
    titles: Sequence[str],
    threads: int,
) -> NDArray[np.float32]:
    """Return torch's vectors [n, D] of titles, by the encoder with these parameters besides BERT's."""
    torch.set_num_threads(threads)
    encoder = PlmNewsEncoder(load_bert(weights), len(head["head.weight"])).eval()
    _, unexpected = encoder.load_state_dict(
        {name: torch.from_numpy(value) for name, value in head.items()}, strict=False
    )
    assert not unexpected, unexpected
    return _through(encoder, tokenizer, titles)


def _through(encoder: Any, tokenizer: Tokenizer, titles: Sequence[str]) -> NDArray[np.float32]:
    rows: list[tuple[NDArray[np.int64], NDArray[np.float32]]] = []
    with torch.inference_mode():
        for batch in length_buckets(tokenizer, titles, BATCH_SIZE):
            out = encoder(torch.from_numpy(batch.pieces), torch.from_numpy(batch.mask))
            rows.append((batch.rows, out.numpy()))
    result = np.zeros((len(titles), rows[0][1].shape[1]), dtype=np.float32)
    for at, values in rows:
        result[at] = values
    return result
