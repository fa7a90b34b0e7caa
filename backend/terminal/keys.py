"""`ownfeed keys`: shows and rotates the signing key."""

from __future__ import annotations

import json

import typer
from rich.console import Console

from backend.db.engine import migrate, open_engine
from backend.releases.errors import NothingPublished
from backend.releases.rotation import key_history, replace_lost_key, rotate_key
from backend.releases.signing import public_half
from backend.releases.store import SIGNING_KEY_FILE, ReleaseStore
from backend.settings import BackendSettings
from protocol.chain import fingerprint


def show(settings: BackendSettings, as_json: bool) -> None:
    """Print the public key and the location of the private key.

    Raises NothingPublished or SigningKeyRefused.
    """
    store = _store(settings)
    store.require_current()
    key = public_half(store.signing_key())
    shown = {
        "public_key": key.hex(),
        "fingerprint": fingerprint(key),
        "file": str(settings.data_dir / SIGNING_KEY_FILE),
        "rotations": len(key_history(store).rotations),
    }
    if as_json:
        typer.echo(json.dumps(shown))
    else:
        for name, value in shown.items():
            typer.echo(f"{name:12} {value}")


def rotate(settings: BackendSettings, *, without_old_key: bool, as_json: bool, console: Console) -> None:
    """Sign with a new key from now on, and show it.

    Raises the errors of `backend.releases.rotation`.
    """
    store = _store(settings)
    manifest = (replace_lost_key if without_old_key else rotate_key)(store)
    if without_old_key:
        words = "No device takes it until its reader has set backend_key to the public key below."
    else:
        words = "Devices take the new key at their next sync. Back up its file now."
    console.print(f"Release {manifest.release} is signed with a new key. {words}", markup=False)
    show(settings, as_json)


def _store(settings: BackendSettings) -> ReleaseStore:
    """The releases of a data folder that has some."""
    if not settings.data_dir.is_dir():
        raise NothingPublished
    migrate(settings.database_url)
    return ReleaseStore.unchecked(open_engine(settings.database_url), settings)
