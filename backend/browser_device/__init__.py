"""Serves the browser's device, which `web/build_device.py` builds."""
