"""The pages over a stand-in device: what each one says, and what each form does."""

from __future__ import annotations

import re

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from device_app.ui.feed_pages import with_shapes
from device_app.ui.guard import LocalGuard
from device_app.ui.press import local_path
from device_app.ui.privacy_pages import hexdump, readable
from device_app.ui.routes import router
from device_app.ui.stages import stage_words
from device_app.wire.news import NewsCard
from tests.doubles.pages_device import PagesDevice

HOME = "http://127.0.0.1:8401"
OURS = {"origin": HOME, "sec-fetch-site": "same-origin"}


class Reader:
    """A browser without scripts in front of one stand-in device."""

    def __init__(self, kind: str = "typical") -> None:
        self.device = PagesDevice(kind)  # type: ignore[arg-type]
        app = FastAPI(openapi_url=None)
        app.include_router(router(self.device))  # type: ignore[arg-type]
        app.add_middleware(LocalGuard, port=8401)
        self.client = TestClient(app, base_url=HOME, follow_redirects=False)

    def get(self, path: str) -> str:
        answer = self.client.get(path)
        assert answer.status_code == 200, f"{path}: {answer.status_code}"
        return answer.text

    def post(self, path: str, **form: str) -> str:
        """Post a form; returns where it leads."""
        answer = self.client.post(path, data=form, headers=OURS)
        assert answer.status_code == 303, f"{path}: {answer.status_code} {answer.text[:300]}"
        return answer.headers["location"]


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader()


def test_no_page_names_a_resource_of_another_site(reader: Reader) -> None:
    for path in ("/", "/fresh", "/explore", "/story/newsroom:0003", "/privacy", "/interests", "/training", "/latency"):
        for tag in re.findall(r"<(?:img|script|link|iframe|source|form|use)\b[^>]*>", reader.get(path)):
            for address in re.findall(r'(?:src|href|action)="([^"]*)"', tag):
                assert address.startswith(("/", "#")), f"{path}: {tag}"
                assert not address.startswith("//")


def test_no_page_has_inline_script_or_style(reader: Reader) -> None:
    for path in ("/", "/story/newsroom:0003", "/privacy", "/training", "/latency", "/interests"):
        text = reader.get(path)
        assert not re.search(r"<script(?![^>]*\ssrc=)", text)
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=", text)


def test_a_link_out_takes_no_referrer_and_no_opener_along(reader: Reader) -> None:
    links = re.findall(r'<a [^>]*href="https?://[^>]*>', reader.get("/story/newsroom:0003"))
    assert len(links) == 1
    assert 'rel="noreferrer noopener external"' in links[0]


def test_opening_a_story_records_the_click_with_its_feed(reader: Reader) -> None:
    reader.get("/story/newsroom:0005?feed=feed-1")
    assert reader.device.opened[-1] == ("newsroom:0005", "feed-1")


