"""The rounds an operator can start: every system by purpose, with its protection and its cost to a reader.

A system that the current release can't run has the reason. Also shows the progress of the backfill.

Costs are what devices may reveal about their readers under the current release, in epsilon.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from backend.errors import OwnfeedError
from backend.federation.errors import RoundImpossible
from backend.federation.protections.registry import resolve
from backend.federation.rounds.opening import COHORT_DEFAULT, MINIMUM_DEFAULT, need_of
from backend.federation.strategies.strategy import ChecksCohort, HasExtraTensors
from backend.federation.systems import COMPOSED, PRESETS, STEPS, SYSTEMS, full_name
from backend.federation.systems.composition import AGGREGATIONS, PROTECTIONS, SystemSpec
from backend.releases.between_rounds import is_optional_ranker
from backend.setup.backfill import BackfillStage, BackfillTask
from protocol.concentrated import epsilon_of
from protocol.formatting import number
from protocol.releases import RecallProtocol
from protocol.text_catalogue import TextCatalogue

if TYPE_CHECKING:
    from backend.composition import Services


SURVIVORS = (10, 30, 60, 200)
"""Cohort sizes for which the cost of a noisy sum is shown."""
COORDINATES = 1_000_000
"""More than any update has, so that the shown cost is an upper bound."""


@dataclass(frozen=True)
class ReportCost:
    """Pure epsilon of Uni-FedRec's report, by the Laplace mechanism: 2 delta / lambda per score, times B, times
    C_max."""

    score: float
    channel: float
    session: float


@dataclass(frozen=True)
class UploadCost:
    """Pure epsilon of one training upload of a system."""

    system: str
    clip: float
    scale: float
    coordinates: int
    coordinate: float
    upload: float


@dataclass(frozen=True)
class DeclaredSumCost:
    """Cost of an opened sum to a device in it, for each of SURVIVORS; epsilons is empty if the sum is exact."""

    system: str
    epsilons: tuple[float, ...]
    delta: float


def declared_systems() -> list[SystemSpec]:
    """Every system under each of its protections, every preset and every step; aggregation doesn't affect the cost."""
    composed = [system.compose(protection) for system in SYSTEMS.values() for protection in system.forms]
    return [*composed, *PRESETS.values(), *STEPS.values()]


def report_cost(recall: RecallProtocol) -> ReportCost:
    """The cost of a new report; infinite without noise.

    Formal guarantees: each score is clipped to [-delta, delta], so changing all clicks moves it by at most 2 delta, and
    gets independent Laplace(lambda) noise: 2 delta / lambda pure epsilon, adding up over all scores of a session. The
    number of channels and the clicks in each have no noise and are not covered.
    """
    score = 2 * recall.score_clip / recall.score_noise if recall.score_noise > 0 else math.inf
    return ReportCost(score, score * recall.basis_size, score * recall.basis_size * recall.channels_limit)


def upload_costs(services: Services) -> list[UploadCost]:
    """The cost of an upload for every system with local noise that the current release can train."""
    manifest = services.releases.current_manifest()
    costs = []
    for spec in declared_systems():
        if manifest is None or spec.model not in manifest.models or resolve(spec.protection).summed:
            continue
        strategy = spec.strategy
        besides = strategy.numbers_besides(services.settings.data_dir) if isinstance(strategy, HasExtraTensors) else 0
        if besides is None:
            continue
        coordinates = besides + sum(array.size for array in services.releases.weights(manifest, spec.model).values())
        local = resolve(spec.protection).account(coordinates, None).local
        if local is not None:
            costs.append(UploadCost(spec.name, local.clip, local.scale, coordinates, local.coordinate, local.upload))
    return costs


def sum_costs() -> list[DeclaredSumCost]:
    """The cost of every system whose updates are masked.

    Formal guarantees: the opened sum contains each survivor's share of discrete Gaussian noise. The cost is that of the
    whole vector in zero-concentrated differential privacy, converted to an epsilon at delta (`SecureSum.epsilon`). The
    vector's number of coordinates changes it by less than the digits shown. An exact sum has no epsilon.
    """
    costs = []
    for spec in declared_systems():
        protection = resolve(spec.protection)
        if protection.delta is not None:
            rhos = [protection.account(COORDINATES, survivors).rho for survivors in SURVIVORS]
            epsilons = tuple(epsilon_of(rho, protection.delta) for rho in rhos if rho is not None)
            costs.append(DeclaredSumCost(spec.name, epsilons, protection.delta))
    return costs


WORDS = TextCatalogue("backend.console", "words.toml")


FEWEST, MANY = SURVIVORS[0], SURVIVORS[2]
"""Smallest cohorts for which the cost of a noisy sum is shown."""


SECONDS_DEFAULT = 60


