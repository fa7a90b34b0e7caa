"""The commands `ownfeed keys`: options and one call each, which imports what it needs."""

from __future__ import annotations

from typing import Annotated

import typer

from backend.terminal.options import AsJson, BackendDir, chosen, says

keys_app = typer.Typer(help="Show and rotate the key that releases are signed with.", no_args_is_help=True)


@keys_app.command("show")
def show_key(data_dir: BackendDir = None, as_json: AsJson = False) -> None:
    """Show the public key that readers can set as `backend_key`, its fingerprint, and the file to back up."""
    from backend.settings import load_settings
    from backend.terminal.keys import show

    show(load_settings(**chosen(data_dir=data_dir)), as_json)


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
    from backend.settings import load_settings
    from backend.terminal.keys import rotate

    settings = load_settings(**chosen(data_dir=data_dir))
    rotate(settings, without_old_key=without_old_key, as_json=as_json, console=says)
