"""The choices on the rounds page. Oracles: the systems themselves, and the price list of the privacy page."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import get_args

import pytest

from backend.console.purposes import (
    SECONDS_DEFAULT,
    backfill_shown,
    needs_message,
    purposes,
    startable,
    sum_costs,
    written,
)
from backend.console.round_pages import WORDS, ended_messages, fleet_message, steps
from backend.federation.rounds.opening import UpdatesNeeded, need_of
from backend.federation.rounds.records import CheckIns
from backend.federation.strategies.fedavg import FedAvg
from backend.federation.strategies.strategy import ChecksCohort
from backend.federation.systems import COMPOSED, PRESETS, STEPS, SYSTEMS, full_name
from backend.federation.systems.release_gate import RELEASE_GATE
from backend.federation.systems.uni_fedrec import BASIS_VOTE
from backend.setup.backfill import BackfillTask
from device_app.errors import Hindrance
from protocol.fleet_figures import RoundOfFleet, write_fleet_figures
from protocol.formatting import number
from tests.doubles.console_client import OURS, client_of
from tests.doubles.console_services import StandInServices
from tests.doubles.fleet_figures import FLEET_FIGURES
from tests.doubles.secure_round_status import status

FORM = {"system": "naml", "cohort": "31", "cohort_minimum": "11", "seconds": "45"}


def test_every_system_an_operator_can_start_and_every_paper_is_offered_once() -> None:
    reported = [choice.system for purpose in written().purposes for choice in purpose.choices]
    ordered = {RELEASE_GATE.name, BASIS_VOTE.name} | {spec.begins_with for spec in COMPOSED.values()}
    ordered |= {spec.strategy.follow for spec in COMPOSED.values() if isinstance(spec.strategy, FedAvg)}
    assert sorted(reported) == sorted((SYSTEMS.keys() | PRESETS.keys() | STEPS.keys()) - ordered)
    papers = {choice.paper for purpose in written().purposes for choice in purpose.choices if not choice.variant}
    assert papers == written().papers.keys() | {None}
    assert len(written().papers) == 5


def test_every_choice_shows_the_same_cost_as_the_privacy_page() -> None:
    costs = {cost.system: cost for cost in sum_costs()}
    for purpose in purposes(StandInServices()):  # type: ignore[arg-type]
        for choice in purpose.choices:
            sums = costs.get(full_name(choice.starts))
            if sums is None:
                assert choice.cost.startswith("epsilon"), choice.system
            elif sums.epsilons:
                assert f"epsilon {number(sums.epsilons[0])} with 10 devices" in choice.cost
            else:
                assert "no epsilon limit" in choice.cost


def test_every_protection_has_a_cost_and_impossible_ones_a_reason() -> None:
    page = unescape(client_of(StandInServices()).get("/console/rounds").text)
    for purpose in purposes(StandInServices()):  # type: ignore[arg-type]
        for choice in purpose.choices:
            system = SYSTEMS.get(choice.system)
            assert [form.name for form in choice.forms] == ([] if system is None else list(system.forms))
            for form in choice.forms:
                assert form.cost
                assert form.aggregations[0] == full_name(choice.system, form.name).split("/")[2]
            for each in (*(form.protection for form in choice.forms), *choice.impossible):
                assert each in page
    ranker = next(each for purpose in purposes(StandInServices()) for each in purpose.choices)  # type: ignore[arg-type]
    assert "secure with trimmed, exact with trimmed: Nobody sees the updates" in " ".join(ranker.impossible)


PAPER_CARDS = [each for purpose in written().purposes for each in purpose.choices if each.paper and not each.variant]


@pytest.mark.parametrize("card", [each.system for each in PAPER_CARDS] + ["basis", "codebook"])
def test_every_papers_card_starts_a_form_that_the_usual_cohort_can_run(card: str) -> None:
    """Oracle: the strategy's own check of its cohort, which refuses the usual forms of `basis` and `codebook`."""
    services = StandInServices()
    services.coordinator.under_way = False
    page = unescape(client_of(services).get("/console/rounds").text)
    starts = re.search(rf'id="choice-{card}" name="system" value="([\w/]+)"', page)
    assert starts is not None
    asked = {"system": starts[1], "protection": "", "aggregation": ""}
    asked |= dict(re.findall(r'id="(?:cohort|minimum|seconds)-now"[^>]* name="(\w+)" value="(\d+)"', page))
    client_of(services).post("/console/rounds", data=asked, headers=OURS)
    (opened,) = services.coordinator.opened
    spec = COMPOSED[opened.system]
    if isinstance(spec.strategy, ChecksCohort):
        spec.strategy.check_cohort(spec, opened.cohort)
    about = page[page.index(f'id="about-{card}"') :].partition("</li>")[0]
    assert ("Main differences from the paper" in about) is (card in PRESETS)
    assert ("the noise of secure would hide the signal" in about) is (card in ("basis", "codebook"))
    assert needs_message(spec).capitalize() in about
    assert f"<dt>Usual deadline</dt><dd>{opened.seconds:g} seconds</dd>" in about, "the form leaves it open"
    assert opened.seconds >= SECONDS_DEFAULT


