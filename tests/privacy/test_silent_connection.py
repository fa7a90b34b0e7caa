"""A malicious server repeatedly closes the connection by which a device watches it, to learn when its reader reads.

Oracle: the connections that the test's socket accepts, and every byte that arrives on them.
"""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from device_app.app import create_app
from device_app.composition import build_device
from device_app.pages.story_links import StoryLinks
from device_app.settings import DeviceSettings
from device_app.uplink import watch as module
from tests.doubles.backend import FakeBackend
from tests.doubles.pages_reader import FOLLOWS_A_LINK, enter

ENDED = 5


@pytest.mark.parametrize("reads", [False, True])
def test_connection_times_are_independent_of_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, reads: bool
) -> None:
    monkeypatch.setattr(module, "BRIEF_SEC", 0.0)
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(60)
    quiet = {"mode": "none", "counting": False, "training": False}
    values = {"data_dir": tmp_path, "backend_url": f"http://127.0.0.1:{server.getsockname()[1]}", "privacy": quiet}
    values["performance"] = {"sync_poll_sec": 100_000, "training_poll_sec": 100_000}
    settings = DeviceSettings.model_validate(values)
    first = build_device(settings, transport=FakeBackend().transport())
    first.interests.choose_sections(())
    first.reading.feed()
    first.close()
    device = build_device(settings)
    for step in ("first_sync", "sync"):
        monkeypatch.setattr(device, step, lambda: False)  # all that comes is the connection in question
    app = create_app(device=device)
    with TestClient(app, base_url="http://127.0.0.1:8401", headers=FOLLOWS_A_LINK) as client:
        reader = enter(client, app.state.page_key)
        for _ in range(ENDED):
            held, _ = server.accept()
            if reads:
                feed = device.reading.feed(refresh=True)
                assert reader.get("/").status_code == 200
                assert reader.get(StoryLinks(app.state.page_key).link(feed.items[0].card.id)).status_code == 200
                assert reader.get("/search?q=headline").status_code == 200
                assert [reader.get("/pulse").status_code for _ in range(10)] == [200] * 10
            held.settimeout(0.2)
            with pytest.raises(TimeoutError):
                held.recv(1)
            held.close()
        last, _ = server.accept()
        server.settimeout(1.0)
        with pytest.raises(TimeoutError):
            server.accept()
        last.close()
        server.close()
    assert not [thread.name for thread in threading.enumerate() if thread.name == "watch"]
    assert bool(device.library.history().entries) == reads
    device.close()
