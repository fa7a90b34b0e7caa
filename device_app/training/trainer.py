"""Takes part in rounds: one step looks for a round and, if all agrees, computes, protects and hands in one update.

A payload is in the outbox, and its cost in the ledger, in one transaction before its first byte leaves. So a crash at
any point costs at most once, and what is sent again is the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Literal

import numpy as np

from device_app.errors import (
    AnswerMalformed,
    BackendRefused,
    BackendUnreachable,
    DeviceError,
    NoRelease,
    NotEligible,
    ReleaseRefused,
)
from device_app.privacy.budget import Ledger
from device_app.privacy.clipping import clip_elementwise
from device_app.privacy.marked import mark
from device_app.privacy.noise import NoiseSource
from device_app.privacy.presence import seal_check_in
from device_app.privacy.secagg import Contribution
from device_app.privacy.shared import shared_part
from device_app.privacy.summed import clip_norm, contribute
from device_app.privacy.updates import LaplaceProtection, reseal
from device_app.ranking.features import FEATURES
from device_app.ranking.session import shared_session
from device_app.store.database import Database
from device_app.store.outbox import Outbox, Parcel
from device_app.store.participations import Participation, Participations
from device_app.store.private_parameters import PrivateParameters
from device_app.sync.release import Release
from device_app.training.eligibility import Readiness, Terms, check_clicks, check_ready
from device_app.training.gradients import GradientFn, OnnxGradients, Params, no_gradients
from device_app.training.participant import (
    AskForPlace,
    AskIfJoined,
    Compute,
    Gather,
    HandIn,
    JoinSum,
    LookAtRound,
    Outcome,
    Reply,
    StateTerms,
    Wish,
    may_pass,
    participate,
)
from device_app.training.private_step import private_gradients, stepped
from device_app.training.reading import Reading
from device_app.training.samples import NO_SAMPLES, ReaderSamples, SampleSource
from device_app.training.summing import Summing
from device_app.training.tasks import TASKS
from device_app.training.tasks.task import Given, Shapes, TaskKind, Update
from device_app.training.views.local import LocalViews
from device_app.uplink.server import Uplink, upload_path
from device_app.wire.protections import SUMMED, LocalLaplace
from device_app.wire.releases import BlobRef, ModelEntry
from device_app.wire.rounds import MATERIALS_LIMIT_BYTES, RoundManifest, RoundOffer, RoundStatus, UploadReceipt
from device_app.wire.union import NEWS, UnionMarks

RETRY_SEC = 10.0
RETRY_LIMIT_SEC = 300.0
GRADIENTS = ("gradient", "table_gradient")
"""Purposes of graphs that give gradients."""

Stage = Literal["sending again", "looking", "gathering", "checking in", "computing", "protecting", "sending", "summing"]
Draw = Callable[[str], np.random.Generator]
"""Round id -> the generator that draws its samples: fresh on a device, seeded in a simulation."""


def fresh_draw(_: str) -> np.random.Generator:
    """Seeded by the operating system: which negatives a device draws is nobody else's knowledge."""
    return np.random.default_rng()


