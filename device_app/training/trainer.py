"""Takes part in rounds: one step looks for a round and, if all agrees, computes, protects and hands in one update."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from pydantic import ValidationError

from device_app.errors import (
    AnswerMalformed,
    BackendRefused,
    BackendUnreachable,
    NoRelease,
    NotEligible,
    OfferRefused,
)
from device_app.privacy.noise_sources import NoiseSource
from device_app.privacy.protections.protection import ComputedUpdate
from device_app.privacy.protections.registry import resolve
from device_app.privacy.requests import seal_check_in
from device_app.privacy.secagg.contribution import Contribution
from device_app.ranking.groups import GroupChoice, OwnGroup
from device_app.store.participations import Participation
from device_app.sync.installed_release import Release
from device_app.training.computation import Computation, ComputationFactory, trainable
from device_app.training.consent import ReaderConsent
from device_app.training.delivery import Delivery, UploadChannel
from device_app.training.eligibility import Readiness, Terms, check_clicks, check_idle, check_offer, check_ready
from device_app.training.participant import (
    MALFORMED,
    AskForPlace,
    AskIfJoined,
    Compute,
    Effect,
    Gather,
    HandIn,
    JoinSecAgg,
    Outcome,
    PollRounds,
    Reply,
    StateTerms,
    drive,
    participate,
)
from device_app.training.samples import ReaderSamples
from device_app.training.secagg_client import APPLIED_WITHOUT, WORDS, SecAggClient
from device_app.training.tasks import TASKS
from device_app.wire.offers import SignedOffer, verify_offer
from device_app.wire.releases import SignatureRefused
from device_app.wire.rounds import OpenRounds, RoundOffer, RoundStatus, UploadReceipt

LOOK_BESIDE = timedelta(seconds=10)
ENDED = ("applied", "failed")
TrainerStage = Literal[
    "sending again", "looking", "gathering", "checking in", "computing", "protecting", "sending", "summing"
]


@dataclass(frozen=True)
class RoundSeen:
    """What this device has heard of rounds by its own looks, which come at their own pace, whoever reads.

    status: of the round under way, else of the last one, as it was told at told_at. looked_at: when the server last
    said which rounds are under way.
    """

    status: RoundStatus | None = None
    told_at: datetime | None = None
    looked_at: datetime | None = None

    @property
    def gone(self) -> bool:
        """Whether it was under way when it was told of, and a later look found it no longer."""
        if self.status is None or self.told_at is None or self.looked_at is None:
            return False
        return self.status.state not in ENDED and self.looked_at > self.told_at


class Trainer:
    """A device's training. `step` is called from one thread; the attributes may be read from any.

    Args:
        release: the release in use. Raises NoRelease on a device that was never synced.
        computations: what reads and computes.
        channel: what keeps and sends.
        consent: what the reader allows.
        trusted_key: the Ed25519 key that must have signed an offer; None while there is none.
        noise: cryptographic on a device.
    """

    def __init__(
        self,
        *,
        release: Callable[[], Release],
        computations: ComputationFactory,
        channel: UploadChannel,
        consent: ReaderConsent,
        trusted_key: Callable[[], bytes | None],
        noise: NoiseSource,
        clock: Callable[[], datetime],
    ) -> None:
        self._release, self._computations, self._consent = release, computations, consent
        self._ledger, self._noise, self._clock = consent.ledger, noise, clock
        self._reading, self._participations, self._uplink = computations.reading, channel.participations, channel.uplink
        self._trusted_key = trusted_key
        self._delivery = Delivery(channel, ledger=consent.ledger, noise=noise, clock=clock)
        self.summing = SecAggClient(
            channel,
            ledger=consent.ledger,
            clock=clock,
            contribution=self._contribution,
            check_signer=self._verified,
            check_wanted=consent.check,
            threads=computations.threads,
        )
        self._samples: ReaderSamples | None = None
        self._computation: Computation | None = None
        self._offered: SignedOffer | None = None
        self._looked_at: datetime | None = None
        self._open: tuple[RoundStatus, ...] = ()
        self.stage: TrainerStage | None = None
        self.seen = RoundSeen()

    def step(self) -> Outcome:
        """Send what waits, then try to take part once. Returns how the try ended.

        Errors of the backend and refusals are outcomes; what is raised is a fault of this device or of the release.
        """
        try:
            self._send_again()
            self._follow_up()
            summed = self._go_on_summing()
            if summed is not None and not (summed.state == "waiting" and self._may_look_again()):
                return summed
            release = self._release_or_none()
            without_samples = [name for name, kind in TASKS.items() if not kind.needs_samples]
            counts = [name for name, kind in TASKS.items() if kind.channel == "counts"]
            no_release = [name for name, kind in TASKS.items() if not kind.reads_release]
            attempt = participate(self._readiness(release), tuple(TASKS), without_samples, counts, no_release)
            outcome = drive(attempt, lambda effect: self._fulfil(effect, release))
            self._note(outcome)
            if outcome.state == "waiting":
                return self._go_on_summing() or outcome
            return summed or outcome  # a sum that waits is gone on with, whatever came of another round
        finally:
            self.stage = self._offered = self._samples = self._computation = None

    def forget_unsent(self) -> None:
        """Drop what is paid for and has not arrived: its reader has deleted something that it may have come from.

        Nothing is made in its place: a second drawing under one charge would tell by the difference what was deleted.
        Safe to call while another thread steps; what that one is sending just then has left.
        """
        self._delivery.give_up_unwanted(lambda _: False, WORDS("deleted"))
        self.summing.forget_unsent()

    def why_not(self) -> str | None:
        """Why this device would not train on its clicks now, in a sentence, or None if it would."""
        readiness = replace(self._readiness(self._release_or_none()), counting=False)
        try:
            check_ready(readiness)
            check_idle(readiness)
            check_clicks(readiness)
        except NotEligible as not_now:
            return str(not_now)
        return None

    def own_groups(self) -> tuple[OwnGroup, ...]:
        """The reader's group for each ranker of the release that has groups, as a round would find it. Raises
        ReleaseRefused."""
        release = self._release_or_none()
        if release is None:
            return ()
        manifest = release.manifest
        found = []
        for name, entry in manifest.models.items():
            if entry.groups is not None:
                choice = GroupChoice(release.graph(name, "score"), release.groups(name), features=len(entry.features))
                group = choice.in_force(self._reading.clicked(manifest.encoder))
                found.append(OwnGroup(name, group, entry.groups.size))
        return tuple(found)

    def _release_or_none(self) -> Release | None:
        try:
            return self._release()
        except NoRelease:
            return None

    def _may_look_again(self) -> bool:
        """Whether a device that waits for others in a sum looks for rounds beside it: seldom, since each look counts at
        the server as a device that waits."""
        return self._looked_at is None or self._clock() - self._looked_at >= LOOK_BESIDE

    def _readiness(self, release: Release | None) -> Readiness:
        return self._consent.readiness(None if release is None else release.id)

    def _gather(self, release: Release) -> int:
        """Keep the reader's samples at hand for this step; how many there are, or would be with vectors of all news."""
        self._samples = self._reading.samples(release.manifest.encoder)
        return self._samples.learnable

    def _fulfil(self, effect: Effect, release: Release | None) -> Reply:
        """Do what the participant wants done."""
        assert release is not None, "the participant is not eligible without a release"
        match effect:
            case PollRounds():
                self.stage, self._looked_at = "looking", self._clock()
                found = self._uplink.open_rounds()
                self._open = found.rounds if isinstance(found, OpenRounds) else () if found is None else (found,)
                now = self._clock()
                told = replace(self.seen, status=self._open[0], told_at=now) if self._open else self.seen
                self.seen = replace(told, looked_at=now)  # the last one stays in sight
                return found
            case AskIfJoined(round_id, opened_at):
                return self._participations.may_have(round_id, opened_at)
            case Gather():
                self.stage = "gathering"
                return self._gather(release)
            case AskForPlace(message):
                self.stage = "checking in"
                signed = self._uplink.check_in(seal_check_in(message))
                # Verified before anything is kept: a forged offer must not stand in for a round of the same number.
                offer = None if signed is None else self._verified(signed)
                if offer is not None:
                    self._offered = signed
                    joined = next((each for each in self._open if each.round == offer.manifest.round), None)
                    self.seen = self.seen if joined is None else replace(self.seen, status=joined)
                    self._participations.record(self._joined(offer))
                return offer
            case StateTerms(offer):
                try:
                    return self._terms(release, offer)
                except MALFORMED as malformed:
                    raise NotEligible(
                        f"the offer is malformed: {type(malformed).__name__}: {malformed}."
                    ) from malformed
            case Compute(offer):
                self.stage = "computing"
                self._consent.check(offer.manifest.task)
                assert self._computation is not None, "terms are stated before anything is computed"
                return self._computation.update()
            case JoinSecAgg(offer):
                assert self._offered is not None, "an offer is joined in the step that brought it"
                self.summing.begin(offer, self._offered)
                return None
            case HandIn(offer, update):
                self._consent.check(offer.manifest.task)
                return self._hand_in(offer, update)

    def _verified(self, signed: SignedOffer) -> RoundOffer:
        """The offer, if the trusted key signed it. Raises OfferRefused."""
        trusted = self._trusted_key()
        if trusted is None:
            raise OfferRefused("this device trusts no key yet")
        try:
            return verify_offer(signed, trusted)
        except SignatureRefused as broken:
            raise OfferRefused(str(broken)) from broken
        except ValidationError as broken:
            first = broken.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise OfferRefused(f"its manifest is malformed: {where}: {first['msg']}") from broken

    def _terms(self, release: Release, offer: RoundOffer) -> Terms:
        """What the offer is held against; the computation of the round it is for is at hand from then on."""
        manifest = offer.manifest
        kind = TASKS.get(manifest.task)
        channel = "training" if kind is None else kind.channel
        models = () if kind is None else trainable(release, kind)
        known = kind is not None and (models is None or manifest.model in models)
        self._computation = made = self._computations.make(release, manifest, self._samples) if known else None
        return Terms(
            privacy=self._ledger.settings,
            release=release.id,
            tasks=tuple(TASKS),
            reads_release=kind is None or kind.reads_release,
            trainable=models,
            shapes={} if made is None else made.shapes(),
            one_click=None if made is None else made.one_click(),
            epsilon_left=self._ledger.left(channel),
            alone=self._ledger.alone(),
            now=self._clock(),
            channel=channel,
        )

    def _go_on_summing(self) -> Outcome | None:
        self.stage = "summing"
        return self.summing.go_on()

    def _contribution(self, offer: RoundOffer) -> Contribution:
        """This device's vector for a secure sum, from samples drawn now. Raises as `check_offer`."""
        manifest = offer.manifest
        self._consent.check(manifest.task)
        release = self._release()
        if TASKS[manifest.task].reads_release and release.id != manifest.release:
            raise NotEligible(
                f"the round is for release {manifest.release}, this device now holds {release.id}.", "old"
            )
        if TASKS[manifest.task].needs_samples and not self._gather(release):
            raise NotEligible("none of its clicks has a feed and earlier clicks to learn from.", "few")
        # The reader may have asked for more since the round was joined, and the server decides how long that was.
        check_offer(manifest, self._terms(release, offer))
        self.stage = "computing"
        assert self._computation is not None, "check_offer refuses what can't be computed"
        update = self._computation.update()
        self.stage = "protecting"
        return resolve(manifest.protection).contribute(
            update, manifest, noise=self._noise, delta=self._ledger.settings.delta_per_sum
        )

    def _hand_in(self, offer: RoundOffer, update: ComputedUpdate) -> UploadReceipt:
        """Clip, add noise, pay and keep; then send."""
        self.stage = "protecting"
        kept = self._delivery.keep(offer, update)
        self.stage = "sending"
        return self._delivery.send(kept)

    def _send_again(self) -> None:
        """Send what an earlier step could not, unless paused; give up what came too late or is no longer wanted.

        Switched off means that nothing more leaves: an update of before is dropped for good, so that switching on again
        sends nothing old. What it cost stays charged, since it may have arrived unheard. A pause keeps it.
        """
        self._delivery.give_up_late()
        self._delivery.give_up_unwanted(self._consent.switched_on)
        if self._consent.paused():
            return
        for item in self._delivery.due():
            self.stage = "sending again"
            self._delivery.send_again(item)

    def _follow_up(self) -> None:
        """Learn what became of the newest round this device has sent an update to."""
        newest = next((mine for mine in self._participations.list() if mine.state == "uploaded"), None)
        if newest is None or self._consent.paused() or not self._consent.switched_on(newest.task):
            return
        try:
            status = self._uplink.round_status(newest.round)
        except (BackendUnreachable, BackendRefused, AnswerMalformed):
            return  # the next step asks again
        self.seen = replace(self.seen, status=status, told_at=self._clock())
        self._conclude(status)

    def _conclude(self, status: RoundStatus) -> None:
        """Note what a round that has ended made of the update that this device has sent to it, if it has."""
        if status.state not in ENDED:
            return
        mine = next((one for one in self._participations.list() if one.round == status.round), None)
        if mine is None or mine.state != "uploaded":
            return
        # The status is the same for everybody: only the member itself was told that its group is left out.
        left_out = status.state == "applied" and mine.detail == WORDS("left_out")
        detail = APPLIED_WITHOUT if left_out else status.reason
        self._participations.update(mine.round, state=status.state, at=self._clock(), detail=detail)

    def _note(self, outcome: Outcome) -> None:
        """Keep on the page how an offer ended; what is kept in the outbox stays 'joined'."""
        if outcome.offer is not None and outcome.state in ("declined", "failed", "not needed"):
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
