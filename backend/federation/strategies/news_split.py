"""Efficient-FedRec by rows: devices train the user model, the server the news model.

Source: EMNLP 2021, section 3.3. Devices send gradients of the user model and of news vectors, not of the news model.
The server has that model, and turns the vectors' gradients into the model's by a vector-Jacobian product. The sum
equals that of end-to-end training on all samples in one place (docs/decisions/013).

The first step, `NewsUnion`, finds the articles in the cohort's samples (section 3.4, eq. 8).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from pydantic import TypeAdapter

from backend.federation.bounded_mean import PREFIX, Aggregate, gradient_shapes
from backend.federation.errors import RoundImpossible
from backend.federation.protections.union_marks import union_marks_of
from backend.federation.split.process import VectorGradients
from backend.federation.strategies.news_model_release import (
    NewsModelStep,
    live_titles,
    news_model_result,
    require_bert,
    user_model_step,
)
from backend.federation.strategies.strategy import FederatedSystem, Plan, RoundContext, RoundResult
from backend.news.pool import NewsPool
from protocol.ids import NewsId
from protocol.releases import BlobRef
from protocol.rounds import RoundManifest
from protocol.tensors import pack
from protocol.union import NEWS, alone_chance, opened_rows

LISTED = "news"
"""The material with the articles of the rows: a JSON list of ids, ascending."""
OPENED = "opened"
"""The key in the conclusion's facts of the opened articles: a blob of the same form."""
DROPOUT = 0.1
"""The dropout assumed for a figure for the operator: the share of opened rows that then come from a single device."""
_IDS = TypeAdapter(tuple[NewsId, ...])


@dataclass(frozen=True)
class NewsUnion:
    """Finds the union of the cohort's articles.

    Those with enough holders are opened for the following round. With marks the server learns which articles of the
    pool any device in the cohort holds; with counts, how many of the survivors hold each, and an article with fewer
    than `owners_minimum` holders gets no row in the following round. With small cohorts, or the same devices
    repeatedly, differences between unions reveal more (docs/decisions/013).

    Args:
        follow: the system whose round collects gradients of the opened articles.
    """

    follow: str

    def plan(self, system: FederatedSystem, context: RoundContext) -> Plan:
        """Plan marks for every article of the pool that has a vector.

        Raises RoundImpossible if there is none, or no BERT encoder to train for it.
        """
        require_bert(context)
        ids = sorted(NewsPool(context.engine).vectors(context.release.encoder)[0])
        if not ids:
            raise RoundImpossible("No article in the pool has a vector from the release's encoder.", field="system")
        return Plan({NEWS: (len(ids),)}, {LISTED: context.releases.add_blob(ids_blob(ids))})

    def conclude(
        self, system: FederatedSystem, total: Aggregate, context: RoundContext, manifest: RoundManifest
    ) -> RoundResult:
        """Open the rows and order the round of gradients.

        Raises RoundImpossible if no article has enough holders.
        """
        protection = union_marks_of(manifest.protection)
        owners, survivors = total.sums()[NEWS], total.count
        listed = read_ids(context.releases.read_blob(manifest.materials[LISTED].sha256))
        rows = opened_rows(protection, owners, survivors)
        facts = {
            "listed": len(listed),
            "opened_news": len(rows),
            "owners_minimum": protection.owners_minimum,
            "threshold": round(protection.threshold(survivors), 2),
        }
        if not protection.sigma:
            facts["held_news"] = int((owners > 0).sum())
        if protection.counts and not protection.sigma and len(rows):
            alone = [alone_chance(int(count), DROPOUT) for count in owners[rows]]
            facts["alone_if_a_tenth_goes"] = round(sum(alone) / len(rows), 4)
        if not len(rows):
            raise RoundImpossible(
                f"No article was marked by {protection.owners_minimum} devices, the minimum for opening its row; "
                f"{survivors} took part.",
                field="owners_minimum",
                limit=str(protection.owners_minimum),
            )
        opened = context.releases.add_blob(ids_blob([listed[row] for row in rows]))
        held = f"{facts['held_news']:,} of {len(listed):,} articles are held; " if "held_news" in facts else ""
        several = f"{protection.owners_minimum:,} devices or more" if protection.counts else "some device"
        return RoundResult(
            facts={**facts, OPENED: opened.model_dump()},
            next=replace(context.request, system=self.follow),
            summary=f"{held}{len(rows):,} are held by {several} and opened.",
        )


def ids_blob(ids: Sequence[str]) -> bytes:
    """Return article ids as data for a round."""
    return json.dumps(list(ids)).encode()


def read_ids(blob: bytes) -> tuple[str, ...]:
    """Return the ids that `ids_blob` wrote."""
    return _IDS.validate_json(blob)


