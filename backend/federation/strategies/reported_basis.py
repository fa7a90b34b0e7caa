"""Uni-FedRec as served: rounds train the basis of the default reports.

A vote decides whether to publish it. The codebook of K prototypes is the recall model's basis. A reader's report is the
nearest basic interest, under randomised response, and lists are the posterior mixture over the basis. The loss is the
expected likelihood of clicks in these lists, over the K possible reports (`models.recall.basis`). Devices send
its gradient to a secure sum, and the server makes a step of a draft, which costs readers no new report. Every few
rounds devices vote on the draft with held-out clicks, using the release gate's numbers and sum, and only a draft that
finds more clicks is published, because readers whose codebook changes pay for one new report.

Of the paper's chain the device needs only one decomposition: if channels are means of their clicks, the quota-weighted
scores on the basis, sum_c q_c <r_c, v_k>, equal those of the mean of all clicks, and the nearest basic interest is the
largest of them.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from backend.errors import require_training
from backend.federation.bounded_mean import PREFIX, Aggregate, length
from backend.federation.errors import RoundImpossible
from backend.federation.optimizers import Memory
from backend.federation.protections.secure_sum import secure_sum_of
from backend.federation.protections.sum_bounds import noise_deviation
from backend.federation.strategies.learned_codebook import (
    HARDLY_MOVED,
    NOISE_MOST,
    codebook_mark,
    codebook_of,
    cohort_needed,
    finest_of,
    prototypes_of,
    remembers,
    with_codebook,
)
from backend.federation.strategies.release_gate import Verdict, judge_sums
from backend.federation.strategies.strategy import FederatedSystem, Plan, RoundContext, RoundResult
from backend.news.pool import NewsPool
from backend.popularity.estimate import SHARPNESS, lifts, log_popularity, utc_moments
from backend.popularity.store import CountRepository
from backend.server.child_processes import end_with_parent
from protocol.protections import SecureSum
from protocol.recall import BASIS, BEFORE, GRAPH, STEPS, ReportLists
from protocol.releases import BlobRef, Codebook
from protocol.ring import PROTOTYPES, SHAPES
from protocol.rounds import RoundManifest
from protocol.tensors import pack

Floats = NDArray[np.float64]

NEWS_AT_ONCE = 8_192
STEADY = 0.0031
"""Length of the constant part of the mean gradients of consecutive rounds, under a clip of .1. On MIND, this is how
much further than their noise drafts moved in JUDGED_AFTER rounds of 1,000 and 2,800 devices (.73 and .45 of them was
noise; `ownfeed evaluate basis`).
"""
JUDGED_AFTER = 30
"""The rounds, three votes, after which a draft is judged. By then it learns slowly, while its noise continues to add
up.
"""
VOTE_SECONDS = 90.0
"""The shortest duration of a vote, as for the release gate."""


@dataclass(frozen=True)
class BasisRounds:
    """Trains a draft of the codebook of `size`, and orders a vote on it every few rounds.

    Args:
        rate: step of plain gradient descent on the draft; prototypes keep length 1.
        axes: directions in which prototypes may move, the principal ones of the release's finest codebook: the
            fewer, the less noise is in a step.
        vote_every: rounds between votes. There is no vote on a draft that is mostly noise
            (`BasisDraft.noise_share`).
        vote: the system that votes; if the release gate is off, the draft is published without a vote.
    """

    rate: float
    size: int = 16
    axes: int = 8
    vote_every: int = 10
    vote: str = "basis_vote"

    def check_cohort(self, system: FederatedSystem, cohort: int) -> None:
        """Raise RoundImpossible if noise would dominate the draft.

        There would then never be a vote on it, and each device would pay for nothing.
        """
        noise, numbers = secure_sum_of(system.protection), self.size * self.axes
        share = expected_noise_share(noise, numbers, cohort)
        if share > NOISE_MOST:
            enough = f"about {cohort_needed(partial(expected_noise_share, noise, numbers)):,} devices"
            raise RoundImpossible(
                f"With {cohort:,} devices a round, {100 * share:.0f} % of the change made by {JUDGED_AFTER} rounds "
                f"would be noise. Above {100 * NOISE_MOST:.0f} % no device votes on it; {enough} a round "
                "would be enough. No round was opened, and no privacy budget was spent.",
                field="cohort",
                limit=enough,
            )

    def plan(self, system: FederatedSystem, context: RoundContext) -> Plan:
        """Ask for the gradient with respect to the draft's prototypes. Raises RoundImpossible."""
        book = codebook_of(context, self.size)
        draft, axes = self._draft(context), principal_axes(finest_of(context), self.axes)
        lists = report_lists(draft.prototypes.astype(np.float32), book.shares, *pool_of(context), axes=axes)
        add = context.releases.add_blob
        graph = gradient_graph(context.data_dir, self.size, len(axes), context.release.dimensions)
        return Plan({PREFIX + STEPS: (self.size, len(axes))}, {BASIS: add(lists.pack()), GRAPH: add(graph)})

    def conclude(
        self, system: FederatedSystem, total: Aggregate, context: RoundContext, manifest: RoundManifest
    ) -> RoundResult:
        """Return the draft after this cohort's step and, if due, the request for a vote on it."""
        book = codebook_of(context, self.size)
        served = prototypes_of(context, book)
        deviation = noise_deviation(secure_sum_of(manifest.protection), total.count) / total.count
        axes = principal_axes(finest_of(context), self.axes)
        after = self.stepped(self._draft(context), total, deviation, axes)
        facts = {
            "rounds": after.rounds,
            "least_cosine_to_codebook": float((after.prototypes * served).sum(axis=1).min()),
            "noise_share": after.noise_share(),
        }
        memory = after.memory(context.release.encoder, book)
        if after.rounds % self.vote_every or not self.worth(after, served):
            return RoundResult(facts=facts, memory=memory)
        blob = context.releases.add_blob(pack({PROTOTYPES: after.prototypes.astype(np.float32)}))
        if not context.held_out:
            return replace(published(blob, book, f"{after.rounds} rounds of {system.name}"), facts=facts, memory=memory)
        vote = replace(context.request, system=self.vote, seconds=max(context.request.seconds, VOTE_SECONDS))
        return RoundResult(
            facts=facts | {DRAFT: blob.model_dump()},
            memory=memory,
            next=vote,
            summary=f"A draft of {after.rounds} rounds is voted on before any reader pays for it.",
        )

    def stepped(self, draft: BasisDraft, total: Aggregate, deviation: float, axes: NDArray[np.float32]) -> BasisDraft:
        """Make one step along the axes [m, D].

        deviation: standard deviation of the noise on one number of the opened mean.
        """
        opened = {name: each / total.count for name, each in total.sums().items()}
        mean = total.mean()
        shortened = length(mean) / max(length(opened), 1e-12)
        moved = draft.prototypes - self.rate * mean[PREFIX + STEPS] @ axes.astype(np.float64)
        return replace(
            draft,
            prototypes=moved / np.linalg.norm(moved, axis=1, keepdims=True),
            noise=draft.noise + (self.rate * shortened * deviation) ** 2 * mean[PREFIX + STEPS].size,
            rounds=draft.rounds + 1,
        )

    def worth(self, draft: BasisDraft, served: NDArray[np.float32]) -> bool:
        """Return whether the draft has moved enough from these prototypes [K, D], beyond its noise."""
        moved = bool((draft.prototypes * served).sum(axis=1).min() < HARDLY_MOVED)
        return moved and draft.noise_share() <= NOISE_MOST

    def _draft(self, context: RoundContext) -> BasisDraft:
        """Return the draft of earlier rounds, or the release's codebook if there is none for it."""
        if remembers(context, self.size):
            kept = context.memory.tensors
            return BasisDraft(kept["drafted"], kept["begun"], float(kept["noise"]), context.memory.steps)
        return BasisDraft.begin(prototypes_of(context, codebook_of(context, self.size)))


