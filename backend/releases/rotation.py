"""Rotate the signing key: sign the newest release again with a key certified by the old one.

First the new key is written to disk, then one transaction writes statement and release, then the file of the new key
replaces that of the old. If killed before the transaction, the server continues with the old key, afterwards with the
new one.
"""

from datetime import UTC, datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from backend.db.advisory_lock import advisory_lock
from backend.db.engine import reading_session
from backend.db.tables import KeyRotationRow
from backend.releases.blobs import ReleaseDraft
from backend.releases.errors import SigningKeyRefused
from backend.releases.signing import public_half
from backend.releases.store import ReleaseStore
from protocol.chain import ROTATIONS_LIMIT, KeyHistory, KeyRotation, SignedRotation, sign_rotation
from protocol.ids import release_number
from protocol.releases import ReleaseManifest


def rotate_key(store: ReleaseStore, *, now: datetime | None = None) -> ReleaseManifest:
    """Sign with a new key from now on; returns the first release signed with it.

    Devices that trust the old key accept the new one at their next sync, by the statement that both keys have signed.
    Raises NothingPublished, or SigningKeyRefused if the old key is lost or another process is rotating.
    """
    return _renewed(store, vouched=True, now=now or datetime.now(UTC))


def replace_lost_key(store: ReleaseStore, *, now: datetime | None = None) -> ReleaseManifest:
    """Sign with a new key that no old key certifies.

    Every device refuses it until its reader has set `backend_key`. Raises NothingPublished, or SigningKeyRefused if the
    key isn't lost or another process is rotating.
    """
    try:
        store.signing_key()
    except SigningKeyRefused:
        return _renewed(store, vouched=False, now=now or datetime.now(UTC))
    raise SigningKeyRefused("The signing key is present and intact, so it can sign the next one: rotate it instead.")


def key_history(store: ReleaseStore) -> KeyHistory:
    """Return the public key of the newest release and all rotations so far.

    Raises NothingPublished.
    """
    signed = store.current()
    if signed is None:
        store.require_current()
    assert signed is not None
    with reading_session(store.engine) as session:
        rows = session.scalars(select(KeyRotationRow).order_by(KeyRotationRow.number)).all()
        rotations = tuple(
            SignedRotation(rotation=row.rotation, by_old_key=row.by_old_key, by_new_key=row.by_new_key) for row in rows
        )
    return KeyHistory(public_key=signed.public_key, rotations=rotations)


def _renewed(store: ReleaseStore, *, vouched: bool, now: datetime) -> ReleaseManifest:
    file = store.key_file
    if file is None:
        raise SigningKeyRefused("This store holds its key in memory; there is no file to rotate.")
    with advisory_lock(store.engine, "rotate-key") as mine:
        if not mine:
            raise SigningKeyRefused("Another process is rotating the signing key.")
        current = store.require_current()
        old = store.signing_key() if vouched else None
        if not vouched:
            file.set_aside()
        new = file.draft()

        def write_statement(session: Session, manifest: ReleaseManifest) -> None:
            if old is None:
                return
            number = (session.scalar(select(func.max(KeyRotationRow.number))) or 0) + 1
            if number > ROTATIONS_LIMIT:
                raise SigningKeyRefused(f"A server's key can be rotated {ROTATIONS_LIMIT} times at most.")
            rotation = KeyRotation(number=number, old_key=public_half(old), new_key=public_half(new), rotated_at=now)
            signed = sign_rotation(rotation, old, new)
            session.add(
                KeyRotationRow(
                    number=number,
                    rotation=signed.rotation,
                    by_old_key=signed.by_old_key,
                    by_new_key=signed.by_new_key,
                    release=release_number(manifest.release),
                )
            )
            session.flush()

        note = "signed with a new key" if vouched else "signed with a new key; the old one is lost"
        manifest = store.commit(ReleaseDraft.like(current), note=note, together_with=write_statement, signed_with=new)
        file.promote()
        return manifest
