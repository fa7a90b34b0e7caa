"""Whether there is a release, rankers that releases can be given while the server serves, which of them is in use, and
the moment at which a change of that takes nothing from a round."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace

from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from backend.db.engine import reading_session
from backend.db.tables_federation import FollowUpRow, ReleaseRow, RoundRow
from backend.releases.draft import ReleaseDraft
from backend.releases.errors import ReleaseNotPublished, RoundsUnderWay
from backend.releases.store import ReleaseStore
from device_app.wire.releases import ReleaseManifest

TURN_LIMIT_SEC = 600.0
"""How long it waits for a moment without rounds: less than leftovers among the blobs are kept."""
ASK_SEC = 0.5


def is_published(engine: Engine) -> bool:
    """Whether this server has a release."""
    with reading_session(engine) as session:
        return session.scalars(select(ReleaseRow.number).limit(1)).first() is not None


def is_optional_ranker(ranker: str) -> bool:
    """Whether there is a ranker of this name that is not in every release anyway."""
    from models.rankers import RANKERS  # the server starts without the models' package

    return ranker in RANKERS and not RANKERS[ranker].always


def trains_over_words(model: str) -> str | None:
    """The architecture of the news model over words that a ranker is trained together with, too; None of another."""
    from models.rankers import RANKERS  # as above

    return RANKERS[model].news_over_words if model in RANKERS else None


def offer_between_rounds(
    engine: Engine,
    offer: Callable[[Callable[[Session, ReleaseManifest], None]], ReleaseManifest],
    *,
    waits: Callable[[], None] = lambda: None,
    reads_release: Callable[[str], bool] = lambda _: True,
) -> ReleaseManifest:
    """Publish by `offer`, which is given what has to be written together with the release, as soon as no round is under
    way or ordered that reads one: a round that publishes would fail, since its release would not be the current one any
    more, devices that have swapped would be no use to it, and a vote would be held on another release than it is for.

    waits: is called each time that rounds are in the way. reads_release: whether a system's rounds read a release.
    Raises RoundsUnderWay after ten minutes of rounds.
    """

    check = no_rounds(reads_release)
    give_up = time.monotonic() + TURN_LIMIT_SEC
    while True:
        try:
            return offer(check)
        except RoundsUnderWay:
            if time.monotonic() > give_up:
                raise
        waits()
        time.sleep(ASK_SEC)


def use_ranker(
    store: ReleaseStore, ranker: str, reads_release: Callable[[str], bool] = lambda _: True
) -> ReleaseManifest:
    """Publish the current release again with another of its rankers in use, by which every device ranks whose reader
    has chosen none.

    Raises NothingPublished, ReleaseNotPublished for one that it lacks or that is in use, or if another release was
    published meanwhile, or RoundsUnderWay.
    """
    current = store.require_current()
    if ranker == current.default_ranker:
        raise ReleaseNotPublished(f"{ranker} is in use already.", field="ranker")
    check = no_rounds(reads_release)

    def together(session: Session, published: ReleaseManifest) -> None:
        if published.previous != current.release:
            raise ReleaseNotPublished(f"{published.previous} was published meanwhile.")
        check(session, published)

    draft = replace(ReleaseDraft.like(current), default_ranker=ranker)
    return store.commit(draft, note=f"ranks by {ranker}", together_with=together)


def no_rounds(reads_release: Callable[[str], bool]) -> Callable[[Session, ReleaseManifest], None]:
    """What is to be written together with a release: nothing, but it raises RoundsUnderWay where a round reads one,
    also where it is still to be opened, as another's end has ordered it."""

    def check(session: Session, _: ReleaseManifest) -> None:
        under_way = session.scalars(select(RoundRow.system).where(RoundRow.finished_at.is_(None))).all()
        waiting = FollowUpRow.opened.is_(None), FollowUpRow.reason.is_(None)
        ordered = [json.loads(each)["system"] for each in session.scalars(select(FollowUpRow.request).where(*waiting))]
        if any(map(reads_release, [*under_way, *ordered])):
            raise RoundsUnderWay

    return check
