"""Learn the codebook of reports from secure sums: each round is a step of Lloyd's algorithm.

Prototypes that follow readers may give better lists than topic centroids (docs/decisions/011). The draft changes with
every round, but replaces the release's codebook only every `adopt_every` rounds, since a reader whose codebook changes
has to pay for one new report with it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256

import numpy as np

from backend.federation.bounded_mean import Aggregate
from backend.federation.errors import RoundImpossible
from backend.federation.grouping import Drift
from backend.federation.optimizers import Memory
from backend.federation.protections.secure_sum import secure_sum_of
from backend.federation.protections.sum_bounds import noise_deviation, noise_length
from backend.federation.strategies.strategy import FederatedSystem, Plan, RoundContext, RoundResult
from backend.releases.alignment import ProcrustesAlignment
from backend.releases.blobs import ReleaseDraft
from protocol.protections import SecureSum
from protocol.releases import Codebook, ReleaseManifest
from protocol.ring import MEMBERS, PROTOTYPES, SUMS, VECTOR_SHARE, member_share
from protocol.rounds import RoundManifest
from protocol.tensors import TensorSpec, pack, unpack

NOISE_KEPT = 3.0
"""By how many standard deviations of noise a count of members may exceed what devices can contribute."""
HARDLY_MOVED = 0.995
"""Minimum cosine of each prototype to its predecessor at which a draft is not worth a new report by every reader."""
IN_THE_SPACE = ("means", "drafted", "begun")
"""The tensors of a codebook's memory that hold rows [K, D] in the space of news vectors."""
NOISE_MOST = 0.3
"""Maximum share of noise in the distance between a draft's groups. On MIND, drafts without noise find as much as topics
or more; with one half or more of noise they lose up to two points of R@100 (`ownfeed evaluate codebook`).
"""

APART = 0.0257
"""Squared distance between a draft's groups without noise. On MIND, .37 of a draft of 2,800 readers a round was noise
(`ownfeed evaluate codebook`). Smaller cohorts had somewhat more, since their drafts are still near the topics at which
they start.
"""
STEADY_AFTER = 30
"""Rounds after which the noise in a draft is stationary; with 1,000 or more devices it is so after 20."""


@dataclass(frozen=True)
class LearnedCodebook:
    """Learns the codebook of `size` prototypes.

    A draft is adopted after every `adopt_every` rounds. A draft that is mostly noise is never adopted, after any number
    of rounds (`Drift.noise_share`).

    Args:
        apart: share of the mean of all readers that is subtracted from the adopted prototypes. A reader's vector is
            a mean of several interests, most of which all readers have in common, so lists by such prototypes are
            nearly the same for everyone. With 1 they follow only what distinguishes a group's readers.
        axes: directions in which prototypes may move, the principal ones of the release's finest codebook; None:
            all. The length of the noise grows with the square root of their number, and readers differ in few
            directions.
    """

    size: int = 16
    adopt_every: int = 10
    apart: float = 0.0
    axes: int | None = None

    def check_cohort(self, system: FederatedSystem, cohort: int) -> None:
        """Raise RoundImpossible if drafts of such cohorts would be too noisy ever to be published.

        Then each device would pay for nothing. If prototypes may move in all directions, nothing is known in advance.
        """
        noise = secure_sum_of(system.protection)
        if not noise.sigma or self.axes is None:
            return
        share = self.expected_noise_share(noise, cohort)
        if share > NOISE_MOST:
            enough = f"about {cohort_needed(partial(self.expected_noise_share, noise)):,} devices"
            raise RoundImpossible(
                f"With {cohort:,} devices a round, {100 * share:.0f} % of the difference between a draft's groups "
                f"would be noise. Above {100 * NOISE_MOST:.0f} % no draft is published; {enough} a round "
                "would be enough. No round was opened, and no privacy budget was spent.",
                field="cohort",
                limit=enough,
            )

    def expected_noise_share(self, noise: SecureSum, devices: int) -> float:
        """Return `Drift.noise_share` of a draft after many rounds of this many devices.

        The devices are spread evenly over the groups.
        """
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
        """Ask every device, under masks, which of the draft's prototypes is nearest to it.

        Raises RoundImpossible.
        """
        draft = self._draft(context)
        blob = context.releases.add_blob(pack({PROTOTYPES: draft.prototypes}))
        return Plan({SUMS: draft.means.shape, MEMBERS: (self.size,)}, {PROTOTYPES: blob})

    def conclude(
        self, system: FederatedSystem, total: Aggregate, context: RoundContext, manifest: RoundManifest
    ) -> RoundResult:
        """Return the draft after this cohort and, if it is adopted, the release's new codebook."""
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
        """Return the draft of earlier rounds, or the release's codebook if there is none for it."""
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
        """Return a draft at prototypes [K, D] that reveal nothing about readers."""
        return Drift.begin(prototypes, axes=None if self.axes is None else min(self.axes, prototypes.shape[1]))

    def moved(self, draft: Drift, prototypes: np.ndarray) -> float:
        """Return the smallest cosine between a drafted prototype and its predecessor, [K, D]."""
        return float((prototypes * draft.apart(self.apart)).sum(axis=1).min())

    def worth(self, draft: Drift, prototypes: np.ndarray) -> bool:
        """Return whether the draft is worth new reports, compared with these prototypes [K, D]."""
        return self.moved(draft, prototypes) < HARDLY_MOVED and draft.noise_share() <= NOISE_MOST

    def within(self, sums: np.ndarray, finest: np.ndarray) -> np.ndarray:
        """Return sums [K, D] projected onto the principal directions of the finest codebook [L, D]."""
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
    """Return the number of devices per round for which at most NOISE_MOST is noise, to two digits.

    It is an estimate and rounded up.

    share: the expected share of noise for a number of devices; it falls to below NOISE_MOST as their number grows.
    """
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
    """Return the release's codebook of K = `size`. Raises RoundImpossible."""
    found = context.release.recall.codebook(size)
    if found is None:
        raise RoundImpossible(
            f"Release {context.release.release} has no codebook of {size} prototypes to start from.",
            field="system",
            limit=", ".join(str(each.size) for each in context.release.recall.codebooks) or "none",
        )
    return found


