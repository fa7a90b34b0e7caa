"""The console: no access without the token, no forged form, and correct figures."""

from __future__ import annotations

import math
import re

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from backend.api.admin import OpenRound, SetSchedule
from backend.console.controller import cookie_name
from backend.console.purposes import report_cost, sum_costs
from backend.console.renderer import fact_lines
from backend.console.routes import alerts, router
from backend.federation.strategies.strategy import RoundRequest
from backend.federation.systems import COMPOSED
from protocol.protections import SecureSum
from protocol.releases import RecallProtocol
from tests.doubles.console_client import HOME, OURS, client_of
from tests.doubles.console_services import TOKEN, StandInCatalogue, StandInLive, StandInServices, fresh_services

ELSEWHERE: tuple[dict[str, str], ...] = (
    {},
    {"origin": "https://evil.example"},
    {"origin": "https://evil.example", "sec-fetch-site": "same-origin"},
    OURS | {"sec-fetch-site": "cross-site"},
    {"origin": "null"},
    {"origin": "null", "sec-fetch-site": "cross-site"},
)
"""Headers of forms that aren't the console's own."""
PAGES = ("", "/pool", "/releases", "/recall", "/rounds", "/quality", "/privacy", "/latency")


@pytest.mark.parametrize("path", PAGES)
def test_every_console_page_without_the_token_shows_the_sign_in_page(path: str) -> None:
    client = client_of(StandInServices(), signed_in=False)
    for address in (f"/console{path}", f"/console{path}?token=wrong"):
        answer = client.get(address)
        assert answer.status_code == 401
        assert "newsroom" not in answer.text
    assert client.get("/console/rounds/live").status_code == 401
    client.cookies.set(cookie_name("127.0.0.1:8400"), TOKEN)
    assert client.get(f"/console{path}").status_code == 401, "the cookie holds no token"


def test_token_in_the_address_is_replaced_by_a_strict_cookie() -> None:
    client = client_of(StandInServices(), signed_in=False)
    answer = client.get(f"/console/pool?q=dredging&token={TOKEN}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/pool?q=dredging")
    cookie = answer.headers["set-cookie"]
    assert TOKEN not in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Path=/console" in cookie
    assert client.get("/console/pool").status_code == 200


def test_two_consoles_on_one_host_have_separate_cookies() -> None:
    """Browsers share cookies between all ports of a host.

    Regression: opening one console signed the operator out of the other.
    """
    first, second = StandInServices(), StandInServices()
    second.admin_token = "another token"
    app, beside = FastAPI(openapi_url=None), FastAPI(openapi_url=None)
    app.include_router(router(first))  # type: ignore[arg-type]
    beside.include_router(router(second))  # type: ignore[arg-type]
    browsers_jar: dict[str, str] = {}
    consoles = (TestClient(app, base_url=HOME), TestClient(beside, base_url="http://127.0.0.1:8410"))
    for console, services in zip(consoles, (first, second), strict=True):
        answer = console.get(f"/console?token={services.admin_token}", follow_redirects=False)
        browsers_jar |= dict(answer.cookies)
    sent = {"cookie": "; ".join(f"{name}={value}" for name, value in browsers_jar.items())}
    for console in consoles:
        console.cookies.clear()
        assert console.get("/console", headers=sent).status_code == 200
    assert [cookie_name(host) for host in ("news.example", "[::1]", "[::1]:80", "h:x", "h:8400\n")] == [
        "ownfeed_console",
        "ownfeed_console",
        "ownfeed_console_80",
        "ownfeed_console",
        "ownfeed_console",
    ]


def test_operator_signs_in_by_the_form() -> None:
    client = client_of(StandInServices(), signed_in=False)
    refused = client.post("/console/sign-in", data={"token": "wrong"}, headers=OURS)
    assert refused.status_code == 401
    fields = re.findall(r'name="(\w+)"[^>]* autocomplete="([\w-]+)"', refused.text)
    assert fields == [("username", "username"), ("token", "current-password")], "which password managers go by"
    sent = {"username": "admin", "token": TOKEN}
    assert client.post("/console/sign-in", data=sent).status_code == 403
    assert client.post("/console/sign-in", data=sent, headers=OURS).status_code == 303
    assert client.get("/console").status_code == 200


