"""Create folders and files that only their owner can open (0700 and 0600).

The owner is the user that the device, or the server, runs as. This keeps out other users of the machine and their
programs; it doesn't keep out the administrator, nor programs of the same user.
"""

import os
import stat
from pathlib import Path

FOLDER_MODE, FILE_MODE = 0o700, 0o600
UMASK = 0o077
PIECE_BYTES = 1 << 20
OURS = frozenset(
    (
        *("addresses.key", "admin.token", "metrics.token", "signing.key", "chain.jsonl", "server.log"),
        *("backend", "devices", "blobs", "encoder", "graphs", "index", "rounds", "servers", "sums", "uploads"),
    )
)
"""Names, besides `ownfeed.*`, that identify a folder as one of our data folders."""
NOBODYS = frozenset(("lost+found", "demo.lock", "demo.pid", "reader.lock", "reader.pid"))
"""Names in a folder that still counts as empty: a disk's own, and the lock of a starting process."""
PROFILES = "devices"


def keep_new_files_private() -> None:
    """Make this process and its children create files for their owner only.

    Commands call it first.
    """
    os.umask(UMASK)


def make_folder(folder: Path) -> None:
    """Create a folder with missing parents, with mode 0700; an existing one keeps its mode."""
    missing = [folder, *folder.parents]
    for each in reversed([one for one in missing if not one.exists()]):
        each.mkdir(mode=FOLDER_MODE, exist_ok=True)


def make_file(path: Path) -> None:
    """Create an empty file with mode 0600; an existing one stays unchanged."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE_MODE))


def write_file(path: Path, content: str) -> None:
    """Replace a file atomically, with mode 0600; it is on the disk when this returns."""
    draft = path.with_name(f"{path.name}.part")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE), "w") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def overwrite(path: Path) -> None:
    """Overwrite a file's content and remove it; do nothing if it doesn't exist.

    Copies that the file system or a flash drive keeps can't be reached.
    """
    try:
        with path.open("r+b") as file:
            for start in range(0, path.stat().st_size, PIECE_BYTES):
                file.write(bytes(min(PIECE_BYTES, path.stat().st_size - start)))
            file.flush()
            os.fsync(file.fileno())
        path.unlink()
    except FileNotFoundError:
        return


def tighten(folder: Path) -> int:
    """Remove other users' permissions from a folder and everything in it.

    Returns how many entries were changed. The folder itself may be a link; links in it are not followed. Raises
    PermissionError if something in it belongs to another user, and OSError, before anything is changed, if it is not an
    Ownfeed folder: a setting may name /var, or a file.
    """
    folder = folder.resolve()
    _check_ours(folder)
    changed = _tighten(folder)
    for inside, folders, files in os.walk(folder):
        changed += sum(_tighten(Path(inside, name)) for name in (*folders, *files))
    return changed


def _check_ours(folder: Path) -> None:
    if not folder.exists() or PROFILES in (folder.name, folder.parent.name):
        return
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is not a folder; Ownfeed needs a folder of its own for its data.")
    found = {each.name for each in folder.iterdir()} - NOBODYS
    if found and not any(name in OURS or name.startswith("ownfeed.") for name in found):
        raise FileExistsError(
            f"{folder} contains {min(found)} but no data of Ownfeed. Name an empty or new folder for Ownfeed's data."
        )


def _tighten(path: Path) -> int:
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode) or not stat.S_IMODE(mode) & UMASK:
            return 0
        path.chmod(stat.S_IMODE(mode) & ~UMASK)
    except FileNotFoundError:
        return 0  # a log of SQLite's, or what another worker has removed
    return 1