class WrittenChoice(BaseModel):
    """A system or preset in purposes.toml.

    variant: shown after the others. differs: the main differences from the paper, and why. seconds: the usual deadline
    of its rounds, in which 60 devices on one machine of two cores send their updates.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    system: str
    title: str
    line: str
    paper: str | None = None
    variant: bool = False
    differs: str | None = None
    seconds: int = SECONDS_DEFAULT


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

    starts: what the form starts. instead: why that isn't the usual form, or None. protection, cost, needs: those of
    `starts`. forms: all forms, the default first; none for a preset, which has only one. impossible: combinations that
    aren't supported, with reasons. refused: why no round of it can be opened now, or None. prepare: the ranker that has
    to be prepared first, if any. differs: the main differences from the paper, and why. seconds: usual deadline.
    """

    system: str
    title: str
    line: str
    paper: str | None
    variant: bool
    protection: str
    cost: str
    needs: str
    seconds: int
    starts: str
    forms: tuple[FormChoice, ...] = ()
    impossible: tuple[str, ...] = ()
    refused: str | None = None
    prepare: str | None = None
    instead: str | None = None
    differs: str | None = None


@dataclass(frozen=True)
class RoundPurpose:
    title: str
    line: str
    choices: tuple[RoundChoice, ...]


@dataclass(frozen=True)
class BackfillLine:
    """One task of the backfill as text. done, total: its steps, if they are counted."""

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
    """Return what the backfill has done and still has to do."""
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


def usual_seconds(system: str) -> float:
    """The usual deadline of a round of this system, in any form."""
    name = system.partition("/")[0]
    choices = (each for purpose in written().purposes for each in purpose.choices)
    return float(next((each.seconds for each in choices if each.system == name), SECONDS_DEFAULT))


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


@lru_cache(maxsize=64)
def startable(name: str, cohort: int) -> tuple[str, str | None]:
    """The form of a system that a cohort of this size can run, and a text on why it isn't the usual one, or None.

    The first form whose strategy accepts the cohort; the usual one where none does.
    """
    usual = COMPOSED[full_name(name)]
    refusal = _cohort_refusal(usual, cohort)
    for protection in SYSTEMS[name].forms if refusal and name in SYSTEMS else ():
        assert refusal is not None
        if _cohort_refusal(SYSTEMS[name].compose(protection), cohort) is None:
            return f"{name}/{protection}", WORDS(
                "instead", form=protection, usual=usual.name.split("/")[1], cohort=cohort, enough=refusal.limit or ""
            )
    return name, None


def is_unprepared(services: Services, spec: SystemSpec) -> bool:
    """Whether the system trains a news model besides its ranker that this server hasn't prepared yet."""
    strategy = spec.strategy
    return isinstance(strategy, HasExtraTensors) and strategy.numbers_besides(services.settings.data_dir) is None


def _cohort_refusal(spec: SystemSpec, cohort: int) -> RoundImpossible | None:
    try:
        if isinstance(spec.strategy, ChecksCohort):
            spec.strategy.check_cohort(spec, cohort)
    except RoundImpossible as refusal:
        return refusal
    return None


def _choice(services: Services, written: WrittenChoice, paper: str | None, costs: dict[str, str]) -> RoundChoice:
    # With more devices than the form's usual cohort, the operator can ask for as many: the usual form then stays.
    starts, instead = startable(written.system, max(COHORT_DEFAULT, services.coordinator.polls.devices()))
    spec = COMPOSED[full_name(starts)]
    refused = prepare = None
    try:
        services.coordinator.check_release(spec.name)
    except OwnfeedError as why:
        if spec.model is not None and is_optional_ranker(spec.model):
            refused, prepare = WORDS("no_model", model=spec.model), spec.model
        else:
            refused = why.detail
    if refused is None and is_unprepared(services, spec):
        refused, prepare = WORDS("no_news_model"), spec.model
    return RoundChoice(
        system=written.system,
        title=written.title,
        line=written.line,
        paper=paper,
        variant=written.variant,
        protection=resolve(spec.protection).describe(number),
        cost=costs[spec.name],
        needs=needs_message(spec),
        seconds=written.seconds,
        forms=_forms(written.system, costs),
        impossible=impossible(written.system),
        refused=refused,
        prepare=prepare,
        starts=starts,
        instead=instead,
        differs=written.differs,
    )


def needs_message(spec: SystemSpec, cohort: int = COHORT_DEFAULT, minimum: int = MINIMUM_DEFAULT) -> str:
    """A text on how many updates a round needs if its whole cohort joins, by its protection and the minimum."""
    need = need_of(spec, cohort, minimum)
    if need.groups:
        return WORDS("needs_groups", needed=need.updates, groups=need.groups, cohort=cohort)
    if resolve(spec.protection).summed:
        return WORDS("needs_sum", needed=need.updates, cohort=cohort)
    return WORDS("needs_updates", needed=need.updates)


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