def remembers(context: RoundContext, size: int) -> bool:
    """Return whether the memory is a draft of the release's codebook of that size."""
    kept = context.memory.tensors.get("of")
    return kept is not None and np.array_equal(kept, codebook_mark(context.release.encoder, codebook_of(context, size)))


def prototypes_of(context: RoundContext, book: Codebook) -> np.ndarray:
    """Return the prototypes, float32 [K, D], rows of length 1."""
    content = context.releases.read_blob(book.prototypes.sha256)
    spec = TensorSpec("float32", (book.size, context.release.dimensions))
    return unpack(content, {PROTOTYPES: spec}, limit_bytes=len(content))[PROTOTYPES]


def finest_of(context: RoundContext) -> np.ndarray:
    """Return the prototypes [L, D] of the largest codebook."""
    return prototypes_of(context, max(context.release.recall.codebooks, key=lambda each: each.size))


def with_codebook(draft: ReleaseDraft, book: Codebook) -> ReleaseDraft:
    """Return the release draft with its codebook of the same size replaced by this one."""
    others = [each for each in draft.recall.codebooks if each.size != book.size]
    books = tuple(sorted([*others, book], key=lambda each: each.size))
    return replace(draft, recall=draft.recall.model_copy(update={"codebooks": books}))


def _possible(devices: int, deviation: float) -> tuple[float, float]:
    """Return the range of a member count that this many devices and NOISE_KEPT of noise allow."""
    return -NOISE_KEPT * deviation, devices + NOISE_KEPT * deviation


def _reachable(sums: np.ndarray, devices: int, variance: float) -> np.ndarray:
    """Limit rows [K, D] to the length that this many unit vectors and the noise can have."""
    longest = devices + noise_length(float(np.sqrt(variance)), sums.shape[1])
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    return np.asarray(sums * np.minimum(1.0, longest / np.maximum(lengths, longest)))


def turned_memory(
    memory: Memory, alignment: ProcrustesAlignment, before: ReleaseManifest, encoder: str
) -> Memory | None:
    """Return the memory of a codebook draft of `before`, rotated to the next encoder's space.

    None for any other memory.
    """
    kept = memory.tensors.get("of")
    for book in before.recall.codebooks if kept is not None else ():
        if np.array_equal(np.asarray(kept), codebook_mark(before.encoder, book)):
            turned = {name: each @ alignment.matrix for name, each in memory.tensors.items() if name in IN_THE_SPACE}
            return Memory(memory.steps, {**memory.tensors, **turned, "of": codebook_mark(encoder, book)})
    return None


def codebook_mark(encoder: str, book: Codebook) -> np.ndarray:
    """Return [32], which identifies a draft's codebook and the space of its vectors."""
    content = f"{encoder}/{book.origin}/{book.size}".encode()
    return np.frombuffer(sha256(content).digest(), dtype=np.uint8).astype(np.float64)
