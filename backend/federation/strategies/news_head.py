"""Efficient-FedRec for a head: devices compute the news model's gradient.

Source: EMNLP 2021, section 3.3, eq. 6. If BERT and its pooling are frozen, the news model's gradient is a sum over
articles of public pooled states times gradients of vectors. A device multiplies its own, and the secure sum opens the
product: as many numbers as the head has, whatever was read, in one round, without a union of articles before it
(docs/decisions/013).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.federation.bounded_mean import Aggregate, gradient_shapes
from backend.federation.errors import RoundImpossible
from backend.federation.split.process import OwnGradient
from backend.federation.strategies.news_model_release import (
    NEWS_GRADIENT,
    NewsModelStep,
    bert_encoder,
    by_model,
    live_titles,
    news_model_result,
    require_torch,
    user_model_step,
)
from backend.federation.strategies.strategy import FederatedSystem, Plan, RoundContext, RoundResult
from backend.news.pool import NewsPool
from backend.news.pool_reading import PoolRow
from protocol.pooled_states import GRAPH, HEAD, SHARDS, pack_head, pack_states
from protocol.rounds import RoundManifest

SHARD_ROWS = 4_096


@dataclass(frozen=True)
class NewsHead:
    """Makes one step of both models, where only the head of the news model is trained.

    The step equals that of `NewsSplit` with every row opened, as far as that trains the head, at the vectors that the
    head computes from the pooled states in float16. The pooling, which `NewsSplit` trains too, is frozen.

    Args:
        learning_rate: Adam's rate on the head; the paper's is 5e-5.
        threads: number in the training process.
    """

    learning_rate: float = 5e-5
    threads: int = 1

    def plan(self, system: FederatedSystem, context: RoundContext) -> Plan:
        """Ask for gradients of the user model's parameters and of the head's.

        Materials are the head, the graph of its gradient, and the pooled states of the whole pool in shards by
        publishing day. Raises RoundImpossible if torch or `bert_encoder` isn't on this server, or the latter
        has trained layers of BERT below its head.
        """
        from backend.embedding.pooled_states import LayersTrained, PooledStates  # imports ONNX Runtime

        require_torch()

        assert system.model is not None
        try:
            pooled = PooledStates(
                context.data_dir / "encoder", bert_encoder(context), threads=self.threads, executor=context.executor
            )
        except LayersTrained as trained:
            raise RoundImpossible(
                f"Only the system news_rows can train this news model: {trained}.", field="system"
            ) from trained
        except FileNotFoundError as missing:
            raise RoundImpossible(
                f"The release's news encoder can't be trained here: {missing}.", field="system"
            ) from missing
        shapes = gradient_shapes(context.releases.weights(context.release, system.model))
        shapes |= {NEWS_GRADIENT + name: value.shape for name, value in pooled.head.items()}
        add = context.releases.add_blob
        materials = {HEAD: add(pack_head(pooled.head)), GRAPH: add(pooled.gradient_graph)}
        rows = NewsPool(context.engine).live(context.clock())
        states = pooled.of([row.title for row in rows])
        return Plan(
            shapes, {**materials, **{SHARDS + name: add(blob) for name, blob in shards(rows, states, pack_states)}}
        )

    def conclude(
        self, system: FederatedSystem, total: Aggregate, context: RoundContext, manifest: RoundManifest
    ) -> RoundResult:
        """Return new user model weights, an encoder with a new head, and the pool's new vectors.

        Raises NewsModelFailed if the training process failed.
        """
        of_user, of_head = by_model(total.mean())
        stepped, user, news = user_model_step(system, context, of_user)
        titles = live_titles(context)
        made = NewsModelStep(self.learning_rate, threads=self.threads).make(context, titles, OwnGradient(of_head), news)
        down = sum(ref.size_bytes for ref in manifest.materials.values())
        up = numbers(of_user), numbers(of_head)
        return news_model_result(
            system,
            context,
            titles,
            made,
            weights=stepped,
            memory=user,
            summary=(
                f"{sum(up):,} numbers up from a device, {up[0]:,} of the user model and {up[1]:,} of the head; down "
                f"at most {down / 1e6:.1f} MB of public states, once for as long as they stay."
            ),
            facts={
                "head": up[1],
                "user_model": up[0],
                "numbers_up": sum(up),
                "shards": sum(name.startswith(SHARDS) for name in manifest.materials),
                "materials_bytes": down,
            },
        )


def numbers(tensors: Mapping[str, NDArray[np.float64]]) -> int:
    """Return the total number of elements of all tensors."""
    return sum(each.size for each in tensors.values())


def shards(
    rows: list[PoolRow], read: NDArray[Any], pack: Callable[[Sequence[str], NDArray[Any]], bytes]
) -> Iterator[tuple[str, bytes]]:
    """Yield a news model's inputs for the pool, [n, ...] by publishing day (UTC).

    A large day has several shards. Within a day articles are in the order of arrival, so that later arrivals only
    change its end.
    """
    days: dict[str, list[int]] = {}
    for row, each in enumerate(rows):
        days.setdefault(each.published_at.astimezone(UTC).date().isoformat(), []).append(row)
    for day, mine in sorted(days.items()):
        for part, start in enumerate(range(0, len(mine), SHARD_ROWS)):
            cut = mine[start : start + SHARD_ROWS]
            yield f"{day}.{part}", pack([rows[row].id for row in cut], read[cut])
