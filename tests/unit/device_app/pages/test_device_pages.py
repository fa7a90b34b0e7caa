"""Rules for every page, and the pages of interests, history, training and the first visit."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from importlib.resources import files
from typing import Any

import pytest

from device_app.errors import GraphMismatch
from device_app.pages.renderer import local_path
from device_app.settings import PrivacySettings
from device_app.view_models.latency import stage_words
from tests.doubles import pages_figures
from tests.doubles.pages_reader import OURS, PagesReader


def test_pages_reference_no_other_site(reader: PagesReader) -> None:
    for path in (
        "/", "/fresh", "/explore", "/story/newsroom:0003", "/you", "/privacy", "/settings", "/interests", "/training",
        "/latency",
    ):  # fmt: skip
        for tag in re.findall(r"<(?:img|script|link|iframe|source|form|use)\b[^>]*>", reader.get(path)):
            for address in re.findall(r'(?:src|href|action)="([^"]*)"', tag):
                assert address.startswith(("/", "#")), f"{path}: {tag}"
                assert not address.startswith("//")


def test_pages_have_no_inline_script_or_style(reader: PagesReader) -> None:
    for path in ("/", "/story/newsroom:0003", "/privacy", "/settings", "/training", "/latency", "/interests"):
        text = reader.get(path)
        assert not re.search(r"<script(?![^>]*\ssrc=)", text)
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=", text)


def test_invalid_form_is_answered_by_a_page_naming_the_field(reader: PagesReader) -> None:
    answer = reader.client.post("/story/newsroom:0002/react", data={"kind": "love"}, headers=OURS)
    assert answer.status_code == 422
    assert "kind" in answer.text


@pytest.mark.parametrize(
    "back", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:x", "/a b", ""]
)
def test_form_never_redirects_to_another_site(back: str) -> None:
    assert local_path(back) == "/"


def test_local_return_path_is_kept() -> None:
    assert local_path("/search?q=a%20b#n-1") == "/search?q=a%20b#n-1"


def test_page_without_side_content_has_no_empty_column(reader: PagesReader, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: a reader of three feeds saw a line and an empty column on its right, as long as the page."""
    assert "<aside" in reader.get("/")
    whole = reader.device.reading.feed()
    alone = replace(whole, items=tuple(each for each in whole.items if each.slot in ("lead", "for_you")))
    monkeypatch.setattr(reader.device.reading, "feed", lambda **_: alone)
    assert "<aside" not in reader.get("/")


def test_topics_can_be_followed_blocked_and_reset(reader: PagesReader) -> None:
    reader.post("/stance", kind="topic", name="rivers", stance="block", back="/")
    assert reader.device.held["topic", "rivers"] == "block"
    assert "Show again" in reader.get("/story/newsroom:0010")
    reader.post("/stance", kind="topic", name="rivers", stance="none", back="/")
    assert ("topic", "rivers") not in reader.device.held


def test_interests_can_be_named_muted_and_forgotten(reader: PagesReader) -> None:
    assert reader.post("/interests/1/name", name="Boats & tides").startswith("/interests?said=renamed")
    assert "Boats &amp; tides" in reader.get("/interests")
    reader.post("/interests/1/mute", muted="yes")
    assert "Muted" in reader.get("/interests")
    reader.post("/interests/1/forget")
    assert "Boats" not in reader.get("/interests")


def test_history_is_searched_and_a_click_deleted(reader: PagesReader) -> None:
    assert "Ferrymen" in reader.get("/interests/history?q=ferrymen")
    reader.post("/interests/history/1/delete", back="/interests/history?q=ferrymen&page=1")
    assert reader.device.deleted == {1}


def test_training_page_shows_the_devices_group_and_that_it_is_secret(reader: PagesReader) -> None:
    text = " ".join(reader.get("/training").split())
    assert "The ranking has a variant for each of 4 groups of readers" in text
    assert "this device uses the variant for group 3. It doesn't reveal your group" in text
    assert "groups of readers" not in PagesReader("empty").get("/training")


def test_latency_stages_have_plain_labels() -> None:
    text = PagesReader().get("/latency")
    assert "Wait for the server" in text
    assert "Rebuild directions" in text
    assert stage_words("new_stage", "server").name == "New stage"


