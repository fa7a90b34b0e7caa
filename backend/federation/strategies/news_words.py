"""FedNewsRec whole: devices make the gradients of user model and news model themselves (section 3.2).

The news model reads words, whose vectors stand still, so all that it reads is public: devices take the pool's titles as
rows of a table, and the table, both whole. A round applies the paper's step to both models, and the pool is embedded
anew (docs/decisions/057).
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from backend.federation.bounded_mean import Aggregate, gradient_shapes
from backend.federation.errors import RoundImpossible
from backend.federation.optimizers import Memory
from backend.federation.split.process import Done, Stepped
from backend.federation.strategies.news_head import numbers, shards
from backend.federation.strategies.news_model_release import (
    NEWS_GRADIENT,
    by_model,
    live_titles,
    news_model_result,
    user_model_step,
)
from backend.federation.strategies.strategy import FederatedSystem, Plan, RoundContext, RoundResult
from backend.news.pool import NewsPool
from device_app.wire.releases import BLOB_LIMIT_BYTES
from device_app.wire.rounds import RoundManifest
from device_app.wire.tensors import TensorSpec, pack, unpack
from device_app.wire.words_of_titles import GRAPH, MODEL, TITLES, pack_titles, packed_table

FITTED_NEWS = 10_000
"""So many of the newest news say where a first news model begins."""


@dataclass(frozen=True)
class NewsWords:
    """One step of both models by the system's optimizer.

    The first round of a release with another encoder begins where the words give its vectors best
    (`WordModel.start`); each later one where the release's encoder stands.

    Args:
        threads: for the pool's vectors.
    """

    threads: int = 1

    def plan(self, system: FederatedSystem, context: RoundContext) -> Plan:
        """Gradients of both models' parameters; materials are the news model, the graph of its gradient, the titles of
        the whole pool in words, a shard a publishing day, and the words' vectors.

        Raises RoundImpossible where the word model isn't prepared.
        """
        from backend.embedding.word_model import WordModel, WordModelMissing  # tokenizers: only when it trains

        assert system.model is not None
        try:
            model = WordModel(context.data_dir / "encoder")
        except WordModelMissing as missing:
            raise RoundImpossible(
                "The news model over words isn't prepared: that is done with the ranker fednewsrec.", field="system"
            ) from missing
        pool = NewsPool(context.engine)
        rows = pool.live(context.clock())
        words = model.words([row.title for row in rows])
        parameters = model.trained(context.release.encoder)
        if parameters is None:
            served = dict(zip(*pool.vectors(context.release.encoder), strict=True))
            known = [place for place, row in enumerate(rows) if row.id in served][-FITTED_NEWS:]
            if not known:
                raise RoundImpossible("No news of the pool has a vector yet.", field="system")
            parameters = model.start(words[known], np.stack([served[rows[place].id] for place in known]))
        add = context.releases.add_blob
        shapes = gradient_shapes(context.releases.weights(context.release, system.model))
        shapes |= {NEWS_GRADIENT + name: shape for name, shape in model.shapes.items()}
        materials = {MODEL: add(pack(parameters)), GRAPH: add(model.gradient_graph)}
        materials |= {TITLES + name: add(blob) for name, blob in shards(rows, words, pack_titles)}
        return Plan(shapes, {**materials, **{name: add(blob) for name, blob in packed_table(model.table)}})

    def numbers_besides(self, data_dir: Path) -> int | None:
        """Of the news model, once it is prepared."""
        from backend.embedding.word_model import word_model_shapes

        shapes = word_model_shapes(data_dir / "encoder")
        return None if shapes is None else sum(map(math.prod, shapes.values()))

    def conclude(
        self, system: FederatedSystem, total: Aggregate, context: RoundContext, manifest: RoundManifest
    ) -> RoundResult:
        """New weights of the user model, a news encoder over words, and the pool's vectors by it."""
        of_user, of_news = by_model(total.mean())
        stepped, user, news = user_model_step(system, context, of_user)
        specs = {name: TensorSpec("float32", each.shape) for name, each in of_news.items()}
        content = context.releases.read_blob(manifest.materials[MODEL].sha256)
        before = unpack(content, specs, limit_bytes=BLOB_LIMIT_BYTES)
        titles = live_titles(context)
        made = self._step(system, context, titles, before, of_news, news)
        down = sum(ref.size_bytes for ref in manifest.materials.values())
        up = numbers(of_user), numbers(of_news)
        return news_model_result(
            system,
            context,
            titles,
            made,
            weights=stepped,
            memory=user,
            summary=(
                f"{sum(up):,} numbers up from a device, {up[0]:,} of the user model and {up[1]:,} of the news model; "
                f"down at most {down / 1e6:.1f} MB of public titles and words, once for as long as they stay."
            ),
            facts={
                "news_model": up[1],
                "user_model": up[0],
                "numbers_up": sum(up),
                "materials_bytes": down,
            },
        )

    def _step(
        self,
        system: FederatedSystem,
        context: RoundContext,
        titles: Mapping[str, str],
        before: Mapping[str, NDArray[np.float32]],
        gradient: Mapping[str, NDArray[np.float64]],
        memory: Memory,
    ) -> Stepped:
        """The optimizer's step of the news model, and the pool's vectors by it."""
        from backend.embedding.embedder import OnnxEmbedder
        from backend.embedding.word_model import WordModel

        assert system.optimizer is not None
        started = time.perf_counter()
        after, memory = system.optimizer.advance(before, gradient, memory)
        folder = WordModel(context.data_dir / "encoder").keep(after)
        stepped = time.perf_counter()
        vectors = OnnxEmbedder(folder, threads=self.threads).encode(list(titles.values()))
        seconds = {"step": round(stepped - started, 3), "encode": round(time.perf_counter() - stepped, 3)}
        change = {name: after[name].astype(np.float64) - before[name] for name in after}
        done = Done(
            encoder=folder.name,
            gradient_l2=_length(gradient),
            change_l2=_length(change),
            states_made=0,
            seconds=seconds,
        )
        return Stepped(done, memory, vectors)


def _length(tensors: Mapping[str, NDArray[np.float64]]) -> float:
    return math.sqrt(sum(float(np.square(each).sum()) for each in tensors.values()))
