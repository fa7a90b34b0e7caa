"""Somebody else's settings: a neighbour who leaves an `ownfeed.toml` where the reader will start the device, and names
that nobody reads.

The file could send the device to another backend under another key, and raise every ceiling. As root the tests give
files to another user; else they judge them as another user would.
"""

from __future__ import annotations

import grp
import os
import pwd
import re
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from backend.errors import BackendSettingsRefused
from backend.settings import load_settings
from device_app import trusted_file
from device_app.errors import SettingsRefused
from device_app.setting_names import OTHER_VARIABLES
from device_app.settings import DeviceSettings
from device_app.trusted_file import FileNotTrusted, read_trusted

NOBODY = 65_534
ROOT = Path(__file__).parents[2]
LOOSE = """
[device]
backend_url = "http://198.51.100.1"
[device.privacy]
mode = "basis_laplace"
epsilon_per_day_reports = 1000000.0
[backend]
host = "0.0.0.0"
"""
Own = Callable[[Path], None]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the reader starts the device."""
    made = tmp_path / "folder"
    made.mkdir(mode=0o755)
    monkeypatch.chdir(made)
    return made


@pytest.fixture
def given_away(monkeypatch: pytest.MonkeyPatch) -> Own:
    """Makes a file another user's."""

    def give(path: Path) -> None:
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        else:
            mine = os.geteuid()
            monkeypatch.setattr(os, "geteuid", lambda: mine + 1)

    return give