@pytest.mark.parametrize("make", [StandInServices, fresh_services])
@pytest.mark.parametrize("path", PAGES)
def test_every_page_renders_uncached_without_outside_resources(make: type[StandInServices], path: str) -> None:
    answer = client_of(make()).get(f"/console{path}")
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert " style=" not in answer.text


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/pool/take-down", {"news_id": "n:1"}),
        ("/pool/feeds", {"url": "https://new.example/rss"}),
        ("/pool/feeds/pause", {"url": "https://new.example/rss"}),
        ("/pool/feeds/resume", {"url": "https://new.example/rss"}),
        ("/pool/feeds/remove", {"url": "https://new.example/rss", "confirmed": "yes"}),
        ("/releases/r1/roll-back", {}),
        ("/releases/ranker", {"ranker": "ranker.nrms"}),
        ("/rounds", {"system": "uni_fedrec", "cohort": "3", "cohort_minimum": "2", "seconds": "9"}),
        ("/rounds/round-8/cancel", {}),
        ("/rounds/queue/1/cancel", {}),
        ("/rounds/pause", {}),
        ("/rounds/resume", {}),
        ("/rounds/unschedule", {}),
    ],
)
def test_form_from_another_site_does_nothing(path: str, form: dict[str, str]) -> None:
    services = StandInServices()
    services.coordinator.under_way = False
    client = client_of(services)
    for headers in ELSEWHERE:
        assert client.post(f"/console{path}", data=form, headers=headers).status_code == 403, headers
    assert client_of(services, signed_in=False).post(f"/console{path}", data=form, headers=OURS).status_code == 401
    assert services.pool.taken_down == []
    assert services.feeds.changed == []
    assert services.releases.committed == []
    assert services.coordinator.opened == []
    assert services.coordinator.cancelled == []


def test_operator_finds_and_takes_down_an_article_and_an_unknown_id_is_refused() -> None:
    services = StandInServices()
    client = client_of(services)
    assert "2 found" in client.get("/console/pool?q=DREDGING").text
    done = client.post("/console/pool/take-down", data={"news_id": "n:1"}, headers=OURS)
    assert done.headers["location"] == "/console/pool?said=taken-down"
    assert services.pool.taken_down == ["n:1"]
    refused = client.post("/console/pool/take-down", data={"news_id": "n:9"}, headers=OURS)
    assert refused.status_code == 404
    assert "There is no news n:9. Nothing was changed." in refused.text


def test_feeds_are_listed_with_errors_and_removed_only_when_confirmed() -> None:
    services = StandInServices()
    client = client_of(services)
    text = client.get("/console/pool").text
    assert "failed 4 times" in text
    assert "the server answered 500." in text
    assert ">never</td>" in text, "one of them was never answered"
    url = "https://new.example/rss"
    for path, said in (("", "added"), ("/pause", "paused"), ("/resume", "resumed")):
        done = client.post(f"/console/pool/feeds{path}", data={"url": url}, headers=OURS)
        assert done.headers["location"] == f"/console/pool?said=feed-{said}"
    assert services.feeds.woken == 2, "what is due at once is not left waiting"
    refused = client.post("/console/pool/feeds/remove", data={"url": url}, headers=OURS)
    assert refused.status_code == 422
    assert "Confirm the removal on the page" in refused.text
    asked = client.get("/console/pool/feeds/remove", params={"url": url}).text
    assert url in asked
    assert 'name="confirmed" value="yes"' in asked
    client.post("/console/pool/feeds/remove", data={"url": url, "confirmed": "yes"}, headers=OURS)
    assert services.feeds.changed == [(what, url) for what in ("add", "pause", "resume", "remove")]


def test_site_with_several_feeds_offers_a_choice_with_titles() -> None:
    services = StandInServices()
    client = client_of(services)
    asked = client.post("/console/pool/feeds", data={"url": "site.example", "section": "Sports"}, headers=OURS)
    assert asked.status_code == 409
    assert "Which one?" in asked.text
    assert "<strong>Posts</strong>" in asked.text
    assert "The ferry sails" in asked.text
    assert 'name="url" value="https://site.example/notes"' in asked.text
    assert services.feeds.changed == []
    client.post("/console/pool/feeds", data={"url": "https://site.example/notes"}, headers=OURS)
    assert services.feeds.changed == [("add", "https://site.example/notes")]


