"""A release with a tiny trainable model, for tests of rounds that need no torch.

Graphs are placeholder bytes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from numpy.typing import NDArray
from sqlalchemy import Engine

from backend.releases.blobs import ReleaseDraft
from backend.releases.store import ReleaseStore
from backend.storage.object_store import LocalFolder
from protocol.releases import ModelEntry, RecallProtocol
from protocol.tensors import pack
from tests.doubles.migrated import migrated

WEIGHTS: dict[str, NDArray[np.float32]] = {
    "keys": np.arange(6, dtype=np.float32).reshape(2, 3),
    "values": np.full((4,), 0.5, dtype=np.float32),
}


def migrated_engine(folder: Path) -> Engine:
    return migrated(f"sqlite:///{folder / 'ownfeed.sqlite'}")


def small_store(engine: Engine, folder: Path, *, publish: bool = True) -> ReleaseStore:
    store = ReleaseStore(engine, LocalFolder(folder / "blobs"), Ed25519PrivateKey.generate())
    if publish:
        store.commit(small_draft(store), note="small")
    return store


def small_draft(store: ReleaseStore) -> ReleaseDraft:
    graph = store.add_blob(b"no graph: these tests never run it")
    return ReleaseDraft(
        encoder="test-encoder",
        dimensions=3,
        opset=18,
        recall=RecallProtocol(basis_size=2, channels_limit=5, cluster_distance=1.0, score_clip=0.2, score_noise=1.2),
        models={
            "recall": ModelEntry(
                architecture="basis",
                role="recall",
                graphs={"context": graph, "decompose": graph, "gradient": graph},
                weights=store.add_blob(pack(WEIGHTS)),
            ),
            "ranker.cosine": ModelEntry(architecture="cosine", role="ranker", graphs={"score": graph}),
        },
        default_ranker="ranker.cosine",
    )
