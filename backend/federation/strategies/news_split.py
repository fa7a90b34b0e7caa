"""Efficient-FedRec: devices train the user model, the server trains the news model (EMNLP 2021, section 3.3).

Devices send gradients of the user model and of news vectors, not of the news model: that is the server's, which turns
the vectors' gradients into its own by a vector-Jacobian product. The sum is the one that end-to-end training on all
samples in one place would give (docs/decisions/011).
"""

from __future__ import annotations

import math
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from backend.db.tables import VectorRow
from backend.db.tables_federation import RoundRow
from backend.federation.aggregate import PREFIX, Aggregate, gradient_shapes
from backend.federation.errors import RoundImpossible
from backend.federation.optimizers import Memory
from backend.federation.split.process import Stepped, step_aside
from backend.federation.strategies.learned_codebook import turned_memory
from backend.federation.strategies.news_union import LISTED, ids_blob, opened_ids, read_ids
from backend.federation.strategies.strategy import FederatedSystem, Plan, RoundContext, RoundResult
from backend.news.pool import NewsPool
from backend.news.vectors import write_vectors
from backend.releases.alignment import ProcrustesAlignment, aligned
from backend.releases.draft import ReleaseDraft
from device_app.wire.kinship import kinship_floor
from device_app.wire.releases import ReleaseManifest
from device_app.wire.rounds import RoundManifest
from device_app.wire.tensors import pack

VECTORS = "vectors"
"""The material with the opened news' vectors: safetensors, float32 [n, D], in the order of the list."""
NEWS_GRADIENT = PREFIX + "news"
NEWS_MEMORY = "news:"
"""Before the names of the news model's moments in the optimizer's memory."""


@dataclass(frozen=True)
class SplitCost:
    """Efficient-FedRec: vectors of the union and the user model down, their gradients up.

    news: of the union; dimensions: of a news vector; user_model: its parameters.
    The papers count neither the union itself nor keys, shares and the ring's width; bytes are in the round's status.
    """

    news: int
    dimensions: int
    user_model: int

    @property
    def one_way(self) -> int:
        """Numbers of one direction."""
        return self.dimensions * self.news + self.user_model

    @property
    def total(self) -> int:
        """Both directions."""
        return 2 * self.one_way


