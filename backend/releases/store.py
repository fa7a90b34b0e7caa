"""The releases of this server: signed rows in the database, immutable blobs on disk.

A release becomes current in the one transaction that writes its row, after all its blobs are on disk. Until then it is
invisible; blobs that never got their release are swept.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import Engine, func, select
from sqlalchemy.orm import Session

from backend.db.engine import reading_session, writing_session
from backend.db.tables import NewsRow
from backend.db.tables_federation import FollowUpRow, ReleaseRow, RoundRow
from backend.releases.draft import ReleaseDraft, blob_refs
from backend.releases.reader import ReleaseReader
from backend.releases.signing import KeyFile
from backend.settings import BackendSettings
from device_app.wire.chain import next_head
from device_app.wire.ids import release_number
from device_app.wire.offers import SignedOffer, sign_offer
from device_app.wire.releases import RELEASES_ANSWERED, BlobRef, ReleaseManifest, sign
from device_app.wire.rounds import RoundManifest, RoundOffer

SWEEP_AFTER_SEC = 900.0  # a release is put together in seconds: what belongs to none after so long is left over
SIGNING_KEY_FILE = "signing.key"

_log = logging.getLogger(__name__)


class ReleaseStore(ReleaseReader):
    """Publishes releases and answers for them. Safe to use from several threads.

    Args:
        signing_key: its file, or a key held in memory only.
        kept: as of `ReleaseReader`.
        answered: how many newest releases' reports the server answers, which every manifest says.

    `tidy`, where it is set, is called after each release, once it is current; what it raises is logged.
    """

    def __init__(
        self,
        engine: Engine,
        blob_dir: Path,
        signing_key: Ed25519PrivateKey | KeyFile,
        *,
        kept: int | None = None,
        answered: int = RELEASES_ANSWERED,
    ) -> None:
        super().__init__(engine, blob_dir, kept=kept)
        self._key, self._answered = signing_key, answered
        self.tidy: Callable[[], object] | None = None

    @classmethod
    def open(cls, engine: Engine, settings: BackendSettings) -> ReleaseStore:
        """The store of a data folder, made if missing; what half-written releases left behind is swept.

        Raises SigningKeyRefused if releases are published here and the key that signed the newest is not.
        """
        store = cls.unchecked(engine, settings)
        store.signing_key()
        store.sweep()
        return store

    @classmethod
    def unchecked(cls, engine: Engine, settings: BackendSettings) -> ReleaseStore:
        """The same without a look at the signing key: for whoever replaces a lost one."""
        key = KeyFile(settings.data_dir / SIGNING_KEY_FILE)
        answered = settings.releases_answered
        return cls(engine, settings.blob_dir, key, kept=max(settings.releases_kept, answered), answered=answered)

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
        newest = select(ReleaseRow.public_key).order_by(ReleaseRow.number.desc()).limit(1)
        if session is not None:
            return self._key.load(session.scalar(newest))
        with reading_session(self._engine) as reading:
            return self._key.load(reading.scalar(newest))

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
    ) -> ReleaseManifest:
        """Publish: number, sign and make current in one transaction; all blobs must be on disk already.

        `together_with` writes further rows in that same transaction: a round is marked as applied exactly if its
        release exists. Whatever it raises undoes both. signed_with: a key other than the last release's, for rotations.
        Raises UnknownBlob or BlobDamaged before anything is written, or SigningKeyRefused.
        """
        draft.check()
        for ref in blob_refs(draft):
            self.blob_path(ref.sha256)
        with writing_session(self._engine) as session:
            last = session.scalars(select(ReleaseRow).order_by(ReleaseRow.number.desc()).limit(1)).first()
            now = datetime.now(UTC)
            manifest = ReleaseManifest(
                release=f"r{1 if last is None else last.number + 1}",
                previous=None if last is None else f"r{last.number}",
                created_at=now if last is None else max(now, last.published_at),
                chain=None if last is None else _head_with(last),
                releases_answered=self._answered,
                news=session.scalar(select(func.count()).where(NewsRow.taken_down_at.is_(None))) or None,
                **{name: getattr(draft, name) for name in draft.__dataclass_fields__},
            )
            signed = sign(manifest, signed_with or self.signing_key(session))
            session.add(
                ReleaseRow(
                    number=release_number(manifest.release),
                    manifest=signed.manifest,
                    signature=signed.signature,
                    public_key=signed.public_key,
                    note=note[:500],
                    facts=dict(facts or {}),
                    published_at=manifest.created_at,
                )
            )
            session.flush()
            if together_with is not None:
                together_with(session, manifest)
        self._tidy_up()
        return manifest

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


def _head_with(row: ReleaseRow) -> str:
    """The head of the chain that ends with this release. Releases of older versions are no part of it."""
    manifest = ReleaseManifest.model_validate_json(row.manifest)
    return next_head(manifest.chain, manifest.release, sha256(row.manifest.encode()).hexdigest())