def test_feed_settings_form_changes_only_the_given_fields() -> None:
    services = StandInServices()
    client, url = client_of(services), "https://courant.example/rss.xml"
    done = client.post("/console/pool/feeds/change", data={"url": url}, headers=OURS)
    assert done.headers["location"] == "/console/pool?said=feed-changed"
    assert services.feeds.changed == []
    values = {
        "url": url, "title": "Mine", "folder": "News\r\n Daily / weekly \n", "section": "Sports",
        "proxy": "http://via.example:3128", "unverified": "on",
    }  # fmt: skip
    client.post("/console/pool/feeds/change", data=values, headers=OURS)
    assert [what for what, _ in services.feeds.changed] == [
        "proxy http://via.example:3128", "certificate False", "section sport", "rename Mine",
        "folder News > Daily / weekly",
    ]  # fmt: skip


def test_removed_feed_is_restored_and_all_are_read_on_request() -> None:
    services = StandInServices()
    client = client_of(services)
    assert "Old Times" in client.get("/console/pool").text
    client.post("/console/pool/feeds/restore", data={"url": "https://old.example/feed"}, headers=OURS)
    client.post("/console/pool/feeds/refresh", headers=OURS)
    assert services.feeds.changed == [("restore", "https://old.example/feed"), ("ask now", "all")]
    assert services.feeds.woken == 2


def test_pool_page_says_when_automatic_refresh_is_off() -> None:
    services = StandInServices()
    services.feeds.is_on = False
    client = client_of(services)
    text = client.get("/console/pool").text
    assert "automatic refresh is off" in text
    assert "feed_refresh_minutes" in text
    for path in ("", "/resume"):
        done = client.post(f"/console/pool/feeds{path}", data={"url": "https://new.example/rss"}, headers=OURS)
        reported = client.get(done.headers["location"]).text
        assert "so nothing reads it" in reported
        assert "moments" not in reported
    on = client_of(StandInServices()).get("/console/pool?said=feed-added").text
    assert "automatic refresh is off" not in on
    assert "within moments" in on


def test_rejected_rows_are_shown_by_line_and_truncation_is_stated() -> None:
    text = client_of(StandInServices()).get("/console/pool").text
    assert '<td class="num">204</td><th scope="row"><code>published_at</code></th>' in text
    assert "Input should have timezone info" in text
    assert "The first 2; the command that ran it lists more." in text


@pytest.mark.parametrize(
    "path",
    [
        "/pool/take-down?news_id=n:1",
        "/releases/r1/roll-back",
        "/releases/ranker?ranker=ranker.nrms",
        "/rounds/round-8/cancel",
        "/rounds/queue/1/cancel",
        "/pool/feeds/remove?url=x",
    ],
)
def test_confirmation_page_changes_nothing_and_requires_sign_in(path: str) -> None:
    services = StandInServices()
    assert client_of(services, signed_in=False).get(f"/console{path}").status_code == 401
    asked = client_of(services).get(f"/console{path}")
    assert asked.status_code == 200
    assert "No, go back" in asked.text
    assert not services.pool.taken_down + services.releases.committed + services.coordinator.cancelled
    assert client_of(services).get("/console/pool/take-down?news_id=n:9").status_code == 404


def test_facts_of_a_release_are_shown_as_plain_lines_with_short_hashes() -> None:
    facts = {
        "graphs": {"ranker.naml": {"score": 1.5e-8}},
        "stages_ms": {"sum": 194.07, "step": 2},
        "groups": [20, 19],
        "by": "a" * 64,
        "many": list(range(30)),
        "adopted": True,
        "read_bytes": 2_000,
    }
    assert fact_lines(facts) == [
        ("graphs, ranker.naml, score", "1.5e-08"),
        ("stages, sum", "194 ms"),
        ("stages, step", "2.0 ms"),
        ("groups", "20 19"),
        ("by", "aaaaaaaaaaaa…"),
        ("many", "0 1 2 3 4 5 6 7 8 9 10 11 and 18 more"),
        ("adopted", "yes"),
        ("read", "2.0 kB"),
    ]


