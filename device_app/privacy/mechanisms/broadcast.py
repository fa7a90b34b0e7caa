"""Recall on the device from the whole pool's codes: nothing is reported."""

from __future__ import annotations

from dataclasses import dataclass

NAME = "broadcast"


@dataclass(frozen=True)
class RecalledHere:
    """Every device pulls the same compressed pool; which news are found is computed here and told to nobody.

    Formal guarantees: epsilon = 0 for recall: what is asked for depends on the release, and on which days' codes were
    pulled before, never on clicks.

    Not covered: that and when this device pulls, and its address; and the text of a story that is opened and isn't
    here yet: it is asked for among the stories of its publishing day (`returned.seal_block`), which tells that one of
    these was opened.
    """

    epsilon_per_report: float = 0.0

    def words(self) -> str:
        """The mechanism in one sentence for the reader."""
        return (
            "Nothing about you: this device keeps a compressed copy of the whole pool, the same for everybody, and "
            "looks for your news in it by itself."
        )
