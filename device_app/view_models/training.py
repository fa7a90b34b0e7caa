"""View model of the training page."""

from dataclasses import dataclass
from datetime import datetime

from device_app.errors import DeviceError
from device_app.privacy.accounting.ledger import Ledger
from device_app.ranking.groups import OwnGroup
from device_app.settings import PrivacySettings
from device_app.store.participations import Participation
from device_app.stores import DeviceStores
from device_app.sync.installed_release import Release
from device_app.training.tasks import TASKS
from device_app.training.trainer import Trainer
from device_app.view_models.privacy import AloneView, SumCost, alone_view, sum_cost
from device_app.view_models.traffic import LEFT_BEFORE_ERASE
from protocol.protections import LOCAL_NOISE, WITH_NEWS_MODEL, LocalLaplace
from protocol.rounds import RoundStatus

WAITING = (None, "looking")


@dataclass(frozen=True)
class RoundFacts:
    """One round this device took part in.

    detail says why it was declined or failed; cost is that of a noisy sum. counts: whether it was a group count rather
    than training.
    """

    round: str
    system: str
    release: str
    state: str
    at: datetime
    sent_bytes: int
    epsilon: float
    detail: str | None = None
    cost: SumCost | None = None
    counts: bool = False


@dataclass(frozen=True)
class UpdateFacts:
    """An update of one model: its number of coordinates, and its total cost in pure epsilon.

    The cost is that of the noise of the system that trains it; noise and cost are None if it is trained only in secure
    sums. default: whether the model ranks the feed unless the reader chose another. epsilon_beside: cost of each
    coordinate of a news model that a round may train in addition; None if there is none.
    """

    model: str
    default: bool
    coordinates: int
    noise: LocalLaplace | None
    epsilon_per_upload: float | None
    epsilon_beside: float | None = None


@dataclass(frozen=True)
class TrainingView:
    """The whole training page.

    why_not says in a sentence why this device wouldn't train now, or is None. round: its status at seen_at. gone: it
    was running then, but no longer at the last poll (looked_at). stage: what this device is doing for it, or the state
    of its participation; None if it doesn't take part. updates: what this device could send, the default ranker first;
    the reader's settings decide what it would send. counts: whether the round is a group count.
    erased: whether earlier rounds were erased here with everything else.
    """

    settings: PrivacySettings
    paused: bool
    why_not: str | None
    round: RoundStatus | None
    stage: str | None
    updates: tuple[UpdateFacts, ...]
    contributions: tuple[RoundFacts, ...]
    release: str | None
    groups: tuple[OwnGroup, ...] = ()
    alone: AloneView | None = None
    counts: bool = False
    erased: bool = False
    seen_at: datetime | None = None
    looked_at: datetime | None = None
    gone: bool = False


def training_view(
    trainer: Trainer,
    stores: DeviceStores,
    release: Release | None,
    privacy: PrivacySettings,
    ledger: Ledger,
    *,
    paused: bool,
) -> TrainingView:
    seen, kept = trainer.seen, stores.participations.list()
    status = seen.status
    sums = ledger.repository.of_sums()
    return TrainingView(
        settings=privacy,
        paused=paused,
        why_not=trainer.why_not(),
        round=status,
        stage=_stage(
            trainer.stage, next((_words(mine) for mine in kept if status and mine.round == status.round), None)
        ),
        updates=() if release is None else update_facts(release),
        contributions=tuple(
            RoundFacts(
                round=mine.round,
                system=mine.system,
                release=mine.release,
                state=mine.state,
                at=mine.changed_at,
                sent_bytes=mine.sent_bytes,
                epsilon=mine.epsilon,
                detail=mine.detail,
                cost=sum_cost(sums[mine.round]) if mine.round in sums else None,
                counts=_counts(mine.task),
            )
            for mine in kept
        ),
        release=None if release is None else release.id,
        groups=_groups(trainer),
        alone=alone_view(ledger),
        counts=status is not None and _counts(status.task),
        erased=stores.preferences.get(LEFT_BEFORE_ERASE) is not None,
        seen_at=seen.received_at,
        looked_at=seen.looked_at,
        gone=seen.gone,
    )


def _counts(task: str | None) -> bool:
    return task in TASKS and TASKS[task].channel == "counts"


def _groups(trainer: Trainer) -> tuple[OwnGroup, ...]:
    """Return the reader's groups; none if the release is damaged."""
    try:
        return trainer.own_groups()
    except DeviceError:
        return ()


def _stage(now: str | None, state: str | None) -> str | None:
    """Return what the trainer does now; if it only waits, the known state of the participation."""
    return state if state is not None and now in WAITING else now


def _words(mine: Participation) -> str:
    """Return the state of a participation.

    In secure aggregation, it is what was sent and what the device waits for.
    """
    return mine.detail if mine.state == "summing" and mine.detail else mine.state


def update_facts(release: Release) -> tuple[UpdateFacts, ...]:
    """Return the cost of an update of each model under local noise, the default ranker first.

    Empty if the release is damaged. A round states its own cost beforehand. Private parameters, which stay on the
    device, are neither in a release nor in an update.
    """
    manifest = release.manifest
    found = []
    for model in manifest.models:
        if not release.has_graph(model, "gradient"):
            continue
        try:
            weights = release.weights(model)
        except DeviceError:
            return ()
        coordinates = sum(int(value.size) for value in weights.values())
        default, noise = model == manifest.default_ranker, LOCAL_NOISE.get(model)
        price = None if noise is None else noise.epsilon_per_upload(coordinates)
        beside = noise.epsilon_per_coordinate() if noise is not None and model in WITH_NEWS_MODEL else None
        found.append(UpdateFacts(model, default, coordinates, noise, price, beside))
    return tuple(sorted(found, key=lambda one: (not one.default, one.model)))