def test_first_visit_explains_what_is_sent_and_offers_switches_and_sections() -> None:
    reader = PagesReader("empty")
    reader.device.settings = PrivacySettings()
    assert reader.client.get("/").headers["location"] == "/welcome"
    text = reader.get("/welcome")
    before_drawer, drawer = text.split("<details", 1)[0], text.split("<details", 1)[1]
    assert "Ownfeed makes a news feed" in before_drawer
    assert 'id="picks"' in before_drawer, "sections come first"
    assert "What you read stays on this device; a blurred report and anonymous counts leave it: details" in drawer
    assert 'href="/settings#move"' in text
    told = re.sub(r"<[^>]*>", " ", before_drawer.split("<h1>", 1)[1])
    assert not re.search(r"\d", told), "no figure outside a drawer"
    for heading in ("What stays here", "What leaves", "What you can switch off"):
        assert f"<h2>{heading}</h2>" in text
    for name, checked in (("reports", " checked"), ("counting", " checked"), ("training", "")):
        assert f'name="allow" value="{name}"{checked}>' in text, "nobody is trained unasked"
    assert reader.post("/welcome", first="yes", allow="counting", section="sea") == "/"
    assert reader.device.chosen == ("sea",)
    assert reader.device.settings == PrivacySettings(mode="none"), "what was left as it stood stays so"
    assert "No stories on this device yet" in reader.get("/")
    nothing_left = replace(reader.device.reading.feed(), left_out=1_023)
    reader.device.reading.feed = lambda *, refresh=False: nothing_left
    page = reader.get("/")
    assert "No stories on this device yet" not in page
    assert "Of the 1,023 stories on this device for your page, none is left." in page
    assert "What stays here" not in reader.get("/welcome"), "only at first"
    reader.post("/welcome", section="science")
    assert reader.device.settings == PrivacySettings(mode="none"), "later, the form is about sections alone"


@pytest.mark.parametrize(
    ("settings", "leaves", "not_said"),
    [
        ({}, "one number that says which of a few broad interest groups fits you best.", "training updates"),
        ({"counting": False}, "wrong on purpose, so nobody can rely on it.", "Anonymous counts:"),
        ({"mode": "none"}, "Anonymous counts: your reading is blurred", "one number that"),
        (
            {"mode": "none", "counting": False, "training": True},
            "Blurred training updates that help improve the ranking.",
            "nonymous counts:",
        ),
        ({"mode": "basis_laplace"}, "a blurred report about your interests.", "one number that"),
    ],
)
def test_first_visit_describes_what_is_sent_under_the_current_switches(
    settings: dict[str, Any], leaves: str, not_said: str
) -> None:
    reader = PagesReader("empty")
    reader.device.settings = PrivacySettings(**settings)
    text = " ".join(reader.get("/welcome").split())
    assert leaves in text
    assert not_said not in text


