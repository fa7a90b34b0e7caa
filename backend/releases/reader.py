"""Reads the releases of this server: signed rows in the database, immutable blobs in the storage."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load
from sqlalchemy import Engine, func, select
from sqlalchemy.orm import Session

from backend.db.engine import DatabaseDamaged, reading_session
from backend.db.tables_federation import LostReleaseRow, ReleaseRow
from backend.releases.blobs import BlobStore
from backend.releases.draft import blob_refs
from backend.releases.errors import NothingPublished, ReleaseNotKept, ReleaseNotPublished, UnknownRelease
from backend.storage.object_store import ObjectStore
from device_app.wire.chain import ChainedRelease, ReleaseChain
from device_app.wire.ids import SHORT_RELEASES, ReleaseId, release_number
from device_app.wire.releases import BlobRef, ReleaseManifest, SignedManifest, verify
from device_app.wire.tensors import TensorSpec, unpack

WEIGHTS_LIMIT_BYTES = 256 * 1024 * 1024
HASHED_AT_ONCE = 200  # rows never change, so each manifest is read once a process for its hash


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


class ReleaseReader:
    """Answers for releases and publishes none. Safe to use from several threads.

    Args:
        blobs: where they are.
        kept: of how many newest releases blobs are kept; None: of all.
    """

    def __init__(self, engine: Engine, blobs: ObjectStore, *, kept: int | None = None) -> None:
        self._engine = self.engine = engine
        self._blobs = BlobStore(blobs)
        self._kept = kept
        self._hashes: dict[int, str] = {}
        self._encoders: dict[int, str] = {}

    def blob_path(self, sha256: str) -> Path:
        """A file with a blob's bytes, checked. Raises UnknownBlob or BlobDamaged."""
        return self._blobs.path(sha256)

    def read_blob(self, sha256: str) -> bytes:
        """A blob's bytes, checked. Raises UnknownBlob or BlobDamaged."""
        return self._blobs.read(sha256)

    def current(self) -> SignedManifest | None:
        """The newest release, signed, or None before the first."""
        with reading_session(self._engine) as session:
            row = session.scalars(select(ReleaseRow).order_by(ReleaseRow.number.desc()).limit(1)).first()
            return None if row is None else _signed(row)

    def chain(self, last: int) -> ReleaseChain:
        """The last so many releases by number, hash and date, oldest first. Raises NothingPublished."""
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
        """That every release is what was signed when it was published. Raises DatabaseDamaged, naming one that isn't.

        What SQLite can't see, a bit flipped in one, would have every device refuse it.
        """
        columns = (ReleaseRow.number, ReleaseRow.manifest, ReleaseRow.signature, ReleaseRow.public_key)
        with reading_session(self._engine) as session:
            for number, manifest, signature, public_key in session.execute(select(*columns)):
                said = SignedManifest(manifest=manifest, signature=signature, public_key=public_key)
                try:
                    is_it = release_number(verify(said, public_key).release) == number
                except ValueError:
                    is_it = False
                if not is_it:
                    raise DatabaseDamaged(str(self._engine.url), f"its release {number} isn't what was signed")

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

    def require_current(self) -> ReleaseManifest:
        """The newest release's manifest. Raises NothingPublished before the first."""
        manifest = self.current_manifest()
        if manifest is None:
            raise NothingPublished
        return manifest

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


def _signed(row: ReleaseRow) -> SignedManifest:
    return SignedManifest(manifest=row.manifest, signature=row.signature, public_key=row.public_key)


def _floats(blob: bytes) -> dict[str, NDArray[np.float32]]:
    """A weights blob of our own; its names are not known here, so every tensor is checked as it stands."""
    specs = {name: TensorSpec("float32", array.shape) for name, array in load(blob).items()}
    return unpack(blob, specs, limit_bytes=WEIGHTS_LIMIT_BYTES)
