"""What the page of rounds offers. Oracles: the systems themselves, and the price list of the privacy page."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import get_args

from backend.backfill import BackfillTask
from backend.console.declared import sum_costs
from backend.console.purposes import backfill_shown, purposes, written
from backend.console.round_words import WORDS, became_words, ended_words
from backend.federation.rounds.records import CheckIns
from backend.federation.systems import SYSTEMS
from backend.federation.systems.release_gate import RELEASE_GATE
from backend.federation.systems.uni_fedrec import BASIS_VOTE
from device_app.errors import Hindrance
from device_app.figures import number
from device_app.fleet_figures import RoundOfFleet, write_fleet_figures
from tests.doubles.console_client import OURS, client_of
from tests.doubles.console_services import StandInServices
from tests.doubles.secure_round_status import status
from tests.doubles.told_by_fleet import TOLD

FORM = {"system": "naml", "cohort": "31", "cohort_minimum": "11", "seconds": "45"}


def test_every_system_that_is_opened_by_hand_is_offered_once_and_every_paper_is_there() -> None:
    told = [choice.system for purpose in written().purposes for choice in purpose.choices]
    ordered = {RELEASE_GATE.name, BASIS_VOTE.name} | {spec.begins_with for spec in SYSTEMS.values()}
    assert sorted(told) == sorted(SYSTEMS.keys() - ordered)
    papers = {choice.paper for purpose in written().purposes for choice in purpose.choices if not choice.variant}
    assert papers == written().papers.keys() | {None}
    assert len(written().papers) == 5


def test_a_choice_costs_what_the_privacy_page_says_and_none_is_without_a_price() -> None:
    costs = {cost.system: cost for cost in sum_costs()}
    for purpose in purposes(StandInServices()):  # type: ignore[arg-type]
        for choice in purpose.choices:
            sums = costs.get(choice.system)
            if sums is None:
                assert choice.cost.startswith("epsilon"), choice.system
            elif sums.epsilons:
                assert f"epsilon {number(sums.epsilons[0])} where 10 devices" in choice.cost
            else:
                assert "no epsilon bounds it" in choice.cost


def test_only_what_the_release_can_run_can_be_chosen_and_what_can_be_prepared_is_by_one_press() -> None:
    services = StandInServices()
    page = client_of(services).get("/console/rounds").text
    radios = dict(re.findall(r'name="system" value="(\w+)"( disabled)?', page))
    assert {name for name, off in radios.items() if off} == {"naml", "codebook"}
    assert re.findall(r'formaction="/console/rounds/prepare" formnovalidate name="ranker" value="([\w.]+)"', page) == [
        "ranker.naml"
    ]
    assert "Release r3 has nothing for codebook." in page
    done = client_of(services).post("/console/rounds/prepare", data=FORM | {"ranker": "ranker.naml"}, headers=OURS)
    assert done.headers["location"] == "/console/rounds?said=preparing#preparing"
    assert services.backfill.asked == ["ranker.naml"]
    told = client_of(services).get("/console/rounds")
    assert 'data-state="ranker.naml working"' in told.text
    assert "/console/rounds/prepare" not in told.text, "what is prepared already has no button"
    assert "No release has its model, ranker.naml, yet. It is being made." in told.text
    live = {"state": "ranker.naml working", "figures": {}}
    assert client_of(services).get("/console/rounds/preparing").json() == live


def test_what_was_typed_stays_when_it_is_refused_and_fields_are_called_as_on_the_page() -> None:
    services = StandInServices()
    client = client_of(services)
    for path in ("", "/schedule"):
        odd = FORM | {"system": "nrms", "cohort": "many", "every_minutes": "7"}
        refused = client.post(f"/console/rounds{path}", data=odd, headers=OURS)
        assert refused.status_code == 422
        assert "“Cohort, devices” is no whole number." in refused.text
        assert "Nothing was changed." in refused.text
        for kept in ('value="many"', 'value="11"', 'value="45"'):
            assert refused.text.count(kept) == 1
        assert 'aria-current="page">Rounds' in refused.text
    assert re.search(r'<option value="nrms" selected', refused.text)
    assert 'name="every_minutes" value="7"' in refused.text
    services.coordinator.queue.limit = 1
    busy = client.post("/console/rounds", data=FORM | {"system": "nrms"}, headers=OURS)
    assert busy.status_code == 409
    assert re.search(r'value="nrms" checked', busy.text)
    assert 'value="31"' in busy.text


def test_after_the_start_the_round_is_in_view() -> None:
    services = StandInServices()
    services.coordinator.under_way = False
    done = client_of(services).post("/console/rounds", data=FORM, headers=OURS)
    assert done.headers["location"] == "/console/rounds?said=opened#round"
    services.coordinator.under_way = True
    page = client_of(services).get("/console/rounds").text
    assert page.index('id="round"') < page.index("Start a round")


def test_a_failed_round_says_what_a_server_can_know_and_that_it_knows_no_more() -> None:
    found = CheckIns({"release": 3, "full": 2}, address=1, looked=20)
    few = " ".join(ended_words(status("failed", joined=4, uploaded=0, cohort_minimum=10), found))
    assert "20 requests for rounds came in the half minute before its end; a device makes about two" in few
    assert "3 from devices with another release, 2 after all places were given, 1 from addresses" in few
    assert "4 devices joined, 0 updates came in time, 10 were needed." in few
    assert "no server can know" in few
    silent = ended_words(status("failed", joined=12, uploaded=4, cohort_minimum=10), CheckIns({}, 0, None))
    assert silent[-1].startswith("The others joined and fell silent")
    assert not any("no server can know" in each for each in silent)
    applied = ended_words(status("applied", joined=12, uploaded=12, cohort_minimum=10), replace(found, looked=None))
    assert len(applied) == 1, "who got no place, and no reason for a failure"
    assert "3 from devices with another release" in applied[0]
    assert ended_words(status("open", joined=4, uploaded=0, cohort_minimum=10), found) == ()


def test_a_demos_fleet_tells_why_its_devices_stayed_out_and_nobody_else_does(tmp_path: Path) -> None:
    services = StandInServices()
    services.coordinator.under_way = False
    assert "simulated devices" not in client_of(services).get("/console/rounds").text
    services.settings.fleet_figures = tmp_path / "fleet-figures.json"
    assert "simulated devices" not in client_of(services).get("/console/rounds").text
    write_fleet_figures(services.settings.fleet_figures, TOLD)
    page = unescape(client_of(services).get("/console/rounds").text)
    assert "Of the demo's 60 simulated devices, 60 took part." in page
    assert "11 took part, 1 found no place left, 44 ran out of time, 4 had too little read to learn from." in page
    assert "real devices never do" in page


def test_an_unknown_reason_is_told_by_its_name_and_last() -> None:
    told = became_words(RoundOfFleet(round="round-1", devices=3, became={"odd": 1, "sent": 2}))
    assert "2 took part, 1 odd." in told
    assert became_words(None) == ""
    assert WORDS.table("became").keys() == {*get_args(Hindrance), "sent", "absent"}


def test_the_overview_says_how_far_the_preparation_is_until_all_of_it_is_there() -> None:
    services = StandInServices()
    client = client_of(services)
    assert "Prepared beside the server" not in client.get("/console").text
    tasks = [
        BackfillTask("vectors", "working", 1_536, 4_976),
        BackfillTask("ranker.nrms", "failed", trouble="No space is left."),
        BackfillTask("ranker.naml"),
    ]
    shown = backfill_shown(tasks)
    services.backfill.status = lambda: tasks  # type: ignore[method-assign]
    page = unescape(re.sub(r"<[^>]+>", "", client.get("/console").text))
    for words in ("0 of 3 are ready.", "1,536 of 4,976", "Model ranker.nrms: No space is left.", "ranker.naml: waits"):
        assert words in page
    assert (shown.state, shown.figures()) == ("vectors working", {"vectors": "1,536 of 4,976"})
    assert backfill_shown([replace(each, stage="published") for each in tasks]).state == "published"
    assert backfill_shown(tasks[1:2]).words == "1 of 1 failed; the next start tries again."
