"""`python -m tests.browser.killed_tabs`: kills readers' tabs in Chromium at seeded points, over a real backend.

Python devices take part in secure counts meanwhile. Prints each kill and what was wrong; exits with 1 if anything was.

Oracles: the actions that the pages confirmed before the kill; the requests as the server received them; and the
database in the profile, with its log, read by Python's sqlite3 without the product.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from playwright.sync_api import sync_playwright

from backend.federation.errors import RoundUnderWay
from device_app.fleet.fleet import Fleet, warm_up
from device_app.settings import DeviceSettings, PrivacySettings
from tests.browser.conftest import find_chromium
from tests.browser.killed_reader import KilledReader, deadly_script, killed_reader
from tests.doubles.small_world import Received, SmallWorld, first_folder, small_world

SYSTEM = "private_counts/secure/huber"
PYTHON = 11
MINIMUM = 10
ROUND_SEC = 60.0
"""Each stage after the keys has a tenth: eleven devices of one thread come to it one after the other."""
HEADER_BYTES = 4_096
"""Before each file of SQLite's pool in the origin's private file system; they begin with its name."""
ENDS = {b"/device.sqlite": "", b"/device.sqlite-wal": "-wal"}
"""How the names of copies end, by the names there."""
LIVES = 5
"""Deaths of one profile; another then begins with a first visit, and with the budget of another day."""
SUMMING_LIVES = (1, 2, 3)
"""Those of them in which a sum is waited for."""


def database_of(profile: Path, copy: Path) -> sqlite3.Connection:
    """Return the device's database and its write-ahead log, from the profile of a browser that has ended."""
    found = Counter[str]()
    for path in profile.rglob("*"):
        if path.is_file() and "File System" in path.parts:
            content = path.read_bytes()
            ends = ENDS.get(content[:HEADER_BYTES].partition(b"\0")[0])
            if ends is not None:
                found[ends] += 1
                copy.with_name(copy.name + ends).write_bytes(content[HEADER_BYTES:])
    assert found[""] == 1, f"{found['']} database files in this profile"
    assert found["-wal"] <= 1, f"{found['-wal']} logs of the database in this profile"
    return sqlite3.connect(copy)


def address_of(one: Received) -> tuple[str, str]:
    """Return method and path, with the query if there is one."""
    return one.method, f"{one.path}?{one.query}".rstrip("?")


def find_errors(reader: KilledReader, asked: list[Received], database: sqlite3.Connection) -> list[str]:
    """Return what this profile lost, charged twice, or sent without a log line; empty if nothing is wrong."""
    found: list[str] = []

    def column(sql: str) -> list[str]:
        return [str(row[0]) for row in database.execute(sql)]

    if (said := column("PRAGMA integrity_check")) != ["ok"]:
        found.append(f"the file is broken: {said}")
    clicked = column("SELECT news_id FROM click")
    found += [f"a click that was confirmed is lost: {each}" for each in reader.opened - set(clicked)]
    kept = set(column("SELECT news_id FROM reaction WHERE kind = 'save'"))
    found += [f"a reaction that was confirmed is lost: {each}" for each in reader.saved - kept]
    for what, sql in (
        ("a round", "SELECT subject FROM charge WHERE channel IN ('training', 'counts')"),
        ("bytes", "SELECT payload_sha256 FROM charge WHERE channel <> 'reports'"),
    ):
        found += [f"{what} charged {n} times: {each}" for each, n in Counter(column(sql)).items() if n > 1]
    # Two values of a reader may be told by one number, drawn for each of them: equal bytes, and two charges.
    (charged,) = column("SELECT count(*) FROM charge WHERE channel = 'reports'")
    (drawn,) = column("SELECT count(*) FROM drawn_report")
    if charged != drawn:
        found.append(f"{charged} reports were charged, and {drawn} were drawn")
    paid = dict(database.execute("SELECT subject, payload_sha256 FROM charge WHERE channel = 'counts'"))
    bound = dict(database.execute("SELECT round, payload_sha256 FROM round_upload"))
    if paid != bound:
        found.append(f"charges of rounds {paid} are not what the rounds are bound to {bound}")
    logged: dict[tuple[str, str], list[bytes]] = {}
    for method, url, body in database.execute("SELECT method, url, body FROM traffic"):
        logged.setdefault((method, url.removeprefix(reader.world.url)), []).append(body)
    for address, sent in Counter(map(address_of, asked)).items():
        if sent > len(logged.get(address, [])):
            found.append(f"sent {sent} times, with {len(logged.get(address, []))} lines in the log: {address}")
    for one in asked:
        # of a request that was cut off with its tab, the server has the beginning
        if not any(body.startswith(one.body) for body in logged.get(address_of(one), [])):
            found.append(f"sent with a body that the log doesn't have: {address_of(one)}")
    masked = "SELECT url, body_sha256 FROM traffic WHERE method = 'PUT' AND url LIKE '%/masked/%'"
    for url, digest in database.execute(masked):
        if digest != paid.get(url.removeprefix(reader.world.url).split("/")[3]):
            found.append(f"a masked vector that was not paid for: {url}")
    return found