@pytest.fixture
def shared_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others are in the file's group, whatever this machine's groups are."""
    monkeypatch.setattr(trusted_file, "group_of_one", lambda group, user: False)


def written(path: Path, content: str = LOOSE, mode: int = 0o600) -> Path:
    path.write_text(content)
    path.chmod(mode)
    return path


def refused(reason: str) -> None:
    """By the device and by the backend alike."""
    with pytest.raises(SettingsRefused, match=reason):
        DeviceSettings()
    with pytest.raises(BackendSettingsRefused, match=reason):
        load_settings()


def test_a_file_of_the_readers_own_is_read_and_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(folder / "ownfeed.toml", mode=0o644)
    assert DeviceSettings().backend_url == "http://198.51.100.1"
    assert load_settings().host == "0.0.0.0"
    assert capsys.readouterr().err.splitlines() == 2 * [f"ownfeed: settings are read from {folder}/ownfeed.toml."]


def test_a_file_that_another_user_left_in_the_folder_is_refused(folder: Path, given_away: Own) -> None:
    given_away(written(folder / "ownfeed.toml", mode=0o644))
    refused(r"ownfeed\.toml is refused: .*belongs to another user")


def test_so_is_one_that_the_environment_names(tmp_path: Path, given_away: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    named = written(tmp_path / "mine.toml", mode=0o644)
    given_away(named)
    monkeypatch.setenv("OWNFEED_CONFIG", str(named))
    refused(re.escape(str(named)) + ".*belongs to another user")


def test_a_link_of_another_user_to_a_file_of_the_readers_is_refused(
    tmp_path: Path, folder: Path, given_away: Own
) -> None:
    """It would choose among the reader's files: last year's settings, say."""
    link = folder / "ownfeed.toml"
    link.symlink_to(written(tmp_path / "old.toml"))
    given_away(link)
    refused("belongs to another user")


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_is_refused(folder: Path, mode: int, shared_group: None) -> None:
    path = written(folder / "ownfeed.toml", mode=mode)
    refused(rf"others may write it, and so decide what is read \(chmod go-w {path}\)")


@pytest.mark.usefixtures("shared_group")
@pytest.mark.parametrize("depth", [0, 1])
@pytest.mark.parametrize("mode", [0o770, 0o777])
def test_a_file_in_or_below_a_folder_that_others_may_write_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, mode: int, depth: int
) -> None:
    inner = folder / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    written(inner / "ownfeed.toml")
    (inner, folder)[depth].chmod(mode)
    refused(f"others may write its folder {(inner, folder)[depth]}")
    (inner, folder)[depth].chmod(0o1777)
    assert DeviceSettings().backend_url == "http://198.51.100.1", "with the sticky bit, as /tmp, only its owner may"


def test_all_that_others_may_write_is_named_at_once_with_one_command(folder: Path) -> None:
    """Red before: three starts and three commands."""
    inner = folder / "in it"
    inner.mkdir()
    inner.chmod(0o777)
    folder.chmod(0o777)
    path = written(inner / "own.toml", mode=0o666)
    with pytest.raises(FileNotTrusted) as named:
        read_trusted(path)
    assert str(named.value) == (
        f"{path} is refused: others may write its folder {folder} and its folder {inner} and it, and so decide what is "
        f"read (chmod go-w {folder} '{inner}' '{path}')"
    )
    command = str(named.value).rpartition("(")[2].rstrip(")")
    subprocess.run(["/bin/sh", "-c", command], check=True)
    assert read_trusted(path).content == path.read_bytes()


ME, MY_GROUP = os.geteuid(), os.getegid()


@pytest.mark.skipif(sys.platform != "linux", reason="groups of one user are known on Linux only")
@pytest.mark.parametrize(
    ("members", "users", "name", "alone"),
    [
        ([], {"anna": (ME, MY_GROUP)}, "anna", True),
        (["anna"], {"anna": (ME, MY_GROUP), "bob": (ME + 1, MY_GROUP + 1)}, "anna", True),
        (["anna", "bob"], {"anna": (ME, MY_GROUP)}, "anna", False),
        ([], {"anna": (ME, MY_GROUP), "bob": (ME + 1, MY_GROUP)}, "anna", False),
        ([], {"anna": (ME, MY_GROUP + 1)}, "anna", False),
        ([], {"anna": (ME, MY_GROUP)}, "users", False),
        ([], {"bob": (ME + 1, MY_GROUP + 1)}, "anna", False),
    ],
    ids=["empty", "owner", "a second member", "another's primary", "not primary", "of many by its name", "unknown"],
)
def test_a_group_that_holds_the_owner_alone_is_nobody_else(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    members: list[str],
    users: dict[str, tuple[int, int]],
    name: str,
    alone: bool,
) -> None:
    """As under a umask of 002. Red before: refused, whoever was in the group."""
    entries = [pwd.struct_passwd((user, "x", uid, gid, "", "/", "/bin/sh")) for user, (uid, gid) in users.items()]
    monkeypatch.setattr(pwd, "getpwall", lambda: entries)
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: {entry.pw_uid: entry for entry in entries}[uid])
    monkeypatch.setattr(grp, "getgrgid", lambda gid: grp.struct_group((name, "x", gid, members)))
    folder.chmod(0o775)
    os.chown(folder, ME, MY_GROUP)
    path = written(folder / "ownfeed.toml", LOOSE + 'database_url = "postgresql://a:hidden@db/a"\n', mode=0o664)
    os.chown(path, ME, MY_GROUP)
    path.chmod(0o660)
    if not alone:
        refused(f"others may write its folder {folder} and it")
        return
    assert DeviceSettings().backend_url == "http://198.51.100.1"
    assert "others may read the file" not in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="access lists are asked for on Linux only")
def test_behind_the_bits_of_ones_own_group_an_access_list_lets_nobody_in(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `setfacl -m u:nobody:rw` the group's bits are the mask of the list, and say nothing of the group."""
    monkeypatch.setattr(trusted_file, "group_of_one", lambda group, user: True)
    path = written(folder / "ownfeed.toml", mode=0o660)
    assert read_trusted(path)
    anyone = 0xFFFFFFFF
    rights = [(1, 6, anyone), (2, 6, NOBODY), (4, 6, anyone), (16, 6, anyone), (32, 0, anyone)]
    listed = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *one) for one in rights)
    try:
        os.setxattr(path, "system.posix_acl_access", listed)
    except OSError as failed:
        pytest.skip(f"no access lists on this file system ({failed.strerror})")
    refused("others may write it")
    path.chmod(0o600)
    assert read_trusted(path)


