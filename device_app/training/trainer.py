"""Take part in rounds: poll for one, check its terms, compute and send an update."""

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
from device_app.privacy.requests import seal_check_in
from device_app.ranking.groups import GroupChoice, OwnGroup
from device_app.store.participations import Participation
from device_app.stores import DeviceStores
from device_app.sync.installed_release import Release
from device_app.training.computation import Computation, ComputationFactory, trainable
from device_app.training.delivery import Delivery
from device_app.training.due_updates import DueUpdate, DueUpdates
from device_app.training.eligibility import MALFORMED, ReaderConsent, Readiness, Terms, check_offer, check_ready
from device_app.training.participant import WORDS, Outcome, finish, participate
from device_app.training.secagg_client import APPLIED_WITHOUT, SecAggClient
from device_app.training.tasks import TASKS
from device_app.uplink.backend_client import Uplink
from protocol.releases import SignatureRefused
from protocol.rounds import CheckIn, RoundOffer, RoundStatus, SignedOffer, UploadReceipt, verify_offer

POLL_BESIDE = timedelta(seconds=10)
ENDED = ("applied", "failed")
TrainerStage = Literal["sending again", "looking", "checking in", "computing", "protecting", "sending", "summing"]


@dataclass(frozen=True)
class KnownRound:
    """What this device knows about rounds.

    It comes from the device's own polls, whose timing doesn't depend on the reader. status: of the running round, else
    of the last one, as received at received_at. looked_at: when the server last listed the running rounds.
    """

    status: RoundStatus | None = None
    received_at: datetime | None = None
    looked_at: datetime | None = None

    @property
    def gone(self) -> bool:
        """Whether a later poll found that the round is no longer running."""
        if self.status is None or self.received_at is None or self.looked_at is None:
            return False
        return self.status.state not in ENDED and self.looked_at > self.received_at


