"""Publishers' pictures don't reveal who reads what, to the backend or to the pictures' hosts.

The backend keeps every byte of its requests. The pages are read as a browser reads them: every address that a page
loads by itself must be the device's own.
"""

from __future__ import annotations

import random
import re
from html import unescape
from pathlib import Path
from urllib.parse import urlsplit

from starlette.testclient import TestClient

from device_app.app import create_app
from device_app.composition import build_device
from device_app.settings import DeviceSettings
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.news import NOW
from tests.doubles.pages_reader import FOLLOWS_A_LINK, enter
from tests.doubles.picture_files import small_picture

Request = tuple[str, str, bytes]
LOADED = re.compile(r"""(?:src|srcset|poster|background|data)\s*=\s*["']([^"']*)|url\(([^)]*)\)""")
"""What a browser loads of a page without being told to."""


def lived(folder: Path, reads: int | None) -> tuple[list[Request], list[str], int]:
    """Return the requests of a reader who looks at pages and pictures and opens every other story (None: none).

    Also returns what the pages would load, and how many pictures were shown.
    """
    backend, clock = FakeBackend(), StillClock(NOW)
    backend.pictures = dict.fromkeys((card.id for card in backend.pool.cards), small_picture())
    device = build_device(
        DeviceSettings.model_validate({"data_dir": folder, "privacy": {"mode": "none", "counting": False}}),
        transport=backend.transport(),
        chance=random.Random(5),
        clock=clock,
    )
    loaded: list[str] = []
    seen = 0
    app = create_app(device=device)
    home = f"http://127.0.0.1:{device.settings.port}"
    client = enter(TestClient(app, base_url=home, headers=FOLLOWS_A_LINK), app.state.page_key)
    device.sync()
    device.interests.choose_sections(())
    shown = [client.get("/").text]
    stories = list(dict.fromkeys(map(unescape, re.findall(r'href="(/story/[^"]+)', shown[0]))))
    if reads is not None:
        pages = (*stories[reads::2][:8], "/fresh", "/explore", "/saved", "/kept")
        shown += [client.get(page).text for page in pages]
    for text in shown:
        loaded += [one or other for one, other in LOADED.findall(text)]
    for address in {each for each in loaded if each.startswith("/pictures/")}:
        answer = client.get(address)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "image/webp")
        seen += 1
    clock.go_on(600.0)
    device.sync()
    while device.prefetch_step():
        pass
    device.close()
    return backend.requests, loaded, seen


def test_picture_requests_are_identical_for_all_readers(tmp_path: Path) -> None:
    nothing, even, odd = (lived(tmp_path / str(reads), reads) for reads in (None, 0, 1))
    assert even[0] == odd[0] == nothing[0]
    assert "/v1/pictures" in [path for _, path, _ in even[0]]
    assert min(even[2], odd[2]) > 20, "they have looked at pictures"


def test_pages_load_nothing_from_other_sites(tmp_path: Path) -> None:
    for reads in (0, 1):
        for address in lived(tmp_path / str(reads), reads)[1]:
            parts = urlsplit(address)
            assert (parts.scheme, parts.netloc) == ("", ""), address
            assert address.startswith(("/", "#")), address
