"""`python -m tests.qa.console_rounds --rounds 20`: rounds of each paper's card, from the console, for 60 devices.

Each is started by posting the rounds page's own form, with what the page fills in, while `ownfeed fleet` runs the
readers of a demo. The gate is off, as in benches. Prints for each card how many rounds were applied, and the reasons of
the others. Exits with 1 if fewer than 95 % were applied, or if a round was applied with fewer updates than the form's
minimum, or failed although it had as many as the card says are needed.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

import httpx
from rich.console import Console

from backend.console.purposes import written
from backend.console.round_pages import RoundForm
from backend.demo import DEMO_READERS
from backend.operations.admin_client import Operator, OperatorRefused
from experiments.bench.newspaper import RunningBackend, running_backend
from experiments.bench.systems import ARTICLES, prepared_folder
from protocol.fleet_figures import read_fleet_figures
from protocol.rounds import RoundStatus

PASS = 0.95
OPENED_WITHIN_SEC = 60.0
CARDS = tuple(each.system for one in written().purposes for each in one.choices if each.paper and not each.variant)
"""FedNewsRec's comes last: after it no round runs that needs BERT's states."""


class StartRefused(RuntimeError):
    """The console started no round; says why."""


@dataclass
class Card:
    """The rounds of one card: seconds and updates of each applied one, reasons of the others, and broken promises."""

    seconds: list[float] = field(default_factory=list)
    updates: list[int] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)


class ConsoleTab:
    """A browser that is signed in to the console, as far as HTTP goes."""

    def __init__(self, backend: RunningBackend) -> None:
        token_file = backend.settings.admin_token_file
        says = {"origin": backend.url, "sec-fetch-site": "same-origin"}
        self._browser = httpx.Client(base_url=backend.url, headers=says, timeout=180.0)
        token = token_file.read_text(encoding="utf-8").strip()
        assert self._browser.post("/console/sign-in", data={"token": token}).status_code == httpx.codes.SEE_OTHER
        self._operator = Operator(backend.url, token_file)

    def start(self, system: str, seconds: str) -> RoundStatus:
        """Start a round of a card with everything else as the page has it. Raises StartRefused."""
        page = self._browser.get("/console/rounds").text
        card = re.search(rf'id="choice-{system}" name="system" value="([^"]+)"( disabled)?', page)
        if card is None or card[2]:
            raise StartRefused("the card can't be chosen")
        before = {each.round for each in self._operator.rounds()}
        answer = self._browser.post("/console/rounds", data=asdict(RoundForm(system=card[1], seconds=seconds)))
        if answer.status_code != httpx.codes.SEE_OTHER:
            problem = re.search(r'role="alert"[^>]*>(.*?)</', answer.text, re.S)
            raise StartRefused(problem[1].strip() if problem else f"answer {answer.status_code}")
        give_up = time.monotonic() + OPENED_WITHIN_SEC
        while time.monotonic() < give_up:
            new = [each for each in self._operator.rounds() if each.round not in before and not _is_count(each)]
            if new:
                return new[-1]
            time.sleep(0.2)
        raise StartRefused("it waits in the queue")

    def ended(self, status: RoundStatus) -> list[RoundStatus]:
        """Return the ended round and those that follow from it. Raises OperatorRefused."""
        chain: list[RoundStatus] = []
        following: RoundStatus | None = status
        while following is not None:
            chain.append(list(self._operator.follow(following))[-1])
            following = self._operator.following(chain[-1])
        return chain


def _is_count(status: RoundStatus) -> bool:
    return status.system.startswith("private_counts")


def _played(tab: ConsoleTab, system: str, card: Card, seconds: str) -> None:
    began, minimum = time.monotonic(), int(RoundForm().cohort_minimum)
    try:
        chain = tab.ended(tab.start(system, seconds))
    except (StartRefused, OperatorRefused) as refused:
        card.reasons[str(refused)] += 1
        return
    for each in chain:
        in_it = each.uploaded if each.survivors is None else each.survivors
        if each.state == "applied" and in_it < minimum:
            card.broken[f"{each.system} applied with {in_it}"] += 1
        if each.state == "failed" and each.uploaded >= each.cohort_minimum:
            card.broken[f"{each.system} failed with {each.uploaded} of {each.cohort_minimum}: {each.reason}"] += 1
    last = chain[-1]
    if last.state == "applied":
        card.seconds.append(time.monotonic() - began)
        card.updates.append(last.uploaded)
    else:
        came = f"{last.joined} joined, {last.uploaded} of {last.cohort_minimum} updates"
        card.reasons[f"{last.system}: {last.reason} ({came})"] += 1


def _said(system: str, card: Card) -> str:
    played = len(card.seconds) + card.reasons.total()
    applied = f"{system}: {len(card.seconds)} of {played} applied"
    if card.seconds:
        applied += f", median {median(card.seconds):.0f} s, {min(card.updates)} to {max(card.updates)} updates"
    others = "".join(f"\n    {count} times: {why}" for why, count in (card.reasons + card.broken).most_common())
    return applied + others


def main(systems: Sequence[str], *, rounds: int, devices: int, seconds: str) -> int:
    """Run the rounds, card by card; return the exit status."""
    with tempfile.TemporaryDirectory() as made:
        home = Path(made)
        with running_backend(prepared_folder(home / "backend", ARTICLES)) as backend:
            figures = home / "figures.json"
            command = ["fleet", "--devices", str(devices), "--data-dir", str(home), "--figures", str(figures)]
            backend.processes.start("fleet", command, DEMO_READERS | {"OWNFEED_DEVICE_BACKEND_URL": backend.url})
            tab = ConsoleTab(backend)
            while (fleet := read_fleet_figures(figures)) is None or fleet.ready < devices:
                backend.processes.check()
                time.sleep(1.0)
            cards = {system: Card() for system in systems}
            for system, card in cards.items():
                for _ in range(rounds):
                    _played(tab, system, card, seconds)
                    Console().print(_said(system, card), markup=False, soft_wrap=True)
    passed = all(len(card.seconds) >= PASS * rounds and not card.broken for card in cards.values())
    return 0 if passed else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.qa.console_rounds", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--devices", type=int, default=60)
    parser.add_argument("--seconds", default="", help="deadline of each round instead of the card's, on a busy machine")
    parser.add_argument("--only", nargs="*", choices=CARDS, default=CARDS)
    asked = parser.parse_args()
    raise SystemExit(main(asked.only, rounds=asked.rounds, devices=asked.devices, seconds=asked.seconds))