class Trainer:
    """A device's training: the `RoundWork` of this device, and the steps that do it.

    `step` is called from one thread; the attributes may be read from any.

    Args:
        release: the release in use. Raises NoRelease on a device that was never synced.
        computations: reads the data and computes.
        updates: when updates are due, and how they are computed.
        stores: keep messages until they have arrived.
        consent: what the reader allows.
        trusted_key: the Ed25519 key that must have signed an offer; None while there is none.
        noise: cryptographic on a device.
    """

    def __init__(
        self,
        *,
        release: Callable[[], Release],
        computations: ComputationFactory,
        updates: DueUpdates,
        stores: DeviceStores,
        uplink: Uplink,
        consent: ReaderConsent,
        trusted_key: Callable[[], bytes | None],
        noise: NoiseSource,
        clock: Callable[[], datetime],
    ) -> None:
        self._release, self._computations, self._consent = release, computations, consent
        self._updates = updates
        self._ledger, self._privacy, self._clock = consent.ledger, consent.privacy, clock
        self._reading, self._participations, self._uplink = computations.reading, stores.participations, uplink
        self._trusted_key = trusted_key
        self._delivery = Delivery(
            stores, uplink, ledger=consent.ledger, privacy=consent.privacy, noise=noise, clock=clock
        )
        self.summing = SecAggClient(
            stores,
            uplink,
            work=self,
            ledger=consent.ledger,
            noise=noise,
            privacy=consent.privacy,
            clock=clock,
            threads=computations.threads,
        )
        self._computation: Computation | None = None
        self._offered: SignedOffer | None = None
        self._due: dict[str, DueUpdate] = {}
        self._held: dict[str, RoundOffer] = {}
        self._looked_at: datetime | None = None
        self._open: tuple[RoundStatus, ...] = ()
        self.stage: TrainerStage | None = None
        self.seen = KnownRound()

    def step(self) -> Outcome:
        """Send what is due, then try to take part once. Returns the outcome of the try.

        Errors of the backend and refusals are outcomes; an exception is a fault of this device or of the release.
        """
        try:
            self._send_again()
            self._follow_up()
            under_way = [each for each in (self._go_on_summing(), *self._finish_held()) if each is not None]
            waits = next((each for each in under_way if each.state == "waiting"), None)
            if under_way and not (waits and self._may_poll_again()):
                return waits or under_way[-1]
            outcome = participate(self, self._readiness(self._release_or_none()))
            self._note(outcome)
            if outcome.state == "waiting":
                return self._go_on_joined(outcome)
            return waits or outcome  # what waits is gone on with, whatever came of another round
        finally:
            self.stage = self._offered = self._computation = None
            self._compute_due()

    def _compute_due(self) -> None:
        """Start the updates of the rounds in which this device has a part, and drop the others."""
        if self._due:
            rounds = set(self._held)
            rounds |= {part.round for part in self.summing.parts.under_way()}
            self._due = {name: update for name, update in self._due.items() if name in rounds}
            for update in self._due.values():
                update.start()

    def _go_on_joined(self, joined: Outcome) -> Outcome:
        """Continue with the round that was joined in this step."""
        offer = joined.offer
        assert offer is not None, "a device joins by an offer"
        if offer.manifest.terms is not None:
            return self._go_on_summing() or joined
        ended = self._finish(offer)
        return replace(ended, hindrances={**joined.hindrances, **ended.hindrances})

    def _finish_held(self) -> list[Outcome]:
        return [self._finish(offer) for offer in tuple(self._held.values())]

    def _finish(self, offer: RoundOffer) -> Outcome:
        """Compute and send this round's update, or hold it until it is due."""
        outcome = finish(self, offer)
        if outcome.again_sec is None:
            self._held.pop(offer.manifest.round, None)
            self._note(outcome)
        else:
            self._held[offer.manifest.round] = offer
        return outcome

    def forget_unsent(self) -> None:
        """Drop paid updates that have not arrived, since their data may have been deleted.

        They are not replaced: a second draw under the same charge would reveal what was deleted, by the difference. It
        may be called while another thread is in a step; a message that is being sent at that time is not recalled.
        """
        self._delivery.give_up_unwanted(lambda _: False, WORDS("deleted"))
        self.summing.forget_unsent()

    def why_not(self) -> str | None:
        """Return why this device would not train now, or None if it would."""
        readiness = replace(self._readiness(self._release_or_none()), counting=False)
        try:
            check_ready(readiness)
        except NotEligible as not_now:
            return str(not_now)
        return None

    def own_groups(self) -> tuple[OwnGroup, ...]:
        """Return the reader's group for each ranker of the release that has groups.

        Raises ReleaseRefused.
        """
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

    def _may_poll_again(self) -> bool:
        """Return whether a device that waits for others in a sum may also poll for rounds.

        It does so rarely, since the server counts each poll as a waiting device.
        """
        return self._looked_at is None or self._clock() - self._looked_at >= POLL_BESIDE

    def _readiness(self, release: Release | None) -> Readiness:
        return self._consent.readiness(None if release is None else release.id)

    def poll_rounds(self) -> tuple[RoundStatus, ...]:
        """See `RoundWork`; `seen` keeps the last status."""
        self.stage, self._looked_at = "looking", self._clock()
        self._open = self._uplink.open_rounds()
        now = self._clock()
        seen = replace(self.seen, status=self._open[0], received_at=now) if self._open else self.seen
        self.seen = replace(seen, looked_at=now)
        return self._open

    def may_have_part(self, status: RoundStatus) -> bool:
        return self._participations.may_have(status.round, status.opened_at)

    def ask_for_place(self, message: CheckIn) -> RoundOffer | None:
        self.stage = "checking in"
        signed = self._uplink.check_in(seal_check_in(message))
        if signed is None:
            return None
        # Verified before anything is kept: a forged offer must not stand in for a round of the same number.
        offer = self.check_signer(signed)
        self._offered = signed
        joined = next((each for each in self._open if each.round == offer.manifest.round), None)
        self.seen = self.seen if joined is None else replace(self.seen, status=joined)
        self._participations.record(self._joined(offer))
        return offer

    def check_offer(self, offer: RoundOffer) -> None:
        """See `RoundWork`; keeps the round's computation for `join`."""
        try:
            check_offer(offer.manifest, self._terms(self._release(), offer))
        except MALFORMED as malformed:
            raise NotEligible(f"the offer is malformed: {type(malformed).__name__}: {malformed}.") from malformed

    def join(self, offer: RoundOffer) -> None:
        if offer.manifest.terms is not None:
            assert self._offered is not None, "an offer must be joined in the step that received it"
            self.summing.begin(offer, self._offered)
        self._due_update(offer)

    def check_wanted(self, task: str) -> None:
        self._consent.check(task)

    def check_signer(self, signed: SignedOffer) -> RoundOffer:
        """Return the offer, if the trusted key signed it. Raises OfferRefused."""
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

    def _terms(self, release: Release, offer: RoundOffer, computation: Computation | None = None) -> Terms:
        """Return the terms that the offer is compared with.

        Keeps the round's computation for later. computation: the one that exists already, if any.
        """
        manifest = offer.manifest
        kind = TASKS.get(manifest.task)
        channel = "training" if kind is None else kind.channel
        models = () if kind is None else trainable(release, kind)
        known = kind is not None and (models is None or manifest.model in models)
        if computation is None and known:
            self._computation = computation = self._computations.make(release, manifest)
        return Terms(
            privacy=self._privacy(),
            release=release.id,
            tasks=tuple(TASKS),
            reads_release=kind is None or kind.reads_release,
            trainable=models,
            shapes={} if computation is None else computation.shapes(),
            one_click=None if computation is None else computation.one_click(),
            epsilon_left=self._ledger.left(channel),
            alone=self._ledger.alone(),
            now=self._clock(),
            channel=channel,
        )

    def _go_on_summing(self) -> Outcome | None:
        self.stage = "summing"
        return self.summing.go_on()

    def _due_update(self, offer: RoundOffer) -> DueUpdate:
        """Return the update of this place.

        If it wasn't computed before, it is started after this step.

        Raises NotEligible if the reader or another release has ended the part.
        """
        manifest = offer.manifest
        self._consent.check(manifest.task)
        release = self._release()
        if TASKS[manifest.task].reads_release and release.id != manifest.release:
            raise NotEligible(f"the round is for release {manifest.release}, this device now has {release.id}.", "old")
        if manifest.round not in self._due:
            at_hand = self._computation
            if at_hand is None or at_hand.round != manifest.round:  # the place is from before a restart
                at_hand = self._computations.make(release, manifest)
            self._due[manifest.round] = self._updates.begin(at_hand)
        return self._due[manifest.round]

    def update(self, offer: RoundOffer) -> ComputedUpdate | None:
        update = self._due_update(offer)
        if not update.is_due(self._clock()):
            return None
        del self._due[offer.manifest.round]
        # The reader may have asked for more since the round was joined, and the server decides how long that was.
        check_offer(offer.manifest, self._terms(self._release(), offer, update.computation))
        self.stage = "computing"
        found = update.take()
        self.stage = "protecting"
        return found

    def send(self, offer: RoundOffer, update: ComputedUpdate) -> UploadReceipt:
        self._consent.check(offer.manifest.task)
        kept = self._delivery.keep(offer, update)
        self.stage = "sending"
        return self._delivery.send(kept)

    def _send_again(self) -> None:
        """Send what an earlier step could not, unless paused.

        Drop what is too late or no longer wanted. Switched off means that nothing more leaves: an older update is
        dropped permanently, so that switching on again sends nothing old. Its cost stays charged, since it may have
        arrived without an answer. A pause keeps it.
        """
        self._delivery.give_up_late(self._held)
        self._delivery.give_up_unwanted(self._consent.switched_on)
        if self._consent.paused():
            return
        for item in self._delivery.due():
            self.stage = "sending again"
            self._delivery.send_again(item)

    def _follow_up(self) -> None:
        """Poll the outcome of the newest round that this device has sent an update to."""
        newest = next((mine for mine in self._participations.list() if mine.state == "uploaded"), None)
        if newest is None or self._consent.paused() or not self._consent.switched_on(newest.task):
            return
        try:
            status = self._uplink.round_status(newest.round)
        except (BackendUnreachable, BackendRefused, AnswerMalformed):
            return  # the next step asks again
        self.seen = replace(self.seen, status=status, received_at=self._clock())
        self._conclude(status)

    def _conclude(self, status: RoundStatus) -> None:
        """Record what a finished round did with this device's update, if it sent one."""
        if status.state not in ENDED:
            return
        mine = next((one for one in self._participations.list() if one.round == status.round), None)
        if mine is None or mine.state != "uploaded":
            return
        # The status is the same for every device: only the member itself learns that its group is left out.
        left_out = status.state == "applied" and mine.detail == WORDS("left_out")
        detail = APPLIED_WITHOUT if left_out else status.reason
        self._participations.update(mine.round, state=status.state, at=self._clock(), detail=detail)

    def _note(self, outcome: Outcome) -> None:
        """Record on the page how an offer ended; what is in the outbox stays 'joined'."""
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
