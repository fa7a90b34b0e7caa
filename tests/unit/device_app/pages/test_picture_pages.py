"""A device serves stored pictures and draws missing ones, and Settings switches them off."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from starlette.testclient import TestClient

from device_app.app import create_app
from device_app.composition import build_device
from device_app.settings import DeviceSettings
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.news import NOW
from tests.doubles.pages_reader import FOLLOWS_A_LINK, enter
from tests.doubles.picture_files import bare_picture


def test_stored_picture_is_served_and_a_missing_one_is_drawn(tmp_path: Path) -> None:
    backend = FakeBackend()
    newest = sorted(backend.pool.cards, key=lambda card: card.published_at, reverse=True)
    shown, gone = newest[0].id, newest[1].id
    backend.pictures = {shown: bare_picture(b"once"), gone: bare_picture(b"gone")}
    device = build_device(
        DeviceSettings.model_validate({"data_dir": tmp_path, "privacy": {"mode": "none"}}),
        transport=backend.transport(), chance=random.Random(5), clock=StillClock(NOW),
    )  # fmt: skip
    app = create_app(device=device)
    home = f"http://127.0.0.1:{device.settings.port}"
    client = enter(TestClient(app, base_url=home, headers=FOLLOWS_A_LINK, follow_redirects=False), app.state.page_key)
    device.sync()
    pictures = device.parts.stores.pictures
    address, old = pictures.path(shown), pictures.path(gone)
    answer = client.get(address)
    assert (answer.content, answer.headers["content-type"]) == (backend.pictures[shown], "image/webp")
    assert "immutable" in answer.headers["cache-control"]
    assert "img-src 'self'" in answer.headers["content-security-policy"]
    assert f'src="{address}"' in client.get(f"/story/{shown}").text

    del backend.pictures[gone]
    device.sync()
    drawn = client.get(old)
    assert drawn.status_code == 303
    assert client.get(drawn.headers["location"]).headers["content-type"] == "image/svg+xml"
    assert client.get("/pictures/never-heard-of.webp?of=0").status_code == 404

    ours = {"origin": home, "sec-fetch-site": "same-origin"}
    assert client.post("/settings/pictures", data={"shown": "perhaps"}, headers=ours).status_code == 422
    assert device.copy_step()
    done = client.post("/settings/pictures", data={"shown": "off"}, headers=ours)
    assert done.headers["location"] == "/settings?said=pictures_off#pictures"
    assert "/pictures/" not in client.get(f"/story/{shown}").text
    assert "Show publishers’ pictures" in client.get("/settings").text
    device.close()

    copy = device.parts.copies.copies[0]
    shutil.copyfile(copy.path, copy.original)
    device = build_device(device.settings, transport=backend.transport(), clock=StillClock(NOW))
    pictures = device.parts.stores.pictures
    assert not pictures.shown(), "a copy from before the choice brings none of them back"
    assert pictures.content(shown) is None
    assert device.parts.stores.database.row("SELECT count(*) FROM picture") == (0,)
    device.close()
