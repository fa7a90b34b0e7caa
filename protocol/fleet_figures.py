"""What a fleet of simulated readers measured, as a console shows it.

The process that simulates readers for a latency page prints one `MeasuredLatency` as JSON, and the server that started
it reads it. A demo's fleet passes its figures in a file.

Only a simulated fleet knows its readers' interests and why their devices stay out of a round. So these figures have no
message and no route: `ownfeed demo` names one file to both processes, the fleet replaces it as a whole, and the console
reads it. Neither a reader's device nor a server without such a file is involved.
"""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from protocol.private_files import write_file

LIMIT_BYTES = 1 << 20
ROUNDS_KEPT = 100
RELEASES_KEPT = 200
Name = Annotated[str, Field(max_length=80)]
Count = Annotated[int, Field(ge=0)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Milliseconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class MeasuredStage(BaseModel):
    """One stage over all pages. place: where the time was spent."""

    model_config = ConfigDict(frozen=True)

    place: Literal["device", "network", "server", "whole"]
    name: str = Field(max_length=32)
    p50_ms: Milliseconds
    p95_ms: Milliseconds


class MeasuredLatency(BaseModel):
    """The stages in order; the last covers the whole way from a report to a page."""

    model_config = ConfigDict(frozen=True)

    readers: int = Field(ge=1)
    pages: int = Field(ge=1)
    stages: tuple[MeasuredStage, ...] = Field(max_length=40)


class InterestPoint(BaseModel):
    """One measure under one release.

    It has the mean over the readers, and the mean difference from the first release, paired by reader, with its 95 %
    interval over readers.
    """

    model_config = ConfigDict(frozen=True)

    release: Name
    readers: Count
    value: Finite
    gain: Finite
    low: Finite
    high: Finite


class InterestCurve(BaseModel):
    """One measure for each release, starting with the first measured one.

    news: mean number of articles that a reader ranks.
    """

    model_config = ConfigDict(frozen=True)

    measure: Name
    news: Finite
    points: tuple[InterestPoint, ...]


class RoundOfFleet(BaseModel):
    """How one round went for the fleet.

    became: number of devices by outcome, either `sent` or the reason for not taking part.
    """

    model_config = ConfigDict(frozen=True)

    round: Name
    devices: Count
    became: Mapping[Name, Count]


class FleetFigures(BaseModel):
    """All figures of a fleet.

    began: when this fleet was started; ready: how many of its readers have read enough to take part in rounds. since:
    when it was first measured; None before.
    """

    model_config = ConfigDict(frozen=True)

    readers: Count
    began: datetime | None = None
    ready: Count = 0
    since: datetime | None = None
    curves: tuple[InterestCurve, ...] = ()
    rounds: tuple[RoundOfFleet, ...] = ()

    def round(self, name: str) -> RoundOfFleet | None:
        """Return a round by its id, or None if the fleet has no figures for it."""
        return next((each for each in self.rounds if each.round == name), None)


def read_fleet_figures(path: Path | None) -> FleetFigures | None:
    """Read the file; None if it is missing or invalid."""
    try:
        if path is None or path.stat().st_size > LIMIT_BYTES:
            return None
        return FleetFigures.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def write_fleet_figures(path: Path, figures: FleetFigures) -> None:
    """Replace the file atomically, readable by its owner only.

    The oldest rounds and releases are left out.
    """
    curves = [each.model_copy(update={"points": each.points[-RELEASES_KEPT:]}) for each in figures.curves]
    kept = figures.model_copy(update={"curves": tuple(curves), "rounds": figures.rounds[-ROUNDS_KEPT:]})
    write_file(path, kept.model_dump_json(indent=1))