def test_noisy_system_is_offered_if_enough_devices_are_present() -> None:
    assert startable("basis", 60)[0] == "basis/exact"
    assert startable("basis", 6_000) == ("basis", None)


def test_page_says_how_many_devices_are_waiting() -> None:
    services = StandInServices()
    page = client_of(services).get("/console/rounds").text
    assert "About 0 devices are waiting for a round now. A round with fewer than its minimum fails" in page
    for _ in range(30):
        services.coordinator.polls.note()
    assert "About 30 devices are waiting for a round now.</p>" in client_of(services).get("/console/rounds").text


@pytest.mark.parametrize(
    ("name", "cohort", "minimum", "need"),
    [
        ("small_ranker/exact/mean", 60, 10, UpdatesNeeded(41)),
        ("small_ranker/exact/mean", 60, 50, UpdatesNeeded(50)),
        ("small_ranker/exact/mean", 12, 10, UpdatesNeeded(10)),
        ("small_ranker/secure/median", 60, 10, UpdatesNeeded(10, groups=2)),
        ("small_ranker/secure/median", 60, 30, UpdatesNeeded(41)),
        ("small_ranker/local/mean", 60, 10, UpdatesNeeded(10)),
    ],
)
def test_updates_needed_follow_from_protection_and_minimum(
    name: str, cohort: int, minimum: int, need: UpdatesNeeded
) -> None:
    """Oracle: floor(2n/3) + 1 of Bonawitz et al. 2017, section 6, counted by hand."""
    assert need_of(COMPOSED[name], cohort, minimum) == need


def test_page_states_a_secure_sums_own_minimum_of_updates() -> None:
    page = unescape(client_of(StandInServices()).get("/console/rounds").text)
    offered = page[page.index('id="about-finding"') : page.index('id="about-fl_mv_dssm"')]
    assert "At least 41 updates if 60 devices join" in offered
    assert "“Needs” shows it for 60 devices and a minimum of 10" in page
    failed = ended_messages(status("failed", joined=61, uploaded=25, cohort_minimum=41), CheckIns({}, 0, None))
    assert failed[0].startswith("61 devices joined and 25 updates arrived in time; at least 41 were needed. A secure")
    assert steps(status("masked", joined=61))[0][1].startswith("61 joined, 60 wanted; some places are spare")


def test_form_refuses_an_invalid_combination_of_protection_and_aggregation() -> None:
    services = StandInServices()
    services.coordinator.under_way = False
    asked = FORM | {"system": "small_ranker", "protection": "local", "aggregation": "median"}
    client_of(services).post("/console/rounds", data=asked, headers=OURS)
    assert [each.system for each in services.coordinator.opened] == ["small_ranker/local/median"]
    refused = client_of(services).post("/console/rounds", data=asked | {"protection": "exact"}, headers=OURS)
    assert refused.status_code == 422
    assert "An exact sum of a group says more about each of its readers" in unescape(refused.text)
    assert "<option selected>exact</option>" in refused.text
    assert len(services.coordinator.opened) == 1


def test_systems_that_cannot_run_yet_are_disabled_and_can_be_prepared() -> None:
    services = StandInServices()
    page = client_of(services).get("/console/rounds").text
    radios = dict(re.findall(r'name="system" value="([\w/]+)"( disabled)?', page))
    over_words = {"fednewsrec", "fednewsrec_whole", "naml_whole", "lstur_whole"}
    assert {name for name, off in radios.items() if off} == {"naml", "codebook/exact"} | over_words
    assert page.count("The news model that it also trains is not prepared yet.") == len(over_words)
    assert re.findall(r'formaction="/console/rounds/prepare" formnovalidate name="ranker" value="([\w.]+)"', page) == [
        "ranker.naml",
        "ranker.fednewsrec",
        "ranker.fednewsrec",
        "ranker.naml",
        "ranker.lstur",
    ]
    assert "Release r3 has nothing for codebook." in page
    done = client_of(services).post("/console/rounds/prepare", data=FORM | {"ranker": "ranker.naml"}, headers=OURS)
    assert done.headers["location"] == "/console/rounds?said=preparing#preparing"
    assert services.backfill.asked == ["ranker.naml"]
    reported = client_of(services).get("/console/rounds")
    assert 'data-state="ranker.naml working"' in reported.text
    assert 'value="ranker.naml"' not in reported.text, "what is being prepared already has no button"
    assert "The current release has no model ranker.naml yet. Status: being prepared." in reported.text
    live = {"state": "ranker.naml working", "figures": {}}
    assert client_of(services).get("/console/rounds/preparing").json() == live


