"""The operator's console in Chromium over stand-in services. Oracle for accessibility: axe-core."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi import FastAPI
from playwright.sync_api import Browser, expect

from backend.console.routes import router
from backend.federation.strategies.strategy import RoundRequest
from protocol.fleet_figures import write_fleet_figures
from tests.browser.axe_rules import broken_rules
from tests.browser.conftest import Serve
from tests.doubles.console_services import TOKEN, StandInServices, fresh_services
from tests.doubles.fleet_figures import FLEET_FIGURES
from tests.doubles.long_form import by_length

pytestmark = pytest.mark.browser

ASKING = (
    "/pool/take-down?news_id=n:1",
    "/pool/feeds/remove?url=https://post.example/feed",
    "/releases/r1/roll-back",
    "/rounds/round-8/cancel",
    "/rounds/queue/1/cancel",
)
PAGES = (
    *(
        "",
        "/pool",
        "/pool?q=dredging",
        "/counts",
        "/releases",
        "/recall",
        "/rounds",
        "/quality",
        "/privacy",
        "/latency",
    ),
    *ASKING,
)


BOTH_LOOKS = by_length(False, long=True)
"""Whether every page of a server in use gets every rule at both widths; in the short form, by turns."""
CUT_OFF = """() => [...document.querySelectorAll(".scroll:has(> .listing)")]
  .filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.getAttribute("aria-label"))"""


def serve_console(serve: Serve, services: StandInServices) -> str:
    def make(port: int) -> FastAPI:
        app = FastAPI(openapi_url=None)
        app.include_router(router(services))  # type: ignore[arg-type]
        return app

    return serve(make)


@pytest.mark.long_form
@pytest.mark.parametrize(
    ("make", "width", "scheme"),
    [
        (StandInServices, 1440, "dark"),
        (StandInServices, 390, "light"),
        (fresh_services, 390, "dark"),
    ],
)
def test_console_pages_follow_axe_rules_log_no_error_and_fit(
    chromium: Browser, serve: Serve, make: type[StandInServices], width: int, scheme: str, tmp_path: Path
) -> None:
    services = make()
    services.settings.fleet_figures = tmp_path / "fleet-figures.json"
    if make is StandInServices:
        write_fleet_figures(services.settings.fleet_figures, FLEET_FIGURES)
    home = serve_console(serve, services)
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on("request", lambda one: None if one.url.startswith(home) else wrong.append(one.url))
    page.goto(f"{home}/console?token={TOKEN}")
    assert page.url == f"{home}/console", "the token must leave the address at once"
    paths = PAGES if scheme == "dark" and make is StandInServices else PAGES[: -len(ASKING)]
    for number, path in enumerate(paths):
        page.goto(f"{home}/console{path}")
        if BOTH_LOOKS or make is not StandInServices or path in ASKING or number % 2 == (width == 390):
            wrong += [f"{path}: {one}" for one in broken_rules(page)]
        across = page.evaluate("document.documentElement.scrollWidth")
        wrong += [f"{path}: {across} px wide"] if across > width else []
        cut_off = page.evaluate(CUT_OFF)
        wrong += [f"{path}: the table {name} scrolls sideways" for name in cut_off]
    context.close()
    assert wrong == []


def test_operator_signs_in_starts_a_round_and_reads_a_refusal(chromium: Browser, serve: Serve) -> None:
    services = StandInServices()
    services.coordinator.under_way = False
    home = serve_console(serve, services)
    context = chromium.new_context()
    page = context.new_page()
    page.goto(home + "/console/rounds")
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Sign in").click()
    page.goto(home + "/console/rounds")
    page.locator("#cohort-now").fill("12")
    page.locator("#minimum-now").fill("6")
    page.get_by_role("button", name="Start").click()
    expect(page.locator("body")).to_contain_text("The round is open.")
    asked = RoundRequest("small_ranker/secure/median", 12, 6, 60.0)
    assert services.coordinator.opened == [asked]
    services.coordinator.under_way = True
    page.get_by_role("button", name="Start").click()
    expect(page.locator("body")).to_contain_text("The round is queued")
    services.coordinator.queue.limit = 2
    page.get_by_role("button", name="Start").click()
    expect(page.locator("body")).to_contain_text("The queue is full")
    expect(page.locator("body")).to_contain_text("Nothing was changed.")
    context.close()


def test_irreversible_actions_ask_for_confirmation_even_without_scripts(chromium: Browser, serve: Serve) -> None:
    services = StandInServices()
    home = serve_console(serve, services)
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{home}/console/pool?q=dredging&token={TOKEN}")
    page.get_by_role("link", name="Take down").first.click()
    page.get_by_role("link", name="No, go back").click()
    assert services.pool.taken_down == []
    page.goto(f"{home}/console/pool?q=dredging")
    page.get_by_role("link", name="Take down").first.click()
    expect(page.locator("main")).to_contain_text("Dredging of the east basin")
    page.get_by_role("button", name="Take it down").click()
    assert services.pool.taken_down == ["n:1"]
    page.goto(f"{home}/console/releases")
    page.get_by_role("link", name="Roll back to r1").click()
    page.get_by_role("button", name="Roll back to r1").click()
    assert services.releases.committed == ["back to r1"]
    page.goto(f"{home}/console/rounds")
    page.get_by_role("link", name="Cancel round-8").click()
    page.get_by_role("button", name="Cancel round-8").click()
    assert services.coordinator.cancelled == ["round-8"]
    context.close()


def test_table_sorts_numerically_by_a_column_of_counts(chromium: Browser, serve: Serve) -> None:
    home = serve_console(serve, StandInServices())
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"{home}/console/pool?token={TOKEN}")
    column = page.locator("table[data-sort]").last
    column.get_by_role("button", name="News").click()
    counts = [int(text.replace(",", "")) for text in column.locator("tbody td.num").all_inner_texts()]
    assert counts == sorted(counts)
    assert len(set(counts)) > 1
    context.close()
