"""Turn a step of the news encoder into a release with vectors and optimizer states."""

import math
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from backend.db.tables import RoundRow, VectorRow
from backend.errors import TrainingNotInstalled, require_training
from backend.federation.bounded_mean import PREFIX
from backend.federation.errors import RoundImpossible
from backend.federation.optimizers import Memory
from backend.federation.split.process import OwnGradient, SplitStepResult, VectorGradients, run_step
from backend.federation.strategies.learned_codebook import turned_memory
from backend.federation.strategies.strategy import FederatedSystem, RoundContext, RoundResult
from backend.news.pool import NewsPool
from backend.news.pool_reading import write_vectors
from backend.releases.alignment import ProcrustesAlignment, aligned
from backend.releases.blobs import ReleaseDraft
from protocol.releases import ReleaseManifest
from protocol.similarity import similarity_floor

NEWS_GRADIENT = PREFIX + "news."
"""Prefix of the news model's parameters in an update."""

NEWS_MEMORY = "news:"
"""Prefix of the news model's moments in the optimizer's state."""


@dataclass(frozen=True)
class NewsModelStep:
    """Trains the news encoder in a process of its own (`split.adam_step`).

    New vectors of the whole pool are stored before the release is published, so that the feed switches to them at once.
    The release's codebooks, basic interests and groups are rotated with the space of news vectors, and so is the draft
    of a codebook that is being learned.

    Args:
        learning_rate: Adam's rate on the news model.
        layers: how many top layers of BERT are trained.
        threads: number in that process.
        printed: whether the step is eq. 7 as published instead of Adam's.
    """

    learning_rate: float
    layers: int = 0
    threads: int = 1
    printed: bool = False

    def make(
        self, context: RoundContext, titles: Mapping[str, str], gradient: VectorGradients | OwnGradient, memory: Memory
    ) -> SplitStepResult:
        """Train `bert_encoder` by one step and return it with vectors of `titles`, in their order.

        titles: title by article id. Raises NewsModelFailed.
        """
        scratch = Path(tempfile.mkdtemp(prefix="news-step-", dir=context.data_dir))
        try:
            return run_step(
                scratch,
                encoder_dir=context.data_dir / "encoder",
                encoder=bert_encoder(context),
                titles=list(titles.values()),
                gradient=gradient,
                memory=memory,
                learning_rate=self.learning_rate,
                printed=self.printed,
                layers=self.layers,
                threads=self.threads,
                executor=context.executor,
            )
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def bert_encoder(context: RoundContext) -> str:
    """Return the digest of the encoder on BERT to train next.

    It is the release's encoder. If rounds of FedNewsRec have replaced that by one over words, it is the newest encoder
    on BERT of a release kept here, or the first one.
    """
    from backend.embedding.embedder import first_encoder, reads_words  # imports tokenizers

    folder = context.data_dir / "encoder"
    try:
        if not reads_words(folder, context.release.encoder):
            return context.release.encoder
    except FileNotFoundError:
        return context.release.encoder  # the code that needs it reports that it is missing
    for manifest in context.releases.kept():
        with suppress(FileNotFoundError):
            if not reads_words(folder, manifest.encoder):
                return manifest.encoder
    return first_encoder(folder)


def require_torch() -> None:
    """Raise RoundImpossible if torch isn't installed here, with which the server trains its part."""
    try:
        require_training("A round that trains the news model")
    except TrainingNotInstalled as missing:
        raise RoundImpossible(missing.detail, field="system") from missing


def require_bert(context: RoundContext) -> None:
    """Raise RoundImpossible if the release's encoder reads words, or torch isn't installed here.

    Rows are gradients of the served vectors.
    """
    require_torch()
    if bert_encoder(context) != context.release.encoder:
        raise RoundImpossible(
            "The release's news encoder was trained by FedNewsRec's rounds and reads words instead of BERT's states. "
            "A round of news_head restores BERT, and so does a rollback to an earlier release.",
            field="system",
        )


def by_model(
    mean: Mapping[str, NDArray[np.float64]],
) -> tuple[dict[str, NDArray[np.float64]], dict[str, NDArray[np.float64]]]:
    """Split the gradient of an update into the user model's and the news model's.

    The first keeps the names of the update, the second has the news model's parameter names.
    """
    user = {name: each for name, each in mean.items() if not name.startswith(NEWS_GRADIENT)}
    return user, {name.removeprefix(NEWS_GRADIENT): mean[name] for name in sorted(mean.keys() - user.keys())}