def test_a_link_leads_to_a_folder_that_is_judged_too(tmp_path: Path, folder: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    (folder / "ownfeed.toml").symlink_to(written(shared / "ownfeed.toml"))
    refused(f"others may write its folder {shared}")


def test_a_link_of_another_user_to_a_folder_is_refused_where_anybody_may_put_one(
    tmp_path: Path, folder: Path, given_away: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder as /tmp is. Red before: what it led to was judged, and itself not, so that it chose among the
    reader's own folders.
    """
    old = tmp_path / "old"
    old.mkdir()
    written(old / "ownfeed.toml")
    folder.chmod(0o1777)
    (folder / "here").symlink_to(old, target_is_directory=True)
    (folder / "there").symlink_to("here/../old")
    monkeypatch.setenv("OWNFEED_CONFIG", str(folder / "there" / "ownfeed.toml"))
    assert DeviceSettings().backend_url == "http://198.51.100.1", "a link of one's own may lead anywhere"
    given_away(folder / "here")
    refused(f"the link {folder / 'here'} belongs to another user")


def test_links_that_lead_in_a_circle_end(folder: Path) -> None:
    (folder / "one").symlink_to("two")
    (folder / "two").symlink_to("one")
    with pytest.raises(FileNotTrusted, match="more than 40 links"):
        read_trusted(folder / "one" / "ownfeed.toml")


def test_a_pipe_in_the_place_of_the_file_holds_nobody_up(folder: Path) -> None:
    os.mkfifo(folder / "ownfeed.toml")
    assert DeviceSettings().backend_url == DeviceSettings.model_fields["backend_url"].default
    with pytest.raises(FileNotTrusted, match="it is no file"):  # it was put there after the look
        read_trusted(folder / "ownfeed.toml")


@pytest.mark.parametrize("named", [False, True], ids=["working folder", "OWNFEED_CONFIG"])
def test_a_folder_that_cant_be_entered_is_named_with_what_to_do(
    folder: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    """Red before: a traceback, or "Permission denied" and the file's name alone."""
    closed = folder / "closed"
    closed.mkdir()
    monkeypatch.chdir(closed)
    if named:
        monkeypatch.setenv("OWNFEED_CONFIG", str(closed / "mine.toml"))
    closed.chmod(0o600)
    first, before = closed, os.geteuid()
    if before == 0:
        first = next(step for step in (*reversed(closed.parents), closed) if not step.stat().st_mode & 0o001)
        os.seteuid(NOBODY)  # nothing is closed to the administrator
    try:
        refused(rf"you may not enter its folder {first}\. .* \(chmod u\+x {first}, if it is yours\)")
    finally:
        os.seteuid(before)
        closed.chmod(0o700)


def test_a_file_that_cant_be_opened_is_no_traceback(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    written(folder / "ownfeed.toml")
    monkeypatch.setattr(os, "open", opened)
    refused(r"ownfeed\.toml can't be read: Permission denied")


@pytest.mark.parametrize(
    ("setting", "value", "warned"),
    [
        ("database_url", "postgresql://ownfeed:hidden@db/ownfeed", True),
        ("database_url", "postgresql://db/ownfeed?user=ownfeed&password=hidden", True),
        ("database_url", "postgresql://ownfeed@db/ownfeed", False),
        ("admin_token_file", "/srv/admin.token", False),
    ],
)
def test_a_password_that_others_may_read_is_warned_of_and_not_shown(
    folder: Path, capsys: pytest.CaptureFixture[str], setting: str, value: str, warned: bool
) -> None:
    path = written(folder / "ownfeed.toml", f'[backend]\n{setting} = "{value}"\n', mode=0o644)
    load_settings()
    said = capsys.readouterr().err
    assert (f"warning: backend.{setting} in {path} holds a secret" in said) == warned
    assert "hidden" not in said
    path.chmod(0o600)
    load_settings()
    assert "warning" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[devcie]\nport = 1\n", r"devcie is no table of settings, perhaps device is meant"),
        ("[device.privacy]\n[privacy]\nmode = 'none'\n", r"privacy is no table of settings; settings stand below"),
        ("port = 1\n", r"port is no table of settings; settings stand below \[device\] or \[backend\]"),
    ],
)
def test_a_table_that_nobody_reads_is_refused(folder: Path, content: str, reason: str) -> None:
    """Red before: a reader's `mode = "none"` below a misspelt table counted for nothing, without a word."""
    written(folder / "ownfeed.toml", content)
    refused(reason)


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("OWNFEED_DEVCIE_PORT", "OWNFEED_DEVICE_PORT"),
        ("OWNFEED_BACKND_PORT", "OWNFEED_BACKEND_PORT"),
        ("OWNFEED_CONFG", "OWNFEED_CONFIG"),
        ("ownfeed_dtaa", "OWNFEED_DATA"),
    ],
)
def test_a_variable_that_nobody_reads_is_refused(monkeypatch: pytest.MonkeyPatch, variable: str, meant: str) -> None:
    monkeypatch.setenv(variable, "1")
    refused(f"the variable {variable.upper()} is no setting, perhaps {meant} is meant")


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("OWNFEED_DEVICE_PROT", "OWNFEED_DEVICE_PORT"),
        ("OWNFEED_DEVICE_PRIVACY_MODE", "OWNFEED_DEVICE_PRIVACY__MODE"),
        ("OWNFEED_DEVICE_PORT__X", "OWNFEED_DEVICE_PORT"),
        ("OWNFEED_DEVICE_", "OWNFEED_DEVICE_"),
    ],
)
def test_a_misspelt_variable_of_the_device_is_refused_by_it_and_not_by_the_backend(
    monkeypatch: pytest.MonkeyPatch, variable: str, meant: str
) -> None:
    """Red before: OWNFEED_DEVICE_PRIVACY_MODE=none, one underscore short, reported by `code` all the same."""
    monkeypatch.setenv(variable, "none")
    with pytest.raises(SettingsRefused, match=f"the variable {variable} is no setting, perhaps {meant}"):
        DeviceSettings()
    assert load_settings().port == 8400


