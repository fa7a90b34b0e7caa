"""The report modes. A new one is a file here and a line in `MODES`; settings and pages follow.

A mode whose reports have a new shape adds a member to the wire's union (`wire.recall.Report`) and a decoder to the
server's (`backend.recall.compose.DECODERS`) besides.
"""

from __future__ import annotations

from device_app.privacy.modes.auto import AUTO
from device_app.privacy.modes.basis_l1 import BASIS_L1
from device_app.privacy.modes.basis_laplace import BASIS_LAPLACE
from device_app.privacy.modes.broadcast import BROADCAST
from device_app.privacy.modes.code import CODE
from device_app.privacy.modes.direction import DIRECTION
from device_app.privacy.modes.mode import ReportMode
from device_app.privacy.modes.none import NONE
from device_app.privacy.modes.subset import SUBSET
from device_app.privacy.modes.topics import TOPICS

MODES: dict[str, ReportMode] = {
    mode.name: mode for mode in (CODE, AUTO, BROADCAST, NONE, TOPICS, SUBSET, DIRECTION, BASIS_L1, BASIS_LAPLACE)
}
"""By name, in the order in which the page offers them."""
