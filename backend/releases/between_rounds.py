"""Change the release or its rankers while the server is running, without disturbing rounds.

A change waits until no round is under way that reads a release. It may add rankers or select which of them is used by
default.
"""

import json
import time
from collections.abc import Callable
from dataclasses import replace

from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from backend.db.engine import reading_session
from backend.db.tables import FollowUpRow, ReleaseRow, RoundRow
from backend.releases.blobs import ReleaseDraft
from backend.releases.errors import ReleaseNotPublished, RoundsUnderWay
from backend.releases.store import ReleaseStore
from protocol.releases import ReleaseManifest

TURN_LIMIT_SEC = 600.0
"""How long to wait for a moment without rounds; it is shorter than the time for which unused blobs are kept."""
ASK_SEC = 0.5


def is_published(engine: Engine) -> bool:
    """Return whether this server has a release."""
    with reading_session(engine) as session:
        return session.scalars(select(ReleaseRow.number).limit(1)).first() is not None


def is_optional_ranker(ranker: str) -> bool:
    """Return whether a ranker of this name exists and is not part of every release anyway."""
    from models.rankers import RANKERS  # the server starts without the models' package

    return ranker in RANKERS and not RANKERS[ranker].always


def trains_over_words(model: str) -> str | None:
    """Return the architecture of the news model over words trained with the ranker, or None."""
    from models.rankers import RANKERS  # as above

    return RANKERS[model].news_over_words if model in RANKERS else None


def offer_between_rounds(
    engine: Engine,
    offer: Callable[[Callable[[Session, ReleaseManifest], None]], ReleaseManifest],
    *,
    waits: Callable[[], None] = lambda: None,
    reads_release: Callable[[str], bool] = lambda _: True,
) -> ReleaseManifest:
    """Publish by `offer` as soon as no round that reads a release is under way or ordered.

    `offer` receives a function that has to run in the transaction of the release. Publishing during a round would make
    the round fail, since its release would no longer be current; devices that have switched could not take part; and a
    vote would be held on a release other than the one it is for.

    waits: called each time that rounds are in the way. reads_release: whether a system's rounds read a release. Raises
    RoundsUnderWay after ten minutes.
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
    """Publish the current release again with another of its rankers as the default.

    Every device whose reader has chosen no ranker uses the default. Raises NothingPublished; ReleaseNotPublished if the
    release lacks the ranker or already uses it, or if another release was published meanwhile; or RoundsUnderWay.
    """
    current = store.require_current()
    if ranker == current.default_ranker:
        raise ReleaseNotPublished(f"{ranker} is already in use.", field="ranker")
    check = no_rounds(reads_release)

    def together(session: Session, published: ReleaseManifest) -> None:
        if published.previous != current.release:
            raise ReleaseNotPublished(f"{published.previous} was published meanwhile.")
        check(session, published)

    draft = replace(ReleaseDraft.like(current), default_ranker=ranker)
    return store.commit(draft, note=f"ranks by {ranker}", together_with=together)


def no_rounds(reads_release: Callable[[str], bool]) -> Callable[[Session, ReleaseManifest], None]:
    """Return a check for a release's transaction: it raises RoundsUnderWay if rounds read one.

    It writes nothing. A round that another's end has ordered counts even if it isn't open yet.
    """

    def check(session: Session, _: ReleaseManifest) -> None:
        under_way = session.scalars(select(RoundRow.system).where(RoundRow.finished_at.is_(None))).all()
        waiting = FollowUpRow.opened.is_(None), FollowUpRow.reason.is_(None)
        ordered = [json.loads(each)["system"] for each in session.scalars(select(FollowUpRow.request).where(*waiting))]
        if any(map(reads_release, [*under_way, *ordered])):
            raise RoundsUnderWay

    return check
