"""The codebook of reports, learned from secure sums: each round is one step of Lloyd's algorithm over its cohort.

RECALL section 7: prototypes that follow readers beat topic centroids. The draft moves with every round; the codebook of
the release is replaced by it only every `adopt_every` rounds, since a reader whose codebook changes has to pay for one
fresh report under the new one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from backend.federation.aggregate import Aggregate
from backend.federation.errors import RoundImpossible
from backend.federation.grouping.drift import Drift
from backend.federation.optimizers import Memory
from backend.federation.strategies.strategy import Conclusion, Plan, Stock
from backend.releases.store import ReleaseDraft
from backend.releases.turn import Turn
from device_app.wire.protections import SecureSum
from device_app.wire.prototypes import MEMBERS, PROTOTYPES, SUMS, VECTOR_SHARE, member_share
from device_app.wire.releases import Codebook, ReleaseManifest
from device_app.wire.rounds import RoundManifest
from device_app.wire.tensors import TensorSpec, pack, unpack

if TYPE_CHECKING:
    from backend.federation.systems.system import SystemSpec

HARDLY_MOVED = 0.995
"""Cosine above which no prototype is worth every reader's fresh report."""


@dataclass(frozen=True)
class LearnedCodebook:
    """Learns the codebook of `size` prototypes; a draft is adopted after every `adopt_every` rounds.

    Args:
        apart: share of the mean of all readers that is taken out of the adopted prototypes. A reader's vector is a mean
            of several interests, and mostly what all readers have in common: lists by such prototypes are nearly the
            same for everybody. With 1 they follow what sets a group's readers apart. It needs means without noise,
            which would otherwise be most of what is left.
    """

    size: int = 16
    adopt_every: int = 10
    apart: float = 0.0

    def plan(self, spec: SystemSpec, stock: Stock) -> Plan:
        """Asks every device which of the draft's prototypes it is nearest to, under masks. Raises RoundImpossible."""
        draft = self._draft(stock)
        blob = stock.releases.add_blob(pack({PROTOTYPES: draft.prototypes}))
        return Plan({SUMS: draft.means.shape, MEMBERS: (self.size,)}, {PROTOTYPES: blob})

    def conclude(self, spec: SystemSpec, total: Aggregate, stock: Stock, manifest: RoundManifest) -> Conclusion:
        """The draft after this cohort, and every so often the release's codebook."""
        law = spec.protection
        assert isinstance(law, SecureSum)
        opened, before = total.sums(), self._draft(stock)
        vector, member = VECTOR_SHARE * law.clip, member_share() * law.clip
        step = law.sigma / 2.0**law.fraction_bits
        variance = step**2 * total.count
        members = opened[MEMBERS] / member
        after = before.seen(
            opened[SUMS] / vector,
            members,
            total.count,
            sums_variance=variance / vector**2,
            members_variance=variance / member**2,
        )
        rounds = stock.memory.steps + 1 if self._remembers(stock) else 1
        adopted = self._codebook(stock)
        drafted = after.apart(self.apart)
        moved = float((self._prototypes(stock, adopted) * drafted).sum(axis=1).min())
        adopts = rounds % self.adopt_every == 0 and moved < HARDLY_MOVED
        facts = {
            "rounds": rounds,
            "least_cosine_to_codebook": moved,
            "noise_per_coordinate": float(np.sqrt(variance) / vector),
            "shares": [round(float(share), 4) for share in after.shares()],
            "adopted": adopts,
        }
        if not adopts:
            return Conclusion(facts=facts, memory=self._memory(after, rounds, stock.release.encoder, adopted))
        blob = stock.releases.add_blob(pack({PROTOTYPES: drafted}))
        book = Codebook(size=self.size, epsilon=adopted.epsilon, prototypes=blob, shares=tuple(after.shares().tolist()))

        def adopt(draft: ReleaseDraft) -> ReleaseDraft:
            others = [each for each in draft.recall.codebooks if each.size != self.size]
            books = tuple(sorted([*others, book], key=lambda each: each.size))
            return replace(draft, recall=draft.recall.model_copy(update={"codebooks": books}))

        note = f"prototypes learned in {rounds} rounds replace the codebook of {self.size}"
        memory = self._memory(after, rounds, stock.release.encoder, book)
        return Conclusion(draft=adopt, facts=facts, memory=memory, note=note)

    def _draft(self, stock: Stock) -> Drift:
        """What earlier rounds came to, or the release's own codebook: also where another was published meanwhile."""
        if self._remembers(stock):
            kept = stock.memory.tensors
            means, variances, members = kept["means"], kept["variances"], kept["members"]
            return Drift(means, variances, members, float(kept["members_variance"]), float(kept["readers"]))
        return Drift.begin(self._prototypes(stock, self._codebook(stock)))

    def _remembers(self, stock: Stock) -> bool:
        kept = stock.memory.tensors.get("of")
        return kept is not None and bool((kept == _mark(stock.release.encoder, self._codebook(stock))).all())

    def _memory(self, draft: Drift, rounds: int, encoder: str, book: Codebook) -> Memory:
        return Memory(
            rounds,
            {
                "means": draft.means,
                "variances": draft.variances,
                "members": draft.members,
                "members_variance": np.array(draft.members_variance),
                "readers": np.array(draft.readers),
                "of": _mark(encoder, book),
            },
        )

    def _codebook(self, stock: Stock) -> Codebook:
        found = stock.release.recall.codebook(self.size)
        if found is None:
            raise RoundImpossible(
                f"Release {stock.release.release} has no codebook of {self.size} prototypes to begin with.",
                field="system",
                limit=", ".join(str(each.size) for each in stock.release.recall.codebooks) or "none",
            )
        return found

    def _prototypes(self, stock: Stock, book: Codebook) -> np.ndarray:
        content = stock.releases.read_blob(book.prototypes.sha256)
        spec = TensorSpec("float32", (self.size, stock.release.dimensions))
        return unpack(content, {PROTOTYPES: spec}, limit_bytes=len(content))[PROTOTYPES]


def turned_memory(memory: Memory, turn: Turn, before: ReleaseManifest, encoder: str) -> Memory | None:
    """A draft of a codebook of `before` in the space of the encoder that comes next; None for any other memory."""
    kept = memory.tensors.get("of")
    for book in before.recall.codebooks if kept is not None else ():
        if np.array_equal(np.asarray(kept), _mark(before.encoder, book)):
            means = memory.tensors["means"] @ turn.matrix
            return Memory(memory.steps, {**memory.tensors, "means": means, "of": _mark(encoder, book)})
    return None


def _mark(encoder: str, book: Codebook) -> np.ndarray:
    """[32] names the codebook that a draft is of and the space it lies in."""
    content = f"{encoder}/{book.origin}/{book.size}".encode()
    return np.frombuffer(sha256(content).digest(), dtype=np.uint8).astype(np.float64)
