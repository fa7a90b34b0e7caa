"""What a long test does in `make test`, and what in `make qa`: fewer repetitions or cases here, all of them there.

Such a test has the mark `long_form`, by which `make qa` finds it.
"""

from __future__ import annotations

import os
from typing import TypeVar

VARIABLE = "OWNFEED_LONG_TESTS"
T = TypeVar("T")


def by_length(short: T, *, long: T) -> T:
    """Return `long` if OWNFEED_LONG_TESTS is set, as in `make qa`, or else `short`."""
    return long if os.environ.get(VARIABLE) else short
