"""Faults of a device: a kill between click and commit, an unreachable backend, a modified release."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from backend.releases.publish import publish_changes
from device_app.device import Device
from device_app.errors import BackendUnreachable, ReleaseRefused
from tests.doubles.new_page import new_page
from tests.doubles.small_world import SmallWorld, free_port

ROOT = Path(__file__).parents[2]
KILLED_BEFORE_COMMIT = """
import os, signal, sys
from device_app.composition import build_device
from device_app.settings import DeviceSettings
from device_app.store.database import Database

device = build_device(DeviceSettings(profile="killed", data_dir=sys.argv[1], backend_url=sys.argv[2]))
run = Database._run

def kill_at_commit(self, sql, values=()):
    if sql == "COMMIT":
        print("reached", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    return run(self, sql, values)

Database._run = kill_at_commit
device.reading.open(sys.argv[3], sys.argv[4])
"""


def news_of(device: Device, topic: str) -> list[str]:
    return [card.id for listed in device.reading.explore() for card in listed.cards if card.topic == topic]


def test_device_killed_during_a_click_stores_it_fully_or_not_at_all(world: SmallWorld) -> None:
    device = world.device("killed")
    feed = device.reading.feed()
    first, second = feed.items[0].card.id, feed.items[1].card.id
    device.reading.open(first, feed.feed_id)
    device.close()
    world.devices.remove(device)

    done = subprocess.run(
        [sys.executable, "-c", KILLED_BEFORE_COMMIT, str(world.folder), world.url, second, feed.feed_id],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "reached\n"), done.stderr

    again = world.device("killed")
    assert [entry.news_id for entry in again.library.history().entries] == [first]
    with closing(sqlite3.connect(again.settings.home / "device.sqlite")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert len(again.reading.feed().items) == 30
    again.reading.open(second, feed.feed_id)
    assert [entry.news_id for entry in again.library.history().entries] == [second, first]


def test_altered_graph_or_weights_are_refused_and_the_old_release_stays(world: SmallWorld) -> None:
    device = world.device("careful")
    device.sync()
    for news_id in news_of(device, "space")[:5]:
        device.reading.open(news_id)
    assert world.services is not None
    assert world.ears is not None
    store = world.services.releases
    previous = store.require_current()
    weights = {name: value + np.float32(0.001) for name, value in store.weights(previous, "recall").items()}
    published = publish_changes(store, previous, {"recall": weights}, "for a test")
    blob = published.models["recall"].weights
    assert blob is not None
    path = f"/v1/blobs/{blob.sha256}"

    def flipped(asked: str, body: bytes) -> bytes:
        return body[:-1] + bytes([body[-1] ^ 1]) if asked == path else body

    world.ears.tamper = flipped
    try:
        with pytest.raises(ReleaseRefused, match="its hash differs from the declared one"):
            device.sync()
    finally:
        world.ears.tamper = None
    assert device.release().manifest == previous  # type: ignore[union-attr]
    assert new_page(device).release == previous.release
    assert [trouble.loop for trouble in device.status().alerts] == ["sync"]
    again = world.device("careful-too")
    assert again.sync()
    assert device.sync()
    assert device.release().manifest == published  # type: ignore[union-attr]
    assert device.status().alerts == ()
    assert new_page(device).release == published.release


def test_device_shows_the_last_feed_with_a_notice_while_offline(idle_world: SmallWorld) -> None:
    assert idle_world.url, "the backend of this file has a known address by now"
    device = idle_world.device("offline")
    device.sync()
    for news_id in news_of(device, "film")[:5]:
        device.reading.open(news_id)
    last = device.reading.feed()
    while device.prefetch_step():
        pass
    device.close()
    idle_world.devices.remove(device)

    away = idle_world.device("offline", backend_url=f"http://127.0.0.1:{free_port()}")
    feed = new_page(away)
    assert feed.mode == "offline"
    assert [item.card.id for item in feed.items] == [item.card.id for item in last.items]
    assert "Can't reach the publisher." in (feed.notice or "")
    assert "Showing your page from " in (feed.notice or "")
    article = away.reading.open(feed.items[4].card.id, feed.feed_id)
    assert article.paragraphs[0] == f"First paragraph of {article.card.id}."
    with pytest.raises(BackendUnreachable):
        away.sync()
    assert away.status().online is False

    back = idle_world.device("offline", backend_url=idle_world.url)
    assert new_page(back).mode == "personal"
    assert back.library.history().entries[0].news_id == article.card.id, "what was read offline counts"
