"""The chain of releases: each names what came before it, so that one short value stands for the whole history.

head_n = SHA-256("ownfeed release chain" | head_(n-1) | n | SHA-256 of manifest n), and manifest n is signed with
head_(n-1) inside. Two readers with one head have been shown the same releases since the chain began.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from itertools import pairwise
from typing import Self

from pydantic import AwareDatetime, Field, model_validator

from device_app.wire.ids import Message, ReleaseId, Sha256, release_number

CHAIN_LIMIT = 65_536
LENGTHS = (16, 256, 4_096, 65_536)
"""So many last releases can be asked for, and no other number: what a device asks for repeats next to nothing."""
_SHOWN = 20


class ChainedRelease(Message):
    """One release of the chain."""

    release: ReleaseId = Field(examples=["r12"])
    manifest_sha256: Sha256 = Field(description="Of the manifest's exact bytes.", examples=["3f" * 32])
    published_at: AwareDatetime = Field(examples=["2026-11-22T08:00:00Z"])


class ReleaseChain(Message):
    """GET /v1/releases/chain: the last releases, oldest first, the same for everybody."""

    releases: tuple[ChainedRelease, ...] = Field(max_length=CHAIN_LIMIT)

    @model_validator(mode="after")
    def _one_after_another(self) -> Self:
        numbers = [release_number(each.release) for each in self.releases]
        if any(after != before + 1 for before, after in pairwise(numbers)):
            raise ValueError("releases must follow one another, oldest first")
        return self


def next_head(before: str | None, release: ReleaseId, manifest_sha256: str) -> str:
    """The head of the chain that ends with this release; before is that of the release before, None at its start."""
    parts = ("ownfeed release chain", before or "", str(release_number(release)), manifest_sha256)
    return sha256("\n".join(parts).encode()).hexdigest()


def head_after(before: str | None, releases: Iterable[ChainedRelease]) -> str | None:
    """The head after these releases, which follow the one that `before` is the head of."""
    head = before
    for each in releases:
        head = next_head(head, each.release, each.manifest_sha256)
    return head


def readable(head: str) -> str:
    """The head's first 20 hexadecimal digits by fours, for two readers to compare."""
    return " ".join(head[at : at + 4] for at in range(0, _SHOWN, 4))
