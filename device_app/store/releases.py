"""Verified releases on the device, the key they are checked against, and their blobs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from device_app.store.blobs import Blobs
from device_app.store.database import Database
from device_app.store.rows import from_us, to_us
from protocol.releases import BlobRef, ReleaseManifest, SignedManifest

RELEASES_KEPT = 50
RELEASES_WITH_BLOBS = 2
Trust = Mapping[str, tuple[tuple[Any, ...], ...]]
"""Rows by table."""
_TRUST = {
    "pinned_key": "SELECT * FROM pinned_key",
    "release_chain": "SELECT * FROM release_chain ORDER BY number DESC LIMIT 1",
    "release": "SELECT * FROM release ORDER BY id DESC LIMIT 1",
}
"""The key, the end of the chain, and the release in use; earlier ones have no effect."""


@dataclass(frozen=True)
class StoredRelease:
    """A release that passed every check when it was installed."""

    signed: SignedManifest
    manifest: ReleaseManifest
    installed_at: datetime


class TrustedKey(NamedTuple):
    """The trusted signing key.

    public_key must sign releases. first is the initial key, rotation the number of the last rotation from it, 0 for
    none.
    """

    public_key: bytes
    first: bytes
    rotation: int


class ChainLink(NamedTuple):
    """A release that this device has used, and the chain's head at that release."""

    number: int
    manifest_sha256: str
    head: str


class InstalledReleases:
    """The release in use is the one installed last.

    The folder of blobs may be shared between devices.
    """

    def __init__(self, database: Database, blob_folder: Path | None = None) -> None:
        self._database = database
        self.blobs = Blobs(blob_folder or database.path.parent / "blobs")

    def current(self) -> StoredRelease | None:
        """Return the release in use."""
        return next(iter(self.history(1)), None)

    def history(self, limit: int = RELEASES_KEPT) -> list[StoredRelease]:
        """Installed releases, newest first."""
        found = self._database.rows(
            "SELECT manifest, signature, public_key, installed_at FROM release ORDER BY id DESC LIMIT ?", (limit,)
        )
        return [
            StoredRelease(
                SignedManifest(manifest=manifest, signature=signature, public_key=public_key),
                ReleaseManifest.model_validate_json(manifest),
                from_us(installed_at),
            )
            for manifest, signature, public_key, installed_at in found
        ]

    def installed(self, release: str) -> tuple[ReleaseManifest, int] | None:
        """Return the manifest last installed under this name and how many were installed since.

        None if no longer stored.
        """
        row = self._database.row(
            """SELECT manifest, (SELECT count(*) FROM release AS later WHERE later.id > release.id) FROM release
               WHERE release = ? ORDER BY id DESC LIMIT 1""",
            (release,),
        )
        return None if row is None else (ReleaseManifest.model_validate_json(row[0]), int(row[1]))

    def install(
        self,
        signed: SignedManifest,
        blobs: Iterable[bytes],
        at: datetime,
        link: ChainLink,
        *,
        new_chain: bool = False,
    ) -> None:
        """Store a verified release's blobs, then make it the current one in one step.

        After a crash either the old or the new release is the current one. link is stored as the end of its chain.
        new_chain: the release is from another server, whose chain replaces the old one.
        """
        manifest = ReleaseManifest.model_validate_json(signed.manifest)
        for blob in blobs:
            self.blobs.put(blob)
        with self._database.transaction():
            kept = self._database.write(
                """INSERT INTO release (release, manifest, signature, public_key, installed_at)
                   VALUES (?, ?, ?, ?, ?) RETURNING id""",
                (manifest.release, signed.manifest, signed.signature, signed.public_key, to_us(at)),
            ).fetchone()
            self._database.write("DELETE FROM release WHERE id <= ?", (kept[0] - RELEASES_KEPT,))
            self._chain_onto(link, new_chain=new_chain)

    def chained(self) -> ChainLink | None:
        """Return the newest release of the chain that this device has used; None before the first."""
        row = self._database.row("SELECT number, manifest_sha256, head FROM release_chain ORDER BY number DESC LIMIT 1")
        return None if row is None else ChainLink(*row)

    def _chain_onto(self, link: ChainLink, *, new_chain: bool) -> None:
        if new_chain:
            self._database.write("DELETE FROM release_chain")
        self._database.write(
            "INSERT OR REPLACE INTO release_chain (number, manifest_sha256, head) VALUES (?, ?, ?)", link
        )

    def prune_blobs(self) -> int:
        """Remove blobs that neither the release in use nor the previous one needs.

        Returns how many.
        """
        return self.blobs.prune(
            digest for kept in self.history(RELEASES_WITH_BLOBS) for digest in blob_digests(kept.manifest)
        )

    def pinned_key(self) -> bytes | None:
        """Return the Ed25519 public key trusted on first use, or its successor by rotation."""
        found = self._database.row("SELECT public_key FROM pinned_key")
        return found[0] if found else None

    def trusted_key(self, from_settings: bytes | None = None) -> TrustedKey | None:
        """Return the key that must have signed the backend's releases.

        None before the first release. from_settings: the reader's own choice. It takes precedence over the pinned key;
        if this device has followed rotations of it, its successor is returned.
        """
        row = self._database.row("SELECT public_key, coalesce(first_key, public_key), rotation FROM pinned_key")
        kept = TrustedKey(*row) if row else None
        if from_settings is None or (kept is not None and from_settings in (kept.first, kept.public_key)):
            return kept
        return TrustedKey(from_settings, from_settings, 0)

    def pin(self, public_key: bytes, at: datetime) -> None:
        """Trust this key from now on; raises ValueError if another is pinned."""
        with self._database.transaction():
            pinned = self.pinned_key()
            if pinned is not None and pinned != public_key:
                raise ValueError("another key is already pinned")
            self._database.write(
                """INSERT INTO pinned_key (only, public_key, pinned_at, first_key) VALUES (1, ?, ?, ?)
                   ON CONFLICT DO NOTHING""",
                (public_key, to_us(at), public_key),
            )

    def pin_successor(self, key: TrustedKey, at: datetime) -> None:
        """Trust the key that rotations have led to, replacing the pinned one."""
        with self._database.transaction():
            self._database.write(
                """INSERT OR REPLACE INTO pinned_key (only, public_key, pinned_at, first_key, rotation)
                   VALUES (1, ?, ?, ?, ?)""",
                (key.public_key, to_us(at), key.first, key.rotation),
            )

    def replace_pin(self, key: bytes, at: datetime) -> None:
        """Trust the key that the reader chose, replacing the pinned one."""
        self.pin_successor(TrustedKey(key, key, 0), at)

    def trust(self) -> Trust:
        """Return the rows that decide which releases this device accepts, for its copy (`Copies.trust`)."""
        return {table: tuple(self._database.rows(sql)) for table, sql in _TRUST.items()}


def blob_digests(manifest: ReleaseManifest) -> list[str]:
    """Hashes of every blob a release needs, without repeats."""
    return list(blob_refs(manifest))


def blob_refs(manifest: ReleaseManifest) -> dict[str, BlobRef]:
    """Return every blob that a release needs, by hash."""
    refs = [ref for model in manifest.models.values() for ref in (*model.graphs.values(), model.weights)]
    refs += [ref for model in manifest.models.values() if model.groups is not None for ref in model.groups.blobs]
    refs += [book.prototypes for book in manifest.recall.codebooks]
    return {ref.sha256: ref for ref in refs if ref is not None}
