"""A page as a reader gets it once the background has asked for candidates."""

from __future__ import annotations

from contextlib import suppress

from device_app.device import Device
from device_app.errors import DeviceError
from device_app.feed.item import Feed


def new_page(device: Device) -> Feed:
    """Let the background ask for candidates, then press "New page"."""
    with suppress(DeviceError):  # which the page says
        if not device.reading.has_list():
            device.first_sync()
        device.recall_step()
    return device.reading.feed(refresh=True)