class Trainer:
    """A device's training. `step` is called from one thread; the attributes may be read from any.

    Args:
        release: the release in use. Raises NoRelease on a device that was never synced.
        reading: the reader's feeds and clicks.
        materials: fetches what a round's task needs besides the release.
        database: for the transaction that ledger, outbox and participations share.
        ledger: budget and, in its settings, what the reader accepts.
        noise: cryptographic on a device.
        draw: where samples are drawn from.
        paused: whether the reader has paused training.
        idle_sec: how long the reader must have read nothing.
        threads: of ONNX Runtime.
        views: of this device, for tasks in which they meet.
    """

    def __init__(
        self,
        *,
        release: Callable[[], Release],
        reading: Reading,
        database: Database,
        outbox: Outbox,
        participations: Participations,
        ledger: Ledger,
        uplink: Uplink,
        materials: Callable[[BlobRef], bytes],
        noise: NoiseSource,
        clock: Callable[[], datetime],
        draw: Draw = fresh_draw,
        paused: Callable[[], bool] = lambda: False,
        idle_sec: float = 0.0,
        threads: int = 1,
        views: LocalViews | None = None,
    ) -> None:
        self._views = views
        self._release, self._reading, self._database = release, reading, database
        self._outbox, self._participations, self._ledger = outbox, participations, ledger
        self._uplink, self._noise, self._clock, self._draw = uplink, noise, clock, draw
        self._paused, self._idle_sec, self._threads = paused, idle_sec, threads
        self._materials = materials
        self._private = PrivateParameters(database)
        self._samples: ReaderSamples | None = None
        self.summing = Summing(
            database=database,
            participations=participations,
            ledger=ledger,
            uplink=uplink,
            clock=clock,
            contribution=self._contribution,
            threads=threads,
        )
        self._session: object = None
        self.stage: Stage | None = None
        self.round: RoundStatus | None = None

    def step(self) -> Outcome:
        """Send what waits, then try to take part once. Returns how the try ended.

        Errors of the backend and refusals are outcomes; what is raised is a fault of this device or of the release.
        """
        try:
            self._send_again()
            self._follow_up()
            if (summed := self._go_on_summing()) is not None:
                return summed
            release = self._release_or_none()
            without_samples = [name for name, kind in TASKS.items() if not kind.needs_samples]
            counts = [name for name, kind in TASKS.items() if kind.channel == "counts"]
            attempt = participate(self._readiness(release), tuple(TASKS), without_samples, counts)
            outcome = _drive(attempt, lambda wish: self._fulfil(wish, release))
            self._note(outcome)
            if outcome.state == "waiting":
                return self._go_on_summing() or outcome
            return outcome
        finally:
            self.stage = None
            self._samples = None

    def why_not(self) -> str | None:
        """Why this device would not train on its clicks now, in a sentence, or None if it would."""
        readiness = replace(self._readiness(self._release_or_none()), counting=False)
        try:
            check_ready(readiness)
            check_clicks(readiness)
        except NotEligible as not_now:
            return str(not_now)
        return None

    def _release_or_none(self) -> Release | None:
        try:
            return self._release()
        except NoRelease:
            return None

    def _readiness(self, release: Release | None) -> Readiness:
        return Readiness(
            switched_on=self._ledger.settings.training,
            paused=self._paused(),
            release=None if release is None else release.id,
            clicks=self._reading.count(),
            epsilon_left=self._ledger.left("training"),
            idle=self._idle_sec == 0 or self._reading.quiet_since(self._clock() - timedelta(seconds=self._idle_sec)),
            counting=self._ledger.settings.counting,
            counts_left=self._ledger.left("counts"),
        )

    def _fulfil(self, wish: Wish, release: Release | None) -> Reply:
        """Do what the participant wants done."""
        assert release is not None, "the participant is not eligible without a release"
        match wish:
            case LookAtRound():
                self.stage = "looking"
                under_way = self._uplink.current_round()
                self.round = under_way or self.round  # the last one stays in sight, with what became of it
                return under_way
            case AskIfJoined(round_id):
                return self._participations.get(round_id) is not None
            case Gather():
                self.stage = "gathering"
                self._samples = self._reading.samples(release.manifest.encoder)
                return self._samples.available
            case AskForPlace(message):
                self.stage = "checking in"
                offer = self._uplink.check_in(seal_check_in(message))
                if offer is not None:
                    self._participations.record(self._joined(offer))
                return offer
            case StateTerms(offer):
                return self._terms(release, offer)
            case Compute(offer):
                self.stage = "computing"
                self._check_wanted(offer.manifest.task)
                return self._compute(release, offer)
            case JoinSum(offer):
                self.summing.begin(offer)
                return None
            case HandIn(offer, update):
                self._check_wanted(offer.manifest.task)
                return self._hand_in(release, offer, update)

    def _check_wanted(self, task: str) -> None:
        """Raise NotEligible if the reader has changed its mind meanwhile: the last moment is before the payment."""
        settings = self._ledger.settings
        wanted = settings.counting if TASKS[task].channel == "counts" else settings.training
        if self._paused() or not wanted:
            raise NotEligible("its reader has paused training or switched it off meanwhile.")

    def _terms(self, release: Release, offer: RoundOffer) -> Terms:
        manifest = offer.manifest
        kind = TASKS.get(manifest.task)
        channel = "training" if kind is None else kind.channel
        trainable: tuple[str, ...] | None = ()
        shapes: Shapes = {}
        if kind is not None:
            trainable = _trainable(release, kind)
            if trainable is None or manifest.model in trainable:
                self._source(manifest, kind)
                shapes = kind.make(self._given(release, manifest)).shapes(_params(release, manifest))
        return Terms(
            privacy=self._ledger.settings,
            release=release.id,
            tasks=tuple(TASKS),
            trainable=trainable,
            shapes=shapes,
            epsilon_left=self._ledger.left(channel),
            now=self._clock(),
            channel=channel,
        )

    def _given(self, release: Release, manifest: RoundManifest) -> Given:
        return Given(
            release=release,
            manifest=manifest,
            reading=self._reading,
            materials=lambda name: self._material(manifest, name),
            threads=self._threads,
            now=self._clock(),
            views=self._views,
        )

    def _material(self, manifest: RoundManifest, name: str) -> bytes:
        """Raises NotEligible, which declines the round, for whatever keeps the bytes away."""
        size_bytes = sum(ref.size_bytes for ref in manifest.materials.values())
        if size_bytes > MATERIALS_LIMIT_BYTES:
            raise NotEligible(f"its materials have {size_bytes} bytes, the limit is {MATERIALS_LIMIT_BYTES}.")
        if name not in manifest.materials:
            raise NotEligible(f"the round brings no {name!r}.")
        try:
            return self._materials(manifest.materials[name])
        except (BackendUnreachable, BackendRefused, AnswerMalformed, ReleaseRefused) as trouble:
            raise NotEligible(f"{name!r} of the round can't be had: {trouble}") from trouble

    def _compute(self, release: Release, offer: RoundOffer) -> Update:
        manifest = offer.manifest
        kind = TASKS[manifest.task]
        task = kind.make(self._given(release, manifest))
        params = _params(release, manifest)
        samples = self._source(manifest, kind)
        update = task.run(params, samples, self._gradients(release, manifest, kind), self._draw(manifest.round))
        entry = _entry(release, manifest)
        shared = shared_part(update.tensors, entry)
        if (found := {name: each.shape for name, each in shared.tensors.items()}) != dict(task.shapes(params)):
            raise ValueError(f"task {manifest.task!r}: computed {found}, which is not what it said")
        own = private_gradients(update.tensors, entry)
        return replace(update, tensors=shared.tensors, paid=self._paid(update, release, manifest.model, own))

    def _paid(
        self, update: Update, release: Release, model: str | None, gradients: Params
    ) -> Callable[[], None] | None:
        """What to do in the transaction that pays: the task's own, and the step on private parameters."""
        if model is None or not gradients:
            return update.paid
        encoder = release.manifest.encoder

        def paid() -> None:
            if update.paid is not None:
                update.paid()
            self._private.keep(model, encoder, stepped(self._private.get(model, encoder), gradients))

        return paid

    def _source(self, manifest: RoundManifest, kind: TaskKind) -> SampleSource:
        """The samples that the task may use. Raises NotEligible if there are none."""
        if not kind.needs_samples:
            return NO_SAMPLES
        if self._samples is None:
            raise NotEligible("another round was opened while it looked for one.")
        share = manifest.held_out
        part = self._samples.held_out(share) if kind.held_out else self._samples.without_held_out(share)
        if not part.available:
            raise NotEligible("none of its clicks is held out." if kind.held_out else "all of its clicks are held out.")
        return part

    def _gradients(self, release: Release, manifest: RoundManifest, kind: TaskKind) -> GradientFn:
        if kind.graph not in GRADIENTS or manifest.model is None:
            return no_gradients
        graph = release.graph(manifest.model, kind.graph)
        # Held between rounds: the devices of a fleet share one session, which would otherwise be loaded for each.
        self._session = shared_session(graph, threads=OnnxGradients.THREADS)
        own = self._private.get(manifest.model, release.manifest.encoder)
        return OnnxGradients(graph, private=release.manifest.models[manifest.model].private, own=own)

    def _go_on_summing(self) -> Outcome | None:
        self.stage = "summing"
        return self.summing.go_on()

    def _contribution(self, offer: RoundOffer) -> Contribution:
        """This device's vector for a secure sum, from samples drawn now. Raises NotEligible."""
        self._check_wanted(offer.manifest.task)
        manifest = offer.manifest
        law = manifest.protection
        assert isinstance(law, SUMMED)
        assert manifest.terms is not None
        release = self._release()
        if release.id != manifest.release:
            raise NotEligible(f"the round is for release {manifest.release}, this device now holds {release.id}.")
        if TASKS[manifest.task].needs_samples:
            self._samples = self._reading.samples(release.manifest.encoder)
            if not self._samples.available:
                raise NotEligible("none of its clicks has a feed and earlier clicks to learn from.")
        self.stage = "computing"
        update = self._compute(release, offer)
        self.stage = "protecting"
        if isinstance(law, UnionMarks):
            return mark(update.tensors[NEWS], law, manifest.terms, self._noise)
        shared = shared_part(update.tensors, _entry(release, manifest))
        channel = TASKS[manifest.task].channel
        clipped = clip_norm(shared, law.clip)
        given = contribute(clipped, update.samples, law, manifest.terms, self._noise, channel=channel)
        return replace(given, paid=update.paid)

    def _hand_in(self, release: Release, offer: RoundOffer, update: Update) -> UploadReceipt:
        """Clip, add noise, pay and keep in one transaction; then send."""
        self.stage = "protecting"
        manifest, law = offer.manifest, offer.manifest.protection
        assert isinstance(law, LocalLaplace)
        shared = shared_part(update.tensors, _entry(release, manifest))
        clipped = clip_elementwise(shared, law.clip)
        now = self._clock()
        with self._database.transaction():
            sealed = LaplaceProtection(law).seal(
                clipped, round_id=manifest.round, ledger=self._ledger, noise=self._noise
            )
            parcel = self._outbox.put(
                subject=manifest.round,
                method="PUT",
                path=upload_path(offer),
                content_type=sealed.content_type,
                payload=sealed.payload,
                words=sealed.words,
                at=now,
                expires_at=manifest.closes_at,
            )
            self._participations.update(
                manifest.round, state="joined", at=now, epsilon=sealed.charge.epsilon, sent_bytes=0
            )
            if update.paid is not None:
                update.paid()
        self.stage = "sending"
        try:
            receipt = self._uplink.upload(offer, sealed)
        except (BackendUnreachable, AnswerMalformed, BackendRefused) as trouble:
            if isinstance(trouble, BackendRefused) and not may_pass(trouble):
                self._outbox.done(parcel)
            else:
                self._outbox.fail(parcel, str(trouble), self._clock() + timedelta(seconds=RETRY_SEC))
            raise
        self._arrived(parcel, manifest.round, len(sealed.payload))
        return receipt

    def _send_again(self) -> None:
        """Send what an earlier step could not, the same bytes, unless paused; give up what came too late."""
        now = self._clock()
        waiting = {parcel.subject: parcel for parcel in self._outbox.waiting()}
        for mine in self._participations.list():
            parcel = waiting.get(mine.round)
            if mine.state == "joined" and (parcel is None or parcel.expires_at <= now):
                why = "cut off before an update was ready" if parcel is None else "the round closed before it was sent"
                self._participations.update(mine.round, state="failed", at=now, detail=why)
        if self._paused():
            return
        for parcel in self._outbox.due(now):
            self.stage = "sending again"
            self._resend(parcel)

    def _resend(self, parcel: Parcel) -> None:
        now = self._clock()
        try:
            self._uplink.resend(reseal(parcel, self._ledger))
        except (BackendUnreachable, AnswerMalformed, BackendRefused, ValueError) as trouble:
            if isinstance(trouble, ValueError) or (isinstance(trouble, BackendRefused) and not may_pass(trouble)):
                self._outbox.done(parcel.id)
                self._participations.update(parcel.subject, state="failed", at=now, detail=str(trouble))
            else:
                wait_sec = min(RETRY_LIMIT_SEC, RETRY_SEC * 2**parcel.attempts)
                self._outbox.fail(parcel.id, str(trouble), now + timedelta(seconds=wait_sec))
        else:
            self._arrived(parcel.id, parcel.subject, len(parcel.payload))

    def _follow_up(self) -> None:
        """Learn what became of the newest round this device has sent an update to."""
        newest = next((mine for mine in self._participations.list() if mine.state == "uploaded"), None)
        if newest is None:
            return
        try:
            status = self._uplink.round_status(newest.round)
        except (BackendUnreachable, BackendRefused, AnswerMalformed):
            return  # the next step asks again
        self.round = status
        if status.state in ("applied", "failed"):
            self._participations.update(newest.round, state=status.state, at=self._clock(), detail=status.reason)

    def _arrived(self, parcel_id: int, round_id: str, size_bytes: int) -> None:
        with self._database.transaction():
            self._outbox.done(parcel_id)
            self._participations.update(round_id, state="uploaded", at=self._clock(), sent_bytes=size_bytes)

    def _note(self, outcome: Outcome) -> None:
        """Keep on the page how an offer ended; what is kept in the outbox stays 'joined'."""
        if outcome.offer is not None and outcome.state in ("declined", "failed"):
            self._participations.update(
                outcome.offer.manifest.round, state=outcome.state, at=self._clock(), detail=outcome.why
            )

    def _joined(self, offer: RoundOffer) -> Participation:
        now, manifest = self._clock(), offer.manifest
        return Participation(
            round=manifest.round,
            system=manifest.system,
            task=manifest.task,
            release=manifest.release,
            state="joined",
            joined_at=now,
            changed_at=now,
        )


def _trainable(release: Release, kind: TaskKind) -> tuple[str, ...] | None:
    """Models of the release that the task can be done on; None for a task of no particular model."""
    if kind.role is None:
        return None
    return tuple(
        name
        for name, entry in release.manifest.models.items()
        if entry.role == kind.role
        and (kind.graph is None or release.has_graph(name, kind.graph))
        and FEATURES.keys() >= set(entry.features)
    )


def _params(release: Release, manifest: RoundManifest) -> Params:
    return {} if manifest.model is None else release.weights(manifest.model)


def _entry(release: Release, manifest: RoundManifest) -> ModelEntry | None:
    return None if manifest.model is None else release.manifest.models.get(manifest.model)


def _drive(attempt: Generator[Wish, Reply, Outcome], fulfil: Callable[[Wish], Reply]) -> Outcome:
    """Run an attempt to its end; what goes wrong with a wish is raised where it was wished."""
    try:
        wish = next(attempt)
        while True:
            try:
                reply = fulfil(wish)
            except DeviceError as trouble:
                wish = attempt.throw(trouble)
            else:
                wish = attempt.send(reply)
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome
