"""Pages of the device's database overwritten: the device says what is broken, at the start and on its pages."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from device_app.app import create_app
from device_app.composition import build_device
from device_app.errors import StoreBroken
from device_app.settings import DeviceSettings
from tests.doubles.backend import FakeBackend
from tests.doubles.pages_reader import FOLLOWS_A_LINK, HOME, enter

PAGE_BYTES = 4_096


def damaged(settings: DeviceSettings, seed: int) -> None:
    """Half of the pages after the first hold random bytes."""
    content, rng = bytearray(settings.database.read_bytes()), random.Random(seed)
    for start in range(PAGE_BYTES, len(content), PAGE_BYTES):
        if rng.random() < 0.5:
            content[start : start + PAGE_BYTES] = rng.randbytes(PAGE_BYTES)
    settings.database.write_bytes(content)


@pytest.mark.parametrize("seed", range(3))
def test_damage_is_named_at_the_start_and_shown_on_every_page(tmp_path: Path, seed: int) -> None:
    settings = DeviceSettings(data_dir=tmp_path)
    device = build_device(settings, transport=FakeBackend().transport())
    device.sync()
    device.open(device.feed().items[0].card.id)
    device.close()
    served = build_device(settings, transport=FakeBackend().transport())
    app = create_app(device=served)
    reader = TestClient(app, base_url=HOME, headers=FOLLOWS_A_LINK)
    enter(reader, app.state.page_key)
    damaged(settings, seed)
    answers = {path: reader.get(path) for path in ("/explore", "/privacy", "/interests/history", "/privacy/export")}
    assert {answer.status_code for answer in answers.values()} <= {200, 503}
    assert any("malformed" in answer.text for answer in answers.values())
    served.close()
    with pytest.raises(StoreBroken, match=r"device\.sqlite can.t be used"):
        create_app(settings)
    with pytest.raises(StoreBroken, match=r"device\.sqlite can.t be used"):
        create_app(settings)