def user_model_step(
    system: FederatedSystem, context: RoundContext, mean: Mapping[str, NDArray[np.float64]]
) -> tuple[dict[str, NDArray[np.float32]], Memory, Memory]:
    """Return the user model's weights after its optimizer's step against `mean`.

    The gradient has the names of an update. Also returns the optimizers' states: the user model's after the step, the
    news model's before its step.
    """
    assert system.model is not None
    assert system.optimizer is not None
    gradient = {name.removeprefix(PREFIX): each for name, each in mean.items()}
    user, news = divided(context.memory)
    stepped, user = system.optimizer.advance(context.releases.weights(context.release, system.model), gradient, user)
    return stepped, user, news


def news_model_result(
    system: FederatedSystem,
    context: RoundContext,
    titles: Mapping[str, str],
    made: SplitStepResult,
    *,
    weights: Mapping[str, NDArray[np.float32]],
    memory: Memory,
    summary: str,
    facts: Mapping[str, Any],
) -> RoundResult:
    """Return a release with the new encoder and the user model's new `weights`.

    memory: the state of the user model's optimizer.
    """
    assert system.model is not None
    done, alignment = made.done, _turn(context, tuple(titles), made)

    def draft(before: ReleaseDraft) -> ReleaseDraft:
        floor = similarity_floor(made.vectors)
        return aligned(replace(before, encoder=done.encoder, kinship_floor=floor), alignment, context.releases)

    def rows(session: Session) -> None:
        write_vectors(session.connection(), done.encoder, tuple(titles), made.vectors, tuple(titles.values()))
        align_memories(session, system.name, alignment, context.release, done.encoder)
        # The last encoder's vectors are kept here for a rollback of the release.
        session.execute(delete(VectorRow).where(VectorRow.encoder.not_in((context.release.encoder, done.encoder))))

    return RoundResult(
        weights={system.model: weights},
        draft=draft,
        rows=rows,
        memory=joined(memory, made.memory),
        summary=f"{summary} News encoder {done.encoder} took its place.",
        facts={
            **facts,
            "encoder": done.encoder,
            "news_gradient_l2": done.gradient_l2,
            "news_change_l2": done.change_l2,
            "vectors_moved_l2": round(math.sqrt(alignment.moved), 6),
            "moved_beside_turn": round(alignment.left, 4),
            "states_made": done.states_made,
            "news_step_sec": done.seconds,
        },
    )


def live_titles(context: RoundContext) -> dict[str, str]:
    """Return the titles of the pool as it is now, by article id."""
    return {row.id: row.title for row in NewsPool(context.engine).live(context.clock())}


def _turn(context: RoundContext, ids: tuple[str, ...], made: SplitStepResult) -> ProcrustesAlignment:
    """Return the rotation of the space, from articles that have vectors by both encoders."""
    old = dict(zip(*NewsPool(context.engine).vectors(context.release.encoder), strict=True))
    new = dict(zip(ids, made.vectors, strict=True))
    both = [news_id for news_id in new if news_id in old]
    return ProcrustesAlignment.between(np.stack([old[each] for each in both]), np.stack([new[each] for each in both]))


def align_memories(
    session: Session, system: str, alignment: ProcrustesAlignment, before: ReleaseManifest, encoder: str
) -> None:
    """Rotate the vectors in other systems' memories: drafts of codebooks."""
    remembers = RoundRow.system != system, RoundRow.state == "applied", RoundRow.memory.is_not(None)
    for row in session.scalars(select(RoundRow).where(*remembers)):
        assert row.memory is not None
        turned = turned_memory(Memory.from_bytes(row.memory), alignment, before, encoder)
        if turned is not None:
            row.memory = turned.to_bytes()


def divided(memory: Memory) -> tuple[Memory, Memory]:
    """Split an optimizer's state into that of the user model and that of the news model."""
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
    """Join the states that `divided` splits. Both have made the same number of steps."""
    tensors = dict(user.tensors)
    for name, tensor in news.tensors.items():
        kind, _, parameter = name.partition(".")
        tensors[f"{kind}.{NEWS_MEMORY}{parameter}"] = tensor
    return Memory(user.steps, tensors)
