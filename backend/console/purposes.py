"""The rounds an operator can start: every system by purpose, with its protection and its cost to a reader.

A system that the current release can't run has the reason. Also shows the progress of the backfill.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from backend.console.declared import SURVIVORS, declared_systems, sum_costs, upload_costs
from backend.errors import OwnfeedError
from backend.federation.protections.registry import resolve
from backend.federation.systems import COMPOSED, SYSTEMS, full_name
from backend.federation.systems.composition import AGGREGATIONS, PROTECTIONS
from backend.releases.between_rounds import is_optional_ranker
from backend.setup.backfill import BackfillStage, BackfillTask
from protocol.formatting import number
from protocol.text_catalogue import TextCatalogue

WORDS = TextCatalogue("backend.console", "words.toml")

if TYPE_CHECKING:
    from backend.composition import Services

FEWEST, MANY = SURVIVORS[0], SURVIVORS[2]
"""Smallest cohorts for which the cost of a noisy sum is shown."""


class WrittenChoice(BaseModel):
    """A system or preset in purposes.toml. variant: shown after the others."""

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
    """The parsed purposes.toml. papers: citation by the key that choices use."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    papers: dict[str, str]
    purposes: tuple[WrittenPurpose, ...]


@dataclass(frozen=True)
class FormChoice:
    """One protection of a system as the page offers it: what devices do, its cost, and its aggregations."""

    name: str
    protection: str
    cost: str
    aggregations: tuple[str, ...]


@dataclass(frozen=True)
class RoundChoice:
    """A system or preset as the page offers it.

    protection, cost: of the default form. forms: all forms, the default first; none for a preset, which has only one.
    impossible: combinations that aren't supported, with reasons. refused: why no round of it can be opened now, or
    None. prepare: the ranker that has to be prepared first, if any.
    """

    system: str
    title: str
    line: str
    paper: str | None
    variant: bool
    protection: str
    cost: str
    forms: tuple[FormChoice, ...] = ()
    impossible: tuple[str, ...] = ()
    refused: str | None = None
    prepare: str | None = None


@dataclass(frozen=True)
class RoundPurpose:
    """Choices for one purpose."""

    title: str
    line: str
    choices: tuple[RoundChoice, ...]


@dataclass(frozen=True)
class BackfillLine:
    """One task of the backfill as text. done, total: of its steps, if they are counted."""

    task: str
    title: str
    message: str
    stage: BackfillStage
    done: int
    total: int | None


@dataclass(frozen=True)
class BackfillShown:
    """All tasks since the start.

    state: changes whenever the page must be reloaded, not with a task's progress; 'published' or 'failed' when nothing
    is left to do, and empty if there never was a task.
    """

    lines: tuple[BackfillLine, ...]
    message: str
    state: str

    def figures(self) -> dict[str, str]:
        """The progress of the tasks that count their steps, by task."""
        return {line.task: WORDS("prepared_of", done=line.done, total=line.total) for line in self.lines if line.total}


def backfill_shown(tasks: Sequence[BackfillTask]) -> BackfillShown:
    """What the backfill has done and still has to do."""
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
        message = WORDS("backfill_goes_on", done=len(tasks) - len(left) - failed, total=len(tasks))
    elif failed:
        message = WORDS("backfill_failed", failed=failed, total=len(tasks))
    else:
        message = WORDS("backfill_done", total=len(tasks))
    state = f"{left[0].task} {left[0].stage}" if left else "failed" if failed else "published" if tasks else ""
    return BackfillShown(lines, message, state)


@cache
def written() -> WrittenPurposes:
    """The contents of purposes.toml."""
    return WrittenPurposes.model_validate(
        tomllib.loads(files(__package__).joinpath("purposes.toml").read_text("utf-8"))
    )


def purposes(services: Services) -> list[RoundPurpose]:
    """All purposes, with what the current release can run."""
    texts, costs = written(), cost_words(services)
    return [
        RoundPurpose(
            each.title,
            each.line,
            tuple(_choice(services, one, one.paper and texts.papers[one.paper], costs) for one in each.choices),
        )
        for each in texts.purposes
    ]


def _choice(services: Services, written: WrittenChoice, paper: str | None, costs: dict[str, str]) -> RoundChoice:
    spec = COMPOSED[full_name(written.system)]
    refused = prepare = None
    try:
        services.coordinator.check_release(spec.name)
    except OwnfeedError as why:
        if spec.model is not None and is_optional_ranker(spec.model):
            refused, prepare = WORDS("no_model", model=spec.model), spec.model
        else:
            refused = why.detail
    return RoundChoice(
        system=written.system,
        title=written.title,
        line=written.line,
        paper=paper,
        variant=written.variant,
        protection=resolve(spec.protection).describe(number),
        cost=costs[spec.name],
        forms=_forms(written.system, costs),
        impossible=impossible(written.system),
        refused=refused,
        prepare=prepare,
    )


def _forms(name: str, costs: dict[str, str]) -> tuple[FormChoice, ...]:
    system = SYSTEMS.get(name)
    if system is None:
        return ()
    return tuple(
        FormChoice(
            protection,
            resolve(form.protection).describe(number),
            costs[system.compose(protection).name],
            system.aggregations(protection),
        )
        for protection, form in system.forms.items()
    )


def impossible(name: str) -> tuple[str, ...]:
    """The combinations that a system doesn't support, each reason once; none for a preset."""
    system = SYSTEMS.get(name)
    reasons: dict[str, list[str]] = {}
    for protection in PROTECTIONS if system else ():
        assert system is not None
        for each in (None, *AGGREGATIONS) if protection in system.forms else (None,):
            if reason := system.refusal(protection, each):
                reasons.setdefault(reason, []).append(protection if each is None else f"{protection} with {each}")
    return tuple(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())


def cost_words(services: Services) -> dict[str, str]:
    """By system, a short text on what one round costs a reader whose device takes part."""
    uploads = {cost.system: cost for cost in upload_costs(services)}
    words = {}
    for sums in sum_costs():
        if sums.epsilons:
            few, many = (number(sums.epsilons[SURVIVORS.index(each)]) for each in (FEWEST, MANY))
            words[sums.system] = WORDS("costs_by_size", few=few, fewest=FEWEST, much=many, many=MANY, delta=sums.delta)
        else:
            words[sums.system] = WORDS("costs_unbounded")
    for spec in declared_systems():
        name = spec.name
        upload, local = uploads.get(name), resolve(spec.protection).account(1, None).local
        if upload is not None:
            each = number(upload.coordinate)
            words[name] = WORDS(
                "costs_upload", upload=number(upload.upload), coordinate=each, coordinates=upload.coordinates
            )
        elif local is not None:
            words[name] = WORDS("costs_number", coordinate=number(local.coordinate))
    return words
