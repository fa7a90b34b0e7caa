"""The codebook of reports, learned from secure sums: each round is one step of Lloyd's algorithm over its cohort.

Prototypes that follow readers beat topic centroids (docs/decisions/009). The draft moves with every round; the
codebook of the release is replaced by it only every `adopt_every` rounds, since a reader whose codebook changes has to
pay for one fresh report under the new one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256

import numpy as np

from backend.federation.bounded_mean import Aggregate
from backend.federation.errors import RoundImpossible
from backend.federation.grouping.drift import Drift
from backend.federation.optimizers import Memory
from backend.federation.protections.secure_sum import secure_sum_of
from backend.federation.protections.sum_bounds import noise_deviation, noise_length
from backend.federation.strategies.strategy import FederatedSystem, Plan, RoundContext, RoundResult
from backend.releases.alignment import ProcrustesAlignment
from backend.releases.draft import ReleaseDraft
from device_app.wire.protections import SecureSum
from device_app.wire.releases import Codebook, ReleaseManifest
from device_app.wire.rounds import RoundManifest
from device_app.wire.sum_vectors import MEMBERS, PROTOTYPES, SUMS, VECTOR_SHARE, member_share
from device_app.wire.tensors import TensorSpec, pack, unpack

NOISE_KEPT = 3.0
"""Standard deviations of noise that a count of members may lie beyond what devices can give."""
HARDLY_MOVED = 0.995
"""Cosine above which no prototype is worth every reader's fresh report."""
IN_THE_SPACE = ("means", "drafted", "begun")
"""What memories of codebooks hold in rows [K, D] of the news' space."""
NOISE_MOST = 0.3
"""Share of what sets a draft's groups apart that may be noise. On MIND drafts without noise find what topics find or
more; from a half on they lose up to two points of R@100 (`ownfeed evaluate codebook`)."""

APART = 0.0257
"""Squared length of what sets a draft's groups apart without the noise: on MIND .37 of a draft of 2,800 readers a round
was noise (`ownfeed evaluate codebook`). Smaller cohorts had somewhat more, since their drafts are still near the topics
that they begin at."""
STEADY_AFTER = 30
"""Rounds after which the noise in a draft neither grows nor falls: of 1,000 devices and more it doesn't after 20."""


