"""Load and store the trained part of a news encoder (Efficient-FedRec, section 3.2).

Imports torch.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file

from backend.embedding.embedder import (
    GRAPH_FILE,
    HEAD_FILE,
    TOKENIZER_FILE,
    encoder_digest,
    encoder_folder,
    trained_folder,
)
from backend.embedding.encoder_files import GRAPH, HASHES, TOKENIZER, hashes_of, read_description, shared_hashes
from backend.embedding.state_store import DESCRIPTION_FILE
from backend.embedding.weights import BertWeights
from backend.storage.durable_files import put_folder
from exporters.news_encoder import export_news_encoder
from models.news.plm import PlmNewsEncoder, UpperEncoder, stack
from protocol.tensors import pack

LAYERS_FILE = "layers.safetensors"
LAYERS_PREFIX = "layers."


class LayersRefused(ValueError):
    """Fewer layers were requested than this encoder has trained.

    The states below them would not be BERT's.
    """


@dataclass(frozen=True)
class StoredEncoder:
    """An encoder that is not loaded: its folder, and how many top layers rounds have trained."""

    folder: Path
    layers: int

    @classmethod
    def find(cls, encoder_dir: Path, digest: str) -> StoredEncoder:
        """Return the encoder of that digest. Raises FileNotFoundError."""
        folder = encoder_folder(encoder_dir, digest)
        about = read_description(folder)
        return cls(folder, about.get("layers", 0))

    def load(self, bert: BertWeights, layers: int) -> UpperEncoder:
        """Load the head and the top `layers` layers in float32. Raises LayersRefused."""
        if layers < self.layers:
            raise LayersRefused(
                f"layers: must be at least {self.layers}, the number already trained in this encoder, got {layers}"
            )
        head = load_file(self.folder / HEAD_FILE)
        top = list(stack(_loaded(bert), layers)) if layers else []
        out_dim, width = head["head.weight"].shape
        upper = UpperEncoder.headed(top, width, out_dim)
        if self.layers:
            trained = load_file(self.folder / LAYERS_FILE)
            shift = layers - self.layers  # newly added layers are below the layers trained before
            head |= {shifted(name, shift): value for name, value in trained.items()}
        missing, unexpected = upper.load_state_dict({n: torch.from_numpy(v) for n, v in head.items()}, strict=False)
        left = [name for name in missing if not name.startswith(LAYERS_PREFIX)]
        if left or unexpected:
            raise ValueError(f"{HEAD_FILE} does not fit: {(left or unexpected)[0]}")
        return upper


def shifted(name: str, by: int) -> str:
    """Return the name of a layer's parameter after `by` layers were added below it."""
    _, number, rest = name.split(".", 2)
    return f"{LAYERS_PREFIX}{int(number) + by}.{rest}"


def named_weights(upper: UpperEncoder) -> dict[str, NDArray[np.float32]]:
    """Return all trained parameters by torch name."""
    return {name: each.detach().numpy().copy() for name, each in upper.named_parameters()}


def keep(encoder_dir: Path, upper: UpperEncoder, weights: Mapping[str, NDArray[np.float32]], bert: BertWeights) -> str:
    """Store the encoder with these weights next to the first one; returns its digest.

    The folder appears at once. If only a head was trained, it shares graph and tokenizer with the first encoder.
    Trained layers need a graph of their own, which contains all of BERT and takes about ten seconds to export. Raises
    EncoderDamaged if the shared files are damaged.
    """
    head = {name: value for name, value in weights.items() if not name.startswith(LAYERS_PREFIX)}
    layers = {name: value for name, value in weights.items() if name.startswith(LAYERS_PREFIX)}
    digest = encoder_digest(bert.sha256, pack(head) + (pack(layers) if layers else b""))
    target = trained_folder(encoder_dir, digest)
    if (target / DESCRIPTION_FILE).is_file():
        return digest
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".making-", dir=target.parent))
    try:
        (scratch / HEAD_FILE).write_bytes(pack(head))
        about = {
            "digest": digest,
            "dimensions": int(head["head.weight"].shape[0]),
            "bert_sha256": bert.sha256,
            "parameters": {name: list(value.shape) for name, value in head.items()},
            "layers": len(upper.layers),
        }
        if layers:
            (scratch / LAYERS_FILE).write_bytes(pack(layers))
            (scratch / GRAPH_FILE).write_bytes(_graph(upper, weights, bert))
        own = {GRAPH: GRAPH_FILE} if layers else {}
        shared = {TOKENIZER: TOKENIZER_FILE} | ({} if layers else {GRAPH: GRAPH_FILE})
        about |= own | {kind: f"../../{name}" for kind, name in shared.items()}
        first = shared_hashes(encoder_dir, read_description(encoder_dir), shared)
        about[HASHES] = hashes_of(scratch, own) | first
        (scratch / DESCRIPTION_FILE).write_text(json.dumps(about, indent=1), encoding="utf-8")
        put_folder(scratch, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return digest


def _loaded(bert: BertWeights) -> torch.nn.Module:
    from backend.embedding.torch_encoder import load_bert  # slow import, not needed for a head

    return load_bert(bert)


def _graph(upper: UpperEncoder, weights: Mapping[str, NDArray[np.float32]], bert: BertWeights) -> bytes:
    encoder = PlmNewsEncoder(_loaded(bert), int(weights["head.weight"].shape[0]), unit_length=upper.unit_length)
    state = {name: torch.from_numpy(np.array(value)) for name, value in weights.items()}
    count = len(upper.layers)
    for place, layer in enumerate(stack(encoder.bert, count)):
        prefix = f"{LAYERS_PREFIX}{place}."
        layer.load_state_dict({n.removeprefix(prefix): v for n, v in state.items() if n.startswith(prefix)})
    head = {name: value for name, value in state.items() if not name.startswith(LAYERS_PREFIX)}
    encoder.load_state_dict(head, strict=False)
    graph: bytes = export_news_encoder(encoder).SerializeToString(deterministic=True)
    return graph
