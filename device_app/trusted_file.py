"""Files that the program obeys: read only where nobody but their reader, or the machine's administrator, could have
written them.

A file of settings that lies in the working folder decides where a device sends what it sends. In a shared folder
anybody can put one there, and whoever may write the folder can put another in its place. Every component of the path
is judged, as OpenSSH's StrictModes judges those of its own files, and the links among them besides.
"""

from __future__ import annotations

import errno
import os
import shlex
import stat
import sys
from dataclasses import dataclass, field
from pathlib import Path

ADMINISTRATOR = 0
LINKS_LIMIT = 40
"""As many links in one path as Linux follows."""


class FileNotTrusted(ValueError):
    """Somebody else could have written the file, or it can't be read. The message names the file and the reason."""


@dataclass(frozen=True)
class TrustedFile:
    """What was read. read_by_others: its mode lets other users read it."""

    path: Path
    content: bytes
    read_by_others: bool


def read_trusted(path: Path) -> TrustedFile:
    """The file's content. Raises FileNotTrusted.

    Refused: a file, a folder above it, or a link anywhere in its path, that neither this user nor the administrator
    owns; a file, or a folder above it, that others may write. Folders with the sticky bit, such as /tmp, may be
    written: there only its owner puts something in an entry's place. A group is not others where it holds the owner
    alone. All that others may write is named at once.

    Folders are judged from the root down, each before what lies in it, so that nobody can exchange what was judged;
    the file is judged by the descriptor that it is read through.
    """
    walk = _Walk(path)
    try:
        file = walk.to_file()
        walk.judge_file(file, file.lstat())  # before it is opened: to open a pipe or a device may do something
        # Without waiting, in case it has become one meanwhile.
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
        with os.fdopen(os.open(file, flags), "rb") as opened:
            found = os.fstat(opened.fileno())
            walk.judge_file(file, found)
            return TrustedFile(path, opened.read(), _others_may(found, file, stat.S_IRGRP, stat.S_IROTH))
    except PermissionError as closed:
        raise FileNotTrusted(
            f"{path} can't be read: {closed.strerror}. Its owner has to let you (chmod u+r, if it is yours)"
        ) from closed
    except OSError as broken:
        raise FileNotTrusted(f"{path} can't be read: {broken.strerror}") from broken


@dataclass
class _Walk:
    """The way to a file, one component after the other. writable: what others may write of it, the file included."""

    path: Path
    writable: dict[Path, str] = field(default_factory=dict)

    def to_file(self) -> Path:
        """Where the file lies once all links are followed, its folders judged. Raises FileNotTrusted or OSError."""
        here, ahead, links = Path("/"), [*reversed(self.path.absolute().parts[1:])], 0
        self._judge_folder(here, here.lstat())
        while ahead:
            name = ahead.pop()
            if name == "..":
                here = here.parent
                continue
            inner = here / name
            found = self._looked_at(here, inner)
            if stat.S_ISLNK(found.st_mode):
                links += 1
                if links > LINKS_LIMIT:
                    raise FileNotTrusted(f"{self.path} is refused: more than {LINKS_LIMIT} links lead to it")
                self._check_owner(found, f"the link {inner}")
                target = inner.readlink()
                here = Path("/") if target.is_absolute() else here
                ahead += reversed(target.parts[target.is_absolute() :])
            else:
                here = inner
                if ahead:
                    self._judge_folder(inner, found)
        return here

    def judge_file(self, file: Path, found: os.stat_result) -> None:
        """The file itself, and all that others may write of the way to it. Raises FileNotTrusted."""
        if not stat.S_ISREG(found.st_mode):
            raise FileNotTrusted(f"{self.path} is refused: it is no file")
        self._judge(file, found, "it")
        if self.writable:
            named = " and ".join(self.writable.values())
            paths = " ".join(shlex.quote(str(path)) for path in self.writable)
            raise FileNotTrusted(
                f"{self.path} is refused: others may write {named}, and so decide what is read (chmod go-w {paths})"
            )

    def _judge_folder(self, folder: Path, found: os.stat_result) -> None:
        if found.st_mode & stat.S_ISVTX:
            self._check_owner(found, f"its folder {folder}")
        else:
            self._judge(folder, found, f"its folder {folder}")

    def _judge(self, path: Path, found: os.stat_result, what: str) -> None:
        self._check_owner(found, what)
        if _others_may(found, path, stat.S_IWGRP, stat.S_IWOTH):
            self.writable[path] = what

    def _looked_at(self, folder: Path, inner: Path) -> os.stat_result:
        try:
            return inner.lstat()
        except PermissionError as closed:
            raise FileNotTrusted(
                f"{self.path} can't be looked for: you may not enter its folder {folder}. Its owner has to let you "
                f"(chmod u+x {shlex.quote(str(folder))}, if it is yours); or start Ownfeed in another folder, or name "
                "another file by OWNFEED_CONFIG"
            ) from closed

    def _check_owner(self, found: os.stat_result, what: str) -> None:
        if found.st_uid not in (os.geteuid(), ADMINISTRATOR):
            raise FileNotTrusted(
                f"{self.path} is refused: {what} belongs to another user (number {found.st_uid}), not to you "
                f"(number {os.geteuid()})"
            )


def _others_may(found: os.stat_result, path: Path, by_group: int, by_all: int) -> bool:
    """Whether somebody besides this user, the owner and the administrator has one of these rights.

    The group's bits count where its members are others, and where an access list stands behind them.
    """
    if found.st_mode & by_all:
        return True
    ours = any(group_of_one(found.st_gid, user) for user in {found.st_uid, os.geteuid()})
    return bool(found.st_mode & by_group) and (not ours or _has_access_list(path))


def group_of_one(group: int, user: int) -> bool:
    """Whether a group is one user's alone, as distributions make one for everybody, and a umask of 002 to it.

    It is the user's primary group, bears their name (as pam_umask's `usergroups` asks), and neither the list of groups
    nor anybody's entry among the users puts somebody else in it. Only Linux is asked; elsewhere groups are others.
    """
    if sys.platform != "linux":
        return False
    import grp
    import pwd

    try:
        entry, found = pwd.getpwuid(user), grp.getgrgid(group)
    except KeyError:
        return False
    alone = set(found.gr_mem) <= {entry.pw_name} and found.gr_name == entry.pw_name and entry.pw_gid == group
    return alone and all(other.pw_gid != group or other.pw_uid == user for other in pwd.getpwall())


def _has_access_list(path: Path) -> bool:
    """Whether a POSIX access list gives named users rights, for which the group's bits are only the mask."""
    if sys.platform != "linux":
        return False
    try:
        return "system.posix_acl_access" in os.listxattr(path)
    except OSError as failed:
        return failed.errno != errno.ENOTSUP
