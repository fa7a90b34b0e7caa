"""Which people a description in the health section fits."""

from __future__ import annotations

import re

from newsroom.expressions import Verb
from newsroom.scene import Scene

_WOMEN = re.compile(r"^a mother|due in three weeks")
_MEN = re.compile(r"^a father|widower|postman|retired welder")


def _woman(_: Scene, who: str) -> bool | None:
    """Return whether a description fits only a woman (True) or only a man (False); None if it fits anybody."""
    if _WOMEN.search(who):
        return True
    return False if _MEN.search(who) else None


VERBS: dict[str, Verb] = {"woman": _woman}
