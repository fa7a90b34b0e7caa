"""A browser without scripts in front of a device's pages."""

from __future__ import annotations

from urllib.parse import urlsplit

import httpx


def reader_browser(link: str) -> httpx.Client:
    """A client that has opened the link of a device, and asks as a browser does that follows links of its pages."""
    parts = urlsplit(link)
    home = f"{parts.scheme}://{parts.netloc}"
    says = {"origin": home, "sec-fetch-site": "same-origin", "sec-fetch-mode": "navigate"}
    browser = httpx.Client(base_url=home, timeout=30.0, follow_redirects=True, headers=says)
    browser.get(link).raise_for_status()
    return browser