@dataclass(frozen=True)
class NewsSplit:
    """One step of both models.

    The news model's trainable part starts as it serves: uniform pooling and the head that was fitted to the pool
    (`backend.embedding.initial_encoder`), so before the first step every vector is the one that is served, and the
    start is the cosine's. One step of Adam moves no weight by more than about `learning_rate`. The release's
    codebooks, projection, basic interests and groups are turned with the news space, and so is the draft of a codebook
    that is being learned.

    The step is made in a process of its own (`split.step`); new vectors of the whole pool are stored before the release
    is published, so that the feed goes over to them at once.

    Args:
        learning_rate: of Adam on the news model; the paper's is 5e-5.
        layers: how many top layers of BERT train besides pooling and head.
        threads: of that process.
    """

    learning_rate: float = 5e-5
    layers: int = 0
    threads: int = 1

    def plan(self, system: FederatedSystem, context: RoundContext) -> Plan:
        """Gradients of the user model's parameters and of the opened news' vectors, which are materials.

        Raises RoundImpossible if the round follows no union, or nothing of it is in the pool any more.
        """
        assert system.model is not None
        vectors = dict(zip(*NewsPool(context.engine).vectors(context.release.encoder), strict=True))
        ids = [news_id for news_id in opened_ids(context) if news_id in vectors]
        if not ids:
            raise RoundImpossible("None of the opened news is in the pool any more.", field="system")
        table = np.stack([vectors[news_id] for news_id in ids])
        gradients = gradient_shapes(context.releases.weights(context.release, system.model))
        return Plan(
            {**gradients, NEWS_GRADIENT: table.shape},
            {
                LISTED: context.releases.add_blob(ids_blob(ids)),
                VECTORS: context.releases.add_blob(pack({VECTORS: np.ascontiguousarray(table, dtype=np.float32)})),
            },
        )

    def conclude(
        self, system: FederatedSystem, total: Aggregate, context: RoundContext, manifest: RoundManifest
    ) -> RoundResult:
        """New weights of the user model, a new news encoder, and the pool's vectors by it.

        Raises NewsModelFailed if the process did not do its work.
        """
        assert system.model is not None
        assert system.optimizer is not None
        mean = total.mean()
        slopes = mean.pop(NEWS_GRADIENT)
        gradient = {name.removeprefix(PREFIX): each for name, each in mean.items()}
        weights = context.releases.weights(context.release, system.model)
        user, news = divided(context.memory)
        stepped, user = system.optimizer.advance(weights, gradient, user)
        ids = read_ids(context.releases.read_blob(manifest.materials[LISTED].sha256))
        scratch = Path(tempfile.mkdtemp(prefix="news-step-", dir=context.data_dir))
        try:
            made, titles = self._step(context, ids, slopes, news, scratch)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        cost = SplitCost(len(ids), slopes.shape[1], sum(value.size for value in weights.values()))
        done = made.done

        alignment = _turn(context, tuple(titles), made)

        def draft(before: ReleaseDraft) -> ReleaseDraft:
            floor = kinship_floor(made.vectors)
            return aligned(replace(before, encoder=done.encoder, kinship_floor=floor), alignment, context.releases)

        def rows(session: Session) -> None:
            write_vectors(session.connection(), done.encoder, tuple(titles), made.vectors, tuple(titles.values()))
            align_memories(session, system.name, alignment, context.release, done.encoder)
            # A release that is taken back finds the last encoder's vectors still here.
            session.execute(delete(VectorRow).where(VectorRow.encoder.not_in((context.release.encoder, done.encoder))))

        return RoundResult(
            weights={system.model: stepped},
            draft=draft,
            rows=rows,
            memory=joined(user, made.memory),
            summary=(
                f"{cost.total:,} numbers moved for a device, down and up: vectors of {cost.news:,} news and a user "
                f"model of {cost.user_model:,}. News encoder {done.encoder} took its place."
            ),
            facts={
                "news": len(ids),
                "dimensions": int(slopes.shape[1]),
                "user_model": cost.user_model,
                "numbers_moved": cost.total,
                "encoder": done.encoder,
                "news_gradient_l2": done.gradient_l2,
                "news_change_l2": done.change_l2,
                "rows_without_gradient": int((~slopes.any(axis=1)).sum()),
                "vectors_moved_l2": round(math.sqrt(alignment.moved), 6),
                "moved_beside_turn": round(alignment.left, 4),
                "states_made": done.states_made,
                "news_step_sec": done.seconds,
            },
        )

    def _step(
        self, context: RoundContext, ids: tuple[str, ...], slopes: NDArray[np.float64], memory: Memory, scratch: Path
    ) -> tuple[Stepped, dict[str, str]]:
        """The step, and the titles by id that its vectors are of, in their order."""
        titles = {row.id: row.title for row in NewsPool(context.engine).live(context.clock())}
        # News that have left the pool meanwhile can't be read any more: their rows of the gradient are lost.
        here = [row for row, news_id in enumerate(ids) if news_id in titles]
        row_of = {news_id: row for row, news_id in enumerate(titles)}
        stepped = step_aside(
            scratch,
            encoder_dir=context.data_dir / "encoder",
            encoder=context.release.encoder,
            titles=list(titles.values()),
            rows=[row_of[ids[row]] for row in here],
            slopes=slopes[here],
            memory=memory,
            learning_rate=self.learning_rate,
            layers=self.layers,
            threads=self.threads,
        )
        return stepped, titles


def _turn(context: RoundContext, ids: tuple[str, ...], made: Stepped) -> ProcrustesAlignment:
    """Of the space, by the news that have vectors by both encoders."""
    old = dict(zip(*NewsPool(context.engine).vectors(context.release.encoder), strict=True))
    new = dict(zip(ids, made.vectors, strict=True))
    both = [news_id for news_id in new if news_id in old]
    return ProcrustesAlignment.between(np.stack([old[each] for each in both]), np.stack([new[each] for each in both]))


def align_memories(
    session: Session, system: str, alignment: ProcrustesAlignment, before: ReleaseManifest, encoder: str
) -> None:
    """Turn what other systems remember of directions in the space: drafts of codebooks."""
    remembers = RoundRow.system != system, RoundRow.state == "applied", RoundRow.memory.is_not(None)
    for row in session.scalars(select(RoundRow).where(*remembers)):
        assert row.memory is not None
        turned = turned_memory(Memory.from_bytes(row.memory), alignment, before, encoder)
        if turned is not None:
            row.memory = turned.to_bytes()


def divided(memory: Memory) -> tuple[Memory, Memory]:
    """What an optimizer remembers of the user model, and of the news model."""
    user: dict[str, Any] = {}
    news: dict[str, Any] = {}
    for name, tensor in memory.tensors.items():
        kind, _, parameter = name.partition(".")
        if parameter.startswith(NEWS_MEMORY):
            news[f"{kind}.{parameter.removeprefix(NEWS_MEMORY)}"] = tensor
        else:
            user[name] = tensor
    return Memory(memory.steps, user), Memory(memory.steps, news)


def joined(user: Memory, news: Memory) -> Memory:
    """What `divided` takes apart. Both have made the same number of steps."""
    tensors = dict(user.tensors)
    for name, tensor in news.tensors.items():
        kind, _, parameter = name.partition(".")
        tensors[f"{kind}.{NEWS_MEMORY}{parameter}"] = tensor
    return Memory(user.steps, tensors)
