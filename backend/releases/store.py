"""The releases of this server: signed rows in the database, immutable blobs in the storage.

A release becomes current in the one transaction that writes its row, after all its blobs are there. Until then it is
invisible; blobs that never got their release are swept.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import Engine, func, select
from sqlalchemy.orm import Session

from backend.db.advisory_lock import wait_for_lock
from backend.db.engine import reading, reading_session, writing_session
from backend.db.prepared import Prepared
from backend.db.tables import NewsRow
from backend.db.tables_federation import FollowUpRow, LostReleaseRow, ReleaseRow, RoundRow
from backend.embedding.shared_encoders import SharedEncoders
from backend.releases.chain_file import ChainFile, NotedRelease, StoredChain
from backend.releases.draft import ReleaseDraft, blob_refs
from backend.releases.errors import ReleaseNotPublished
from backend.releases.reader import ReleaseReader
from backend.releases.signing import KeyFile
from backend.settings import BackendSettings
from backend.storage.object_store import ObjectStore
from device_app.wire.chain import next_head
from device_app.wire.ids import ReleaseId, release_number
from device_app.wire.offers import SignedOffer, sign_offer
from device_app.wire.releases import RELEASES_ANSWERED, BlobRef, ReleaseManifest, sign
from device_app.wire.rounds import RoundManifest, RoundOffer

SWEEP_AFTER_SEC = 900.0  # a release is put together in seconds: what belongs to none after so long is left over
SIGNING_KEY_FILE = "signing.key"
_NEWEST = select(ReleaseRow.public_key).order_by(ReleaseRow.number.desc()).limit(1)
_NEWEST_KEY = Prepared(_NEWEST)

_log = logging.getLogger(__name__)


class ReleaseStore(ReleaseReader):
    """Publishes releases and answers for them. Safe to use from several threads.

    Args:
        signing_key: its file, or a key held in memory only.
        kept: as of `ReleaseReader`.
        answered: how many newest releases' reports the server answers, which every manifest says.
        chain_file: where each release is noted before it is published; None: nowhere.

    encoders: those of all machines, so that an encoder is theirs before a release names it.
    `tidy`, where it is set, is called after each release, once it is current; what it raises is logged.
    """

    def __init__(
        self,
        engine: Engine,
        blobs: ObjectStore,
        signing_key: Ed25519PrivateKey | KeyFile,
        *,
        kept: int | None = None,
        answered: int = RELEASES_ANSWERED,
        chain_file: ChainFile | None = None,
    ) -> None:
        super().__init__(engine, blobs, kept=kept)
        self._key, self._answered, self._chain_file = signing_key, answered, chain_file
        self._lost: list[NotedRelease] = []  # of a database without any release: what its first follows
        self.tidy: Callable[[], object] | None = None
        self.encoders = SharedEncoders(Path(), None)

    @classmethod
    def open(cls, engine: Engine, settings: BackendSettings) -> ReleaseStore:
        """The store of a data folder, made if missing; what half-written releases left behind is swept.

        Where the database is an older copy, the newest of its releases is published once more, after those that devices
        have seen since. Raises SigningKeyRefused if releases are published here and the key that signed the newest is
        not, DatabaseDamaged if one isn't what was signed, and ChainFileRefused if devices have seen others than these.
        """
        store = cls.unchecked(engine, settings)
        store.signing_key()
        store.require_signed()
        store.follow_chain_file()
        store.sweep()
        return store

    @classmethod
    def unchecked(cls, engine: Engine, settings: BackendSettings) -> ReleaseStore:
        """The same without a look at the signing key: for whoever replaces a lost one."""
        key = KeyFile(settings.data_dir / SIGNING_KEY_FILE)
        answered = settings.releases_answered
        storage, kept = settings.open_storage(), max(settings.releases_kept, answered)
        notes = storage.under("chain") if settings.chain_in_storage else None
        chain_file = ChainFile(settings.chain_file) if notes is None else StoredChain(notes)
        store = cls(engine, storage.under("blobs"), key, kept=kept, answered=answered, chain_file=chain_file)
        store.encoders = SharedEncoders.of(settings)
        return store

    @property
    def key_file(self) -> KeyFile | None:
        """Where the signing key is; None for a key held in memory."""
        return self._key if isinstance(self._key, KeyFile) else None

    def signing_key(self, session: Session | None = None) -> Ed25519PrivateKey:
        """The key that signed the newest release, and so signs all that devices check; made before the first release.

        session: a transaction of the database to look in, where one is open. Raises SigningKeyRefused.
        """
        if isinstance(self._key, Ed25519PrivateKey):
            return self._key
        if session is not None:
            return self._key.load(session.scalar(_NEWEST))
        with reading(self._engine) as connection:
            return self._key.load(_NEWEST_KEY.run(connection).scalar())

    def add_blob(self, content: bytes) -> BlobRef:
        """Keep an immutable blob; it is nobody's until a release names it."""
        return self._blobs.add(content)

    def sign_offer(self, offer: RoundOffer) -> SignedOffer:
        """The offer of a round under the key of the releases, which is the one that devices trust."""
        return sign_offer(offer, self.signing_key())

    def commit(
        self,
        draft: ReleaseDraft,
        *,
        note: str,
        facts: Mapping[str, Any] | None = None,
        together_with: Callable[[Session, ReleaseManifest], None] | None = None,
        signed_with: Ed25519PrivateKey | None = None,
        after_lost: Sequence[NotedRelease] = (),
    ) -> ReleaseManifest:
        """Publish: number, sign and make current in one transaction; all blobs must be there already.

        `together_with` writes further rows in that same transaction: a round is marked as applied exactly if its
        release exists. Whatever it raises undoes both. signed_with: a key other than the last release's, for rotations.
        after_lost: releases that devices have seen and this database hasn't, which come before this one. Raises
        UnknownBlob or BlobDamaged before anything is written, SigningKeyRefused, or ReleaseNotPublished if the lost
        ones don't follow the last.
        """
        draft.check()
        for ref in blob_refs(draft):
            self.blob_path(ref.sha256)
        self.encoders.give_trained(draft.encoder)
        with writing_session(self._engine) as session:
            wait_for_lock(session, "publish-release")
            last = session.scalars(select(ReleaseRow).order_by(ReleaseRow.number.desc()).limit(1)).first()
            lost = self._lost if last is None else after_lost
            if last is not None and lost and release_number(lost[0].release) != last.number + 1:
                raise ReleaseNotPublished("A release was published meanwhile.")
            before = lost[-1] if lost else None if last is None else _noted(last)
            now = datetime.now(UTC)
            manifest = ReleaseManifest(
                release=f"r{1 if before is None else release_number(before.release) + 1}",
                previous=None if last is None else f"r{last.number}",
                created_at=now if before is None else max(now, before.published_at),
                chain=None if before is None else before.head,
                releases_answered=self._answered,
                news=session.scalar(select(func.count()).where(NewsRow.taken_down_at.is_(None))) or None,
                **{name: getattr(draft, name) for name in draft.__dataclass_fields__},
            )
            signed = sign(manifest, signed_with or self.signing_key(session))
            row = ReleaseRow(
                number=release_number(manifest.release),
                manifest=signed.manifest,
                signature=signed.signature,
                public_key=signed.public_key,
                note=note[:500],
                facts=dict(facts or {}),
                published_at=manifest.created_at,
            )
            session.add(row)
            session.add_all(
                LostReleaseRow(
                    number=release_number(each.release),
                    manifest_sha256=each.manifest_sha256,
                    published_at=each.published_at,
                )
                for each in lost
            )
            session.flush()
            if together_with is not None:
                together_with(session, manifest)
            if self._chain_file is not None:
                self._chain_file.add([_noted(row)])
        self._tidy_up()
        return manifest

    def follow_chain_file(self) -> None:
        """Go on after the last release that devices may have seen, and have the file know all of this database.

        Raises ChainFileRefused if the file knows other releases than the database.
        """
        if self._chain_file is None:
            return
        published = self._published()
        lost = self._chain_file.lost(published)
        if not published:
            self._lost = lost
        elif lost:
            last, seen = published[-1].release, lost[-1].release
            _log.warning("The database ends with %s, devices may have seen %s: %s comes once more.", last, seen, last)
            with suppress(ReleaseNotPublished):  # another process did it
                draft = ReleaseDraft.like(self.require_current())
                self.commit(draft, note=f"{last} again, after {seen}, which the database doesn't know", after_lost=lost)
        known = self._chain_file.read()
        self._chain_file.add(each for each in published if release_number(each.release) not in known)

    def _published(self) -> list[NotedRelease]:
        """All releases of the database, oldest first."""
        with reading_session(self._engine) as session:
            return [_noted(row) for row in session.scalars(select(ReleaseRow).order_by(ReleaseRow.number))]

    def sweep(self, older_than_sec: float = SWEEP_AFTER_SEC) -> int:
        """Remove what half-written releases, ended rounds and releases no longer kept left behind; returns how many
        files went.

        Called when the server starts, and after each release (`releases.retention`).
        """
        keep = {ref.sha256 for manifest in self.kept() for ref in blob_refs(manifest)}
        with reading_session(self._engine) as session:
            under_way = session.scalars(select(RoundRow.manifest).where(RoundRow.finished_at.is_(None)))
            keep |= {
                ref.sha256 for text in under_way for ref in RoundManifest.model_validate_json(text).materials.values()
            }
            # What a round has left to the one that it ordered, which isn't open yet.
            ordered = select(RoundRow.facts).join(FollowUpRow, FollowUpRow.after == RoundRow.number)
            for facts in session.scalars(ordered.where(FollowUpRow.opened.is_(None), FollowUpRow.reason.is_(None))):
                keep |= {
                    each["sha256"] for each in (facts or {}).values() if isinstance(each, dict) and "sha256" in each
                }
        return self._blobs.sweep(keep, older_than_sec=older_than_sec)

    def _tidy_up(self) -> None:
        try:
            if self.tidy is not None:
                self.tidy()
        except Exception:
            # The release is out: a busy database or disk must not make its round fail. The next release tries again.
            _log.exception("old releases could not be tidied away")


def is_repeated(session: Session, release: ReleaseId, of: ReleaseId) -> bool:
    """Whether a release is that one, or nothing but it once more, behind those that this database has lost
    (`ReleaseStore.follow_chain_file`): what was made for the one fits the other."""
    number, earlier = release_number(release), release_number(of)
    while number > earlier and session.get(LostReleaseRow, number - 1) is not None:
        number = session.scalar(select(func.max(ReleaseRow.number)).where(ReleaseRow.number < number)) or 0
    return number == earlier


def _noted(row: ReleaseRow) -> NotedRelease:
    """The release as the end of its chain. Releases of older versions are no part of it, and begin one."""
    manifest, content = ReleaseManifest.model_validate_json(row.manifest), sha256(row.manifest.encode()).hexdigest()
    head = next_head(manifest.chain, manifest.release, content)
    return NotedRelease(release=manifest.release, manifest_sha256=content, published_at=row.published_at, head=head)
