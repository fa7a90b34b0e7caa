"""Every figure and claim on You, Privacy and Training is true, from a first visit to an erase.

The reader sends a report and joins a count and a round meanwhile. Oracles: the device's file read by SQL, the bytes on
the connection to the backend, the backend's own record of a round, and prices computed by dp-accounting
(tests/doubles/own_account, tests/browser/known_sentences).
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.conftest import Serve
from tests.browser.known_sentences import OWN, TRUTH, KnownFacts, false_on, shows, value_of
from tests.browser.page_texts import PageTexts, said_on
from tests.browser.read_along import ReadAlong, read_along
from tests.doubles import small_world
from tests.doubles.own_account import DAY_LIMIT, LIFE_LIMIT, OwnAccount, local, price, utc_day

pytestmark = pytest.mark.browser

LOOKED_AT = """SELECT count(DISTINCT impression.news_id), count(DISTINCT click.news_id)
  FROM impression LEFT JOIN click USING (feed_id, news_id) WHERE viewed_at IS NOT NULL OR click.id IS NOT NULL"""
PATHS = ("/you", "/privacy", "/privacy?show=all", "/training")


def test_every_figure_and_claim_is_true_through_an_erase(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, serve: Serve, chromium: Browser
) -> None:
    first = small_world.first_folder(small_world.shared_cache(tmp_path_factory))
    with ExitStack() as stack:
        reader = stack.enter_context(read_along(tmp_path, first, serve, chromium))
        facts = KnownFacts(OwnAccount(reader.device.settings.database, reader.line))
        found = falsehoods(reader, facts, "first visit")

        reader.pick("Sport")
        reader.read(3)
        found += falsehoods(reader, facts, "read")
        reader.new_page()
        reader.read(2)
        assert len(facts.account.codes) == 1, "a report has left"
        found += falsehoods(reader, facts, "reported")

        reader.join(tmp_path, stack)
        counted = reader.take_part("private_counts/secure/huber")
        facts = replace(facts, round=counted, account=replace(facts.account, counted=(counted.round,)))
        assert facts.account.rows("SELECT displayed, clicked FROM count_taken") == facts.account.rows(LOOKED_AT)
        found += falsehoods(reader, facts, "counted")

        reader.go("/training").get_by_role("button", name="Take part").click()
        reader.page.get_by_text("Your settings are saved.").wait_for()
        trained = reader.take_part("small_ranker/secure/median")
        reader.device.sync()
        account = replace(facts.account, trained=(trained.round,))
        facts = replace(facts, round=trained, training=True, account=account)
        reader.new_page()
        assert len(facts.account.codes) == 2, "the same report has left again"
        assert facts.account.times == {"reports": 1, "counts": 1, "training": 1}
        found += falsehoods(reader, facts, "trained")
        bytes_are_those_of_the_line(reader, facts.account)

        reader.erase()
        facts = replace(facts, erased=True)
        found += falsehoods(reader, facts, "erased")
        reader.device.sync()
        reader.pick("Science")
        reader.read(3)
        reader.new_page()
        assert len(facts.account.codes) == 3
        found += falsehoods(reader, facts, "begun again")
    assert not found, "\n".join(found)


def falsehoods(reader: ReadAlong, facts: KnownFacts, when: str) -> list[str]:
    """Read the pages and return every statement that the account contradicts."""
    found: list[str] = []
    for path in PATHS:
        said = said_on(reader.go(path))
        page = path.partition("?")[0]
        found += false_on(page, said.sentences, facts)
        if page == "/privacy":
            found += false_tables(said, facts, everything="show=all" in path)
        elif page == "/training":
            found += false_rounds(said, facts)
    if not facts.account.matches_the_line():
        found.append("the log is not what went over the line")
    return [f"{when}: {one}" for one in found]


def false_tables(said: PageTexts, facts: KnownFacts, everything: bool) -> list[str]:
    """Return what is wrong in the tables and figures of Privacy."""
    account = facts.account
    costs = {"Cost of a whole report": "4 epsilon", "Chance that it is right": f"{TRUTH:.2f}"}
    found = [] if said.figures == costs else [f"costs: {said.figures}"]
    for name, today, left, per_day, in_all, most in said.tables.pop("Budget"):
        channel, spent = name.lower(), account.charges[name.lower()]
        limit = facts.per_day if channel == "training" else DAY_LIMIT[channel]
        whole = LIFE_LIMIT[channel]
        true = shows(today, spent) and shows(in_all, spent) and shows(left, max(0.0, limit - spent))
        true = true and float(per_day) == limit and most == ("no limit" if whole is None else f"{whole:.0f}")
        found += [] if true else [f"budget of {channel}: {today}, {left}, {per_day}, {in_all}, {most}"]
    days = account.rows("SELECT at, channel, epsilon FROM charge ORDER BY channel")
    expected = sorted({(f"{utc_day(at):%-d %b}", channel) for at, channel, _ in days})
    shown = said.tables.pop("Budget by day", [])
    found += [] if sorted((day, channel) for day, channel, *_ in shown) == expected else [f"days: {shown}"]
    for _, channel, _, epsilon, times in shown:
        if not shows(epsilon, account.charges[channel]) or int(times) != account.times[channel]:
            found.append(f"the day's {channel}: {epsilon}, {times} times")
    for round_id, _, displayed, clicked, *prices in said.tables.pop("Group counts", []):
        row = account.rows("SELECT displayed, clicked FROM count_taken WHERE round = ?", round_id)
        asked = [
            price(kind, members=n) for n in (10, 1) for kind in ("private_counts/secure/huber", "one click of a count")
        ]
        true = row == [(int(displayed), int(clicked))] and all(map(shows, prices, asked))
        found += [] if true else [f"count {round_id}: {displayed}, {clicked}, {prices}"]
    for view, holds, weighs, rounds, reported in said.tables.pop("What a report is made from"):
        clicks = "1 click" if facts.clicks == 1 else f"{facts.clicks} clicks"
        held = clicks if view == "Reading" else "0 searches, 0 topics"
        found += (
            [] if (holds, weighs, rounds, reported) == (held, "Yes", "0", "0 epsilon") else [f"view {view}: {holds}"]
        )
    found += false_requests(said.tables.pop("Requests sent from this device", []), account, everything)
    return found + [f"nobody knows the table {name}" for name in said.tables]


def false_requests(shown: list[list[str]], account: OwnAccount, everything: bool) -> list[str]:
    """Return what is wrong in the log's lines: together they must be the file's rows, with bytes, costs and answers."""
    tells = f" WHERE {OWN}"
    where = "" if everything or not account.number(f"SELECT count(*) FROM traffic{tells}") else tells
    rows = account.rows(
        "SELECT words, length(head) + body_bytes, length(response_head) + response_bytes, epsilon, status, at, "
        f"method, body_sha256, mechanism FROM traffic{where} ORDER BY id DESC LIMIT 1000"
    )
    charged = dict(account.rows("SELECT payload_sha256, epsilon FROM charge WHERE payload_sha256 <> ''"))
    found, reported = [], 0
    left = list(rows)
    for when, words, cost, sent, received, path, answer in shown:
        one = next((row for row in left if words.startswith(row[0])), None)
        if one is None:
            found.append(f"no such request: {words}")
            continue
        times = words.removeprefix(one[0]).split()
        count = int(times[0].replace(",", "")) if times else 1
        alike = (row for row in left if row[0] == one[0] or row[8] == one[8] == "public_list")
        here = list(islice(alike, count))
        left = [row for row in left if row not in here] if count == 1 else _without(left, here)
        reported += count
        paid = sum(row[3] or charged.get(row[7], 0.0) for row in here)
        true = shows(sent, sum(row[1] for row in here)) and shows(received, sum(row[2] for row in here))
        true = true and shows(cost, paid) and path.startswith(one[6]) and when.split()[-1] == f"{local(one[5]):%H:%M}"
        failed = sum(row[4] is None or row[4] >= 400 for row in here)
        told_failed = int(answer.split()[0]) if "failure" in answer else 0
        true = true and (told_failed == failed if count > 1 else str(one[4]) in answer)
        found += [] if true else [f"request: {(when, words, cost, sent, received, path, answer)}"]
    if reported != len(rows) and len(shown) < 25:
        found.append(f"{reported} requests are listed, {len(rows)} are in the log")
    return found


def _without(rows: list[tuple[object, ...]], gone: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    rest = list(rows)
    for row in gone:
        rest.remove(row)
    return rest


def false_rounds(said: PageTexts, facts: KnownFacts) -> list[str]:
    """Return what is wrong in the tables and figures of Training."""
    found = []
    # Whether a round that has ended is still known is the device's to say; what it says of one must be so.
    if "Devices joined" in said.figures:
        if facts.round is None:
            return ["a round that there was not"]
        stage = "unknown since everything was erased" if facts.erased else "applied"
        figures = (str(facts.round.joined), str(facts.round.uploaded), stage)
        shown = tuple(said.figures[name] for name in ("Devices joined", "Updates received", "This device"))
        found += [] if shown == figures else [f"round: {shown}"]
        # As the device last saw it: what came after that, the round's record alone knows.
        if not 0 < value_of(said.figures["Data received by the publisher"]) <= 1.001 * facts.round.received_bytes:
            found.append(f"received {said.figures['Data received by the publisher']}")
    for model, numbers, limit, scale, cost in said.tables.pop("What an update costs under noise added here"):
        # Sensitivity 2 C over the scale of Laplace noise, a number.
        clip, noise = value_of(limit.removeprefix("±")), value_of(scale)
        found += [] if shows(cost, value_of(numbers) * 2 * clip / noise) else [f"update of {model}: {cost}"]
    rows = {row[0]: row[1:] for row in facts.account.rows("SELECT round, system, state, sent_bytes FROM participation")}
    shown_rounds = said.tables.pop("Rounds this device took part in", [])
    found += [] if {row[1] for row in shown_rounds} == set(rows) else ["rounds that were taken part in"]
    for _, round_id, system, _, state, sent, cost, alone in shown_rounds:
        kept = rows.get(round_id)
        true = kept is not None and (system, state) == kept[:2] and shows(sent, kept[2])
        true = true and shows(cost, price(system)) and shows(alone, price(system, members=1))
        found += [] if true else [f"round {round_id}: {system}, {state}, {sent}, {cost}, {alone}"]
    return found + [f"nobody knows the table {name}" for name in said.tables]


def bytes_are_those_of_the_line(reader: ReadAlong, account: OwnAccount) -> None:
    """Check the byte view and the download of a report, a masked vector and a poll against the connection."""
    for like in ("%/v1/recall", "%/masked/%", "%/v1/releases/current"):
        ((entry,),) = account.rows("SELECT max(id) FROM traffic WHERE url LIKE ? AND method <> ''", like)
        page = reader.go(f"/privacy/requests/{entry}")
        head = page.get_by_label("Request line and headers").inner_text()
        sent = [one for one in reader.line.requests() if one.head.decode().split() == head.split()]
        assert sent, f"no such request on the line: {head}"
        body = page.request.get(f"{reader.home}/privacy/requests/{entry}/body").body()
        assert body in [one.body for one in sent]
        said = said_on(page)
        assert shows(said.figures["Sent"], len(sent[0].head) + len(body))
        dump = page.get_by_label("Body byte by byte")
        shown = [line[8:55].split() for line in (dump.text_content() or "").splitlines()] if body else []
        assert bytes.fromhex("".join(byte for line in shown for byte in line)) == body
