"""Writes files and folders atomically and durably, and creates secret files on first start.

A file or folder appears whole or not at all, and is on the disk when the write returns. A secret is created once and
readable by its owner only; if several processes start at once, all use the one that was created first.
"""

import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import FileLock

from backend.errors import BackendSettingsRefused

UNFINISHED = ".part"
"""Suffix of a file that is still being written."""


def write_durably(path: Path, content: bytes | memoryview) -> None:
    """Write `content` to `path` whole or not at all: temporary name, fsync, rename, fsync of the folder.

    Only its owner may read it, since updates of single readers are among what is written. Raises OSError (such as a
    full disk) and then leaves nothing unfinished; if only the folder's fsync failed, the file exists.
    """
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(6)}{UNFINISHED}")
    try:
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def make_private(folder: Path) -> None:
    """Create a folder and its missing parents for their owner alone: `Path.mkdir` applies its mode only to the last.

    Raises OSError.
    """
    for each in reversed([each for each in (folder, *folder.parents) if not each.exists()]):
        each.mkdir(mode=0o700, exist_ok=True)


def sync_folder(folder: Path) -> None:
    """Flush a folder's own entries to the disk. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def put_folder(made: Path, target: Path) -> None:
    """Rename a finished folder to its final place in the same folder, after flushing its files to the disk.

    Raises OSError, also if the target exists.
    """
    for path in files_below(made):
        with path.open("rb") as file:
            os.fsync(file.fileno())
    for parent, _, _ in os.walk(made):
        sync_folder(Path(parent))
    made.replace(target)
    sync_folder(target.parent)


def files_below(folder: Path) -> Iterator[Path]:
    """The files below a folder; folders that other processes remove meanwhile are skipped.

    Raises OSError for a folder that may not be listed. `Path.rglob` would also raise for removed ones.
    """

    def tell(why: OSError) -> None:
        if not isinstance(why, FileNotFoundError):
            raise why

    for parent, _, names in os.walk(folder, onerror=tell):
        for name in names:
            yield Path(parent, name)


def load_or_create_secret(path: Path, make: Callable[[], bytes]) -> bytes:
    """Read the file, which may be empty; if it is missing, create it with what `make` returns.

    Raises OSError, or BackendSettingsRefused for a dangling symbolic link.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        try:
            return path.read_bytes()
        except FileNotFoundError:
            if path.is_symlink():
                raise BackendSettingsRefused(
                    f"{path} is a link to {path.readlink()}, which does not exist. Put the file there, or remove the "
                    "link: the next start then creates a new secret.",
                    field=path.name,
                ) from None
            create_secret(path, make())


def create_secret(path: Path, content: bytes) -> None:
    """Create a file, on the disk when this returns, unless another process was first."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(6)}{UNFINISHED}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            path.hardlink_to(draft)
        except FileExistsError:
            return
        except OSError:  # a file system without hard links, such as FAT: simultaneous starts take turns
            with FileLock(path.with_name(f"{path.name}.lock"), mode=0o600):
                if not path.exists():
                    draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(path.parent)
