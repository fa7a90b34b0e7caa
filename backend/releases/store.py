"""Store, publish and read releases: signed rows in the database, blobs in the object store.

A release becomes current in the single transaction that writes its row, after all its blobs are stored. Until then it
is invisible; blobs whose release was never published are swept.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from numpy.typing import NDArray
from safetensors.numpy import load
from sqlalchemy import Engine, func, select
from sqlalchemy.orm import Session

from backend.db.advisory_lock import wait_for_lock
from backend.db.engine import DatabaseDamaged, reading, reading_session, writing_session
from backend.db.statements import Prepared
from backend.db.tables import FollowUpRow, LostReleaseRow, NewsRow, ReleaseRow, RoundRow
from backend.embedding.encoder_files import SharedEncoders
from backend.releases.blobs import BlobStore, ReleaseDraft, blob_refs
from backend.releases.chain_file import ChainFile, NotedRelease, StoredChain
from backend.releases.errors import NothingPublished, ReleaseNotKept, ReleaseNotPublished, UnknownRelease
from backend.releases.signing import KeyFile
from backend.settings import BackendSettings
from backend.storage.object_store import ObjectStore
from protocol.chain import ChainedRelease, ReleaseChain, next_head
from protocol.ids import SHORT_RELEASES, ReleaseId, release_number
from protocol.releases import RELEASES_ANSWERED, BlobRef, ReleaseManifest, SignedManifest, sign, verify
from protocol.rounds import RoundManifest, RoundOffer, SignedOffer, sign_offer
from protocol.tensors import TensorSpec, unpack

WEIGHTS_LIMIT_BYTES = 256 * 1024 * 1024
HASHED_AT_ONCE = 200  # rows never change, so a process reads each manifest once for its hash


@dataclass(frozen=True)
class PublishedRelease:
    """One entry of the history.

    facts holds figures measured when it was made, such as the calibration; kept says whether it can be published again.
    """

    release: ReleaseId
    previous: ReleaseId | None
    published_at: datetime
    note: str
    facts: dict[str, Any]
    encoder: str
    size_bytes: int
    current: bool
    kept: bool


class ReleaseReader:
    """Reads releases without publishing any. Safe for several threads.

    Args:
        blobs: the blob store.
        kept: the number of newest releases whose blobs are kept; None: all.
    """

    def __init__(self, engine: Engine, blobs: ObjectStore, *, kept: int | None = None) -> None:
        self._engine = self.engine = engine
        self._blobs = BlobStore(blobs)
        self._kept = kept
        self._hashes: dict[int, str] = {}
        self._encoders: dict[int, str] = {}

    def blob_path(self, sha256: str) -> Path:
        """Return a file with a blob's bytes, checked. Raises UnknownBlob or BlobDamaged."""
        return self._blobs.path(sha256)

    def read_blob(self, sha256: str) -> bytes:
        """Return a blob's bytes, checked. Raises UnknownBlob or BlobDamaged."""
        return self._blobs.read(sha256)

    def current(self) -> SignedManifest | None:
        """Return the newest release, signed, or None before the first."""
        with reading_session(self._engine) as session:
            row = session.scalars(select(ReleaseRow).order_by(ReleaseRow.number.desc()).limit(1)).first()
            return None if row is None else _signed(row)

    def chain(self, last: int) -> ReleaseChain:
        """Return the number, hash and date of the last releases, oldest first.

        Raises NothingPublished.
        """
        with reading_session(self._engine) as session:
            columns = select(ReleaseRow.number, ReleaseRow.published_at).order_by(ReleaseRow.number.desc()).limit(last)
            found = [(number, at) for number, at in session.execute(columns)]
            if not found:
                raise NothingPublished
            for row in session.scalars(select(LostReleaseRow).order_by(LostReleaseRow.number.desc()).limit(last)):
                self._hashes[row.number] = row.manifest_sha256
                found.append((row.number, row.published_at))
            found = sorted(found)[-last:]
            unknown = [number for number, _ in found if number not in self._hashes]
            for at in range(0, len(unknown), HASHED_AT_ONCE):
                rows = select(ReleaseRow.number, ReleaseRow.manifest).where(
                    ReleaseRow.number.in_(unknown[at : at + HASHED_AT_ONCE])
                )
                for number, manifest in session.execute(rows):
                    self._hashes[number] = sha256(manifest.encode()).hexdigest()
        return ReleaseChain(
            releases=tuple(
                ChainedRelease(release=f"r{number}", manifest_sha256=self._hashes[number], published_at=at)
                for number, at in found
            )
        )

    def require_signed(self) -> None:
        """Check the signature of every stored release.

        Raises DatabaseDamaged, naming one that doesn't match. SQLite can't detect a flipped bit in a row, but every
        device would refuse that release.
        """
        columns = (ReleaseRow.number, ReleaseRow.manifest, ReleaseRow.signature, ReleaseRow.public_key)
        with reading_session(self._engine) as session:
            for number, manifest, signature, public_key in session.execute(select(*columns)):
                signed = SignedManifest(manifest=manifest, signature=signature, public_key=public_key)
                try:
                    is_it = release_number(verify(signed, public_key).release) == number
                except ValueError:
                    is_it = False
                if not is_it:
                    raise DatabaseDamaged(str(self._engine.url), f"its release {number} differs from what was signed")

    def newest_with(self, encoder: str) -> SignedManifest | None:
        """Return the newest release whose vectors are by this encoder, signed, or None."""
        with reading_session(self._engine) as session:
            numbers = session.scalars(select(ReleaseRow.number).order_by(ReleaseRow.number.desc())).all()
            number = next((each for each in numbers if self._encoder_of(session, each) == encoder), None)
            return None if number is None else _signed(session.get_one(ReleaseRow, number))

    def _encoder_of(self, session: Session, number: int) -> str:
        """Return the encoder of a release; cached for each process, since rows never change."""
        if number not in self._encoders:
            manifest = session.scalars(select(ReleaseRow.manifest).where(ReleaseRow.number == number)).one()
            self._encoders[number] = ReleaseManifest.model_validate_json(manifest).encoder
        return self._encoders[number]

    def current_manifest(self) -> ReleaseManifest | None:
        """Return the newest release's manifest, or None before the first."""
        signed = self.current()
        return None if signed is None else ReleaseManifest.model_validate_json(signed.manifest)

    def require_current(self) -> ReleaseManifest:
        """Return the newest release's manifest. Raises NothingPublished before the first."""
        manifest = self.current_manifest()
        if manifest is None:
            raise NothingPublished
        return manifest

    def signed(self, release: ReleaseId) -> SignedManifest:
        """Return one release, signed. Raises UnknownRelease, or NothingPublished before the first."""
        with reading_session(self._engine) as session:
            row = session.get(ReleaseRow, release_number(release))
            if row is None:
                newest = session.scalar(select(func.max(ReleaseRow.number)))
                raise NothingPublished if newest is None else UnknownRelease(f"r{newest}")
            return _signed(row)

    def manifest(self, release: ReleaseId) -> ReleaseManifest:
        """Return one release's manifest. Raises UnknownRelease."""
        return ReleaseManifest.model_validate_json(self.signed(release).manifest)

    def named(self, short: int) -> ReleaseManifest:
        """Return the newest release with this number modulo 16.

        Raises UnknownRelease or NothingPublished.
        """
        with reading_session(self._engine) as session:
            newest = session.scalar(select(func.max(ReleaseRow.number)))
            if newest is None:
                raise NothingPublished
            row = session.get(ReleaseRow, newest - (newest - short) % SHORT_RELEASES)
            if row is None:
                raise UnknownRelease(f"r{newest}")
            return ReleaseManifest.model_validate_json(row.manifest)

    def weights(self, manifest: ReleaseManifest, model: str) -> dict[str, NDArray[np.float32]]:
        """Return the parameters of one model, {} if it has none.

        Raises ReleaseNotPublished without that model.
        """
        entry = manifest.models.get(model)
        if entry is None:
            raise ReleaseNotPublished(f"Release {manifest.release} has no model {model!r}.")
        return {} if entry.weights is None else self.read_weights(entry.weights)

    def read_weights(self, ref: BlobRef) -> dict[str, NDArray[np.float32]]:
        """Return the float32 tensors of one of our own blobs. Raises UnknownBlob or BlobDamaged."""
        return _floats(self.read_blob(ref.sha256))

    def kept(self) -> list[ReleaseManifest]:
        """Return the releases that can be published again, newest first: their blobs are kept."""
        with reading_session(self._engine) as session:
            texts = session.scalars(select(ReleaseRow.manifest).order_by(ReleaseRow.number.desc()).limit(self._kept))
            return [ReleaseManifest.model_validate_json(text) for text in texts]

    def require_kept(self, release: ReleaseId) -> ReleaseManifest:
        """Return a release that can be published again. Raises UnknownRelease or ReleaseNotKept."""
        manifest, kept = self.manifest(release), self.kept()
        if manifest.release not in [each.release for each in kept]:
            raise ReleaseNotKept(release, kept[-1].release)
        return manifest

    def history(self) -> list[PublishedRelease]:
        """Return all releases, newest first."""
        with reading_session(self._engine) as session:
            rows = session.scalars(select(ReleaseRow).order_by(ReleaseRow.number.desc())).all()
            manifests = [ReleaseManifest.model_validate_json(row.manifest) for row in rows]
            return [
                PublishedRelease(
                    release=manifest.release,
                    previous=manifest.previous,
                    published_at=row.published_at,
                    note=row.note,
                    facts=row.facts,
                    encoder=manifest.encoder,
                    size_bytes=sum({ref.sha256: ref.size_bytes for ref in blob_refs(manifest)}.values()),
                    current=position == 0,
                    kept=self._kept is None or position < self._kept,
                )
                for position, (row, manifest) in enumerate(zip(rows, manifests, strict=True))
            ]


