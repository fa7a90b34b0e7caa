"""`none`: nothing is reported; every device gets the same default list and sorts it itself.

Formal guarantees: epsilon = 0 for what a request carries: no function of the reader's clicks is sent. That this device
asked at all, when, and from which network address is visible to the server, as with any request.
"""

from __future__ import annotations

from device_app.privacy.modes.mode import WORDS, ReportMode

NONE = ReportMode(
    name="none",
    title=WORDS("none_title"),
    paragraph=lambda book: WORDS("none_paragraph"),
    finds="nobody",
)
