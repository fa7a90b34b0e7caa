"""The browser's device as this backend serves it: what `web/build_device.py` made, and how it is answered."""
