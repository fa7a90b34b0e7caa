"""FedNewsRec, NAML and LSTUR in full: devices train user and news model (section 3.2).

The news model reads words, whose vectors are frozen, so everything that it reads is public. Devices fetch the pool's
titles as rows of a table of word vectors, and the whole table; if the model reads abstracts and category ids, these
likewise. A round makes the paper's step on both models, and the pool is embedded again (docs/decisions/014).
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from backend.federation.bounded_mean import Aggregate, gradient_shapes
from backend.federation.errors import RoundImpossible
from backend.federation.optimizers import Memory
from backend.federation.split.process import SplitStepResult, StepResult
from backend.federation.strategies.news_head import numbers, shards
from backend.federation.strategies.news_model_release import (
    NEWS_GRADIENT,
    by_model,
    news_model_result,
    user_model_step,
)
from backend.federation.strategies.strategy import FederatedSystem, Plan, RoundContext, RoundResult
from backend.news.pool import NewsPool
from backend.news.pool_reading import PoolRow
from protocol.releases import BLOB_LIMIT_BYTES
from protocol.rounds import RoundManifest
from protocol.tensors import TensorSpec, pack, unpack
from protocol.words_of_titles import (
    ABSTRACTS,
    CATEGORIES,
    GRAPH,
    MODEL,
    TITLES,
    pack_categories,
    pack_texts,
    packed_table,
)

FITTED_NEWS = 10_000
"""How many of the newest articles the first news model is fitted to."""


@dataclass(frozen=True)
class NewsWords:
    """Makes one step of both models by the system's optimizer.

    The first round of a release with another encoder starts where the words reproduce its vectors best
    (`WordModel.start`); later ones start at the release's encoder.

    Args:
        architecture: name of the news model's.
        prepared_with: the ranker that an operator chooses to have the news model prepared.
        threads: number for the pool's vectors.
    """

    architecture: str = "fednewsrec_words"
    prepared_with: str = "fednewsrec"
    threads: int = 1

    def plan(self, system: FederatedSystem, context: RoundContext) -> Plan:
        """Ask for gradients of both models' parameters.

        Materials are the news model, the graph of its gradient, the words' vectors, and what the news model reads of
        the whole pool, in shards by publishing day. Raises RoundImpossible if the word model isn't prepared.
        """
        from backend.embedding.word_model import WordModel, WordModelMissing  # imports tokenizers

        assert system.model is not None
        try:
            model = WordModel(context.data_dir / "encoder", self.architecture)
        except WordModelMissing as missing:
            raise RoundImpossible(
                "The news model over words is not prepared. It is prepared together with the ranker "
                f"{self.prepared_with}.",
                field="system",
            ) from missing
        pool = NewsPool(context.engine)
        rows = pool.live(context.clock())
        words, abstracts = model.words([row.title for row in rows]), model.besides.abstracts(rows)
        parameters = model.trained(context.release.encoder)
        if parameters is None:
            served = dict(zip(*pool.vectors(context.release.encoder), strict=True))
            known = [place for place, row in enumerate(rows) if row.id in served][-FITTED_NEWS:]
            if not known:
                raise RoundImpossible("No article of the pool has a vector yet.", field="system")
            parameters = model.start(
                words[known],
                np.stack([served[rows[place].id] for place in known]),
                None if abstracts is None else abstracts[known],
            )
        add = context.releases.add_blob
        shapes = gradient_shapes(context.releases.weights(context.release, system.model))
        shapes |= {NEWS_GRADIENT + name: shape for name, shape in model.shapes.items()}
        materials = {MODEL: add(pack(parameters)), GRAPH: add(model.gradient_graph)}
        materials |= {TITLES + name: add(blob) for name, blob in shards(rows, words, pack_texts)}
        if abstracts is not None:
            materials |= {ABSTRACTS + name: add(blob) for name, blob in shards(rows, abstracts, pack_texts)}
        if (ids := model.besides.category_ids(rows)) is not None:
            materials |= {CATEGORIES + name: add(blob) for name, blob in shards(rows, ids, pack_categories)}
        return Plan(shapes, {**materials, **{name: add(blob) for name, blob in packed_table(model.table)}})

    def numbers_besides(self, data_dir: Path) -> int | None:
        """Return the number of the news model's parameters once it is prepared."""
        from backend.embedding.word_model import word_model_shapes

        shapes = word_model_shapes(data_dir / "encoder", self.architecture)
        return None if shapes is None else sum(map(math.prod, shapes.values()))

    def conclude(
        self, system: FederatedSystem, total: Aggregate, context: RoundContext, manifest: RoundManifest
    ) -> RoundResult:
        """Return new user model weights, a news encoder over words, and the pool's new vectors."""
        of_user, of_news = by_model(total.mean())
        stepped, user, news = user_model_step(system, context, of_user)
        specs = {name: TensorSpec("float32", each.shape) for name, each in of_news.items()}
        content = context.releases.read_blob(manifest.materials[MODEL].sha256)
        before = unpack(content, specs, limit_bytes=BLOB_LIMIT_BYTES)
        rows = NewsPool(context.engine).live(context.clock())
        titles = {row.id: row.title for row in rows}
        made = self._step(system, context, rows, before, of_news, news)
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
        rows: Sequence[PoolRow],
        before: Mapping[str, NDArray[np.float32]],
        gradient: Mapping[str, NDArray[np.float64]],
        memory: Memory,
    ) -> SplitStepResult:
        """Make the optimizer's step of the news model and return the pool's vectors by it."""
        from backend.embedding.embedder import OnnxEmbedder
        from backend.embedding.word_model import WordModel

        assert system.optimizer is not None
        started = time.perf_counter()
        after, memory = system.optimizer.advance(before, gradient, memory)
        folder = WordModel(context.data_dir / "encoder", self.architecture).keep(after)
        stepped = time.perf_counter()
        vectors = OnnxEmbedder(folder, threads=self.threads, executor=context.executor.open(self.threads)).encode_news(
            rows
        )
        seconds = {"step": round(stepped - started, 3), "encode": round(time.perf_counter() - stepped, 3)}
        change = {name: after[name].astype(np.float64) - before[name] for name in after}
        done = StepResult(
            encoder=folder.name,
            gradient_l2=_length(gradient),
            change_l2=_length(change),
            states_made=0,
            seconds=seconds,
        )
        return SplitStepResult(done, memory, vectors)


def _length(tensors: Mapping[str, NDArray[np.float64]]) -> float:
    return math.sqrt(sum(float(np.square(each).sum()) for each in tensors.values()))
