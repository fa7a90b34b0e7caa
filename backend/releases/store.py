"""The releases of this server: signed rows in the database, immutable blobs on disk.

A release becomes current in the one transaction that writes its row, after all its blobs are on disk. Until then it is
invisible; blobs that never got their release are swept.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
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

from backend.db.sessions import reading_session, writing_session
from backend.db.tables_federation import FollowUpRow, ReleaseRow, RoundRow
from backend.releases.blobs import BlobFolder
from backend.releases.errors import NothingPublished, ReleaseNotKept, ReleaseNotPublished, UnknownRelease
from backend.releases.signing import KeyFile
from backend.settings import BackendSettings
from device_app.wire.chain import ChainedRelease, ReleaseChain, next_head
from device_app.wire.ids import SHORT_RELEASES, ReleaseId, release_number
from device_app.wire.offers import SignedOffer, sign_offer
from device_app.wire.releases import (
    RELEASES_ANSWERED,
    BlobRef,
    ModelEntry,
    RecallProtocol,
    ReleaseManifest,
    SignedManifest,
    sign,
)
from device_app.wire.rounds import RoundManifest, RoundOffer
from device_app.wire.tensors import TensorSpec, unpack

WEIGHTS_LIMIT_BYTES = 256 * 1024 * 1024
SWEEP_AFTER_SEC = 900.0  # a release is put together in seconds: what belongs to none after so long is left over
HASHED_AT_ONCE = 200  # rows never change, so each manifest is read once a process for its hash
SIGNING_KEY_FILE = "signing.key"

_log = logging.getLogger(__name__)

Weights = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class ReleaseDraft:
    """A release without its number, its time and its signature."""

    encoder: str
    dimensions: int
    opset: int
    recall: RecallProtocol
    models: dict[str, ModelEntry]
    default_ranker: str
    vocabulary: BlobRef | None = None
    categories: BlobRef | None = None

    @classmethod
    def like(cls, manifest: ReleaseManifest, models: dict[str, ModelEntry] | None = None) -> ReleaseDraft:
        """The same release again, with other models if given."""
        return cls(
            encoder=manifest.encoder,
            dimensions=manifest.dimensions,
            opset=manifest.opset,
            recall=manifest.recall,
            models=manifest.models if models is None else models,
            default_ranker=manifest.default_ranker,
            vocabulary=manifest.vocabulary,
            categories=manifest.categories,
        )


@dataclass(frozen=True)
class PublishedRelease:
    """One line of the history. facts holds what was measured when it was made, such as the calibration; kept tells
    whether it can be published again."""

    release: ReleaseId
    previous: ReleaseId | None
    published_at: datetime
    note: str
    facts: dict[str, Any]
    encoder: str
    size_bytes: int
    current: bool
    kept: bool


def blob_refs(release: ReleaseDraft | ReleaseManifest) -> list[BlobRef]:
    """Every blob that this release names: graphs, weights, codebooks, projection, vocabulary, categories."""
    models, recall = release.models.values(), release.recall
    refs = [ref for entry in models for ref in entry.graphs.values()]
    refs += [entry.weights for entry in models if entry.weights is not None]
    refs += [ref for entry in models if entry.groups is not None for ref in entry.groups.blobs]
    refs += [codebook.prototypes for codebook in recall.codebooks]
    refs += [] if recall.projection is None else [recall.projection.matrix]
    return refs + [ref for ref in (release.vocabulary, release.categories) if ref is not None]


class ReleaseStore:
    """Publishes releases and answers for them. Safe to use from several threads.

    Args:
        signing_key: its file, or a key held in memory only.
        kept: of how many newest releases blobs are kept; None: of all.

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
        self._engine = self.engine = engine
        self._blobs = BlobFolder(blob_dir)
        self._key = signing_key
        self._kept, self._answered = kept, answered
        self._hashes: dict[int, str] = {}
        self._encoders: dict[int, str] = {}
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

    def blob_path(self, sha256: str) -> Path:
        """Where a blob lies, its bytes checked. Raises UnknownBlob or BlobDamaged."""
        return self._blobs.path(sha256)

    def read_blob(self, sha256: str) -> bytes:
        """A blob's bytes, checked. Raises UnknownBlob or BlobDamaged."""
        return self._blobs.read(sha256)

    def sign_offer(self, offer: RoundOffer) -> SignedOffer:
        """The offer of a round under the key of the releases, which is the one that devices trust."""
        return sign_offer(offer, self.signing_key())

    def current(self) -> SignedManifest | None:
        """The newest release, signed, or None before the first."""
        with reading_session(self._engine) as session:
            row = session.scalars(select(ReleaseRow).order_by(ReleaseRow.number.desc()).limit(1)).first()
            return None if row is None else _signed(row)

    def chain(self, last: int) -> ReleaseChain:
        """The last so many releases by number, hash and date, oldest first. Raises NothingPublished."""
        with reading_session(self._engine) as session:
            columns = select(ReleaseRow.number, ReleaseRow.published_at).order_by(ReleaseRow.number.desc()).limit(last)
            found = session.execute(columns).all()[::-1]
            if not found:
                raise NothingPublished
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

    def newest_with(self, encoder: str) -> SignedManifest | None:
        """The newest release whose vectors are this encoder's, signed, or None."""
        with reading_session(self._engine) as session:
            numbers = session.scalars(select(ReleaseRow.number).order_by(ReleaseRow.number.desc())).all()
            number = next((each for each in numbers if self._encoder_of(session, each) == encoder), None)
            return None if number is None else _signed(session.get_one(ReleaseRow, number))

    def _encoder_of(self, session: Session, number: int) -> str:
        """Read from its manifest once a process, since a row never changes."""
        if number not in self._encoders:
            manifest = session.scalars(select(ReleaseRow.manifest).where(ReleaseRow.number == number)).one()
            self._encoders[number] = ReleaseManifest.model_validate_json(manifest).encoder
        return self._encoders[number]

    def current_manifest(self) -> ReleaseManifest | None:
        """The newest release's manifest, or None before the first."""
        signed = self.current()
        return None if signed is None else ReleaseManifest.model_validate_json(signed.manifest)

    def signed(self, release: ReleaseId) -> SignedManifest:
        """One release, signed. Raises UnknownRelease, or NothingPublished before the first."""
        with reading_session(self._engine) as session:
            row = session.get(ReleaseRow, release_number(release))
            if row is None:
                newest = session.scalar(select(func.max(ReleaseRow.number)))
                raise NothingPublished if newest is None else UnknownRelease(f"r{newest}")
            return _signed(row)

    def manifest(self, release: ReleaseId) -> ReleaseManifest:
        """One release's manifest. Raises UnknownRelease."""
        return ReleaseManifest.model_validate_json(self.signed(release).manifest)

    def named(self, short: int) -> ReleaseManifest:
        """The newest release with this number modulo 16. Raises UnknownRelease, or NothingPublished."""
        with reading_session(self._engine) as session:
            newest = session.scalar(select(func.max(ReleaseRow.number)))
            if newest is None:
                raise NothingPublished
            row = session.get(ReleaseRow, newest - (newest - short) % SHORT_RELEASES)
            if row is None:
                raise UnknownRelease(f"r{newest}")
            return ReleaseManifest.model_validate_json(row.manifest)

    def weights(self, manifest: ReleaseManifest, model: str) -> dict[str, NDArray[np.float32]]:
        """The parameters of one model, {} if it has none. Raises ReleaseNotPublished without that model."""
        entry = manifest.models.get(model)
        if entry is None:
            raise ReleaseNotPublished(f"Release {manifest.release} has no model {model!r}.")
        return {} if entry.weights is None else self.read_weights(entry.weights)

    def read_weights(self, ref: BlobRef) -> dict[str, NDArray[np.float32]]:
        """The float32 tensors of a blob of our own. Raises UnknownBlob or BlobDamaged."""
        return _floats(self.read_blob(ref.sha256))

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
        if draft.default_ranker not in draft.models or draft.models[draft.default_ranker].role != "ranker":
            raise ReleaseNotPublished(f"{draft.default_ranker!r} is no ranker of this release.", field="default_ranker")
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

    def kept(self) -> list[ReleaseManifest]:
        """The releases that can be published again, newest first: their blobs stay."""
        with reading_session(self._engine) as session:
            texts = session.scalars(select(ReleaseRow.manifest).order_by(ReleaseRow.number.desc()).limit(self._kept))
            return [ReleaseManifest.model_validate_json(text) for text in texts]

    def require_kept(self, release: ReleaseId) -> ReleaseManifest:
        """One that can be published again. Raises UnknownRelease or ReleaseNotKept."""
        manifest, kept = self.manifest(release), self.kept()
        if manifest.release not in [each.release for each in kept]:
            raise ReleaseNotKept(release, kept[-1].release)
        return manifest

    def history(self) -> list[PublishedRelease]:
        """All releases, newest first."""
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

    def require_current(self) -> ReleaseManifest:
        """The newest release's manifest. Raises NothingPublished before the first."""
        manifest = self.current_manifest()
        if manifest is None:
            raise NothingPublished
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


def _signed(row: ReleaseRow) -> SignedManifest:
    return SignedManifest(manifest=row.manifest, signature=row.signature, public_key=row.public_key)


def _floats(blob: bytes) -> dict[str, NDArray[np.float32]]:
    """A weights blob of our own; its names are not known here, so every tensor is checked as it stands."""
    specs = {name: TensorSpec("float32", array.shape) for name, array in load(blob).items()}
    return unpack(blob, specs, limit_bytes=WEIGHTS_LIMIT_BYTES)
