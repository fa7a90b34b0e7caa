"""Rounds in words: stages, what was opened, when the schedule opens one, and why one failed."""

from __future__ import annotations

from backend.federation.rounds.coordinator import Coordinator
from backend.federation.rounds.records import CheckIns
from backend.federation.rounds.scheduling import Schedule
from device_app.figures import number, plural, size
from device_app.fleet_figures import RoundOfFleet
from device_app.prose import Prose
from device_app.wire.rounds import RoundStatus

WORDS = Prose("backend.console", "words.toml")


def refused_words(coordinator: Coordinator, status: RoundStatus, refused: int) -> str:
    """What became of check-ins from addresses that had their share of a round's places, or get none in a retry; empty
    where there were none."""
    if not refused or coordinator.addresses is None:
        return ""
    rules = coordinator.addresses.rules
    hint = "" if rules.proxies else WORDS("refused_proxies")
    lied = WORDS("refused_lied", round=status.follows) if status.follows else ""
    return WORDS("refused", refused=refused, places=rules.places, lied=lied, hint=hint)


def ended_words(status: RoundStatus, found: CheckIns) -> tuple[str, ...]:
    """Of a round that has ended, as far as a server can know: who got no place; why it failed, from who looked to who
    sent. Empty for one under way."""
    if status.state not in ("applied", "failed"):
        return ()
    told, turned_away = [], WORDS.table("turned_away")
    if found.looked is not None:
        told.append(WORDS("looked", requests=plural(found.looked, "request")))
    away = [WORDS("away_one", count=count, why=turned_away[why]) for why, count in found.turned_away.items()]
    if found.address:
        away.append(WORDS("away_address", count=found.address))
    if away:
        told.append(WORDS("away", reasons=", ".join(away)))
    if status.state == "applied":
        return tuple(told)
    devices, updates = plural(status.joined, "device"), plural(status.uploaded, "update")
    told.append(WORDS("came", devices=devices, updates=updates, needed=status.cohort_minimum))
    if status.joined < status.cohort_minimum:
        told.append(WORDS("unknown"))
    elif status.uploaded < status.cohort_minimum:
        told.append(WORDS("fell_silent"))
    return tuple(told)


def became_words(found: RoundOfFleet | None) -> str:
    """What became of a demo's simulated devices in a round, by reason; empty where no fleet told."""
    if found is None:
        return ""
    words = WORDS.table("became")
    order = [each for each in words if each in found.became] + sorted(found.became.keys() - words.keys())
    reasons = [WORDS("became_one", count=found.became[each], why=words.get(each, each)) for each in order]
    return WORDS("became_all", devices=plural(found.devices, "simulated device"), reasons=", ".join(reasons))


def live_figures(status: RoundStatus) -> dict[str, str]:
    """The figures that change while a round is under way, as the page writes them."""
    return {
        "joined": f"{status.joined:,}",
        "uploaded": f"{status.uploaded:,}",
        "received": size(status.received_bytes),
    }


def steps(status: RoundStatus) -> list[tuple[str, str, str]]:
    """The stages of a round: (label, words, 'done' | 'now' | 'failed' | '')."""
    if status.stages == "sum":
        return sum_steps(status)
    published = WORDS("no_release_yet") if status.finished_at is None else WORDS("without_release")
    labels = (
        (WORDS("offered_stage"), WORDS("joined", joined=status.joined, wanted=status.cohort)),
        (WORDS("received_stage"), WORDS("received", uploaded=status.uploaded, needed=status.cohort_minimum)),
        (WORDS("averaged_stage"), status.published or published),
    )
    states = {
        "open": ("now", "", ""),
        "updates": ("done", "now", ""),
        "applied": ("done", "done", "done"),
        "failed": ("done" if status.joined else "failed", "failed" if status.joined else "", ""),
    }[status.state]
    return [(label, words, state) for (label, words), state in zip(labels, states, strict=True)]


def sum_steps(status: RoundStatus) -> list[tuple[str, str, str]]:
    """The stages of a secure sum."""
    labels = (
        (WORDS("keys_stage"), WORDS("joined", joined=status.joined, wanted=status.cohort)),
        (WORDS("shares_stage"), WORDS("shares")),
        (WORDS("masked_stage"), WORDS("received", uploaded=status.uploaded, needed=status.cohort_minimum)),
        (WORDS("opened_stage"), opened_words(status)),
    )
    if status.state == "failed":
        # Vectors are the last thing that shows how far it came.
        place = 3 if status.uploaded >= status.cohort_minimum else 2 if status.uploaded else 0
        states = ["done"] * place + ["failed"] + [""] * (3 - place)
    else:
        order = {"open": 0, "keys": 0, "shares": 1, "masked": 2, "agree": 3, "unmask": 3}
        place = order.get(status.state, 4)
        states = ["done" if at < place else "now" if at == place else "" for at in range(4)]
    return [(label, words, state) for (label, words), state in zip(labels, states, strict=True)]


def opened_words(status: RoundStatus) -> str:
    """What an opened sum was and cost, in words."""
    if status.survivors is None:
        return WORDS("not_opened_yet" if status.finished_at is None else "not_opened")
    cost = (
        WORDS("no_noise")
        if status.epsilon is None or status.delta is None
        else WORDS("noise", epsilon=status.epsilon, delta=status.delta)
    )
    if status.published is None:
        return WORDS("opened", devices=status.survivors, cost=cost)
    return WORDS("opened_published", release=status.published, devices=status.survivors, cost=cost)


def scheduled(schedule: Schedule) -> str:
    """When it opens rounds, in words."""
    every = None if schedule.every_minutes is None else WORDS("every", minutes=number(schedule.every_minutes))
    waiting = None if schedule.waiting is None else WORDS("waiting", devices=schedule.waiting)
    return WORDS("waiting_and_every", waiting=waiting, every=every) if every and waiting else str(every or waiting)