def test_release_is_rolled_back() -> None:
    services = StandInServices()
    assert client_of(services).post("/console/releases/r1/roll-back", headers=OURS).status_code == 303
    assert services.releases.committed == ["back to r1"]


def test_operator_chooses_the_default_ranker_of_the_release() -> None:
    services = StandInServices()
    client = client_of(services)
    assert "<option>ranker.nrms</option>" in client.get("/console/releases").text
    assert "<option>ranker.cosine</option>" not in client.get("/console/releases").text, "it is in use"
    answer = client.post("/console/releases/ranker", data={"ranker": "ranker.nrms"}, headers=OURS)
    assert answer.headers["location"] == "/console/releases?said=ranker-changed"
    assert client.post("/console/releases/ranker", data={"ranker": "ranker.cosine"}, headers=OURS).status_code >= 400
    assert services.releases.committed == ["ranks by ranker.nrms"]


def test_round_is_opened_or_queued_and_refused_when_the_queue_is_full() -> None:
    services = StandInServices()
    client = client_of(services)
    form = {"system": "uni_fedrec", "cohort": "12", "cohort_minimum": "6", "seconds": "30"}
    order = RoundRequest("uni_fedrec", 12, 6, 30.0)
    queue = services.coordinator.queue
    queued = client.post("/console/rounds", data=form, headers=OURS)
    assert queued.headers["location"] == "/console/rounds?said=queued#round"
    assert queue.asked[1:] == [order]
    queue.limit = 2
    refused = client.post("/console/rounds", data=form, headers=OURS)
    assert refused.status_code == 409
    assert "The queue is full" in refused.text
    client.post("/console/rounds/queue/2/cancel", headers=OURS)
    assert queue.out == [2]
    page = client.get("/console/rounds").text
    assert "Waiting, 1" in page
    assert "naml/local/mean, asked for" in page
    services.coordinator.under_way = False
    assert client.post("/console/rounds", data=form, headers=OURS).status_code == 303
    assert services.coordinator.opened == [order]
    client.post("/console/rounds/round-8/cancel", headers=OURS)
    assert services.coordinator.cancelled == ["round-8"]


def test_rounds_are_paused_resumed_and_scheduled() -> None:
    services = StandInServices()
    client, table = client_of(services), services.coordinator.scheduler
    client.post("/console/rounds/pause", headers=OURS)
    assert table.paused
    assert "Resume rounds" in client.get("/console/rounds").text
    client.post("/console/rounds/resume", headers=OURS)
    assert not table.paused
    form = {"system": "small_ranker/secure/median", "cohort": "20", "cohort_minimum": "10", "seconds": "60"}
    for odd in ({}, {"every_minutes": "often"}, {"waiting": "0"}):
        assert client.post("/console/rounds/schedule", data=form | odd, headers=OURS).status_code == 422
        assert table.schedule is None
    set_so = client.post("/console/rounds/schedule", data=form | {"every_minutes": "15", "waiting": ""}, headers=OURS)
    assert set_so.status_code == 303
    page = client.get("/console/rounds").text
    assert "opens every 15 minutes" in page
    client.post("/console/rounds/unschedule", headers=OURS)
    assert table.schedule is None


def test_rounds_page_offers_the_secure_ranker_first_and_shows_the_account() -> None:
    page = client_of(StandInServices()).get("/console/rounds").text
    assert '<option value="small_ranker" selected>' in page
    assert "epsilon 3 at a delta of 1e-06 for all 2 together" in page
    assert "exact sums (1 in all), which have no epsilon" in page


def minimum_asked(asked: OpenRound) -> int:
    return asked.request().cohort_minimum