DRAFT = "draft"
"""Key in the facts of a round that orders a vote: the blob of the prototypes."""


@dataclass(frozen=True)
class BasisDraft:
    """Prototypes [K, D] of length 1 after some rounds, their start, and the noise in them.

    The noise is the mean squared length of what the steps have added.
    """

    prototypes: Floats
    begun: Floats
    noise: float
    rounds: int

    @classmethod
    def begin(cls, prototypes: NDArray[np.float32]) -> BasisDraft:
        """Return a draft at the start."""
        start = prototypes.astype(np.float64)
        return cls(start, start, 0.0, 0)

    def noise_share(self) -> float:
        """Return the noise's share of the squared distance that the draft has moved, 0 to 1."""
        gone = float(np.square(self.prototypes - self.begun).sum())
        return min(1.0, self.noise / gone) if gone else 0.0

    def memory(self, encoder: str, book: Codebook) -> Memory:
        """Return the draft as memory for the next round."""
        kept = {"drafted": self.prototypes, "begun": self.begun, "noise": np.array(self.noise)}
        return Memory(self.rounds, kept | {"of": codebook_mark(encoder, book)})


@dataclass(frozen=True)
class BasisVote:
    """Publishes a draft if held-out clicks rank better in its lists, beyond the standard error.

    Unlike a ranker, a draft is voted on before it is served: this needs only a few vectors, and readers would have paid
    for a codebook that is undone later. Numbers, sum and standard error are the release gate's; if groups of the cohort
    are summed separately, gain and error are those of the joined sums.

    Args:
        confidence: one-sided; a draft that finds no more is published with a probability of at most 1 - confidence.
            Votes are repeated, and at .95 every twentieth vote would publish noise that every reader pays for.
    """

    confidence: float = 0.999

    def plan(self, system: FederatedSystem, context: RoundContext) -> Plan:
        """Ask devices to score the draft and the served basis.

        Raises RoundImpossible if there is no draft.
        """
        past = context.past
        if past is None or DRAFT not in past.facts:
            raise RoundImpossible("No round has drafted a basis to vote on.", field="system")
        if not context.held_out:
            raise RoundImpossible(
                "The release gate is off, so devices hold out no clicks.", field="system", limit="the setting gate"
            )
        if past.manifest.release != context.release.release:
            raise RoundImpossible(
                f"The basis was drafted for {past.manifest.release}; another was published meanwhile.", field="system"
            )
        blob = BlobRef.model_validate(past.facts[DRAFT])
        size = past.manifest.shapes[PREFIX + STEPS][0]
        book, pool = codebook_of(context, size), pool_of(context)
        drafted = prototypes_of(context, book.model_copy(update={"prototypes": blob}))
        none = np.zeros((0, context.release.dimensions), dtype=np.float32)
        materials = {
            name: context.releases.add_blob(report_lists(each, book.shares, *pool, axes=none).pack())
            for name, each in ((BASIS, drafted), (BEFORE, prototypes_of(context, book)))
        }
        return Plan(SHAPES, materials)

    def conclude(
        self, system: FederatedSystem, total: Aggregate, context: RoundContext, manifest: RoundManifest
    ) -> RoundResult:
        """Return the verdict, and the next release if the draft finds more."""
        verdict, least = self.judge(total, secure_sum_of(manifest.protection))
        facts = {"vote": asdict(verdict) | {"least_gain": least}}
        result = (
            f"Clicks held out by {verdict.devices} devices stand {verdict.gain:+.4f} in lists by the draft (standard "
            f"error {verdict.error:.4f}; 0 to 1, .5 as in the popular list)"
        )
        if not verdict.gain > least:
            return RoundResult(facts=facts, summary=f"{result}: the codebook stays, and nobody pays.")
        content = context.releases.read_blob(manifest.materials[BASIS].sha256)
        drafted = ReportLists.unpack(content).prototypes
        blob = context.releases.add_blob(pack({PROTOTYPES: drafted}))
        found = published(blob, codebook_of(context, len(drafted)), f"a vote of {verdict.devices} devices")
        return replace(found, facts=facts, summary=f"{result}: published.")

    def judge(self, total: Aggregate, protection: SecureSum) -> tuple[Verdict, float]:
        """Return the verdict, and the gain above which the draft is published."""
        verdict = judge_sums(total, protection, tolerance=0.0, confidence=self.confidence)
        return verdict, NormalDist().inv_cdf(self.confidence) * verdict.error