def test_first_visit_shows_the_measured_benefit_of_reports_for_this_pool(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Oracle: the packaged record of `ownfeed bench pools`, by hand."""
    reader = PagesReader("empty")
    reader.device.settings = PrivacySettings()
    assert "Suggestions get" not in reader.get("/welcome"), "nothing before the pool's size is known"
    reported = pages_figures.privacy_view("typical", PrivacySettings(), reader.device.now, 1, None)
    monkeypatch.setattr(reader.device.privacy, "overview", lambda: replace(reported, settings=reader.device.settings))
    record = json.loads(files("protocol").joinpath("recall_frontier.json").read_text("utf-8"))
    assert record["pools"][0] == 12_312
    found = {(each["mode"], each["codebook"], each["places"]): each["found"][0] for each in record["lists"]}
    gain = found["interest", 16, 400] - found["none", None, 400]
    assert f"about {gain:.0f} more of every 100 stories" in " ".join(reader.get("/welcome").split())
    measured = (
        f"Measured with 12,312 stories: of the next 100 stories that readers opened, {gain:.1f} more were among the"
    )
    assert measured in " ".join(reader.get("/settings").split())
    reader.device.settings = PrivacySettings(mode="none")
    assert "Suggestions get" not in reader.get("/welcome"), "where nothing is reported"


def test_training_chosen_at_first_visit_gets_the_budget_of_one_round_a_day() -> None:
    reader = PagesReader("empty")
    reader.device.settings = PrivacySettings()
    answer = reader.client.post("/welcome", data={"first": "yes", "allow": ["reports", "training"]}, headers=OURS)
    assert answer.status_code == 303
    assert reader.device.settings == PrivacySettings(counting=False, training=True, epsilon_per_day_training=5.0)


def test_training_page_shows_the_cost_of_sums_if_all_other_devices_are_fake(reader: PagesReader) -> None:
    text = " ".join(reader.get("/training").split())
    assert "Cost if all other devices are fake</th>" in text
    assert "would cost 16.7 epsilon today (limit 48) and 33.2 in total, at a delta of 1e-06" in text
    assert "one click can move a clipped update as far as all of them" in text
    assert "In a round planned for more than 100 devices" in text
    assert "the masks protect only against a publisher that follows the protocol, however few devices come" in text


def test_training_is_paused_and_switched() -> None:
    reader = PagesReader()
    reader.post("/training/pause", paused="yes")
    assert "Paused" in reader.get("/training")
    reader.post("/training/switch", training="off")
    assert reader.device.settings.training is False
    reader.post("/training/switch", training="on")
    assert (reader.device.settings.training, reader.device.settings.epsilon_per_day_training) == (True, 5.0), "a round"


def test_declined_round_says_why() -> None:
    reader = PagesReader()
    seen = reader.device.training()
    declined = replace(seen.contributions[0], state="declined", detail="its protection is weaker than you allow")
    view = replace(seen, contributions=(declined,))
    reader.device.training = lambda: view  # type: ignore[method-assign]
    listed = reader.get("/training").split("The exact figures")[0]
    assert "its protection is weaker than you allow" in listed


def test_training_page_shows_when_a_round_was_last_checked(reader: PagesReader) -> None:
    seen = reader.device.training()
    assert "Last checked just now." in reader.get("/training")
    reported = {
        "looked": replace(seen, round=None, looked_at=reader.device.now - timedelta(hours=2, minutes=10)),
        "never": replace(seen, round=None, looked_at=None),
        "old": replace(seen, seen_at=reader.device.now - timedelta(hours=3, minutes=10)),
        "gone": replace(seen, gone=True),
        "off": replace(seen, round=None, settings=PrivacySettings(counting=False)),
    }
    pages = {}
    for name, view in reported.items():
        reader.device.training = lambda view=view: view  # type: ignore[method-assign,misc]
        pages[name] = " ".join(reader.get("/training").split())
    assert "No round is running (checked 2 h ago)." in pages["looked"]
    assert "has not checked for a round since it started" in pages["never"]
    assert "Last checked 3 h ago." in pages["old"]
    assert "The last round" in pages["gone"]
    assert "It is no longer running." in pages["gone"]
    assert 'aria-current="step"' not in pages["gone"]
    assert "training and group counts are switched off" in pages["off"]


def test_form_confirmation_cannot_be_injected(reader: PagesReader) -> None:
    assert 'class="notice good"' not in reader.get("/search?said=<script>")
    assert 'class="notice good" role="status">Your settings are saved.' in reader.get("/privacy?said=settings")


def test_static_files_are_cached_only_under_their_version(reader: PagesReader) -> None:
    address = re.search(r'href="(/static/[^"]*pages\.css)"', reader.get("/"))
    assert address is not None
    kept = reader.client.get(address[1])
    assert "immutable" in kept.headers["cache-control"]
    assert kept.headers["content-type"].startswith("text/css")
    assert reader.client.get("/static/000000000000/css/tokens.css").status_code == 404
    assert reader.client.get(address[1].replace("pages.css", "../../templates/device/base.html")).status_code == 404


def test_mismatched_graph_is_reported_on_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = PagesReader()

    def mismatched(**_: object) -> None:
        raise GraphMismatch("parameter w: declared by the graph, missing from the weights")

    monkeypatch.setattr(reader.device.reading, "feed", mismatched)
    answer = reader.client.get("/")
    assert answer.status_code == 503
    assert "A model of the release can&#39;t be used: parameter w" in answer.text
