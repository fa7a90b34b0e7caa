"""`broadcast`: recall on the device from the whole pool's codes; nothing is reported.

Formal guarantees: epsilon = 0 for recall: every device pulls the same compressed pool; which news are found is computed
here and told to nobody. What is asked for depends on the release, and on which days' codes were pulled before, never on
clicks.

Not covered: that and when this device pulls, and its address; and the text of a story that is opened and isn't here
yet: it is asked for among at least a hundred of the pool (`requests.seal_block`), which tells that one of these was
opened, and which it was if the server has put only one there that anybody would open.
"""

from __future__ import annotations

from device_app.privacy.modes.mode import WORDS, ReportMode

STRICTER_UP_TO = 50_000
"""Recommended as the stricter choice for pools of at most so many news (docs/decisions/020)."""

BROADCAST = ReportMode(
    name="broadcast",
    title=WORDS("broadcast_title"),
    paragraph=lambda book: WORDS("broadcast_paragraph"),
    finds="here",
    stricter_up_to=STRICTER_UP_TO,
)
