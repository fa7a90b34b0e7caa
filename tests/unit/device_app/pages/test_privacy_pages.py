"""What left this device, what it cost, and the switches beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from device_app.pages.privacy_pages import hexdump, readable
from device_app.settings import PrivacySettings
from device_app.view_models.today import TodayView
from tests.doubles.pages_reader import OURS, PagesReader


def test_the_privacy_page_shows_what_concerned_the_reader_and_one_step_on_everything(reader: PagesReader) -> None:
    text = reader.get("/privacy")
    everything = reader.get("/privacy?show=all")
    assert "Sends the noisy report" in text
    assert "Asks for the current release" not in text
    assert 'href="/privacy?show=all"' in text
    for line in reader.device.privacy(shown="all").log.lines:
        assert line.words in everything
        assert f'href="/privacy/requests/{line.entry_id}"' in everything
    assert "<strong>14 times</strong>" in everything
    assert 'href="/privacy/polls/1/1"' in everything
    assert "Page 1 of 2" in reader.get("/privacy/polls/1/1")
    assert reader.client.get("/privacy/polls/1/99").status_code == 404
    assert reader.client.get("/privacy?show=nothing").status_code == 422


def test_the_privacy_page_is_honest_about_sums_days_and_who_switched_training_on(reader: PagesReader) -> None:
    text, switches = reader.get("/privacy"), reader.get("/settings")
    assert "Today is the UTC day" in text
    assert "You did not switch training on here" in switches
    assert 'name="epsilon_per_day_reports" value="8"' in switches
    assert 'name="epsilon_lifetime_reports" value="40"' in switches
    assert "it is no promise" not in text
    paper = PagesReader("overfull")
    assert 'name="epsilon_per_day_reports" value="150"' in paper.get("/settings")
    assert "it is no promise" in paper.get("/privacy")
    parts = ("Privacy</h1>", "Today this device", "The exact figures", "request by request", "What it could reveal")
    assert sorted(text.index(part) for part in parts) == [text.index(part) for part in parts]


def test_the_privacy_page_begins_with_what_left_today_over_all_channels() -> None:
    reader = PagesReader()
    assert (
        "Today this device sent 1 blurred number and joined 1 group count, and repeated a number it had sent before"
        in reader.get("/privacy")
    )
    view = reader.device.privacy()
    today = TodayView(reports=2, again=0, counts=3, rounds=1, one_number=True, spent_before=True)
    for shown, words in (
        (today, "Today this device sent 2 blurred numbers and joined 3 group counts and 1 training round."),
        (replace(today, reports=0, counts=0), "Today this device joined 1 training round."),
        (
            replace(today, counts=0, rounds=0, moved=True),
            "Today this device and the one that you came from sent 2 blurred numbers, at most.",
        ),
        (
            replace(today, moved=True, up_to_limits=True),
            "Today this device and the one that you came from may have sent as much as your limits allow for a day",
        ),
        (replace(today, reports=0, counts=0, rounds=0), "Today nothing about you has left this device."),
        (replace(today, reports=0, counts=0, rounds=0, again=4), "Today this device repeated a number"),
    ):
        reader.device.privacy = lambda *_, shown=shown: replace(view, today=shown)  # type: ignore[method-assign]
        for path in ("/privacy", "/you"):
            assert words in reader.get(path)


def test_after_an_erase_the_page_says_that_what_was_joined_still_counts() -> None:
    reader = PagesReader()
    erased = replace(reader.device.privacy(), counts=())
    reader.device.privacy = lambda *_: erased  # type: ignore[method-assign]
    text = reader.get("/privacy")
    assert "What they hold can't be called back" in text
    assert "in no group count yet" not in text


def test_a_level_sets_its_switches_and_leaves_training_to_be_asked_for() -> None:
    reader = PagesReader()
    assert 'value="balanced" checked' in reader.get("/settings"), "training apart"
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


def test_the_privacy_page_explains_every_mode_says_what_it_costs_and_recommends_the_stricter(
    reader: PagesReader,
) -> None:
    text = reader.get("/settings")
    for mode in ("code", "broadcast", "none", "topics", "subset", "direction", "basis_l1", "basis_laplace"):
        assert f'name="mode" value="{mode}"' in text
    assert 'name="mode" value="code" checked' in text
    assert "true one with probability 0.78" in text
    assert "stricter, recommended for a pool of this size" in text
    assert "0 epsilon, 6.9 MB pulled for 12,312 news" in text
    assert "4 epsilon a fresh report" in text
    assert "50 epsilon a fresh report" in text
    assert "This release has nothing to report with within 4 epsilon." in text, "no projection, so no direction"
    figures = reader.get("/privacy")
    assert "24 epsilon by sum; the sharper account of how losses add up gains nothing yet" in figures


def test_the_privacy_page_shows_the_true_number_beside_the_one_that_was_sent(reader: PagesReader) -> None:
    text = " ".join(reader.get("/privacy").replace("<strong>", "").replace("</strong>", "").split())
    assert "Computed here: number 5. Sent: 11, which is not true; the newsroom can't tell." in text


def test_the_privacy_page_says_what_each_count_took_and_cost_and_lets_counts_be_switched_off() -> None:
    reader = PagesReader()
    text = " ".join(reader.get("/privacy").split())
    assert '<th scope="row" class="nowrap">round-9</th>' in text
    prices = "".join(f'<td class="num">{one}</td>' for one in ("28", "3", "3.62", "1.4", "21.1", "8"))
    assert prices in text, "with real company and with none, of everything and of one click"
    assert '<td class="num">21.1</td><td class="num">not kept</td>' in text, "a charge of before the second price"
    assert "A newsroom that invents them all learns your share, under its own noise alone" in text
    assert "28 stories you looked at, 3 of them opened" in text
    assert "come to 21.1 epsilon today, of 48 at most, and to 33.2 in all, at a delta of 1e-06" in text
    assert '<th scope="row">Counts</th><td class="num">3.62</td>' in text
    assert 'name="epsilon_per_click_alone" value="8"' in reader.get("/settings")
    assert "This device is in no group count yet" in PagesReader("empty").get("/privacy")
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
    assert "this device adds to none" in reader.get("/privacy")


def test_a_limit_that_is_left_blank_stays_as_it_was() -> None:
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


def test_a_request_is_shown_and_downloaded_to_the_byte(reader: PagesReader) -> None:
    traffic = reader.device.traffic(3)
    assert traffic is not None
    text = reader.get("/privacy/requests/3")
    assert "basis_laplace" in text
    assert traffic.request_body[:16].hex(" ") in text
    download = reader.client.get("/privacy/requests/3/body")
    assert download.content == traffic.request_body
    assert download.headers["content-disposition"].startswith("attachment")
    assert reader.client.get("/privacy/requests/99").status_code == 404
    assert reader.client.get("/privacy/requests/99/body").status_code == 404


def test_bytes_that_are_not_json_are_shown_as_bytes(reader: PagesReader) -> None:
    assert readable(bytes(range(256))) is None
    assert hexdump(b"feed\x00") == "000000  66 65 65 64 00" + " " * 33 + "  feed."
    assert "Read as JSON" not in reader.get("/privacy/requests/6")


def test_a_body_that_is_no_longer_kept_is_not_called_empty(reader: PagesReader) -> None:
    text = reader.get("/privacy/requests/4")
    assert "They are no longer kept" in text
    assert "had no body" not in text
    assert "No answer: no answer within 10 s" in reader.get("/privacy/requests/6")


def test_the_shield_says_how_reports_stand_and_that_training_is_on(reader: PagesReader) -> None:
    text = reader.get("/")
    assert "<span>Reports on<span" in text
    assert "Training is on." in text
    assert '<a href="/training">Training on</a>' in text
    assert "Training on" not in PagesReader("empty").get("/fresh")


def test_switches_are_set_and_a_value_out_of_range_changes_nothing() -> None:
    reader = PagesReader()
    form = {
        "mode": "none", "epsilon_per_day_reports": "50", "epsilon_per_day_training": "0", "clicks_per_report": "7"
    }  # fmt: skip
    assert reader.post("/privacy/switches", **form) == "/settings?said=settings"
    assert reader.device.settings.mode == "none"
    assert reader.device.settings.training is False
    answer = reader.client.post("/privacy/switches", data=form | {"clicks_per_report": "51"}, headers=OURS)
    assert answer.status_code == 422
    assert "Nothing was changed: clicks per report" in answer.text
    assert reader.device.settings.clicks_per_report == 7


def test_erasing_needs_the_word() -> None:
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


def test_a_file_of_another_device_is_taken_over_or_the_page_says_which_field_is_wrong(reader: PagesReader) -> None:
    def sent(content: bytes, **fields: str) -> Any:
        file = {"file": ("ownfeed-everything.json", content, "application/json")}
        return reader.client.post("/privacy/import", files=file, data=fields, headers=OURS)

    taken = sent(b"good", used="no", settings="on")
    assert (taken.status_code, taken.headers["location"]) == (303, "/settings?said=taken_over")
    refused = sent(b"bad", used="yes")
    assert refused.status_code == 422
    assert "Nothing was taken over: tables.click.3.at: must be a whole number." in refused.text
    assert sent(b"good").status_code == 422, "whether the other device was used since is never guessed"


def test_the_privacy_page_names_both_views_what_they_hold_and_what_they_told_each_other() -> None:
    text = PagesReader().get("/privacy")
    for words in (
        "What a report is made from",
        "Saved searches and topics",
        ">15 <small>epsilon",
        "view level",
        "no file but their own",
    ):
        assert words in text, words
    assert "takes no part in such rounds" in PagesReader("offline").get("/privacy")


def test_the_privacy_page_shows_what_two_readers_can_compare(reader: PagesReader) -> None:
    text = reader.get("/privacy")
    assert "<code>1f0a 77c2 9be4 03d8 5a61</code>" in text, "the head of the chain of releases"
    assert "<code>0d4e 9a13 c7b2 58f6</code>, for which an earlier key has signed." in text
    assert "ownfeed keys show" in text
    assert 'id="key"' not in PagesReader("empty").get("/privacy")