def expected_noise_share(noise: SecureSum, numbers: int, devices: int) -> float:
    """Return the expected share of noise in a draft after JUDGED_AFTER rounds, 0 to 1.

    devices: in each round. numbers: in each update. The learning rate cancels out. Squared lengths of noise add up over
    the rounds, while constant steps add up before they are squared.
    """
    a_round = numbers * (noise_deviation(noise, devices) / devices) ** 2
    return a_round / (a_round + JUDGED_AFTER * STEADY**2)


def published(blob: BlobRef, book: Codebook, why: str) -> RoundResult:
    """Return a result that replaces the prototypes of a codebook; shares and epsilon stay."""
    new = Codebook(size=book.size, epsilon=book.epsilon, prototypes=blob, shares=book.shares)
    note = f"a trained basis replaces the codebook of {book.size}, after {why}"
    return RoundResult(draft=lambda draft: with_codebook(draft, new), note=note)


def pool_of(context: RoundContext) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the vectors [n, D] of the articles in lists, and their log popularity [n].

    Raises RoundImpossible for an empty pool.
    """
    pool, now = NewsPool(context.engine), context.clock()
    ids, vectors = pool.vectors(context.release.encoder)
    place = {news_id: row for row, news_id in enumerate(ids)}
    offered = [row for row in pool.live(now) if row.duplicate_of is None and row.id in place]
    if not offered:
        raise RoundImpossible("No article has a vector by the release's encoder.", field="system")
    numbers = np.array([row.number for row in offered], dtype=np.int64)
    counts = CountRepository(context.engine, half_life_hours=context.counts_half_life_hours)
    popularity = log_popularity(
        utc_moments([row.published_at for row in offered]),
        np.array([row.weight for row in offered], dtype=np.float32),
        now,
        lifts=lifts(counts, numbers, [row.topic for row in offered], now).values,
    )
    return vectors[[place[row.id] for row in offered]], popularity


def report_lists(
    prototypes: NDArray[np.float32],
    shares: tuple[float, ...],
    vectors: NDArray[np.float32],
    popularity: NDArray[np.float32],
    *,
    axes: NDArray[np.float32],
    sharpness: float = SHARPNESS,
) -> ReportLists:
    """Return what the lists of K prototypes are computed from; without shares, all are equal.

    The pool has vectors [n, D] and log popularity [n].
    """
    size = len(prototypes)
    scale = np.full(size, -np.inf)
    means = np.zeros(prototypes.shape)
    for start in range(0, len(vectors), NEWS_AT_ONCE):
        news = vectors[start : start + NEWS_AT_ONCE]
        scores = sharpness * (prototypes @ news.T).astype(np.float64) + popularity[start : start + NEWS_AT_ONCE]
        highest = scores.max(axis=1)
        both = np.logaddexp(scale, highest + np.log(np.exp(scores - highest[:, None]).sum(axis=1)))
        means = np.exp(scale - both)[:, None] * means + np.exp(scores - both[:, None]).astype(np.float32) @ news
        scale = both
    everybody = np.logaddexp.reduce(popularity.astype(np.float64))
    even = np.full(size, 1 / size)
    return ReportLists(
        prototypes.astype(np.float32),
        (scale - everybody).astype(np.float32),
        (sharpness * means).astype(np.float32),
        np.array(shares or even, dtype=np.float32),
        axes,
        sharpness,
    )


def principal_axes(prototypes: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    """Return the principal directions [m, D] of prototypes [L, D], orthonormal.

    m is at most `count`, L and D.
    """
    _, _, directions = np.linalg.svd(prototypes.astype(np.float64), full_matrices=False)
    return np.asarray(directions[:count], dtype=np.float32)


def gradient_graph(folder: Path, size: int, axes: int, dimensions: int) -> bytes:
    """Return the gradient's graph for devices: the one that travels with Ownfeed, or cached in the folder.

    A separate process builds the latter, since that imports torch. Raises TrainingNotInstalled.
    """
    from exporters.graph_cache import CachedGraphs, GraphCache, entry_name
    from exporters.shipped import reported_basis_entry, shipped

    if (found := shipped(reported_basis_entry(size, axes, dimensions, SHARPNESS))) is not None:
        return found.graphs["gradient"]
    require_training("A round of basic interests of another number than the defaults")

    def make() -> CachedGraphs:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=end_with_parent) as apart:
            return CachedGraphs({"gradient": apart.submit(_exported, size, axes, dimensions).result()}, {})

    name = entry_name("reported_basis", size, axes, dimensions, SHARPNESS)
    return GraphCache(folder / "graphs").kept(name, make).graphs["gradient"]


def _exported(size: int, axes: int, dimensions: int) -> bytes:
    from exporters.package import export_basis_gradient

    return export_basis_gradient(size, axes, dimensions, SHARPNESS)