def test_a_forged_link_to_a_story_records_nothing(reader: Reader) -> None:
    before = list(reader.device.opened)
    assert reader.client.get("/story/newsroom:0005", headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert reader.client.head("/story/newsroom:0005").status_code == 405
    assert reader.device.opened == before


def test_a_story_that_is_not_here_says_so(reader: Reader) -> None:
    answer = reader.client.get("/story/nothing")
    assert answer.status_code == 404
    assert "nothing" in answer.text
    assert "Back to your feed" in answer.text


def test_a_story_without_its_text_says_why_it_is_not_fetched_alone(reader: Reader) -> None:
    assert "would tell it what you read" in reader.get("/story/newsroom:0014")


def test_reader_text_is_escaped_and_marked_for_its_own_direction(reader: Reader) -> None:
    text = reader.get('/search?q=<b>"x"</b>')
    assert "<b>" not in text
    assert 'dir="auto"' in reader.get("/")
    assert "الميناء" in Reader("overfull").get("/")


def test_a_reaction_goes_back_to_its_card_and_a_script_gets_no_page(reader: Reader) -> None:
    assert reader.post("/story/newsroom:0002/react", kind="save", back="/#n-newsroom:0002") == "/#n-newsroom:0002"
    assert reader.device.reacted["newsroom:0002"] == {"save"}
    quick = reader.client.post(
        "/story/newsroom:0002/react", data={"kind": "save"}, headers=OURS | {"accept": "application/json"}
    )
    assert (quick.status_code, quick.content) == (204, b"")
    assert reader.device.reacted["newsroom:0002"] == set()


def test_a_wrong_form_is_answered_by_a_page_that_names_the_field(reader: Reader) -> None:
    answer = reader.client.post("/story/newsroom:0002/react", data={"kind": "love"}, headers=OURS)
    assert answer.status_code == 422
    assert "kind" in answer.text


@pytest.mark.parametrize(
    "back", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:x", "/a b", ""]
)
def test_a_form_never_leads_to_another_site(back: str) -> None:
    assert local_path(back) == "/"


def test_a_local_way_back_is_kept() -> None:
    assert local_path("/search?q=a%20b#n-1") == "/search?q=a%20b#n-1"


def test_stances_are_set_and_taken_back(reader: Reader) -> None:
    reader.post("/stance", kind="topic", name="rivers", stance="block", back="/")
    assert reader.device.held["topic", "rivers"] == "block"
    assert "Show again" in reader.get("/story/newsroom:0010")
    reader.post("/stance", kind="topic", name="rivers", stance="none", back="/")
    assert ("topic", "rivers") not in reader.device.held


def test_interests_can_be_named_muted_and_forgotten(reader: Reader) -> None:
    assert reader.post("/interests/1/name", name="Boats & tides").startswith("/interests?said=renamed")
    assert "Boats &amp; tides" in reader.get("/interests")
    reader.post("/interests/1/mute", muted="yes")
    assert "Muted" in reader.get("/interests")
    reader.post("/interests/1/forget")
    assert "Boats" not in reader.get("/interests")


def test_history_is_searched_and_a_click_deleted(reader: Reader) -> None:
    assert "Ferrymen" in reader.get("/interests/history?q=ferrymen")
    reader.post("/interests/history/1/delete", back="/interests/history?q=ferrymen&page=1")
    assert reader.device.deleted == {1}


def test_the_privacy_page_shows_what_concerned_the_reader_and_one_step_on_everything(reader: Reader) -> None:
    text = reader.get("/privacy")
    everything = reader.get("/privacy?show=all")
    assert "Sends the noisy report" in text
    assert "Asks for the current release" not in text
    assert 'href="/privacy?show=all"' in text
    for line in reader.device.privacy(shown="all").log.lines:
        assert line.words in everything
        assert f'href="/privacy/requests/{line.entry_id}"' in everything
    assert "<strong>14 times</strong>" in everything
    assert 'href="/privacy/looks/1/1"' in everything
    assert "Page 1 of 2" in reader.get("/privacy/looks/1/1")
    assert reader.client.get("/privacy/looks/1/99").status_code == 404
    assert reader.client.get("/privacy?show=nothing").status_code == 422


def test_the_training_page_says_which_group_the_device_chose_and_that_nobody_else_knows(reader: Reader) -> None:
    text = " ".join(reader.get("/training").split())
    assert "ranker.finding has a model for each of 4 groups of readers" in text
    assert "This device has put you in group 3, by your clicks, and tells nobody" in text
    assert "groups of readers" not in Reader("empty").get("/training")


def test_the_privacy_page_is_honest_about_sums_days_and_who_switched_training_on(reader: Reader) -> None:
    text = reader.get("/privacy")
    assert "Today is the UTC day" in text
    assert "You did not switch training on here" in text
    assert 'name="epsilon_per_day_reports" value="8"' in text
    assert 'name="epsilon_lifetime_reports" value="40"' in text
    assert "no strong promise" not in text
    paper = Reader("overfull").get("/privacy")
    assert 'name="epsilon_per_day_reports" value="150"' in paper
    assert "no strong promise" in paper
    assert text.index("What left this device</h1>") < text.index("What it could reveal") < text.index("Switches</h2>")


def test_the_privacy_page_explains_every_mode_says_what_it_costs_and_recommends_the_stricter(reader: Reader) -> None:
    text = reader.get("/privacy")
    for mode in ("code", "broadcast", "none", "topics", "subset", "direction", "basis_l1", "basis_laplace"):
        assert f'name="mode" value="{mode}"' in text
    assert 'name="mode" value="code" checked' in text
    assert "true one with probability 0.78" in text
    assert "stricter, recommended for a pool of this size" in text
    assert "0 epsilon, 6.9 MB pulled for 12,312 news" in text
    assert "4 epsilon a fresh report" in text
    assert "50 epsilon a fresh report" in text
    assert "This release has nothing to report with within 4 epsilon." in text, "no projection, so no direction"
    assert "24 epsilon by sum; the sharper account of how losses add up gains nothing yet" in text


def test_the_privacy_page_shows_the_true_number_beside_the_one_that_was_sent(reader: Reader) -> None:
    text = " ".join(reader.get("/privacy").replace("<strong>", "").replace("</strong>", "").split())
    assert "Computed here: number 5. Sent: 11, which is not true; the newsroom can't tell." in text


def test_the_privacy_page_says_what_each_count_took_and_cost_and_lets_counts_be_switched_off() -> None:
    reader = Reader()
    text = " ".join(reader.get("/privacy").split())
    assert '<th scope="row" class="nowrap">round-9</th>' in text
    assert '<td class="num">28</td><td class="num">3</td><td class="num">3.62</td>' in text
    assert '<th scope="row">Counts</th><td class="num">3.62</td>' in text
    assert "Nothing of you is in any count yet" in Reader("empty").get("/privacy")
    form = {
        "mode": "code", "epsilon_per_day_reports": "8", "epsilon_per_day_training": "0", "clicks_per_report": "20",
    }  # fmt: skip
    reader.post("/privacy/switches", **form)
    assert reader.device.settings.counting, "a form without the box changes nothing"
    reader.post("/privacy/switches", **form | {"counting": "off", "epsilon_per_day_counts": "3"})
    assert (reader.device.settings.counting, reader.device.settings.epsilon_per_day_counts) == (False, 3)
    assert "this device adds to none" in reader.get("/privacy")


def test_popular_now_says_when_it_was_counted_or_that_it_was_not() -> None:
    assert "Devices counted it together" in Reader().get("/popular")
    assert "Nothing was counted yet" in Reader("empty").get("/popular")


def test_a_limit_that_is_left_blank_stays_as_it_was() -> None:
    reader = Reader()
    form = {
        "mode": "code", "epsilon_per_day_reports": "8", "epsilon_per_day_training": "0", "clicks_per_report": "20",
        "epsilon_per_report": "8", "epsilon_lifetime_reports": "",
    }  # fmt: skip
    assert reader.post("/privacy/switches", **form) == "/privacy?said=settings"
    assert (reader.device.settings.epsilon_per_report, reader.device.settings.epsilon_lifetime_reports) == (8, 40)
    assert reader.post("/privacy/switches", **form | {"epsilon_lifetime_reports": "24"}) == "/privacy?said=settings"
    assert reader.device.settings.epsilon_lifetime_reports == 24
    answer = reader.client.post("/privacy/switches", data=form | {"mode": "shouting"}, headers=OURS)
    assert answer.status_code == 422


def test_a_request_is_shown_and_downloaded_to_the_byte(reader: Reader) -> None:
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


def test_bytes_that_are_not_json_are_shown_as_bytes(reader: Reader) -> None:
    assert readable(bytes(range(256))) is None
    assert hexdump(b"feed\x00") == "000000  66 65 65 64 00" + " " * 33 + "  feed."
    assert "Read as JSON" not in reader.get("/privacy/requests/6")


def test_a_body_that_is_no_longer_kept_is_not_called_empty(reader: Reader) -> None:
    text = reader.get("/privacy/requests/4")
    assert "They are no longer kept" in text
    assert "had no body" not in text
    assert "No answer: no answer within 10 s" in reader.get("/privacy/requests/6")


def test_a_saved_story_waits_on_its_own_page_and_is_shown_as_saved_everywhere() -> None:
    reader = Reader()
    assert "Nothing is saved yet" in reader.get("/saved")
    reader.post("/story/newsroom:0002/react", kind="save")
    assert "1 story, last saved first" in reader.get("/saved")
    title = reader.device.card("newsroom:0002").title
    for path in ("/saved", "/fresh", "/explore/" + reader.device.card("newsroom:0002").section):
        card = reader.get(path).partition('id="n-newsroom:0002"')[2].partition("</article>")[0]
        assert title in card
        assert 'value="save" aria-pressed="true"' in card, path


def test_the_shield_counts_reports_alone_and_says_that_training_is_on(reader: Reader) -> None:
    text = reader.get("/")
    assert "Training has its own budget and is on" in text
    assert '<a href="/training">Training on</a>' in text
    assert "Training on" not in Reader("empty").get("/fresh")


def test_stages_have_plain_words() -> None:
    text = Reader().get("/latency")
    assert "Wait for the newsroom" in text
    assert "Rebuild directions" in text
    assert stage_words("new_stage", "server").name == "New stage"


def test_switches_are_set_and_a_value_out_of_range_changes_nothing() -> None:
    reader = Reader()
    form = {
        "mode": "none", "epsilon_per_day_reports": "50", "epsilon_per_day_training": "0", "clicks_per_report": "7"
    }  # fmt: skip
    assert reader.post("/privacy/switches", **form) == "/privacy?said=settings"
    assert reader.device.settings.mode == "none"
    assert reader.device.settings.training is False
    answer = reader.client.post("/privacy/switches", data=form | {"clicks_per_report": "51"}, headers=OURS)
    assert answer.status_code == 422
    assert "Nothing was changed: clicks per report" in answer.text
    assert reader.device.settings.clicks_per_report == 7


def test_erasing_needs_the_word() -> None:
    reader = Reader()
    answer = reader.client.post("/privacy/erase", data={"confirm": "yes"}, headers=OURS)
    assert answer.status_code == 422
    assert reader.device.kind == "typical"
    assert reader.post("/privacy/erase", confirm="Erase").startswith("/welcome")
    assert reader.device.kind == "empty"


def test_everything_can_be_exported(reader: Reader) -> None:
    answer = reader.client.get("/privacy/export")
    assert answer.json()["clicks"][0]["news_id"] == "newsroom:0000"
    assert "attachment" in answer.headers["content-disposition"]
    assert reader.client.get("/latency.json").json()["count"] == 100


def test_the_first_visit_asks_for_sections_and_keeps_them() -> None:
    reader = Reader("empty")
    assert reader.client.get("/").headers["location"] == "/welcome"
    assert "stays on this device" in reader.get("/welcome")
    assert reader.post("/welcome", section="sea") == "/"
    assert reader.device.chosen == ("sea",)
    assert "No news on this device yet" in reader.get("/")


def test_training_is_paused_switched_and_told_as_it_happens() -> None:
    reader = Reader()
    assert reader.client.get("/training/live").json()["figures"]["uploaded"] == "23"
    reader.post("/training/pause", paused="yes")
    assert "Paused" in reader.get("/training")
    reader.post("/training/switch", training="off")
    assert reader.device.settings.training is False
    assert Reader("empty").client.get("/training/live").json() == {"round": None, "live": False}


def test_offline_the_last_feed_is_shown_and_dated() -> None:
    text = Reader("offline").get("/")
    assert "This is the feed of 07:42" in text
    assert "Offline: the newsroom does not answer" in text
    assert "Dredging" in text
    assert Reader("offline").post("/feed/refresh") == "/"
    assert Reader().post("/feed/refresh") == "/?said=refreshed"


def test_what_a_page_says_after_a_form_can_not_be_made_up(reader: Reader) -> None:
    assert 'role="status"' not in reader.get("/search?said=<script>")
    assert "Your switches are set." in reader.get("/privacy?said=settings")


def test_static_files_are_kept_only_under_their_own_version(reader: Reader) -> None:
    address = re.search(r'href="(/static/[^"]*tokens\.css)"', reader.get("/"))
    assert address is not None
    kept = reader.client.get(address[1])
    assert "immutable" in kept.headers["cache-control"]
    assert kept.headers["content-type"].startswith("text/css")
    assert reader.client.get("/static/000000000000/css/tokens.css").status_code == 404
    assert reader.client.get(address[1].replace("tokens.css", "../../templates/device/base.html")).status_code == 404


def test_pictures_are_served_as_svg_and_kept(reader: Reader) -> None:
    picture = reader.client.get("/art/newsroom:0001.svg?section=sea")
    assert picture.headers["content-type"].startswith("image/svg+xml")
    assert picture.text.startswith("<svg")
    assert reader.client.get("/art/bad%20id.svg?section=sea").status_code == 422


@pytest.mark.parametrize("count", range(31))
def test_the_cards_of_a_feed_leave_no_hole_in_the_last_row(count: int) -> None:
    items = PagesDevice().feed().items[:count]
    sixths = sum({"wide": 6, "half": 3}.get(shape, 2) for _, shape in with_shapes(items))
    assert sixths % 6 == 0 or count == 0


def test_a_card_of_the_longest_fields_is_set_whole(reader: Reader) -> None:
    device = PagesDevice()
    long = NewsCard.model_validate(device.cards[0].model_dump() | {"title": "w" * 1_000, "abstract": "a" * 5_000})
    device.cards = (long, *device.cards[1:])
    app = FastAPI(openapi_url=None)
    app.include_router(router(device))  # type: ignore[arg-type]
    assert "w" * 1_000 in TestClient(app, base_url=HOME).get(f"/story/{long.id}").text


def test_a_search_is_saved_listed_and_deleted_by_forms() -> None:
    reader = Reader()
    assert "Nothing is saved yet" in reader.get("/searches")
    assert reader.post("/searches", words="the harbour", back="/search?q=the+harbour").startswith(
        "/search?q=the+harbour&"
    )
    (kept,) = reader.device.saved_searches
    for path in ("/searches", "/search", "/search?q=the+harbour"):
        assert "the harbour" in reader.get(path), path
    assert "Searches stay on this device" in reader.get("/searches")
    assert "Searches stay on this device" in reader.get("/search")
    assert reader.post(f"/searches/{kept.id}/delete", back="/searches") == "/searches?said=search_deleted"
    assert reader.device.saved_searches == []
    assert reader.client.post("/searches", data={"words": " "}, headers=OURS).status_code == 422
    assert (
        reader.client.post("/searches", data={"words": "x"}, headers={"origin": "https://evil.example"}).status_code
        == 403
    )


def test_a_story_opened_from_results_is_told_to_that_view_and_leads_back_to_them() -> None:
    reader = Reader()
    text = reader.get("/search?q=the")
    address = re.search(r'href="(/story/[^"]+)"', text)
    assert address is not None
    assert address[1].endswith("?found=the")
    story = reader.get(address[1])
    assert reader.device.found == [reader.device.opened[-1][0]]
    assert 'href="/search?q=the#n-' in story
    assert "Back to the results" in story
    reader.get("/story/newsroom:0003")
    assert len(reader.device.found) == 1


def test_results_offer_to_follow_their_topics_and_the_page_says_where_that_weighs() -> None:
    reader = Reader()
    text = reader.get("/search?q=the")
    offered = re.findall(r'name="kind" value="topic"><input type="hidden" name="name" value="([^"]+)"', text)
    assert 1 <= len(offered) <= 3
    reader.post("/stance", kind="topic", name=offered[0], stance="follow", back="/search")
    assert "Unfollow" in reader.get("/searches")
    assert "weigh in the one number" in reader.get("/searches")
    reader.post(
        "/privacy/switches", mode="code", epsilon_per_day_reports="8", epsilon_per_day_training="0",
        clicks_per_report="20", searches_in_reports="off",
    )  # fmt: skip
    assert not reader.device.settings.searches_in_reports
    assert "You keep saved searches and followed topics out of reports" in reader.get("/searches")
    both = {"mode": "code", "epsilon_per_day_reports": "8", "epsilon_per_day_training": "0", "clicks_per_report": "20"}
    answer = reader.client.post("/privacy/switches", data=both | {"searches_in_reports": ["off", "on"]}, headers=OURS)
    assert answer.status_code == 303
    assert reader.device.settings.searches_in_reports
    reader.post("/privacy/switches", **both)
    assert reader.device.settings.searches_in_reports, "a form that does not ask changes nothing"


def test_the_privacy_page_names_both_views_what_they_hold_and_what_they_told_each_other() -> None:
    text = Reader().get("/privacy")
    for words in (
        "What a report is made from",
        "Saved searches and topics",
        ">15 <small>epsilon",
        "view level",
        "no file but their own",
    ):
        assert words in text, words
    assert "takes no part in such rounds" in Reader("offline").get("/privacy")
