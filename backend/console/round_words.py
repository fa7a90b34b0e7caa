"""Rounds in words: stages, what was opened, when the schedule opens one, and why one failed."""

from __future__ import annotations

from backend.federation.rounds.coordinator import Coordinator
from backend.federation.rounds.records import CheckIns, TurnedAway
from backend.federation.rounds.scheduling import Schedule
from device_app.figures import number, plural, size
from device_app.wire.rounds import RoundStatus


def refused_words(coordinator: Coordinator, status: RoundStatus, refused: int) -> str:
    """What became of check-ins from addresses that had their share of a round's places, or get none in a retry; empty
    where there were none."""
    if not refused or coordinator.addresses is None:
        return ""
    rules = coordinator.addresses.rules
    hint = "" if rules.proxies else " Behind a proxy all devices look like one address: name it in trusted_proxies."
    lied = f" or a member from there lied in {status.follows}" if status.follows else ""
    return (
        f"{refused:,} check-ins got no place, since their address had {rules.places:,} already (setting "
        f"places_per_address){lied}.{hint}"
    )


TURNED_AWAY: dict[TurnedAway, str] = {
    "release": "from devices with another release",
    "task": "from devices whose version doesn't know the task",
    "full": "after all places were given",
    "late": "after it had closed for new devices",
    "chance": "not drawn",
}
UNKNOWN = (
    "Why a device doesn't ask for a place no server can know, and devices don't tell: training may be switched off "
    "there, its budget spent, its reader at the machine, or too little read to learn from."
)


def failed_words(status: RoundStatus, found: CheckIns) -> tuple[str, ...]:
    """Why a round failed, as far as a server can know: sentences from who looked to who sent."""
    told = []
    if found.looked is not None:
        told.append(f"About {plural(found.looked, 'device')} looked for rounds in the half minute before its end.")
    away = [f"{count:,} {TURNED_AWAY[why]}" for why, count in found.turned_away.items()]
    if found.address:
        away.append(f"{found.address:,} from addresses that had their share")
    if away:
        told.append(f"Check-ins without a place, of which one device may make several: {', '.join(away)}.")
    told.append(
        f"{plural(status.joined, 'device')} joined, {plural(status.uploaded, 'update')} came in time, "
        f"{status.cohort_minimum:,} were needed."
    )
    if status.joined < status.cohort_minimum:
        told.append(UNKNOWN)
    elif status.uploaded < status.cohort_minimum:
        told.append("The others joined and fell silent: closed, out of reach, or slower than the deadline.")
    return tuple(told)


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
    published = "no release yet" if status.finished_at is None else "no release"
    labels = (
        ("Places offered", f"{status.joined:,} joined of {status.cohort:,} wanted"),
        ("Updates received", f"{status.uploaded:,} in, at least {status.cohort_minimum:,} needed"),
        ("Averaged and concluded", status.published or published),
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
        ("Keys advertised", f"{status.joined:,} joined of {status.cohort:,} wanted"),
        ("Shares of keys exchanged", "encrypted between the devices"),
        ("Masked vectors added", f"{status.uploaded:,} in, at least {status.cohort_minimum:,} needed"),
        ("Sum opened and concluded", opened_words(status)),
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
        return "nothing is opened yet" if status.finished_at is None else "nothing was opened"
    cost = (
        "no noise inside: no epsilon bounds what it tells"
        if status.epsilon is None or status.delta is None
        else f"epsilon {status.epsilon:.3g} at delta {status.delta:g}"
    )
    published = "" if status.published is None else f"{status.published}: "
    return f"{published}the sum of {status.survivors:,} devices, {cost}"


def scheduled(schedule: Schedule) -> str:
    """When it opens rounds, in words."""
    every = None if schedule.every_minutes is None else f"every {number(schedule.every_minutes)} minutes"
    waiting = None if schedule.waiting is None else f"when about {schedule.waiting:,} devices wait"
    return f"{waiting}, and no oftener than {every}" if every and waiting else str(every or waiting)