@dataclass(frozen=True)
class LearnedCodebook:
    """Learns the codebook of `size` prototypes; a draft is adopted after every `adopt_every` rounds.

    Args:
        apart: share of the mean of all readers that is taken out of the adopted prototypes. A reader's vector is a mean
            of several interests, and mostly what all readers have in common: lists by such prototypes are nearly the
            same for everybody. With 1 they follow what sets a group's readers apart.
        axes: directions in which prototypes may move, the principal ones of the release's finest codebook; all without.
            Noise is as long as the square root of their number, and what sets readers of news apart lies in few.

    A draft that is mostly noise is never adopted, however many rounds there were: `Drift.noise_share`.
    """

    size: int = 16
    adopt_every: int = 10
    apart: float = 0.0
    axes: int | None = None

    def check_cohort(self, system: FederatedSystem, cohort: int) -> None:
        """Raises RoundImpossible where noise would be so much of the drafts of such cohorts that none is ever
        published, and each device has paid for nothing. Where prototypes may move in all directions nothing is known
        beforehand."""
        noise = secure_sum_of(system.protection)
        if not noise.sigma or self.axes is None:
            return
        share = self.expected_noise_share(noise, cohort)
        if share > NOISE_MOST:
            enough = f"about {cohort_needed(partial(self.expected_noise_share, noise)):,} devices"
            raise RoundImpossible(
                f"With {cohort:,} devices a round, {100 * share:.0f} % of what sets the groups of a draft apart would "
                f"be the noise of their sums. Above {100 * NOISE_MOST:.0f} % no draft is published; {enough} a round "
                "would be enough. No round is opened, and nobody's budget is spent.",
                field="cohort",
                limit=enough,
            )

    def expected_noise_share(self, noise: SecureSum, devices: int) -> float:
        """`Drift.noise_share` of a draft after many rounds of so many devices, if they are spread evenly."""
        axes = self.axes or 1
        draft, even = self.begin(np.eye(self.size, axes, dtype=np.float32)), np.full(self.size, devices / self.size)
        deviation = noise_deviation(noise, devices)
        for _ in range(STEADY_AFTER):
            draft = draft.seen(
                even[:, None] * draft.means,
                even,
                devices,
                sums_variance=(deviation / (VECTOR_SHARE * noise.clip)) ** 2,
                members_variance=(deviation / (member_share() * noise.clip)) ** 2,
            )
        length = axes * float(draft.noises.mean())
        return length / (length + APART)

    def plan(self, system: FederatedSystem, context: RoundContext) -> Plan:
        """Asks every device which of the draft's prototypes it is nearest to, under masks. Raises RoundImpossible."""
        draft = self._draft(context)
        blob = context.releases.add_blob(pack({PROTOTYPES: draft.prototypes}))
        return Plan({SUMS: draft.means.shape, MEMBERS: (self.size,)}, {PROTOTYPES: blob})

    def conclude(
        self, system: FederatedSystem, total: Aggregate, context: RoundContext, manifest: RoundManifest
    ) -> RoundResult:
        """The draft after this cohort, and every so often the release's codebook."""
        protection = secure_sum_of(system.protection)
        opened, before = total.sums(), self._draft(context)
        vector, member = VECTOR_SHARE * protection.clip, member_share() * protection.clip
        step = protection.sigma / 2.0**protection.fraction_bits
        variance = step**2 * total.count
        members = np.clip(opened[MEMBERS] / member, *_possible(total.count, np.sqrt(variance) / member))
        after = before.seen(
            self.within(_reachable(opened[SUMS] / vector, total.count, variance / vector**2), finest_of(context)),
            members,
            total.count,
            sums_variance=variance / vector**2,
            members_variance=variance / member**2,
        )
        rounds = context.memory.steps + 1 if remembers(context, self.size) else 1
        adopted = codebook_of(context, self.size)
        drafted = after.apart(self.apart)
        moved = self.moved(after, prototypes_of(context, adopted))
        adopts = rounds % self.adopt_every == 0 and self.worth(after, prototypes_of(context, adopted))
        facts = {
            "rounds": rounds,
            "least_cosine_to_codebook": moved,
            "noise_per_coordinate": float(np.sqrt(variance) / vector),
            "noise_share": after.noise_share(),
            "shares": [round(float(share), 4) for share in after.shares()],
            "adopted": adopts,
        }
        if not adopts:
            return RoundResult(facts=facts, memory=self._memory(after, rounds, context.release.encoder, adopted))
        blob = context.releases.add_blob(pack({PROTOTYPES: drafted}))
        book = Codebook(size=self.size, epsilon=adopted.epsilon, prototypes=blob, shares=tuple(after.shares().tolist()))

        note = f"prototypes learned in {rounds} rounds replace the codebook of {self.size}"
        memory = self._memory(after, rounds, context.release.encoder, book)
        return RoundResult(draft=lambda draft: with_codebook(draft, book), facts=facts, memory=memory, note=note)

    def _draft(self, context: RoundContext) -> Drift:
        """What earlier rounds came to, or the release's own codebook: also where another was published meanwhile."""
        if remembers(context, self.size):
            kept = context.memory.tensors
            return Drift(
                kept["means"],
                kept["variances"],
                kept["members"],
                float(kept["members_variance"]),
                float(kept["readers"]),
                kept["noises"],
                int(kept["axes"]),
            )
        return self.begin(prototypes_of(context, codebook_of(context, self.size)))

    def begin(self, prototypes: np.ndarray) -> Drift:
        """A draft at prototypes [K, D] that tell nothing of any reader."""
        return Drift.begin(prototypes, axes=None if self.axes is None else min(self.axes, prototypes.shape[1]))

    def moved(self, draft: Drift, prototypes: np.ndarray) -> float:
        """The least cosine of a drafted prototype and the one that it would replace, [K, D]."""
        return float((prototypes * draft.apart(self.apart)).sum(axis=1).min())

    def worth(self, draft: Drift, prototypes: np.ndarray) -> bool:
        """Whether readers should pay for reports by the draft instead of by these prototypes [K, D]."""
        return self.moved(draft, prototypes) < HARDLY_MOVED and draft.noise_share() <= NOISE_MOST

    def within(self, sums: np.ndarray, finest: np.ndarray) -> np.ndarray:
        """The part of sums [K, D] that lies in the principal directions of the finest codebook [L, D]."""
        if self.axes is None:
            return sums
        _, _, directions = np.linalg.svd(finest.astype(np.float64), full_matrices=False)
        kept = directions[: self.axes]
        return np.asarray(sums @ kept.T @ kept)

    def _memory(self, draft: Drift, rounds: int, encoder: str, book: Codebook) -> Memory:
        return Memory(
            rounds,
            {
                "means": draft.means,
                "variances": draft.variances,
                "members": draft.members,
                "members_variance": np.array(draft.members_variance),
                "readers": np.array(draft.readers),
                "noises": draft.noises,
                "axes": np.array(float(draft.axes)),
                "of": codebook_mark(encoder, book),
            },
        )


