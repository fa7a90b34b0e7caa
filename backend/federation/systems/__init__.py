"""The systems this server can run, by name, and the one that each task of the command means."""

from __future__ import annotations

from backend.federation.systems.system import SystemSpec
from backend.federation.systems.uni_fedrec import UNI_FEDREC

SYSTEMS: dict[str, SystemSpec] = {UNI_FEDREC.name: UNI_FEDREC}
SYSTEM_OF_TASK: dict[str, str] = {"recall": UNI_FEDREC.name}