def test_a_misspelt_variable_of_the_backend_is_refused_by_it_and_not_by_the_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OWNFEED_BACKEND_PLACES_PER_ADRESS", "3")
    with pytest.raises(BackendSettingsRefused, match="perhaps OWNFEED_BACKEND_PLACES_PER_ADDRESS is meant"):
        load_settings()
    assert DeviceSettings().port == 8401


def test_every_variable_that_the_tree_names_is_known() -> None:
    """A new one has to be written down, or every start in its presence is refused."""
    listed = subprocess.run(
        ["git", "grep", "-hoIE", r"\bOWNFEED_[A-Z_]+", "--", "*.py", "*.md", "*.yml", "Makefile", ":!tests/privacy"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found = {name for name in listed.stdout.split() if not name.startswith(("OWNFEED_DEVICE_", "OWNFEED_BACKEND_"))}
    assert found - {"OWNFEED_"} == OTHER_VARIABLES


def test_the_command_says_it_in_one_line(folder: Path) -> None:
    written(folder / "ownfeed.toml", mode=0o666)
    ended = subprocess.run(
        [sys.executable, "-m", "ownfeed", "device", "--port", "0"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 1
    said = "ownfeed: ownfeed.toml is refused: others may write it, and so decide what is read (chmod go-w "
    assert said in " ".join(ended.stderr.split())
