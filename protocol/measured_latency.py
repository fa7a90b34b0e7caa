"""What simulated readers measured from a report to a page, as a console shows it.

The process that simulates the readers prints one `MeasuredLatency` as JSON, and the server that started it reads it.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Milliseconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class MeasuredStage(BaseModel):
    """One stage over all pages. place: where the time was spent."""

    model_config = ConfigDict(frozen=True)

    place: Literal["device", "network", "server", "whole"]
    name: str = Field(max_length=32)
    p50_ms: Milliseconds
    p95_ms: Milliseconds


class MeasuredLatency(BaseModel):
    """The stages in their order; the last is the whole way, from a report to a page."""

    model_config = ConfigDict(frozen=True)

    readers: int = Field(ge=1)
    pages: int = Field(ge=1)
    stages: tuple[MeasuredStage, ...] = Field(max_length=40)
