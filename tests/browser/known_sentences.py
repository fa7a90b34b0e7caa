"""The oracle of every sentence on You, Privacy and Training that states a figure or makes a claim.

A sentence with a figure that is not listed here fails the test. Figures are compared to the digits that are shown.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from device_app.store.rows import PAGE_SIZE
from protocol.rounds import RoundStatus
from tests.doubles.own_account import DELTA, MEMBERS, OwnAccount, local, price

UNITS = {"B": 1.0, "kB": 1e3, "MB": 1e6, "ms": 1.0, "s": 1e3, "million": 1e6}
NUMBER = r"(\d[\d,]*(?:\.\d+)?(?: (?:kB|MB|B|million))?)"
CLOCK = r"((?:\d{1,2} \w{3} )?\d\d:\d\d)"
WEIGHT = r"group (\d+) weighs (\d\.\d\d)"
CODES = 16
TRUTH = math.exp(4) / (math.exp(4) + CODES - 1)
"""Of randomised response at epsilon 4 over 16 numbers."""


OWN = "mechanism NOT IN ('nothing', 'public_list') OR method <> 'GET' AND mechanism = 'nothing' OR epsilon > 0"
"""Requests that carry something of this device, or anything at all but a GET; what every device asks alike for the list
that everybody gets is none of them (tests/privacy/test_same_requests.py)."""


@dataclass(frozen=True)
class KnownFacts:
    """The true facts: the account, the last round as the backend reports it, and what the reader has switched."""

    account: OwnAccount
    round: RoundStatus | None = None
    training: bool = False
    erased: bool = False

    @property
    def again(self) -> int:
        """Return how many reports were sent again with the same bytes as an earlier one."""
        return len(self.account.codes) - self.account.times["reports"]

    @property
    def left(self) -> bool:
        """Return whether anything about the reader has left the device."""
        return bool(self.account.codes or self.account.sums)

    @property
    def clicks(self) -> int:
        """Return the number of clicks in the database file."""
        return self.account.number("SELECT count(*) FROM click")

    @property
    def per_day(self) -> float:
        """Return the most that training may cost a day: the button for taking part allows one round."""
        return 5.0 if self.training else 0.0


Check = Callable[[tuple[str, ...], KnownFacts], bool]


def value_of(shown: str) -> float:
    """Return the number that a figure on a page stands for."""
    figure, _, unit = shown.partition(" ")
    return float(figure.replace(",", "")) * UNITS.get(unit, 1.0)


def shows(shown: str, true: float) -> bool:
    """Return whether a shown figure is `true`, rounded to the shown digits; bare figures may end after three digits."""
    figure, _, unit = shown.partition(" ")
    places = len(figure.partition(".")[2])
    scaled = true / UNITS.get(unit, 1.0)
    last = 10.0**-places
    if not places and unit in ("", "million") and 0 < abs(scaled) < 100:
        last = min(1.0, 10.0 ** (math.floor(math.log10(abs(scaled))) - 2))  # '4' may be 4.00 with its zeros left out
    return abs(value_of(figure) - scaled) <= last / 2 + 1e-9


def at(shown: str, true: datetime) -> bool:
    """Return whether a shown time is this moment, with or without its day."""
    return shown in (f"{true:%H:%M}", f"{true:%-d %b %H:%M}")


def _newest(facts: KnownFacts, column: str, table: str) -> datetime:
    return local(facts.account.rows(f"SELECT {column} FROM {table} ORDER BY {column} DESC LIMIT 1")[0][0])


def _today(found: tuple[str, ...], facts: KnownFacts) -> bool:
    """Return whether 'sent 1 blurred number and joined 1 group count and 1 training round, and ...' is true."""
    said = found[0]
    counts = {
        "blurred number": facts.account.times["reports"],
        "group count": len(facts.account.counted),
        "training round": len(facts.account.trained),
    }
    parts = re.findall(r"(\d+) (blurred number|group count|training round)", said)
    reported = {name: int(number) for number, name in parts}
    again = "repeated a number it had sent before, which reveals nothing new" in said
    return reported == {name: number for name, number in counts.items() if number} and again == bool(facts.again)


def _clear_and_sent(found: tuple[str, ...], facts: KnownFacts) -> bool:
    clear, *_ = json.loads(facts.account.rows("SELECT clear FROM report_memo")[0][0])
    return int(found[0]) == int(clear[0])


def _sent(found: tuple[str, ...], facts: KnownFacts) -> bool:
    sent = facts.account.codes[-1]["code"]
    clear, *_ = json.loads(facts.account.rows("SELECT clear FROM report_memo")[0][0])
    return int(found[0]) == sent and (found[1] == "right") == (int(clear[0]) == sent)


def _step(found: tuple[str, ...], facts: KnownFacts) -> bool:
    """Return whether an interest's stories and largest weights are true.

    Without a number of stories, the weights are those of all interests together.
    tests/unit/device_app/journeys/test_reports_sent.py checks the stored weights against the clicks' vectors.
    """
    stories, *shown = found
    _, weights, *interests = json.loads(facts.account.rows("SELECT clear FROM report_memo")[0][0])
    rows = [weights] if stories is None else [row for count, *row in interests if count == int(stories)]
    groups = [(int(group), weight) for group, weight in zip(shown[::2], shown[1::2], strict=True)]
    return any(
        sorted(row, reverse=True)[: len(groups)] == [row[group] for group, _ in groups]
        and all(shows(weight, row[group]) for group, weight in groups)
        for row in rows
    )


def _together(found: tuple[str, ...], facts: KnownFacts) -> bool:
    account = facts.account
    charges, by_sum, sharper, delta = sum(account.times.values()), sum(account.charges.values()), found[2], found[3]
    # One response of two values' loss: nothing is gained of its epsilon at so small a delta.
    in_sums = price(*account.sums, deltas=DELTA * len(account.sums)) if account.sums else 0.0
    by_loss = account.charges["reports"] + in_sums
    if int(found[0].replace("one", "1")) != charges or not shows(found[1], by_sum):
        return False
    if sharper is None:
        return by_loss >= 0.99 * by_sum
    return shows(sharper, by_loss) and math.isclose(float(delta), DELTA * (len(account.sums) + 1), rel_tol=0.05)


def _alone(found: tuple[str, ...], facts: KnownFacts) -> bool:
    alone = price(*facts.account.sums, members=1)
    return shows(found[0], alone) and value_of(found[1]) == 48 and shows(found[2], alone) and float(found[3]) == DELTA


def _since_report(found: tuple[str, ...], facts: KnownFacts) -> bool:
    before = facts.account.number("SELECT clicks FROM report_memo")
    new = facts.account.number("SELECT max(id) FROM click") - before
    # Anew after as many clicks again, three at least and twenty at most.
    return int(found[0]) == new and int(found[1]) == max(0, min(20, max(3, before)) - new)


def _until_own(found: tuple[str, ...], facts: KnownFacts) -> bool:
    (clear,) = facts.account.rows("SELECT clear FROM report_memo")
    return json.loads(clear[0]) == [] and int(found[0]) == 3 - facts.clicks


def _newest_release(found: tuple[str, ...], facts: KnownFacts) -> bool:
    return found[0] == f"r{facts.account.number('SELECT max(number) FROM release_chain')}"


def _made_and_due(found: tuple[str, ...], facts: KnownFacts) -> bool:
    made = _newest(facts, "made_at", "report_memo")
    return at(found[0], made) and at(found[1].split()[-1], made)


def _until(found: tuple[str, ...], facts: KnownFacts) -> bool:
    rows = facts.account.rows("SELECT until, displayed, clicked FROM count_taken")
    return any(at(found[0], local(until)) and (int(found[1]), int(found[2])) == (s, c) for until, s, c in rows)


def _part(found: tuple[str, ...], facts: KnownFacts) -> bool:
    tasks = {"Group count": "count", "Training": "full_gradient"}
    rows = facts.account.rows("SELECT changed_at, sent_bytes, state FROM participation WHERE task = ?", tasks[found[0]])
    return any(at(found[1], local(when)) and shows(found[2], sent) for when, sent, _ in rows)


def _requests(found: tuple[str, ...], facts: KnownFacts, concerning: bool) -> bool:
    where = f" WHERE {OWN}" if concerning else ""
    return int(found[0].replace(",", "")) == facts.account.number(f"SELECT count(*) FROM traffic{where}")


def _others(found: tuple[str, ...], facts: KnownFacts) -> bool:
    return int(found[0]) == facts.account.number(f"SELECT count(*) FROM traffic WHERE NOT ({OWN})")


def _pages(found: tuple[str, ...], facts: KnownFacts) -> bool:
    lines = facts.account.number(f"SELECT count(*) FROM traffic WHERE {OWN}")
    page, pages = (int(one) for one in found)
    return page == 1 < pages <= math.ceil(lines / PAGE_SIZE)  # several polls can be one line


def _more_reports(found: tuple[str, ...], facts: KnownFacts) -> bool:
    return int(found[0]) == (8 - facts.account.charges["reports"]) // 4


def _joined(found: tuple[str, ...], facts: KnownFacts) -> bool:
    return facts.round is not None and [int(one) for one in found] == [facts.round.joined, facts.round.cohort]


def _in(found: tuple[str, ...], facts: KnownFacts) -> bool:
    return facts.round is not None and [int(one) for one in found] == [facts.round.uploaded, facts.round.cohort_minimum]


def _opened(found: tuple[str, ...], facts: KnownFacts) -> bool:
    end = facts.round
    return end is not None and at(found[0], end.opened_at.astimezone()) and at(found[1], end.closes_at.astimezone())


def _at_delta(found: tuple[str, ...], facts: KnownFacts) -> bool:
    return float(found[0]) == DELTA


def always(*expected: float) -> Check:
    """Accept only these figures: they are fixed by the product."""
    return lambda found, _: len(found) == len(expected) and all(map(shows, found, expected))


WITH_FIGURES: dict[str, Check] = {
    r"Today this device (.*)": _today,
    r"Last checked (\d+) min ago\.": lambda _, facts: facts.round is not None,
    rf"Updated {CLOCK}": lambda found, facts: at(found[0], _newest(facts, "made_at", "feed")),
    r"Sharing: up to (\d+) reports? left today\.": _more_reports,
    r"(\d+) stor(?:y|ies) opened": lambda found, facts: int(found[0]) == facts.clicks,
    r"0 stories": lambda _, facts: not facts.account.rows("SELECT 1 FROM reaction WHERE kind = 'save'"),
    r"0 searches and topics saved": lambda _, facts: True,
    rf"Specific to this device {NUMBER}": lambda found, facts: _requests(found, facts, True),
    rf"Everything {NUMBER}": lambda found, facts: _requests(found, facts, False),
    rf"Page {NUMBER} of {NUMBER}": _pages,
    rf"The other {NUMBER} requests? contain nothing about you: they are the same for every device\.": _others,
    r"Every request of the last 90 days(?:, since everything was erased here)?\.": lambda _, facts: True,
    r"All went to (127\.0\.0\.1:\d+)\.": lambda found, facts: f"http://{found[0]}" == facts.account.line.url,
    r"A cost of “0” means that nothing new about you was revealed\.": lambda _, facts: True,
    rf"“Today” is the UTC day, which ends {CLOCK} on your clock\.": lambda found, _: at(
        found[0].split()[-1], local(0).replace(year=2026, month=1, day=1)
    ),
    rf"(?:The (one) charge so far \(reports, training and counts\) costs|All {NUMBER} charges so far \(reports, "
    rf"training and counts\) cost) {NUMBER} epsilon if simply added up(?:, and {NUMBER} at a delta of (\S+) by a "
    r"tighter bound on the total|; a tighter bound on the total is not lower yet)\.": lambda found, facts: _together(
        (found[0] or found[1], found[2], found[3], found[4]), facts
    ),
    rf"The noisy secure sums among them cost {NUMBER} in total\.": lambda found, facts: shows(
        found[0], price(*facts.account.sums, deltas=DELTA * len(facts.account.sums))
    ),
    rf"If the publisher faked all other devices in every sum, (?:the noisy sums|all noisy sums together \(counts "
    rf"included\)) would cost {NUMBER} epsilon today \(limit {NUMBER}\) and {NUMBER} in total, at a delta of "
    r"(\S+)\.": _alone,
    r"You have read (\d+) stor(?:y|ies) since the current report; a new one is made after (\d+) more\.": _since_report,
    r"It is about you once you have read (\d+) stories \((\d+) so far\)\.": lambda found, facts: (
        int(found[0]) == 3 and int(found[1]) == facts.clicks
    ),
    r"A report about you replaces it after (\d+) more stor(?:y|ies), and costs budget\.": _until_own,
    r"Each interest group gets its random number once, and keeps it permanently: in total you pay (\d+) for each "
    r"different group that was closest to you\.": always(4),
    r"Epsilon is at a delta of (\S+)\.": _at_delta,
    r"It is at view level, inside this device, at a delta of (\S+)\.": lambda found, _: float(found[0]) == 1e-3,
    rf"A number from 0 to {NUMBER}: the group that weighs most in your interests, out of {NUMBER}\.": always(
        CODES - 1, CODES
    ),
    rf"(?:All together, by number of stories|.+, (\d+) stor(?:y|ies)): {', '.join([WEIGHT] * 3)}": _step,
    rf"It is right {NUMBER} % of the time, and otherwise a random other number\.": lambda found, _: (
        int(found[0]) == round(100 * TRUTH)
    ),
    r"If the text of a story you open is missing, it is downloaded in a batch of at least (100), so an honest "
    r"publisher cannot tell which one you opened\.": always(100),
    r"Computed here: number (\d+)\.": _clear_and_sent,
    r"Sent: (\d+), which is (right|wrong); the publisher can't tell\.": _sent,
    rf"Made {CLOCK}, checked again {CLOCK}\.": _made_and_due,
    rf"Until {CLOCK}: (\d+) stor(?:y|ies) seen, (\d+) of them opened": _until,
    r"At release (r\d+) your code is ([0-9a-f ]+)\.": _newest_release,
    r"Compare it with another reader who is at (r\d+)\.": _newest_release,
    r"All releases must be signed with the key ([0-9a-f ]+)\.": lambda _, facts: True,
    # Training
    rf"(?:A group count of what readers see and open\. )?Opened {CLOCK}, was due to close {CLOCK}\.": _opened,
    rf"Devices join done {NUMBER} of {NUMBER} joined": _joined,
    rf"Protected updates arrive done {NUMBER} arrived, at least {NUMBER} needed": _in,
    rf"This device joins only while the day's rounds together cost at most {NUMBER} epsilon\.": lambda found, facts: (
        shows(found[0], facts.per_day)
    ),
    rf"It joins a sum only if the sum has noise and can't be opened with fewer than {NUMBER} devices in it\.": always(
        MEMBERS
    ),
    r"In a round planned for more than (100) devices, each device masks with a few dozen others, and the masks protect "
    r"only against a publisher that follows the protocol, however few devices come\.": always(100),
    rf"(Group count|Training), {CLOCK}: {NUMBER} sent": _part,
}
"""By pattern of the whole sentence; its groups go to the check, None for one that took no part."""

CLAIMS: dict[str, tuple[tuple[str, ...], Callable[[KnownFacts], bool]]] = {
    "Nothing about you was shared today.": (("/you", "/privacy"), lambda facts: not facts.left),
    "Nothing has been used on any day.": (("/privacy",), lambda facts: not sum(facts.account.times.values())),
    "Nothing has been sent yet.": (("/privacy",), lambda facts: not facts.account.line.requests()),
    "Nothing has been sent since the log was erased.": (
        ("/privacy",),
        lambda facts: facts.erased and not facts.account.rows("SELECT 1 FROM traffic"),
    ),
    "This device has not joined a group count yet.": (("/privacy",), lambda facts: not facts.account.counted),
    "The list of group counts that this device joined was erased with everything else.": (
        ("/privacy",),
        lambda facts: facts.erased,
    ),
    "Group counts are switched off.": (("/privacy",), lambda _: False),
    "Reports are off, so they reveal nothing.": (("/privacy",), lambda _: False),
    "There is no report yet.": (
        ("/privacy",),
        lambda facts: not facts.erased and not facts.account.rows("SELECT 1 FROM report_memo"),
    ),
    "There is no report yet since everything was erased here.": (
        ("/privacy",),
        lambda facts: facts.erased and not facts.account.rows("SELECT 1 FROM report_memo"),
    ),
    "None so far.": (
        ("/training",),
        lambda facts: not facts.erased and not facts.account.sums,
    ),
    "None since everything was erased here.": (("/training",), lambda facts: facts.erased),
    "Training on": (("/you", "/privacy", "/training"), lambda facts: facts.training),
    "Training is off.": (("/you", "/privacy", "/training"), lambda facts: not facts.training),
    "Taking part": (("/training",), lambda facts: facts.training),
    "Offline: can't reach the publisher": (("/you", "/privacy", "/training"), lambda _: False),
    "No page yet": (
        ("/you", "/privacy", "/training"),
        lambda facts: not facts.account.rows("SELECT 1 FROM feed"),
    ),
    "They appear once you have read a few stories": (("/you",), lambda facts: not facts.clicks),
}
"""A sentence stands on these pages exactly where it is so."""


def false_on(path: str, sentences: list[str], facts: KnownFacts) -> list[str]:
    """Return sentences that are unknown or false, and claims that are missing."""
    found = []
    for sentence in sentences:
        if not re.search(r"\d", sentence):
            continue
        matches = [(re.fullmatch(pattern, sentence), check) for pattern, check in WITH_FIGURES.items()]
        known = [(match.groups(), check) for match, check in matches if match]
        if not known:
            found.append(f"{path}: nobody knows {sentence!r}")
        found += [f"{path}: not so: {sentence!r}" for figures, check in known if not check(figures, facts)]
    for claim, (paths, holds) in CLAIMS.items():
        if path in paths and (claim in sentences) != holds(facts):
            found.append(f"{path}: {'not so' if claim in sentences else 'missing'}: {claim!r}")
    return found
