"""The page that a browser stores for offline use, and the pages' files. Oracle: the stand-in device."""

from __future__ import annotations

import re

import pytest

from device_app.pages import assets
from tests.doubles.pages_reader import OURS, PagesReader


def test_offline_page_holds_every_text_without_reasons_and_records_nothing(reader: PagesReader) -> None:
    before = list(reader.device.opened)
    text = reader.get("/kept")
    shown = [item.card for item in reader.device.reading.feed().items if item.card.topic != "trams"]
    assert len(shown) > 20
    for card in shown:
        assert '<article class="story' in text
        assert f'id="n-{card.id}"' in text
        assert f'href="#n-{card.id}"' in text
    assert 'id="n-newsroom:0014"' not in text, "the story without its text"
    assert "You read three stories on ports" not in text
    assert reader.device.opened == before
    assert "No stories with their texts" in PagesReader("empty").get("/kept")


def test_pages_show_whether_the_publisher_can_be_reached() -> None:
    assert PagesReader("offline").client.get("/pulse").json() == {"online": False, "alerts": []}
    assert PagesReader().client.get("/pulse").json() == {"online": True, "alerts": []}
    assert re.search(r"<span[^>]*data-pulse[^>]*>Offline: can't reach the publisher", PagesReader("offline").get("/"))
    assert re.search(r"<span[^>]*data-pulse[^>]* hidden>Offline", PagesReader().get("/"))


def test_unknown_address_gets_a_page_with_a_way_back(reader: PagesReader) -> None:
    for path in ("/nowhere", "/a/b/c?d=e", "/page/none"):
        answer = reader.client.get(path)
        assert answer.status_code == 404
        assert "Back to your feed" in answer.text, path


def test_erase_also_clears_the_browsers_storage() -> None:
    answer = PagesReader().client.post("/privacy/erase", data={"confirm": "erase"}, headers=OURS)
    assert answer.headers["clear-site-data"] == '"cache", "storage"'


def test_pages_are_installable_and_the_service_worker_controls_all_of_them(reader: PagesReader) -> None:
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


def test_script_is_bundled_with_its_imports_first() -> None:
    files = {
        "js/page.js": b'import { a, b } from "./one.js";\nimport { c } from "./two.js";\na();\n',
        "js/one.js": b'import { c } from "./two.js";\nexport function a() {}\nexport async function b() {}\n',
        "js/two.js": b"export function c() {}\n",
    }
    made = assets.script(files).decode()
    assert re.findall(r"^const (\w+)Module", made, re.MULTILINE) == ["two", "one", "page"]
    assert "const { a, b } = oneModule;" in made
    assert "return { a, b };" in made
    assert "import" not in made
    assert "export" not in made


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (b'import one from "./one.js";\n', "does not support"),
        (b"export const x = 1;\n", "does not support"),
        (b'import { p } from "./page.js";\n', "import each other: page -> page"),
    ],
)
def test_unsupported_import_or_export_is_refused(source: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        assets.script({"js/page.js": source})
