"""The commands `ownfeed backup`: options and one call each, which imports what it needs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backend.terminal.options import BackendDir, chosen, says

if TYPE_CHECKING:
    from backend.operations.backup import Backup

backup_app = typer.Typer(help="Copy a backend's folder while it runs, and put a copy back.", no_args_is_help=True)

BackupFolder = Annotated[Path, typer.Argument(help="Where the copy is.")]


@backup_app.command("make")
def make_backup(folder: BackupFolder, data_dir: BackendDir = None) -> None:
    """Copy all but the signing key and the operator's token, or update a copy.

    With PostgreSQL: dump it first.
    """
    from backend.operations.backup import back_up
    from backend.settings import load_settings

    _tell("Copied", back_up(load_settings(**chosen(data_dir=data_dir)), folder.absolute()))


@backup_app.command("restore")
def restore_backup(folder: BackupFolder, data_dir: BackendDir = None) -> None:
    """Check a copy, and restore it in place of a lost backend folder.

    The signing key may be there already.
    """
    from backend.operations.backup import restore
    from backend.settings import load_settings

    _tell("Restored", restore(load_settings(**chosen(data_dir=data_dir)), folder.absolute()))
    says.print("The next start makes a new operator's token: the copy holds none.", soft_wrap=True)


def _tell(what: str, backup: Backup) -> None:
    facts = backup.facts
    newest = "no release" if backup.newest_release is None else f"releases up to {backup.newest_release}"
    mebibytes = backup.size_bytes / (1 << 20)
    words = f"{what}: {newest}, as of {facts.made_at:%Y-%m-%d %H:%M} UTC, {mebibytes:.0f} MiB, {backup.folder}"
    says.print(words, markup=False, soft_wrap=True)
