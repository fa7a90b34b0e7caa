"""Efficient-FedRec's first step: which news the cohort's samples name (section 3.4, eq. 8)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import TypeAdapter

from backend.federation.bounded_mean import Aggregate
from backend.federation.errors import RoundImpossible
from backend.federation.protections.union_marks import union_marks_of
from backend.federation.strategies.news_model_release import require_bert
from backend.federation.strategies.strategy import FederatedSystem, Plan, RoundContext, RoundResult
from backend.news.pool import NewsPool
from device_app.wire.ids import NewsId
from device_app.wire.releases import BlobRef
from device_app.wire.rounds import RoundManifest
from device_app.wire.union import NEWS, alone_chance, opened_rows

LISTED = "news"
"""The material with the news that rows stand for: a JSON list of ids, ascending."""
OPENED = "opened"
"""Where the conclusion's facts say which news are opened: a blob of the same form."""
DROPOUT = 0.1
"""For the operator: the share of opened rows that are one device's if so many are gone when gradients are summed."""
_IDS = TypeAdapter(tuple[NewsId, ...])


@dataclass(frozen=True)
class NewsUnion:
    """The union of the cohort's news, of which those with enough owners are opened for the round that follows.

    What a server learns: with marks which news of the pool somebody in the cohort holds; with owner counts how many of
    the survivors hold each, and a news with fewer than `owners_minimum` of them gets no row in what follows. With
    cohorts of few devices, or the same devices again and again, differences between unions tell more (decision 011).

    Args:
        follow: the system whose round takes gradients of the opened news.
    """

    follow: str

    def plan(self, system: FederatedSystem, context: RoundContext) -> Plan:
        """Every news of the pool that has a vector. Raises RoundImpossible if there is none, or no BERT to
        train for it."""
        require_bert(context)
        ids = sorted(NewsPool(context.engine).vectors(context.release.encoder)[0])
        if not ids:
            raise RoundImpossible("The pool has no vectors by the release's encoder.", field="system")
        return Plan({NEWS: (len(ids),)}, {LISTED: context.releases.add_blob(ids_blob(ids))})

    def conclude(
        self, system: FederatedSystem, total: Aggregate, context: RoundContext, manifest: RoundManifest
    ) -> RoundResult:
        """Opens the rows, and orders the round of gradients. Raises RoundImpossible if no news has enough owners."""
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
                f"No news has the {protection.owners_minimum} owners that open its row; {survivors} devices took part.",
                field="owners_minimum",
                limit=str(protection.owners_minimum),
            )
        opened = context.releases.add_blob(ids_blob([listed[row] for row in rows]))
        held = f"{facts['held_news']:,} of {len(listed):,} news are held by somebody; " if "held_news" in facts else ""
        several = f"{protection.owners_minimum:,} owners or more" if protection.counts else "an owner"
        return RoundResult(
            facts={**facts, OPENED: opened.model_dump()},
            next=replace(context.request, system=self.follow),
            summary=f"{held}{len(rows):,} have {several} and are opened.",
        )


def ids_blob(ids: Sequence[str]) -> bytes:
    """News ids as a material."""
    return json.dumps(list(ids)).encode()


def read_ids(blob: bytes) -> tuple[str, ...]:
    """What `ids_blob` wrote."""
    return _IDS.validate_json(blob)


def opened_ids(context: RoundContext) -> tuple[str, ...]:
    """The news that the round before has opened. Raises RoundImpossible if it was no union of this release."""
    past = context.past
    if past is None or OPENED not in past.facts:
        raise RoundImpossible("Gradients of news vectors follow a round that unites the news.", field="system")
    if past.manifest.release != context.release.release:
        raise RoundImpossible(
            f"The union is of release {past.manifest.release}; {context.release.release} was published meanwhile.",
            field="system",
        )
    return read_ids(context.releases.read_blob(BlobRef.model_validate(past.facts[OPENED]).sha256))