def test_console_command_and_api_share_a_default_minimum_that_allows_groups() -> None:
    page = client_of(fresh_services()).get("/console/rounds").text
    minima = re.findall(r'name="cohort_minimum" value="(\d+)"', page)
    cohorts = re.findall(r'name="cohort" value="(\d+)"', page)
    assert (set(minima), set(cohorts)) == ({"10"}, {"60"})
    by_default = minimum_asked(
        OpenRound(system="small_ranker/secure/median", cohort=60, seconds=60.0)
    )  # as the command does
    scheduled = SetSchedule(system="x", cohort=60, seconds=60.0, waiting=1).minimum()
    assert by_default == scheduled == int(minima[0])
    assert minimum_asked(OpenRound(system="small_ranker/secure/median", cohort=4, seconds=60.0)) == 4
    spec = COMPOSED["small_ranker/secure/median"]
    assert isinstance(spec.protection, SecureSum)
    assert spec.join is not None
    terms = spec.protection.terms("round-1", cohort=60, cohort_minimum=by_default, coordinates=4)
    assert spec.join.split_of(60).parts_of(60, terms) == 5


def test_console_shows_live_figures_of_the_running_round() -> None:
    reported = client_of(StandInServices()).get("/console/rounds/live").json()
    assert reported == {
        "round": "round-8",
        "state": "updates",
        "figures": {"joined": "60", "uploaded": "23", "received": "22.5 MB"},
    }
    assert client_of(StandInServices()).get("/console/rounds/live?round=round-8").json() == reported
    ended = StandInServices()
    ended.coordinator.under_way = False
    assert client_of(ended).get("/console/rounds/live").json()["state"] == "applied"


def test_console_shows_the_epsilons_a_third_ten_and_fifty_for_the_papers_noise() -> None:
    """Oracle: 2 delta / lambda a score, by hand: 2 x 0.2 / 1.2 = 1/3; x 30 = 10; x 5 = 50."""
    protocol = RecallProtocol(basis_size=30, channels_limit=5, cluster_distance=1, score_clip=0.2, score_noise=1.2)
    cost = report_cost(protocol)
    assert (cost.score, cost.channel, cost.session) == pytest.approx((1 / 3, 10, 50))
    text = client_of(StandInServices()).get("/console/privacy").text
    for figure in (">0.333<", ">10<", "<strong>50</strong>", "<strong>4.9 million</strong>", ">20<"):
        assert figure in text
    assert report_cost(protocol.model_copy(update={"score_noise": 0.0})).session == float("inf")


def test_stated_cost_of_a_noisy_sum_is_below_the_classic_bound() -> None:
    """Oracle: Bun and Steinke (2016): rho + 2 sqrt(rho ln(1/delta)), with rho = (2 C 2^f)^2 / (2 sigma^2 n)."""
    costs = {cost.system: cost for cost in sum_costs()}
    noisy, exact = costs["small_ranker/secure/median"], costs["small_ranker/exact/mean"]
    rho = (2 * 0.1 * 2**16) ** 2 / (2 * 4_900**2 * 10)
    classic = rho + 2 * math.sqrt(rho * math.log(1 / noisy.delta))
    assert 0.85 * classic < noisy.epsilons[0] < classic
    assert list(noisy.epsilons) == sorted(noisy.epsilons, reverse=True)
    assert exact.epsilons == ()
    text = client_of(StandInServices()).get("/console/privacy").text
    assert f">{noisy.epsilons[0]:.2f}<" in text
    assert "exact: no epsilon" in text


def test_alerts_name_problems_with_the_worst_first() -> None:
    assert [one.message for one in alerts(fresh_services()) if one.weight == "bad"] == [  # type: ignore[arg-type]
        "No release is published, so devices get no feed. The first start publishes one.",
        "The catalogue is empty. Ingest a source.",
    ]
    services = StandInServices(live=StandInLive(StandInCatalogue(encoder="c" * 64, without_vector=12)))
    found = alerts(services)  # type: ignore[arg-type]
    assert [one.weight for one in found] == sorted((one.weight for one in found), key=lambda weight: weight == "due")
    words = " ".join(one.message for one in found)
    for part in ("different encoder than release r3", "12 articles have no vector", "feed is HTML", "rejected 3 rows"):
        assert part in words


def test_slow_recall_raises_an_alert_only_beyond_its_limit() -> None:
    services = StandInServices()
    assert not any(one.page == "latency" for one in alerts(services))  # type: ignore[arg-type]
    for _ in range(2_000):
        services.latency.record("recall", {}, 12.5)
    assert any("12.5 ms at p95" in one.message for one in alerts(services))  # type: ignore[arg-type]
