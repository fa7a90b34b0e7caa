"""Everything the server knows of a secure sum but the running sum itself: a plain value, JSON for a database row."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from device_app.wire.secagg import AdvertisedKeys, RevealedShares, SumTerms

ServerStage = Literal["keys", "shares", "masked", "agree", "unmask", "opened", "failed"]
STAGES: tuple[ServerStage, ...] = get_args(ServerStage)


class SumRecord(BaseModel):
    """The state of one secure sum.

    members maps a pseudonym to a number, keys a number to what it advertised. circle and degree draw the graph once U1
    is known. boxes: by receiver, then by sender. uploads: the hash of each masked vector that is in the running sum;
    the vectors themselves are nowhere. boxes and answers are erased when the sum ends.
    """

    model_config = ConfigDict(extra="forbid", ser_json_bytes="base64", val_json_bytes="base64")

    terms: SumTerms
    wanted_threshold: int | None = None
    stage: ServerStage = "keys"
    reason: str | None = None
    members: dict[str, int] = Field(default_factory=dict)
    keys: dict[int, AdvertisedKeys] = Field(default_factory=dict)
    circle: tuple[int, ...] = ()
    degree: int = 0
    threshold: int = 0
    boxes: dict[int, dict[int, bytes]] = Field(default_factory=dict)
    commitments: dict[int, bytes] = Field(default_factory=dict)
    shared_sha256: dict[int, str] = Field(default_factory=dict)
    uploads: dict[int, str] = Field(default_factory=dict)
    survivors: tuple[int, ...] = ()
    agreements: dict[int, bytes] = Field(default_factory=dict)
    answers: dict[int, RevealedShares] = Field(default_factory=dict)