def cohort_needed(share: Callable[[int], float]) -> int:
    """The devices a round with which no more than NOISE_MOST is noise, rounded up to two digits since it is an
    estimate. share: of so many devices, falling with their number to below NOISE_MOST."""
    most = 1
    while share(most) > NOISE_MOST:
        most *= 2
    least = most // 2
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if share(middle) > NOISE_MOST else (least, middle)
    step = int(10 ** max(0, math.floor(math.log10(most)) - 1))
    return math.ceil(most / step) * step


def codebook_of(context: RoundContext, size: int) -> Codebook:
    """The release's codebook of K = `size`. Raises RoundImpossible."""
    found = context.release.recall.codebook(size)
    if found is None:
        raise RoundImpossible(
            f"Release {context.release.release} has no codebook of {size} prototypes to begin with.",
            field="system",
            limit=", ".join(str(each.size) for each in context.release.recall.codebooks) or "none",
        )
    return found


def remembers(context: RoundContext, size: int) -> bool:
    """Whether the memory is of a draft of the release's codebook of that size."""
    kept = context.memory.tensors.get("of")
    return kept is not None and np.array_equal(kept, codebook_mark(context.release.encoder, codebook_of(context, size)))


def prototypes_of(context: RoundContext, book: Codebook) -> np.ndarray:
    """float32 [K, D], rows of length 1."""
    content = context.releases.read_blob(book.prototypes.sha256)
    spec = TensorSpec("float32", (book.size, context.release.dimensions))
    return unpack(content, {PROTOTYPES: spec}, limit_bytes=len(content))[PROTOTYPES]


def finest_of(context: RoundContext) -> np.ndarray:
    """The prototypes [L, D] of the largest codebook."""
    return prototypes_of(context, max(context.release.recall.codebooks, key=lambda each: each.size))


def with_codebook(draft: ReleaseDraft, book: Codebook) -> ReleaseDraft:
    """A release with this codebook in the place of the one of its size."""
    others = [each for each in draft.recall.codebooks if each.size != book.size]
    books = tuple(sorted([*others, book], key=lambda each: each.size))
    return replace(draft, recall=draft.recall.model_copy(update={"codebooks": books}))


def _possible(devices: int, deviation: float) -> tuple[float, float]:
    """The least and the most that so many devices make of a count of members, with NOISE_KEPT deviations of noise."""
    return -NOISE_KEPT * deviation, devices + NOISE_KEPT * deviation


def _reachable(sums: np.ndarray, devices: int, variance: float) -> np.ndarray:
    """Rows [K, D] no longer than so many unit vectors and the noise, of this variance a number, can make them."""
    longest = devices + noise_length(float(np.sqrt(variance)), sums.shape[1])
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    return np.asarray(sums * np.minimum(1.0, longest / np.maximum(lengths, longest)))


def turned_memory(
    memory: Memory, alignment: ProcrustesAlignment, before: ReleaseManifest, encoder: str
) -> Memory | None:
    """A draft of a codebook of `before` in the space of the encoder that comes next; None for any other memory."""
    kept = memory.tensors.get("of")
    for book in before.recall.codebooks if kept is not None else ():
        if np.array_equal(np.asarray(kept), codebook_mark(before.encoder, book)):
            turned = {name: each @ alignment.matrix for name, each in memory.tensors.items() if name in IN_THE_SPACE}
            return Memory(memory.steps, {**memory.tensors, **turned, "of": codebook_mark(encoder, book)})
    return None


def codebook_mark(encoder: str, book: Codebook) -> np.ndarray:
    """[32] names the codebook that a draft is of and the space it lies in."""
    content = f"{encoder}/{book.origin}/{book.size}".encode()
    return np.frombuffer(sha256(content).digest(), dtype=np.uint8).astype(np.float64)
