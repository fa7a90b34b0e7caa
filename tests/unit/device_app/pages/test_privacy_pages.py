"""What left this device, what it cost, and the switches beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from device_app.pages.privacy_pages import hexdump, readable
from device_app.settings import PrivacySettings
from device_app.view_models.traffic import TodayView
from tests.doubles.pages_reader import OURS, PagesReader


def test_privacy_page_shows_personal_requests_first_and_all_on_request(reader: PagesReader) -> None:
    text = reader.get("/privacy")
    everything = reader.get("/privacy?show=all")
    assert "Sends the noisy report" in text
    assert "Asks for the current release" not in text
    assert 'href="/privacy?show=all"' in text
    for line in reader.device.privacy.overview(shown="all").log.lines:
        assert line.words in everything
        assert f'href="/privacy/requests/{line.entry_id}"' in everything
    assert "<strong>14 times</strong>" in everything
    assert 'href="/privacy/polls/1/1"' in everything
    assert "Page 1 of 2" in reader.get("/privacy/polls/1/1")
    assert reader.client.get("/privacy/polls/1/99").status_code == 404
    assert reader.client.get("/privacy?show=nothing").status_code == 422


def test_privacy_page_states_daily_limits_and_who_enabled_training(reader: PagesReader) -> None:
    text, switches = reader.get("/privacy"), reader.get("/settings")
    assert "“Today” is the UTC day" in text
    assert "You did not switch training on here" in switches
    assert 'name="epsilon_per_day_reports" value="8"' in switches
    assert 'name="epsilon_lifetime_reports" value="40"' in switches
    assert "too weak to protect you" not in text
    paper = PagesReader("overfull")
    assert 'name="epsilon_per_day_reports" value="150"' in paper.get("/settings")
    assert "too weak to protect you" in paper.get("/privacy")
    parts = (
        "Privacy</h1>",
        "Today this device",
        "The exact figures",
        "Everything that was sent",
        "What it could reveal",
    )
    assert sorted(text.index(part) for part in parts) == [text.index(part) for part in parts]


def test_privacy_page_begins_with_what_left_today_on_all_channels() -> None:
    reader = PagesReader()
    assert (
        "Today this device sent 1 blurred number and joined 1 group count, and repeated a number it had sent before"
        in reader.get("/privacy")
    )
    view = reader.device.privacy.overview()
    today = TodayView(reports=2, again=0, counts=3, rounds=1, one_number=True, spent_before=True)
    for shown, words in (
        (today, "Today this device sent 2 blurred numbers and joined 3 group counts and 1 training round."),
        (replace(today, reports=0, counts=0), "Today this device joined 1 training round."),
        (
            replace(today, counts=0, rounds=0, moved=True),
            "Today this device and the one you moved from sent 2 blurred numbers, at most.",
        ),
        (
            replace(today, moved=True, up_to_limits=True),
            "Today this device and the one you moved from may have shared as much as your limits allow for a day",
        ),
        (replace(today, reports=0, counts=0, rounds=0), "Nothing about you was shared today."),
        (replace(today, reports=0, counts=0, rounds=0, again=4), "Today this device repeated a number"),
    ):
        reader.device.privacy.overview = lambda *_, shown=shown: replace(view, today=shown)
        for path in ("/privacy", "/you"):
            assert words in reader.get(path)


def test_privacy_page_says_after_an_erase_that_joined_counts_cannot_be_taken_back() -> None:
    reader = PagesReader()
    erased = replace(reader.device.privacy.overview(), counts=())
    reader.device.privacy.overview = lambda *_: erased
    text = reader.get("/privacy")
    assert "What was already counted can't be taken back" in text
    assert "has not joined a group count yet" not in text


def test_choosing_a_privacy_level_sets_its_switches_except_training() -> None:
    reader = PagesReader()
    assert 'value="balanced" checked' in reader.get("/settings"), "training apart"
    reader.device.change(training=True)
    said = reader.post("/settings/level", level="strict", back="/privacy")
    assert said == "/privacy?said=settings_without_training"
    assert "so training is off now" in reader.get(said)
    assert reader.post("/settings/level", level="strict", back="/privacy") == "/privacy?said=settings"
    kept = reader.device.settings
    assert (kept.mode, kept.counting, kept.training) == ("broadcast", False, False)
    assert 'value="strict" checked' in reader.get("/privacy")
    reader.post("/settings/level", level="off")
    assert (reader.device.settings.mode, reader.device.settings.counting) == ("none", False)
    reader.post("/settings/level", level="balanced")
    assert reader.device.settings.model_dump() == PrivacySettings().model_dump()
    before = reader.device.settings
    assert reader.post("/settings/level", level="custom") == "/settings?switches=open#custom"
    assert reader.device.settings == before
    assert '<details class="exact after" id="custom" open>' in reader.get("/settings?switches=open")
    form = {"mode": "code", "epsilon_per_day_training": "0", "clicks_per_report": "20"}
    reader.post("/privacy/switches", **form, epsilon_per_day_reports="12")
    assert 'value="custom" checked' in reader.get("/settings")


def test_settings_explain_every_mode_its_cost_and_the_recommended_one(
    reader: PagesReader,
) -> None:
    text = reader.get("/settings")
    for mode in ("code", "broadcast", "none", "topics", "subset", "basis_l1", "basis_laplace"):
        assert f'name="mode" value="{mode}"' in text
    assert 'name="mode" value="interest" checked' in text
    assert "the right one 78 % of the time" in text
    assert "stricter, recommended for a catalogue of this size" in text
    assert "0 epsilon, 6.9 MB downloaded for 12,312 stories" in text
    assert "4 epsilon for each new report" in text
    assert "50 epsilon for each new report" in text
    figures = reader.get("/privacy")
    assert "24 epsilon if simply added up; a tighter bound on the total is not lower yet" in figures


def test_privacy_page_shows_both_the_true_and_the_sent_number(reader: PagesReader) -> None:
    text = " ".join(reader.get("/privacy").replace("<strong>", "").replace("</strong>", "").split())
    assert "Computed here: number 5. Sent: 11, which is wrong; the publisher can't tell." in text


def test_privacy_page_shows_each_counts_content_and_cost() -> None:
    reader = PagesReader()
    text = " ".join(reader.get("/privacy").split())
    assert '<th scope="row" class="nowrap">round-9</th>' in text
    prices = "".join(f'<td class="num">{one}</td>' for one in ("28", "3", "3.62", "1.4", "21.1", "8"))
    assert prices in text, "with real company and with none, of everything and of one click"
    assert '<td class="num">21.1</td><td class="num">not stored</td>' in text, "a charge from before the second price"
    assert "it would see your contribution, still blurred by the noise your own device adds" in text
    assert "28 stories seen, 3 of them opened" in text
    assert "would cost 21.1 epsilon today (limit 48) and 33.2 in total, at a delta of 1e-06" in text
    assert '<th scope="row">Counts</th><td class="num">3.62</td>' in text
    assert 'name="epsilon_per_click_alone" value="8"' in reader.get("/settings")
    assert "This device has not joined a group count yet" in PagesReader("empty").get("/privacy")
    form = {
        "mode": "code", "epsilon_per_day_reports": "8", "epsilon_per_day_training": "0", "clicks_per_report": "20",
    }  # fmt: skip
    reader.post("/privacy/switches", **form)
    assert reader.device.settings.counting, "a form without the box changes nothing"
    ceilings = {"epsilon_per_sum_alone": "100", "epsilon_per_click_alone": "30", "epsilon_lifetime_alone": "200"}
    reader.post("/privacy/switches", **form | ceilings)
    kept = reader.device.settings
    assert (kept.epsilon_per_sum_alone, kept.epsilon_per_click_alone, kept.epsilon_lifetime_alone) == (100, 30, 200)
    reader.post("/privacy/switches", **form | {"counting": "off", "epsilon_per_day_counts": "3"})
    assert (reader.device.settings.counting, reader.device.settings.epsilon_per_day_counts) == (False, 3)
    assert "Group counts are switched off." in reader.get("/privacy")


def test_limit_left_blank_in_the_form_stays_unchanged() -> None:
    reader = PagesReader()
    form = {
        "mode": "code", "epsilon_per_day_reports": "8", "epsilon_per_day_training": "0", "clicks_per_report": "20",
        "epsilon_per_report": "8", "epsilon_lifetime_reports": "",
    }  # fmt: skip
    assert reader.post("/privacy/switches", **form) == "/settings?said=settings"
    assert (reader.device.settings.epsilon_per_report, reader.device.settings.epsilon_lifetime_reports) == (8, 40)
    assert reader.post("/privacy/switches", **form | {"epsilon_lifetime_reports": "24"}) == "/settings?said=settings"
    assert reader.device.settings.epsilon_lifetime_reports == 24
    answer = reader.client.post("/privacy/switches", data=form | {"mode": "shouting"}, headers=OURS)
    assert answer.status_code == 422


def test_request_is_shown_and_downloaded_byte_for_byte(reader: PagesReader) -> None:
    traffic = reader.device.privacy.traffic(3)
    assert traffic is not None
    text = reader.get("/privacy/requests/3")
    assert "basis_laplace" in text
    assert traffic.request_body[:16].hex(" ") in text
    download = reader.client.get("/privacy/requests/3/body")
    assert download.content == traffic.request_body
    assert download.headers["content-disposition"].startswith("attachment")
    assert reader.client.get("/privacy/requests/99").status_code == 404
    assert reader.client.get("/privacy/requests/99/body").status_code == 404


def test_bytes_that_are_not_json_are_shown_as_a_hex_dump(reader: PagesReader) -> None:
    assert readable(bytes(range(256))) is None
    assert hexdump(b"feed\x00") == "000000  66 65 65 64 00" + " " * 33 + "  feed."
    assert "As JSON" not in reader.get("/privacy/requests/6")


def test_discarded_body_is_not_described_as_empty(reader: PagesReader) -> None:
    text = reader.get("/privacy/requests/4")
    assert "They are no longer stored" in text
    assert "had no body" not in text
    assert "No answer: no answer within 10 s" in reader.get("/privacy/requests/6")


def test_every_page_shows_whether_reports_and_training_are_on(reader: PagesReader) -> None:
    text = reader.get("/")
    assert "<span>Sharing on<span" in text
    assert '<a class="shield" href="/privacy"' in text, "sharing doesn't look like protection"
    assert "M8.5 7.5 13 3" in text, "an arrow that leaves a box"
    assert "Training is on." in text
    assert '<a href="/training">Training on</a>' in text
    assert "Training on" not in PagesReader("empty").get("/fresh")


def test_switches_are_set_and_an_out_of_range_value_changes_nothing() -> None:
    reader = PagesReader()
    form = {
        "mode": "none", "epsilon_per_day_reports": "50", "epsilon_per_day_training": "0", "clicks_per_report": "7"
    }  # fmt: skip
    assert reader.post("/privacy/switches", **form) == "/settings?said=settings"
    assert reader.device.settings.mode == "none"
    assert reader.device.settings.training is False
    assert '<a class="shield good" href="/privacy"' in reader.get("/")
    answer = reader.client.post("/privacy/switches", data=form | {"clicks_per_report": "51"}, headers=OURS)
    assert answer.status_code == 422
    assert "Nothing was changed. Please correct “clicks per report”: " in answer.text
    assert reader.device.settings.clicks_per_report == 7


def test_erase_requires_the_confirmation_word() -> None:
    reader = PagesReader()
    answer = reader.client.post("/privacy/erase", data={"confirm": "yes"}, headers=OURS)
    assert answer.status_code == 422
    before = reader.device.kind
    assert before == "typical"
    assert reader.post("/privacy/erase", confirm="Erase").startswith("/welcome")
    assert reader.device.kind == "empty"


def test_everything_can_be_exported(reader: PagesReader) -> None:
    answer = reader.client.get("/privacy/export")
    assert answer.json()["clicks"][0]["news_id"] == "newsroom:0000"
    assert "attachment" in answer.headers["content-disposition"]
    assert reader.client.get("/latency.json").json()["count"] == 100


def test_import_succeeds_or_names_the_invalid_field(reader: PagesReader) -> None:
    def sent(content: bytes, **fields: str) -> Any:
        file = {"file": ("ownfeed-everything.json", content, "application/json")}
        return reader.client.post("/privacy/import", files=file, data=fields, headers=OURS)

    taken = sent(b"good", used="no", settings="on")
    assert (taken.status_code, taken.headers["location"]) == (303, "/settings?said=taken_over")
    refused = sent(b"bad", used="yes")
    assert refused.status_code == 422
    assert "Nothing was imported: tables.click.3.at: must be a whole number." in refused.text
    assert sent(b"good").status_code == 422, "whether the other device was used since is never guessed"


def test_privacy_page_describes_both_views_and_what_they_exchanged() -> None:
    text = PagesReader().get("/privacy")
    for words in (
        "What a report is made from",
        "Saved searches and topics",
        ">15 <small>epsilon",
        "view level",
        "can open only its own files",
    ):
        assert words in text, words
    assert "takes no part in such rounds" in PagesReader("offline").get("/privacy")


def test_privacy_page_shows_the_codes_that_two_readers_can_compare(reader: PagesReader) -> None:
    text = reader.get("/privacy")
    assert "<code>1f0a 77c2 9be4 03d8 5a61</code>" in text, "the head of the chain of releases"
    assert "<code>0d4e 9a13 c7b2 58f6</code>, which an earlier key has signed." in text
    assert "ownfeed keys show" in text
    assert 'id="key"' not in PagesReader("empty").get("/privacy")
