"""Efficient-FedRec's first step: the articles in the cohort's samples (section 3.4, eq. 8)."""

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
from protocol.ids import NewsId
from protocol.releases import BlobRef
from protocol.rounds import RoundManifest
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
        """Ask about every article of the pool that has a vector.

        Raises RoundImpossible if there is none, or no BERT encoder to train for it.
        """
        require_bert(context)
        ids = sorted(NewsPool(context.engine).vectors(context.release.encoder)[0])
        if not ids:
            raise RoundImpossible("The pool has no vectors by the release's encoder.", field="system")
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
                f"No article is held by {protection.owners_minimum} devices, the least that opens its row; "
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
    """Return article ids as a material."""
    return json.dumps(list(ids)).encode()


def read_ids(blob: bytes) -> tuple[str, ...]:
    """Return the ids that `ids_blob` wrote."""
    return _IDS.validate_json(blob)


def opened_ids(context: RoundContext) -> tuple[str, ...]:
    """Return the articles that the previous round opened.

    Raises RoundImpossible if that was no union on this release.
    """
    past = context.past
    if past is None or OPENED not in past.facts:
        raise RoundImpossible("Gradients of news vectors follow a round that unites the news.", field="system")
    if past.manifest.release != context.release.release:
        raise RoundImpossible(
            f"The union is of release {past.manifest.release}; {context.release.release} was published meanwhile.",
            field="system",
        )
    return read_ids(context.releases.read_blob(BlobRef.model_validate(past.facts[OPENED]).sha256))
