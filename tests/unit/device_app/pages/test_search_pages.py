"""Searches are saved, listed, opened from and followed."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import unquote, urlencode, urlsplit

from device_app.pages.story_links import StoryLinks
from tests.doubles.pages_reader import OURS, PagesReader, page_key


def test_search_is_saved_listed_and_deleted_by_forms() -> None:
    reader = PagesReader()
    assert "Nothing saved yet" in reader.get("/searches")
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


def test_saving_a_long_search_in_any_script_redirects_back_to_its_results() -> None:
    reader, words = PagesReader(), "新" * 200
    here = "/search?" + urlencode({"q": words})
    assert reader.post("/searches", words=words, back=here) == f"{here}&said=search_saved"
    assert reader.post("/story/newsroom:0003/react", kind="like", back=here) == here
    assert reader.post("/story/newsroom:0003/react", kind="like", back="//evil.example/" + "x" * 900) == "/"


def test_story_opened_from_search_results_links_back_and_is_recorded_with_them() -> None:
    reader = PagesReader()
    text = reader.get("/search?q=the")
    address = re.search(r'href="(/story/[^"]+)"', text)
    assert address is not None
    news_id = unquote(urlsplit(address[1]).path.removeprefix("/story/"))
    assert unescape(address[1]) == StoryLinks(page_key()).link(news_id, found="the")
    story = reader.click(news_id, found="the")
    assert reader.device.found == [reader.device.opened[-1][0]]
    assert 'href="/search?q=the#n-' in story
    assert "Back to the results" in story
    reader.click("newsroom:0003")
    assert len(reader.device.found) == 1


def test_results_offer_to_follow_their_topics_and_explain_the_effect() -> None:
    reader = PagesReader()
    text = reader.get("/search?q=the")
    offered = re.findall(r'name="kind" value="topic"><input type="hidden" name="name" value="([^"]+)"', text)
    assert 1 <= len(offered) <= 3
    reader.post("/stance", kind="topic", name=offered[0], stance="follow", back="/search")
    assert "Unfollow" in reader.get("/searches")
    assert "influence the number you send" in reader.get("/searches")
    reader.post(
        "/privacy/switches", mode="code", epsilon_per_day_reports="8", epsilon_per_day_training="0",
        clicks_per_report="20", searches_in_reports="off",
    )  # fmt: skip
    assert not reader.device.settings.searches_in_reports
    assert "You keep saved searches and followed topics out of your reports" in reader.get("/searches")
    both = {"mode": "code", "epsilon_per_day_reports": "8", "epsilon_per_day_training": "0", "clicks_per_report": "20"}
    answer = reader.client.post("/privacy/switches", data=both | {"searches_in_reports": ["off", "on"]}, headers=OURS)
    assert answer.status_code == 303
    assert reader.device.settings.searches_in_reports
    reader.post("/privacy/switches", **both)
    assert reader.device.settings.searches_in_reports, "a form that does not ask changes nothing"


def test_search_page_shows_the_count_the_scope_and_further_pages() -> None:
    reader = PagesReader()
    first = reader.device.cards[0]
    reader.device.cards = tuple(
        first.model_copy(update={"id": f"c-{number:03}", "title": "Long reads" if number < 112 else "Other"})
        for number in range(120)
    )
    pages = [reader.get(f"/search?q=long{rest}") for rest in ("", "&page=2", "&page=3")]
    shown = [re.findall(r'<article class="card[^>]*id="n-([^"]+)"', text.split('<h2 id="near"')[0]) for text in pages]
    assert [len(each) for each in shown] == [50, 50, 12]
    assert [one for each in shown for one in each] == [f"c-{number:03}" for number in range(112)]
    said = [re.sub(r"<[^>]+>", "", re.search(r'<h2 id="results">(.*?)</h2>', text)[1]) for text in pages]  # type: ignore[index]
    assert said == [
        "112 stories, the first 50 for “long”",
        "112 stories, 51 to 100 for “long”",
        "112 stories, 101 to 112 for “long”",
    ]
    assert ["data-more>" in text for text in pages] == [True, True, False]
    assert [f'id="n-c-{number}"' in pages[0].split('id="near"')[1] for number in range(112, 115)] == [True] * 3
    assert [">Close in meaning<" in text for text in pages] == [True, False, False]
    assert "headlines of all 6,000 stories" in pages[0]
    assert reader.client.get("/search?q=long&page=4").status_code == 404
    assert reader.client.get("/search?page=2").status_code == 404
    assert all(len(text.encode()) < 120_000 for text in pages)
    reader.device.size = lambda: None  # type: ignore[method-assign]
    assert "not everything the publisher offers" in reader.get("/search")
    assert "headlines and texts of the 120 stories on this device" in reader.get("/search?q=long")
