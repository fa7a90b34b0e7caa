"""`none`: nothing is reported; every device gets the same default list and sorts it itself.

Formal guarantees: epsilon = 0 for what a request carries: no function of the reader's clicks is sent. That this device
asked at all, when, and from which network address is visible to the server, as with any request.
"""

from __future__ import annotations

from device_app.privacy.modes.mode import ReportMode

NONE = ReportMode(
    name="none",
    title="Off entirely",
    paragraph=lambda book: (
        "Nothing about you is sent. The feed is ranked here from the list every device gets: popular and "
        "recent news, in your order."
    ),
    finds="nobody",
)