def verdict(reader: KilledReader, folder: Path) -> list[str]:
    """Return what is wrong with a reader whose browser has ended."""
    database = database_of(reader.profile, folder / f"{reader.profile.name}.sqlite")
    try:
        return find_errors(reader, reader.received(), database)
    finally:
        database.close()


@contextmanager
def counting_together(world: SmallWorld, folder: Path) -> Iterator[Counter[str]]:
    """Run Python devices through one secure count after the other; return how the rounds ended."""
    assert world.services is not None
    coordinator = world.services.coordinator
    settings = DeviceSettings(
        data_dir=folder / "fleet",
        backend_url=world.url,
        privacy=PrivacySettings(training=False, epsilon_per_day_counts=1e9),
    )
    fleet, ended, ends = Fleet(settings, PYTHON, seed=7), threading.Event(), Counter[str]()
    fleet.run(warm_up)

    def work() -> None:
        number = None
        while not ended.wait(0.2):
            if number is None or (status := coordinator.status(number)).state in ("applied", "failed"):
                if number is not None:
                    ends[f"{status.state}: {status.reason or 'no fault'}"] += 1
                    number = None
                with suppress(RoundUnderWay):  # a round that has failed is put away a moment after it says so
                    number = coordinator.open_round(
                        SYSTEM, cohort=PYTHON + 2, cohort_minimum=MINIMUM, seconds=ROUND_SEC
                    ).round
            for member in fleet.members:
                member.device.train_step()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield ends
    finally:
        ended.set()
        thread.join()
        fleet.close()


def measure(deaths: int, seed: int) -> bool:
    """Kill this many tabs; return whether nothing was wrong."""
    well, rounds = True, 0
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        script = deadly_script(folder)
        world = stack.enter_context(small_world(first_folder(folder), folder / "world"))
        stack.enter_context(world.backend())
        playwright = stack.enter_context(sync_playwright())
        ends = stack.enter_context(counting_together(world, folder))
        for first in range(0, deaths, LIVES):
            with killed_reader(
                playwright.chromium, find_chromium(playwright), world, folder, script, seed + first
            ) as reader:
                for number in range(min(LIVES, deaths - first)):
                    reader.life(summing=number in SUMMING_LIVES and not reader.sent("unmask"))
                    last = [one.path for one in reader.received()][-1:]
                    print(*reader.deaths[-1], f"the last request {last}", sep=": ", flush=True)  # noqa: T201
                reader.life(summing=True, deadly=False)
            found = verdict(reader, folder)
            with sqlite3.connect(folder / f"{reader.profile.name}.sqlite") as database:
                charges = dict(database.execute("SELECT channel, count(*) FROM charge GROUP BY channel"))
                states = dict(database.execute("SELECT state, count(*) FROM participation GROUP BY state"))
            rounds += charges.get("counts", 0)
            confirmed = f"{len(reader.opened)} stories and {len(reader.saved)} reactions confirmed"
            print(f"{confirmed}; charges {charges}, rounds {states}")  # noqa: T201
            for each in found:
                print(f"WRONG: {each}")  # noqa: T201
            well = well and not found
        print(f"{deaths} deaths; rounds of the server ended {dict(ends)}; paid for by killed tabs: {rounds}")  # noqa: T201
    return well and rounds > 0


if __name__ == "__main__":
    wanted = argparse.ArgumentParser(description=__doc__)
    wanted.add_argument("--deaths", type=int, default=50)
    wanted.add_argument("--seed", type=int, default=1)
    chosen = wanted.parse_args()
    sys.exit(0 if measure(chosen.deaths, chosen.seed) else 1)
