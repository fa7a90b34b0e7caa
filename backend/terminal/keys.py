"""The commands `ownfeed keys`, which show and rotate the signing key; each imports what it needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backend.terminal.options import AsJson, BackendDir, chosen, says

if TYPE_CHECKING:
    from backend.releases.store import ReleaseStore
    from backend.settings import BackendSettings

keys_app = typer.Typer(help="Show and rotate the key that releases are signed with.", no_args_is_help=True)


@keys_app.command("show")
def show_key(data_dir: BackendDir = None, as_json: AsJson = False) -> None:
    """Show the public key that readers can set as `backend_key`, its fingerprint, and the file to back up."""
    settings, store = _opened(data_dir)
    store.require_current()
    _show(settings, store, as_json)


@keys_app.command("rotate")
def rotate_key(
    without_old_key: Annotated[
        bool,
        typer.Option("--without-old-key", help="The old key is lost: every reader has to set backend_key by hand."),
    ] = False,
    data_dir: BackendDir = None,
    as_json: AsJson = False,
) -> None:
    """Sign with a new key from now on.

    The old key certifies it, so devices accept it automatically.
    """
    from backend.releases import rotation

    settings, store = _opened(data_dir)
    manifest = (rotation.replace_lost_key if without_old_key else rotation.rotate_key)(store)
    if without_old_key:
        words = "No device takes it until its reader has set backend_key to the public key below."
    else:
        words = "Devices take the new key at their next sync. Back up its file now."
    says.print(f"Release {manifest.release} is signed with a new key. {words}", markup=False)
    _show(settings, store, as_json)


def _show(settings: BackendSettings, store: ReleaseStore, as_json: bool) -> None:
    """Print the public key and the location of the private key."""
    from backend.releases.rotation import key_history
    from backend.releases.signing import public_half
    from backend.releases.store import SIGNING_KEY_FILE
    from protocol.chain import fingerprint

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


def _opened(data_dir: Path | None) -> tuple[BackendSettings, ReleaseStore]:
    """The settings and the releases of a data folder that has some. Raises NothingPublished."""
    from backend.db.engine import migrate, open_engine
    from backend.releases.errors import NothingPublished
    from backend.releases.store import ReleaseStore
    from backend.settings import load_settings

    settings = load_settings(**chosen(data_dir=data_dir))
    if not settings.data_dir.is_dir():
        raise NothingPublished
    migrate(settings.database_url)
    return settings, ReleaseStore.unchecked(open_engine(settings.database_url), settings)