def _signed(row: ReleaseRow) -> SignedManifest:
    return SignedManifest(manifest=row.manifest, signature=row.signature, public_key=row.public_key)


def _floats(blob: bytes) -> dict[str, NDArray[np.float32]]:
    """Return the tensors of one of our own weights blobs.

    The names aren't known here, so each tensor is checked by its own header.
    """
    specs = {name: TensorSpec("float32", array.shape) for name, array in load(blob).items()}
    return unpack(blob, specs, limit_bytes=WEIGHTS_LIMIT_BYTES)


SWEEP_AFTER_SEC = 900.0  # a release is prepared in seconds, so after this time an unnamed blob is a leftover
SIGNING_KEY_FILE = "signing.key"
_NEWEST = select(ReleaseRow.public_key).order_by(ReleaseRow.number.desc()).limit(1)
_NEWEST_KEY = Prepared(_NEWEST)

_log = logging.getLogger(__name__)


class ReleaseStore(ReleaseReader):
    """Publishes and reads releases. Safe for several threads.

    Args:
        signing_key: the key's file, or a key held only in memory.
        kept: as in `ReleaseReader`.
        answered: the number of newest releases whose reports the server answers; every manifest states it.
        chain_file: where each release is recorded before it is published; None: nowhere.

    encoders: the encoders of all machines; an encoder must be there before a release names it. `tidy`, if set, is
    called after each release once it is current; its errors are logged.
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
        self._lost: list[NotedRelease] = []  # for a database without releases: the releases that its first one follows
        self.tidy: Callable[[], object] | None = None
        self.encoders = SharedEncoders(Path(), None)

    @classmethod
    def open(cls, engine: Engine, settings: BackendSettings) -> ReleaseStore:
        """Open the store of a data folder, created if missing.

        Leftovers of unfinished releases are swept. If the database is an older copy, its newest release is published
        again, after those that devices have seen since. Raises SigningKeyRefused if releases are published here but the
        key that signed the newest is missing, DatabaseDamaged if a release doesn't match its signature, and
        ChainFileRefused if devices have seen other releases than these.
        """
        store = cls.unchecked(engine, settings)
        store.signing_key()
        store.require_signed()
        store.follow_chain_file()
        store.sweep()
        return store

    @classmethod
    def unchecked(cls, engine: Engine, settings: BackendSettings) -> ReleaseStore:
        """Open the store without checking the signing key, in order to replace a lost one."""
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
        """The file of the signing key; None for a key held in memory."""
        return self._key if isinstance(self._key, KeyFile) else None

    def signing_key(self, session: Session | None = None) -> Ed25519PrivateKey:
        """Return the key that signed the newest release, which devices trust.

        It is created before the first release. session: an open transaction to read the database in, if there is one.
        Raises SigningKeyRefused.
        """
        if isinstance(self._key, Ed25519PrivateKey):
            return self._key
        if session is not None:
            return self._key.load(session.scalar(_NEWEST))
        with reading(self._engine) as connection:
            return self._key.load(_NEWEST_KEY.run(connection).scalar())

    def add_blob(self, content: bytes) -> BlobRef:
        """Store an immutable blob; it is unused until a release names it."""
        return self._blobs.add(content)

    def sign_offer(self, offer: RoundOffer) -> SignedOffer:
        """Sign a round's offer with the key of the releases, which devices trust."""
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
        """Publish: number, sign and make current in one transaction.

        All blobs must already be stored. `together_with` writes further rows in the same transaction: for example, a
        round is marked as applied exactly if its release exists. An error in it undoes both. signed_with: a key other
        than the last release's, for rotations. after_lost: releases that devices have seen but this database has lost,
        which come before this one. Raises UnknownBlob or BlobDamaged before anything is written, SigningKeyRefused, or
        ReleaseNotPublished if the lost ones don't follow the last.
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
        """Continue after the last release that devices may have seen, and complete the file.

        Releases that are missing in the file are added. Raises ChainFileRefused if file and database contradict each
        other.
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
        """Return all releases of the database, oldest first."""
        with reading_session(self._engine) as session:
            return [_noted(row) for row in session.scalars(select(ReleaseRow).order_by(ReleaseRow.number))]

    def sweep(self, older_than_sec: float = SWEEP_AFTER_SEC) -> int:
        """Delete leftovers of unfinished releases and ended rounds, and releases no longer kept.

        Returns how many files were deleted. Called at the start of the server and after each release
        (`releases.retention`).
        """
        keep = {ref.sha256 for manifest in self.kept() for ref in blob_refs(manifest)}
        with reading_session(self._engine) as session:
            under_way = session.scalars(select(RoundRow.manifest).where(RoundRow.finished_at.is_(None)))
            keep |= {
                ref.sha256 for text in under_way for ref in RoundManifest.model_validate_json(text).materials.values()
            }
            # blobs that a round leaves for the round it ordered, which isn't open yet
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
            # The release is published: a busy database or disk must not make its round fail. The next release tries
            # again.
            _log.exception("old releases could not be tidied away")


def is_repeated(session: Session, release: ReleaseId, of: ReleaseId) -> bool:
    """Return whether a release is `of` or a repetition of it.

    A release is repeated after releases that this database has lost (`ReleaseStore.follow_chain_file`). What was made
    for the one then fits the other.
    """
    number, earlier = release_number(release), release_number(of)
    while number > earlier and session.get(LostReleaseRow, number - 1) is not None:
        number = session.scalar(select(func.max(ReleaseRow.number)).where(ReleaseRow.number < number)) or 0
    return number == earlier


def _noted(row: ReleaseRow) -> NotedRelease:
    """Return the release as the end of its chain."""
    manifest, content = ReleaseManifest.model_validate_json(row.manifest), sha256(row.manifest.encode()).hexdigest()
    head = next_head(manifest.chain, manifest.release, content)
    return NotedRelease(release=manifest.release, manifest_sha256=content, published_at=row.published_at, head=head)
