"""What an operator can start a round for: every system by its purpose, with its protection, what it costs a reader,
and, where the current release can't run it, why; and how far the backfill of what is missing is."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from backend.backfill import BackfillStage, BackfillTask
from backend.console.declared import SURVIVORS, sum_costs, upload_costs
from backend.errors import OwnfeedError
from backend.federation.protections.registry import resolve
from backend.federation.systems import SYSTEMS
from backend.releases.between_rounds import is_optional_ranker
from device_app.figures import number
from device_app.prose import Prose

WORDS = Prose("backend.console", "words.toml")

if TYPE_CHECKING:
    from backend.composition import Services

FEWEST, MANY = SURVIVORS[0], SURVIVORS[2]
"""Smallest cohorts for which the cost of a noisy sum is told."""


class WrittenChoice(BaseModel):
    """A system in purposes.toml. variant: shown behind the others."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    system: str
    title: str
    line: str
    paper: str | None = None
    variant: bool = False


class WrittenPurpose(BaseModel):
    """A purpose in purposes.toml."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    line: str
    choices: tuple[WrittenChoice, ...]


class WrittenPurposes(BaseModel):
    """All of purposes.toml; papers by their keys in it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    papers: dict[str, str]
    purposes: tuple[WrittenPurpose, ...]


@dataclass(frozen=True)
class RoundChoice:
    """A system as the page offers it, in sentences.

    refused: why no round of it can be opened now, or None. prepare: the ranker that a release needs first, where it can
    be prepared.
    """

    system: str
    title: str
    line: str
    paper: str | None
    variant: bool
    protection: str
    cost: str
    refused: str | None = None
    prepare: str | None = None


@dataclass(frozen=True)
class RoundPurpose:
    """Choices that serve one purpose."""

    title: str
    line: str
    choices: tuple[RoundChoice, ...]


@dataclass(frozen=True)
class BackfillLine:
    """One task of the backfill in words. done of total, where it has steps that are counted."""

    task: str
    title: str
    words: str
    stage: BackfillStage
    done: int
    total: int | None


@dataclass(frozen=True)
class BackfillShown:
    """All tasks since the start. state: changes with whatever the page says besides how far a task is; 'published' or
    'failed' when nothing is left to do, and empty where nothing ever was."""

    lines: tuple[BackfillLine, ...]
    words: str
    state: str

    def figures(self) -> dict[str, str]:
        """How far the tasks are that count their steps, by task."""
        return {line.task: WORDS("prepared_of", done=line.done, total=line.total) for line in self.lines if line.total}


def backfill_shown(tasks: Sequence[BackfillTask]) -> BackfillShown:
    """What the backfill has done and has still to do."""
    titles, stages = WORDS.table("backfill_tasks"), WORDS.table("backfill_stages")
    lines = tuple(
        BackfillLine(
            each.task,
            titles.get(each.task) or WORDS("backfill_ranker", ranker=each.task),
            each.trouble or stages[each.stage],
            each.stage,
            each.done,
            each.total,
        )
        for each in tasks
    )
    left = [each for each in tasks if each.is_under_way]
    failed = sum(each.stage == "failed" for each in tasks)
    if left:
        words = WORDS("backfill_goes_on", done=len(tasks) - len(left) - failed, total=len(tasks))
    elif failed:
        words = WORDS("backfill_failed", failed=failed, total=len(tasks))
    else:
        words = WORDS("backfill_done", total=len(tasks))
    state = f"{left[0].task} {left[0].stage}" if left else "failed" if failed else "published" if tasks else ""
    return BackfillShown(lines, words, state)


@cache
def written() -> WrittenPurposes:
    """purposes.toml."""
    return WrittenPurposes.model_validate(
        tomllib.loads(files(__package__).joinpath("purposes.toml").read_text("utf-8"))
    )


def purposes(services: Services) -> list[RoundPurpose]:
    """All of them, as the current release can run them."""
    told, costs = written(), cost_words(services)
    return [
        RoundPurpose(
            each.title,
            each.line,
            tuple(_choice(services, one, one.paper and told.papers[one.paper], costs) for one in each.choices),
        )
        for each in told.purposes
    ]


def _choice(services: Services, told: WrittenChoice, paper: str | None, costs: dict[str, str]) -> RoundChoice:
    spec = SYSTEMS[told.system]
    refused = prepare = None
    try:
        services.coordinator.check_release(told.system)
    except OwnfeedError as why:
        if spec.model is not None and is_optional_ranker(spec.model):
            refused, prepare = WORDS("no_model", model=spec.model), spec.model
        else:
            refused = why.detail
    return RoundChoice(
        system=told.system,
        title=told.title,
        line=told.line,
        paper=paper,
        variant=told.variant,
        protection=resolve(spec.protection).describe(number),
        cost=costs[told.system],
        refused=refused,
        prepare=prepare,
    )


def cost_words(services: Services) -> dict[str, str]:
    """What one round of each system costs a reader whose device takes part, in a few words."""
    uploads = {cost.system: cost for cost in upload_costs(services)}
    words = {}
    for sums in sum_costs():
        if sums.epsilons:
            few, many = (number(sums.epsilons[SURVIVORS.index(each)]) for each in (FEWEST, MANY))
            words[sums.system] = WORDS("costs_by_size", few=few, fewest=FEWEST, much=many, many=MANY, delta=sums.delta)
        else:
            words[sums.system] = WORDS("costs_unbounded")
    for name, spec in SYSTEMS.items():
        upload, local = uploads.get(name), resolve(spec.protection).account(1, None).local
        if upload is not None:
            each = number(upload.coordinate)
            words[name] = WORDS(
                "costs_upload", upload=number(upload.upload), coordinate=each, coordinates=upload.coordinates
            )
        elif local is not None:
            words[name] = WORDS("costs_number", coordinate=number(local.coordinate))
    return words