def opened_ids(context: RoundContext) -> tuple[str, ...]:
    """Return the articles that the previous round opened.

    Raises RoundImpossible if that was not a union on this release.
    """
    past = context.past
    if past is None or OPENED not in past.facts:
        raise RoundImpossible(
            "A round of news gradients must follow one that listed the devices' articles.", field="system"
        )
    if past.manifest.release != context.release.release:
        raise RoundImpossible(
            f"The union was made for release {past.manifest.release}; {context.release.release} was published "
            "meanwhile.",
            field="system",
        )
    return read_ids(context.releases.read_blob(BlobRef.model_validate(past.facts[OPENED]).sha256))


VECTORS = "vectors"
"""The material with the opened articles' vectors: safetensors, float32 [n, D], in the order of the list."""
NEWS_GRADIENT = PREFIX + "news"


@dataclass(frozen=True)
class SplitCost:
    """Efficient-FedRec's communication: vectors and user model down, their gradients up.

    news: number of articles in the union; dimensions: length of a news vector; user_model: number of its parameters.
    The papers count neither the union itself nor keys, shares and the ring's width; the round's status has bytes.
    """

    news: int
    dimensions: int
    user_model: int

    @property
    def one_way(self) -> int:
        """Numbers sent in one direction."""
        return self.dimensions * self.news + self.user_model

    @property
    def total(self) -> int:
        """Numbers sent in both directions."""
        return 2 * self.one_way


@dataclass(frozen=True)
class NewsSplit:
    """Makes one step of both models; the news model's gradient comes from news vectors.

    This is the paper's form, which can train any part of the news model. Its trainable part starts as it serves:
    uniform pooling and the head that was fitted to the pool (`backend.embedding.initial_encoder`), so before the first
    step every vector is the served one, and ranking starts at the cosine. One step of Adam moves no weight by more than
    about `learning_rate`.

    Args:
        learning_rate: Adam's rate on the news model; the paper's is 5e-5.
        layers: how many top layers of BERT are trained besides pooling and head.
        threads: number in that process.
        printed: whether the step is eq. 7 as published instead of Adam's.
    """

    learning_rate: float = 5e-5
    layers: int = 0
    threads: int = 1
    printed: bool = False

    def plan(self, system: FederatedSystem, context: RoundContext) -> Plan:
        """Ask for gradients of the user model's parameters and of the opened articles' vectors.

        These vectors are materials. Raises RoundImpossible if the round follows no union, none of its articles is in
        the pool any more, or the encoder has trained more layers than are to be trained.
        """
        trained = trained_layers(context)
        if self.layers < trained:
            raise RoundImpossible(
                f"Rounds have trained the top {trained} layers of BERT in the news encoder in use; this round would "
                f"only train {self.layers}.",
                field="system",
                limit=f"the setting news_layers at least {trained}",
            )
        assert system.model is not None
        require_bert(context)
        vectors = dict(zip(*NewsPool(context.engine).vectors(context.release.encoder), strict=True))
        ids = [news_id for news_id in opened_ids(context) if news_id in vectors]
        if not ids:
            raise RoundImpossible("None of the opened articles is in the pool any more.", field="system")
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
        """Return new weights of the user model, a new news encoder, and the pool's vectors by it.

        Raises NewsModelFailed if the training process failed.
        """
        mean = total.mean()
        vector_gradients = mean.pop(NEWS_GRADIENT)
        stepped, user, news = user_model_step(system, context, mean)
        ids = read_ids(context.releases.read_blob(manifest.materials[LISTED].sha256))
        titles = live_titles(context)
        # Articles that have left the pool meanwhile can't be encoded any more: their rows of the gradient are lost.
        here = [row for row, news_id in enumerate(ids) if news_id in titles]
        row_of = {news_id: row for row, news_id in enumerate(titles)}
        rows = VectorGradients([row_of[ids[row]] for row in here], vector_gradients[here])
        made = NewsModelStep(self.learning_rate, self.layers, self.threads, self.printed).make(
            context, titles, rows, news
        )
        cost = SplitCost(len(ids), vector_gradients.shape[1], sum(value.size for value in stepped.values()))
        return news_model_result(
            system,
            context,
            titles,
            made,
            weights=stepped,
            memory=user,
            summary=(
                f"{cost.total:,} numbers moved for a device, down and up: vectors of {cost.news:,} news and a user "
                f"model of {cost.user_model:,}."
            ),
            facts={
                "news": len(ids),
                "dimensions": int(vector_gradients.shape[1]),
                "user_model": cost.user_model,
                "numbers_moved": cost.total,
                "rows_without_gradient": int((~vector_gradients.any(axis=1)).sum()),
            },
        )


def trained_layers(context: RoundContext) -> int:
    """Return how many top layers of BERT the release's encoder has trained.

    0 if it isn't on this server.
    """
    from backend.embedding.embedder import encoder_folder  # imports tokenizers
    from backend.embedding.encoder_files import read_description

    try:
        folder = encoder_folder(context.data_dir / "encoder", context.release.encoder)
    except FileNotFoundError:
        return 0
    return int(read_description(folder).get("layers", 0))
