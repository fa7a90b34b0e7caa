"""Store computed updates, charge for them and send them.

A payload is in the outbox, and its cost in the ledger, before its first byte leaves. So a crash at any point charges at
most once, and a retry sends the same bytes.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from device_app.errors import (
    AnswerMalformed,
    BackendRefused,
    BackendUnreachable,
    BudgetSpent,
    NotEligible,
    ProtectionTooWeak,
)
from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.noise_sources import NoiseSource
from device_app.privacy.protections.local_laplace import NoisyUpdate, reseal
from device_app.privacy.protections.protection import ComputedUpdate
from device_app.privacy.protections.registry import resolve
from device_app.privacy.sealed import Sealed
from device_app.settings import PrivacySettings
from device_app.store.participations import OutboxItem, RoundUploads
from device_app.stores import DeviceStores
from device_app.training.participant import WORDS, is_complete, may_pass
from device_app.uplink.backend_client import Uplink, upload_path
from protocol.rounds import RoundOffer, UploadReceipt

RETRY_SEC = 10.0
RETRY_LIMIT_SEC = 300.0


@dataclass(frozen=True)
class PaidUpdate:
    """An update that is paid for and on the disk."""

    offer: RoundOffer
    item: int
    sealed: Sealed[NoisyUpdate]


class Delivery:
    """Stores and sends computed updates, and records their state on the page."""

    def __init__(
        self,
        stores: DeviceStores,
        uplink: Uplink,
        *,
        ledger: Ledger,
        privacy: Callable[[], PrivacySettings],
        noise: NoiseSource,
        clock: Callable[[], datetime],
    ) -> None:
        self._database, self._outbox = stores.database, stores.outbox
        self._participations, self._uplink = stores.participations, uplink
        self._ledger, self._privacy, self._noise, self._clock = ledger, privacy, noise, clock
        self._uploads = RoundUploads(stores.database)

    def keep(self, offer: RoundOffer, update: ComputedUpdate) -> PaidUpdate:
        """Clip an update, add noise, charge for it and store it in one transaction.

        `ComputedUpdate.paid` is called in it too.

        Raises BudgetSpent, NotEligible if the reader has deleted or erased something since the update was computed, and
        RoundTakenOver if the round already has an upload of this device, whichever process made it.
        """
        manifest, now = offer.manifest, self._clock()
        with self._database.transaction():
            protection = resolve(manifest.protection)
            sealed = protection.seal(update, manifest, ledger=self._ledger, noise=self._noise)
            self._uploads.bind(manifest.round, sealed.sha256, now)
            item = self._outbox.put(
                subject=manifest.round,
                method="PUT",
                path=upload_path(offer),
                content_type=sealed.content_type,
                payload=sealed.payload,
                words=sealed.words,
                at=now,
                expires_at=manifest.closes_at,
            )
            known = self._participations.update(
                manifest.round, state="joined", at=now, epsilon=sealed.charge.epsilon, sent_bytes=0
            )
            if not known:
                raise NotEligible(WORDS("erased"))
            if update.paid is not None:
                update.paid()
        return PaidUpdate(offer, item, sealed)

    def send(self, kept: PaidUpdate) -> UploadReceipt:
        """Send for the first time.

        Raises the backend's errors; the update then waits, or is dropped if the error is final.
        """
        try:
            receipt = self._uplink.upload(kept.offer, kept.sealed)
        except (BackendUnreachable, AnswerMalformed, BackendRefused) as trouble:
            if isinstance(trouble, BackendRefused) and not may_pass(trouble):
                self._outbox.done(kept.item)
            else:
                self._outbox.fail(kept.item, str(trouble), self._clock() + timedelta(seconds=RETRY_SEC))
            raise
        self._arrived(kept.item, kept.offer.manifest.round, len(kept.sealed.payload))
        return receipt

    def give_up_late(self, held: Collection[str] = ()) -> None:
        """Record parts as failed if they can no longer be sent.

        They were interrupted before they were stored, or their round has closed. held: rounds whose update isn't due.
        """
        now = self._clock()
        waiting = {item.subject: item for item in self._outbox.waiting()}
        for mine in self._participations.list():
            item = waiting.get(mine.round)
            if mine.round in held:
                continue
            if mine.state == "joined" and (item is None or item.expires_at <= now):
                why = WORDS("cut_off" if item is None else "closed_before")
                self._participations.update(mine.round, state="failed", at=now, detail=why)

    def give_up_unwanted(self, wanted: Callable[[str], bool], why: str = WORDS("switched_off")) -> None:
        """Drop pending uploads of tasks that the reader no longer wants.

        wanted: decides by the task's name.
        """
        for item in self._outbox.waiting():
            mine = self._participations.get(item.subject)
            if mine is None or wanted(mine.task):
                continue
            with self._database.transaction():
                self._outbox.done(item.id)
                self._participations.update(item.subject, state="declined", at=self._clock(), detail=why)

    def due(self) -> list[OutboxItem]:
        """Return the uploads that should be sent again now."""
        return self._outbox.due(self._clock())

    def send_again(self, item: OutboxItem) -> None:
        """Send the same bytes again.

        If that fails they are kept for later; if the reader no longer allows it, they are dropped.
        """
        now = self._clock()
        try:
            self._uplink.resend(reseal(item, self._ledger, self._privacy()))
        except (ProtectionTooWeak, BudgetSpent) as forbidden:
            with self._database.transaction():
                self._outbox.done(item.id)
                self._participations.update(item.subject, state="declined", at=now, detail=str(forbidden))
        except (BackendUnreachable, AnswerMalformed, BackendRefused, ValueError) as trouble:
            if isinstance(trouble, ValueError) or (isinstance(trouble, BackendRefused) and not may_pass(trouble)):
                self._outbox.done(item.id)
                complete = isinstance(trouble, BackendRefused) and is_complete(trouble)
                state = "not needed" if complete else "failed"
                self._participations.update(item.subject, state=state, at=now, detail=str(trouble))
            else:
                wait_sec = min(RETRY_LIMIT_SEC, RETRY_SEC * 2**item.attempts)
                self._outbox.fail(item.id, str(trouble), now + timedelta(seconds=wait_sec))
        else:
            self._arrived(item.id, item.subject, len(item.payload))

    def _arrived(self, item_id: int, round_id: str, size_bytes: int) -> None:
        with self._database.transaction():
            self._outbox.done(item_id)
            self._participations.update(round_id, state="uploaded", at=self._clock(), sent_bytes=size_bytes)
