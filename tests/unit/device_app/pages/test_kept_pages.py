"""What a browser gets to keep, and the files that pages are made with. Oracles: the stand-in device, an XML parser."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from device_app.pages import bundles
from device_app.pages.art import drawing
from tests.doubles.pages_reader import OURS, PagesReader

SVG = "{http://www.w3.org/2000/svg}"


def test_the_kept_page_holds_every_text_and_no_reason_and_records_nothing(reader: PagesReader) -> None:
    before = list(reader.device.opened)
    text = reader.get("/kept")
    shown = [item.card for item in reader.device.feed().items if item.card.topic != "trams"]
    assert len(shown) > 20
    for card in shown:
        assert '<article class="story' in text
        assert f'id="n-{card.id}"' in text
        assert f'href="#n-{card.id}"' in text
    assert 'id="n-newsroom:0014"' not in text, "the story without its text"
    assert "You read three stories on ports" not in text
    assert reader.device.opened == before
    assert "No story with its text" in PagesReader("empty").get("/kept")


def test_the_pulse_says_whether_the_newsroom_answers_and_the_page_says_it_in_words() -> None:
    assert PagesReader("offline").client.get("/pulse").json() == {"online": False, "alerts": []}
    assert PagesReader().client.get("/pulse").json() == {"online": True, "alerts": []}
    assert re.search(
        r"<span[^>]*data-pulse[^>]*>Offline: the newsroom does not answer", PagesReader("offline").get("/")
    )
    assert re.search(r"<span[^>]*data-pulse[^>]* hidden>Offline", PagesReader().get("/"))


def test_a_wrong_address_gets_a_page_with_the_way_back(reader: PagesReader) -> None:
    for path in ("/nowhere", "/a/b/c?d=e", "/page/none", "/art/page/none.svg"):
        answer = reader.client.get(path)
        assert answer.status_code == 404
        assert "Back to your feed" in answer.text, path


def test_an_erase_also_takes_what_the_browser_keeps() -> None:
    answer = PagesReader().client.post("/privacy/erase", data={"confirm": "erase"}, headers=OURS)
    assert answer.headers["clear-site-data"] == '"cache", "storage"'


def test_the_pages_can_be_installed_and_their_worker_answers_for_all_of_them(reader: PagesReader) -> None:
    text = reader.get("/")
    manifest = re.search(r'<link rel="manifest" href="([^"]+)"', text)
    worker = re.search(r'data-worker="([^"]+)"', text)
    assert manifest is not None
    assert worker is not None
    answer = reader.client.get(manifest[1])
    assert answer.headers["content-type"].startswith("application/manifest+json")
    for icon in answer.json()["icons"]:
        drawn = reader.client.get(manifest[1].rpartition("/")[0] + "/" + icon["src"])
        assert drawn.content[1:4] == b"PNG"
        assert f"{int.from_bytes(drawn.content[16:20])}x{int.from_bytes(drawn.content[20:24])}" == icon["sizes"]
    assert reader.client.get(worker[1]).headers["service-worker-allowed"] == "/"
    assert "service-worker-allowed" not in reader.client.get(manifest[1]).headers


def test_a_script_is_put_together_with_what_it_imports_before_it() -> None:
    files = {
        "js/page.js": b'import { a, b } from "./one.js";\nimport { c } from "./two.js";\na();\n',
        "js/one.js": b'import { c } from "./two.js";\nexport function a() {}\nexport async function b() {}\n',
        "js/two.js": b"export function c() {}\n",
    }
    made = bundles.script(files).decode()
    assert re.findall(r"^const (\w+)Module", made, re.MULTILINE) == ["two", "one", "page"]
    assert "const { a, b } = oneModule;" in made
    assert "return { a, b };" in made
    assert "import" not in made
    assert "export" not in made


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (b'import one from "./one.js";\n', "doesn't take"),
        (b"export const x = 1;\n", "doesn't take"),
        (b'import { p } from "./page.js";\n', "import each other: page -> page"),
    ],
)
def test_an_import_or_export_that_the_bundle_does_not_know_is_refused(source: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        bundles.script({"js/page.js": source})


def test_a_sheet_holds_every_picture_of_a_page_in_its_place() -> None:
    pictures = [drawing.draw("sea", "n1"), drawing.draw("science", "n2"), drawing.draw("law", "n3")]
    root = ElementTree.fromstring(drawing.sheet(pictures))
    assert [view.get("viewBox") for view in root.iter(f"{SVG}view")] == [f"0 {400 * at} 640 400" for at in range(3)]
    drawn = root.findall(f"{SVG}svg")
    assert [one.get("y") for one in drawn] == ["0", "400", "800"]
    gradients = [one.get("id") for one in root.iter(f"{SVG}linearGradient")]
    assert gradients == ["s0", "s1", "s2"]
    for at, picture in enumerate(pictures):
        alone = ElementTree.fromstring(picture)
        assert len(list(drawn[at].iter())) == len(list(alone.iter()))
        assert drawn[at].find(f"{SVG}rect").get("fill") == f"url(#s{at})"  # type: ignore[union-attr]
