"""What the server knows of a secure sum as a whole: a small value, JSON for its database row."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict

from backend.federation.secagg.graph import MaskGraph
from backend.federation.secagg.parts import CohortSplit
from device_app.wire.secagg import SumTerms

ServerStage = Literal["keys", "shares", "complaints", "masked", "agree", "unmask", "opened", "failed"]
STAGES: tuple[ServerStage, ...] = get_args(ServerStage)
ENDED: tuple[ServerStage, ...] = ("opened", "failed")


class SumRecord(BaseModel):
    """The state of one secure sum but its messages (`messages`) and its running sum.

    members, degree and circle are the graph, and threshold is t, once stage keys is closed. It changes when a stage
    closes and at no message; all but two bytes a member of the sparse graph is of constant size. split: how the cohort
    is to be split when stage keys closes, and parts: into how many it was; the stage is then that of the slowest part.

    dropped: members who shared their keys and are out of the sum since stage complaints (`complaints`): they vanished
    there, or were left out. reason: why it failed; by_members: since too few of them went on, or one sent something
    false. liars: pseudonyms of those who are known to have lied (`complaints`, `unmask`). needs_all: false shares came,
    so stage unmask waits for every member's.
    """

    model_config = ConfigDict(extra="forbid", ser_json_bytes="base64", val_json_bytes="base64")

    terms: SumTerms
    wanted_threshold: int | None = None
    stage: ServerStage = "keys"
    reason: str | None = None
    by_members: bool = False
    liars: tuple[str, ...] = ()
    needs_all: bool = False
    members: int = 0
    degree: int = 0
    circle: bytes = b""
    threshold: int = 0
    dropped: tuple[int, ...] = ()
    split: CohortSplit | None = None
    parts: int = 0

    @property
    def graph(self) -> MaskGraph:
        """Who masks with whom, once stage keys is closed."""
        return MaskGraph(self.members, self.degree, self.circle)
