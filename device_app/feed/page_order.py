"""Assigns the slots of a page: lead, for you, developing stories, fresh, explore.

A developing story is a group of several reports on one event.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import NO_STORY, Candidates
from device_app.feed.diversity import Cap, diversified
from device_app.feed.exclusions import one_of_each
from device_app.feed.exploration import PageShares, explore_rows, fresh_rows
from device_app.feed.item import PageSlot
from device_app.feed.preference_reader import UserPreferences
from device_app.feed.scores import age_hours
from device_app.feed.similarity import SimilarityRule
from device_app.settings import FeedSettings

LEAST_REPORTS, REPORTS_PER_STORY = 2, 3
UNSEEN_ENOUGH = 100
"""From this many unseen articles on, seen ones appear only in shares with too few unseen ones."""


def developing_groups(
    candidates: Candidates,
    free: NDArray[np.bool_],
    scores: NDArray[np.float64],
    *,
    stories: int,
    similarity: SimilarityRule,
) -> list[list[int]]:
    """Return the rows of the best stories with two or more free reports, newest first.

    Each story has at most three reports. A story's score is the mean of its two best reports; ties go by name.
    Reports that share only the story's name with its best report are left out.
    """
    rows = np.flatnonzero(free & (candidates.stories != NO_STORY))
    ranked = rows[np.lexsort((-scores[rows], candidates.stories[rows]))]  # story by story, best report first
    codes, worth = candidates.stories[ranked], scores[ranked]
    firsts = np.flatnonzero(np.diff(codes, prepend=codes[:1] ^ 1))
    sizes = np.diff(firsts, append=len(ranked))
    firsts, sizes = firsts[sizes >= 2], sizes[sizes >= 2]
    means = (worth[firsts] + worth[firsts + 1]) / 2
    finalists = np.flatnonzero(means >= np.sort(means)[-stories:].min(initial=np.inf))
    best = sorted(finalists, key=lambda group: (-means[group], candidates.cards[ranked[firsts[group]]].story))[:stories]
    reports = (ranked[firsts[group] : firsts[group] + sizes[group]].tolist() for group in best)
    close = (similarity.among(rows_of[0], rows_of) for rows_of in reports)
    return [_newest(candidates, np.array(rows_of)) for rows_of in close if len(rows_of) > 1]


def _newest(candidates: Candidates, rows: NDArray[np.intp]) -> list[int]:
    order = np.lexsort((rows, -candidates.published_sec[rows]))
    return [int(row) for row in rows[order[:REPORTS_PER_STORY]]]


@dataclass(frozen=True)
class SlottedRow:
    """A row of the candidates with its slot."""

    row: int
    slot: PageSlot


def placed(
    candidates: Candidates,
    scores: NDArray[np.float64],
    user_preferences: UserPreferences,
    now: datetime,
    settings: FeedSettings,
    *,
    size: int,
    chance: random.Random,
    similarity: SimilarityRule,
    seen: NDArray[np.bool_] | None = None,
    steady: NDArray[np.float64] | None = None,
    promised: Mapping[int, PageSlot] | None = None,
) -> list[SlottedRow]:
    """Return a page's rows in order, without repeated rows, stories or headlines.

    The page has at most `size` rows. Only a group of developing reports may repeat its story. candidates hold only what
    may be shown; scores is [n]. steady [n], if given, are scores without reactions: they choose the developing stories,
    so that one reaction doesn't replace whole groups. seen [n] marks what the reader saw before: it is already
    penalised in the scores, fresh, explore and developing stories don't draw it, and it doesn't lead. It returns only
    where a share lacks unseen articles, or where fewer than UNSEEN_ENOUGH are left. A further report of an event that
    was read doesn't lead either. Developing stories have a report of the last `fresh_hours`.

    Personal places are filled first, so that fresh and explore never take the reader's best; they also get the places
    that fresh and explore can't fill. What the reader picked and reads has its share of the page (`feed.exploration`),
    and developing stories make room for it. Everything else is capped unless a place would stay empty. promised: rows
    that must be on the page, with the slots they had when they were offered.
    """
    shares = PageShares.of(candidates, user_preferences, settings, size)
    free = np.ones(len(candidates), dtype=bool)
    unseen = np.ones(len(candidates), dtype=bool) if seen is None else ~seen
    without_reactions = scores if steady is None else steady
    recent = candidates.stories[age_hours(candidates, now) <= settings.fresh_hours]
    going_on = unseen & np.isin(candidates.stories, recent)
    groups = developing_groups(
        candidates, going_on, without_reactions, stories=settings.developing_stories, similarity=similarity
    )
    others = settings.fresh_slots + settings.explore_slots
    groups = _shortened(groups, size - others - sum(share.least for share in shares.outermost))
    grouped = [row for group in groups for row in group]
    free &= ~np.isin(candidates.stories, candidates.stories[grouped])
    free &= one_of_each(candidates, np.where(free, scores, -np.inf))
    any_share = free.copy()
    free &= shares.room(grouped)
    free &= unseen | _wanted_again(free & unseen, shares)
    rows = np.flatnonzero(free)
    places = max(1, size - len(grouped) - others)
    caps = [Cap(candidates.publishers, settings.publisher_cap), *shares.caps(settings.topic_cap, grouped, places)]
    caps = [cap.only(rows) for cap in caps]
    least = [share.beside(grouped).only(rows) for share in shares.least]
    page_of = partial(diversified, scores[rows], candidates.vectors[rows], caps, least, variety=settings.variety)
    picked = [int(rows[row]) for row in page_of(count=places)]
    free[picked] = False
    free &= unseen
    fresh = fresh_rows(candidates, free & shares.room(grouped + picked), now, settings, chance)
    free[fresh] = False
    taken = grouped + picked + fresh
    explore = explore_rows(candidates, free & shares.room(taken), user_preferences, now, settings, chance)
    left = size - len(taken) - len(explore)
    if left > 0:
        more = [int(rows[row]) for row in page_of(count=places + others)]
        for row in more:
            if left and row not in taken and row not in explore and shares.room(taken + explore)[row]:
                picked.append(row)
                taken.append(row)
                left -= 1
    if left > 0:  # too few candidates: ignore shares and caps rather than leave a place empty
        any_share[taken + explore] = False
        best = np.argsort(-scores, kind="stable")
        picked += [int(row) for row in best[any_share[best]][:left]]
    events = user_preferences.read_events
    was_read = candidates.named(candidates.stories, events) | candidates.named(candidates.ids, events)
    picked = _led(picked, unseen & ~was_read, scores, any_share, taken + explore)
    page = [SlottedRow(row, "lead" if place == 0 else "for_you") for place, row in enumerate(picked)]
    page += [SlottedRow(row, "developing") for row in grouped]
    page += [SlottedRow(row, "fresh") for row in fresh]
    page += [SlottedRow(row, "explore") for row in explore]
    return _with_promised(page[:size], promised or {}, candidates.stories)


def _with_promised(
    page: list[SlottedRow], promised: Mapping[int, PageSlot], stories: NDArray[np.intp]
) -> list[SlottedRow]:
    """Return the page with all promised rows.

    One that is missing takes the place of another report of its event, else the last one of its slot outside groups.
    """
    page, here = list(page), {place.row for place in page}
    for row, slot in promised.items():
        if row in here:
            continue
        event = int(stories[row])
        free = [at for at, place in enumerate(page) if place.row not in promised]
        same = [at for at in free if event != NO_STORY and stories[page[at].row] == event]
        places = [[at for at in free if page[at].slot == one] for one in (slot, "for_you", "explore", "fresh")]
        others = (options[-1] for options in places if options)
        at = same[-1] if same else next((at for at in others if page[at].slot not in ("lead", "developing")), None)
        if at is not None:
            page[at] = SlottedRow(row, page[at].slot)
    return page


def _wanted_again(unseen: NDArray[np.bool_], shares: PageShares) -> NDArray[np.bool_]:
    """Return which seen rows may be shown again, [n]; unseen [n] marks the free rows that the reader hasn't seen."""
    if np.count_nonzero(unseen) < UNSEEN_ENOUGH:
        return np.ones(len(unseen), dtype=bool)
    again = np.zeros(len(unseen), dtype=bool)
    for share in shares.least:
        if np.count_nonzero(share.rows & unseen) < share.least:
            again |= share.rows
    return again


def _led(
    picked: list[int],
    may_lead: NDArray[np.bool_],
    scores: NDArray[np.float64],
    free: NDArray[np.bool_],
    taken: list[int],
) -> list[int]:
    """Return the personal rows with one that may lead in front: one of these rows if possible, else the best free."""
    lead = next((row for row in picked if may_lead[row]), None)
    if lead is not None:
        return [lead, *(row for row in picked if row != lead)]
    free = free & may_lead
    free[taken] = False
    if not picked or not free.any():
        return picked
    return [int(np.argmax(np.where(free, scores, -np.inf))), *picked[:-1]]


def _shortened(groups: list[list[int]], places: int) -> list[list[int]]:
    """Return the groups cut to this many places.

    The last groups lose their third report first, then are dropped.
    """
    kept = [list(group) for group in groups]
    while kept and sum(map(len, kept)) > places:
        long = [group for group in kept if len(group) > LEAST_REPORTS]
        if long:
            long[-1].pop()
        else:
            kept.pop()
    return kept