def test_refused_form_keeps_its_input_and_uses_the_page_labels() -> None:
    services = StandInServices()
    client = client_of(services)
    for path in ("", "/schedule"):
        odd = FORM | {"system": "nrms", "cohort": "many", "every_minutes": "7"}
        refused = client.post(f"/console/rounds{path}", data=odd, headers=OURS)
        assert refused.status_code == 422
        assert "“Cohort, devices” is not a whole number." in refused.text
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


def test_page_opens_at_the_started_round() -> None:
    services = StandInServices()
    services.coordinator.under_way = False
    done = client_of(services).post("/console/rounds", data=FORM, headers=OURS)
    assert done.headers["location"] == "/console/rounds?said=opened#round"
    services.coordinator.under_way = True
    page = client_of(services).get("/console/rounds").text
    assert page.index('id="round"') < page.index("Start a round")


def test_failed_round_is_explained_only_by_what_the_server_can_know() -> None:
    found = CheckIns({"release": 3, "full": 2}, address=1, polls=20)
    few = " ".join(ended_messages(status("failed", joined=4, uploaded=0, cohort_minimum=10), found))
    assert "20 requests for rounds arrived in its last 30 seconds. A device sends about two" in few
    assert "3 from devices with another release, 2 after all places were given, 1 from addresses" in few
    assert "4 devices joined and 0 updates arrived in time; at least 10 were needed." in few
    assert "cannot know why" in few
    silent = ended_messages(status("failed", joined=12, uploaded=4, cohort_minimum=10), CheckIns({}, 0, None))
    assert silent[-1].startswith("The others joined but sent nothing")
    assert not any("cannot know why" in each for each in silent)
    applied = ended_messages(status("applied", joined=12, uploaded=12, cohort_minimum=10), replace(found, polls=None))
    assert len(applied) == 1, "who got no place, and no reason for a failure"
    assert "3 from devices with another release" in applied[0]
    assert ended_messages(status("open", joined=4, uploaded=0, cohort_minimum=10), found) == ()


def test_only_a_demo_fleet_reports_why_devices_stayed_out(tmp_path: Path) -> None:
    services = StandInServices()
    services.coordinator.under_way = False
    assert "simulated devices" not in client_of(services).get("/console/rounds").text
    services.settings.fleet_figures = tmp_path / "fleet-figures.json"
    assert "simulated devices" not in client_of(services).get("/console/rounds").text
    write_fleet_figures(services.settings.fleet_figures, FLEET_FIGURES)
    page = unescape(client_of(services).get("/console/rounds").text)
    assert "Of 60 simulated devices, 60 took part." in page
    assert "11 took part, 1 found no place left, 44 ran out of time, 4 had spent their budget." in page
    assert "real devices never do" in page


def test_unknown_reason_is_shown_under_its_own_name_and_last() -> None:
    reported = fleet_message(RoundOfFleet(round="round-1", devices=3, became={"odd": 1, "sent": 2}))
    assert "2 took part, 1 odd." in reported
    assert fleet_message(None) == ""
    assert WORDS.table("became").keys() == {*get_args(Hindrance), "sent", "absent"}


def test_overview_shows_preparation_progress_until_complete() -> None:
    services = StandInServices()
    client = client_of(services)
    assert "Being prepared" not in client.get("/console").text
    tasks = [
        BackfillTask("vectors", "working", 1_536, 4_976),
        BackfillTask("ranker.nrms", "failed", trouble="No space is left."),
        BackfillTask("ranker.naml"),
    ]
    shown = backfill_shown(tasks)
    services.backfill.status = lambda: tasks  # type: ignore[method-assign]
    page = unescape(re.sub(r"<[^>]+>", "", client.get("/console").text))
    for words in ("0 of 3 are ready.", "1,536 of 4,976", "Model ranker.nrms: No space is left.", "ranker.naml: wait"):
        assert words in page
    assert (shown.state, shown.figures()) == ("vectors working", {"vectors": "1,536 of 4,976"})
    assert backfill_shown([replace(each, stage="published") for each in tasks]).state == "published"
    assert backfill_shown(tasks[1:2]).message == "1 of 1 failed. The next start tries again."
