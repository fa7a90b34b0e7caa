"""Settings of other users: an `ownfeed.toml` left where the reader starts the device, and unknown setting names.

The file could send the device to another backend under another key, and raise every limit. When run as root the tests
give files to another user; otherwise they check them as another user would.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from backend.errors import BackendSettingsRefused
from backend.settings import load_settings
from device_app.errors import SettingsRefused
from device_app.settings import DeviceSettings
from protocol.settings_file import OTHER_VARIABLES, described

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
    """The folder in which the reader starts the device."""
    made = tmp_path / "folder"
    made.mkdir(mode=0o755)
    monkeypatch.chdir(made)
    return made


@pytest.fixture
def given_away(monkeypatch: pytest.MonkeyPatch) -> Own:
    """Make a file another user's."""

    def give(path: Path) -> None:
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        else:
            mine = os.geteuid()
            monkeypatch.setattr(os, "geteuid", lambda: mine + 1)

    return give


def written(path: Path, content: str = LOOSE, mode: int = 0o600) -> Path:
    path.write_text(content)
    path.chmod(mode)
    return path


def refused(reason: str) -> None:
    """Check that the device and the backend both refuse the settings."""
    with pytest.raises(SettingsRefused, match=reason):
        DeviceSettings()
    with pytest.raises(BackendSettingsRefused, match=reason):
        load_settings()


def test_settings_file_of_the_reader_is_read_and_its_path_reported(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(folder / "ownfeed.toml", mode=0o644)
    assert DeviceSettings().backend_url == "http://198.51.100.1"
    assert load_settings().host == "0.0.0.0"
    assert capsys.readouterr().err.splitlines() == 2 * [f"ownfeed: settings are read from {folder}/ownfeed.toml."]


def test_settings_file_of_another_user_is_refused(folder: Path, given_away: Own) -> None:
    given_away(written(folder / "ownfeed.toml", mode=0o644))
    refused(r"ownfeed\.toml is refused: .*belongs to another user")


def test_settings_file_from_the_environment_is_refused_if_foreign(
    tmp_path: Path, given_away: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = written(tmp_path / "mine.toml", mode=0o644)
    given_away(named)
    monkeypatch.setenv("OWNFEED_CONFIG", str(named))
    refused(re.escape(str(named)) + ".*belongs to another user")


def test_link_to_a_settings_file_made_by_another_user_is_refused(tmp_path: Path, folder: Path, given_away: Own) -> None:
    """It could choose among the reader's files: last year's settings, say."""
    link = folder / "ownfeed.toml"
    link.symlink_to(written(tmp_path / "old.toml"))
    given_away(link)
    refused("belongs to another user")


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_settings_file_writable_by_others_is_refused(folder: Path, mode: int) -> None:
    path = written(folder / "ownfeed.toml", mode=mode)
    refused(re.escape(f"others may write {path} (chmod go-w {path})"))


@pytest.mark.parametrize("mode", [0o770, 0o777])
def test_settings_file_in_a_folder_writable_by_others_is_refused(folder: Path, mode: int) -> None:
    written(folder / "ownfeed.toml")
    folder.chmod(mode)
    refused(f"others may write {folder} ")
    folder.chmod(0o1777)
    assert DeviceSettings().backend_url == "http://198.51.100.1", "with the sticky bit, as /tmp, only its owner may"


def test_error_names_all_paths_writable_by_others_and_one_command_that_fixes_them(tmp_path: Path, folder: Path) -> None:
    inner = folder / "in it"
    inner.mkdir()
    target = written(inner / "own.toml", mode=0o666)
    (folder / "ownfeed.toml").symlink_to(target)
    inner.chmod(0o777)
    with pytest.raises(SettingsRefused, match=re.escape(f"others may write {inner} and {target} (")) as named:
        DeviceSettings()
    command = str(named.value).rpartition("(")[2].rstrip(").")
    subprocess.run(["/bin/sh", "-c", command], check=True)
    assert DeviceSettings().backend_url == "http://198.51.100.1"


def test_pipe_in_place_of_the_settings_file_does_not_block(folder: Path) -> None:
    os.mkfifo(folder / "ownfeed.toml")
    assert DeviceSettings().backend_url == DeviceSettings.model_fields["backend_url"].default


def test_unreadable_settings_file_gives_an_error_without_traceback(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    path = written(folder / "ownfeed.toml")
    for part in ("read_bytes", "stat"):
        with monkeypatch.context() as closed:
            closed.setattr(Path, part, read)
            refused(re.escape(f"{path} can't be read: Permission denied"))


@pytest.mark.parametrize(
    ("setting", "value", "warned"),
    [
        ("database_url", "postgresql://ownfeed:hidden@db/ownfeed", True),
        ("database_url", "postgresql://db/ownfeed?user=ownfeed&password=hidden", True),
        ("database_url", "postgresql://ownfeed@db/ownfeed", False),
        ("admin_token_file", "/srv/admin.token", False),
    ],
)
def test_password_readable_by_others_gives_a_warning_without_showing_it(
    folder: Path, capsys: pytest.CaptureFixture[str], setting: str, value: str, warned: bool
) -> None:
    path = written(folder / "ownfeed.toml", f'[backend]\n{setting} = "{value}"\n', mode=0o644)
    load_settings()
    said = capsys.readouterr().err
    assert (f"warning: {path} holds a password" in said) == warned
    assert "hidden" not in said
    path.chmod(0o600)
    load_settings()
    assert "warning" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[devcie]\nport = 1\n", r"devcie is not a table of settings; perhaps you meant device"),
        ("[device.privacy]\n[privacy]\nmode = 'none'\n", r"privacy is not a table of settings; settings belong in"),
        ("port = 1\n", r"port is not a table of settings; settings belong in \[device\] or \[backend\]"),
    ],
)
def test_unknown_settings_table_is_refused(folder: Path, content: str, reason: str) -> None:
    """Regression: a reader's `mode = "none"` below a misspelt table was ignored silently."""
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
def test_unknown_environment_variable_is_refused(monkeypatch: pytest.MonkeyPatch, variable: str, meant: str) -> None:
    monkeypatch.setenv(variable, "1")
    refused(f"the variable {variable.upper()} is not a setting; perhaps you meant {meant}")


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("OWNFEED_DEVICE_PROT", "OWNFEED_DEVICE_PORT"),
        ("OWNFEED_DEVICE_PRIVACY_MODE", "OWNFEED_DEVICE_PRIVACY__MODE"),
        ("OWNFEED_DEVICE_PORT__X", "OWNFEED_DEVICE_PORT"),
        ("OWNFEED_DEVICE_", "OWNFEED_DEVICE_"),
    ],
)
def test_misspelt_device_variable_is_refused_by_the_device_only(
    monkeypatch: pytest.MonkeyPatch, variable: str, meant: str
) -> None:
    """Regression: OWNFEED_DEVICE_PRIVACY_MODE=none, one underscore short, still reported by `code`."""
    monkeypatch.setenv(variable, "none")
    with pytest.raises(SettingsRefused, match=f"the variable {variable} is not a setting; perhaps you meant {meant}"):
        DeviceSettings()
    assert load_settings().port == 8400


def test_misspelt_backend_variable_is_refused_by_the_backend_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OWNFEED_BACKEND_PLACES_PER_ADRESS", "3")
    with pytest.raises(BackendSettingsRefused, match="perhaps you meant OWNFEED_BACKEND_PLACES_PER_ADDRESS"):
        load_settings()
    assert DeviceSettings().port == 8401


def test_kubernetes_service_variable_is_refused_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWNFEED_BACKEND_SERVICE_HOST", "10.96.0.8")
    with pytest.raises(BackendSettingsRefused, match="unless the pod has enableServiceLinks: false"):
        load_settings()


def test_invalid_setting_is_refused_with_the_nearest_name_or_limit(folder: Path) -> None:
    written(folder / "ownfeed.toml", "[backend]\nrecal_workers = 3\n")
    with pytest.raises(
        BackendSettingsRefused, match="recal_workers: there is no such setting; perhaps you meant recall_workers"
    ):
        load_settings()
    written(folder / "ownfeed.toml", "[backend]\nrecall_workers = 0\n")
    with pytest.raises(BackendSettingsRefused, match=r"recall_workers: .* greater than or equal to 1, not 0"):
        load_settings()
    written(folder / "ownfeed.toml", "[device.privacy]\nmoed = 'none'\n")
    with pytest.raises(ValidationError) as wrong:
        DeviceSettings()
    assert described(wrong.value, DeviceSettings) == (
        "privacy.moed",
        "there is no such setting; perhaps you meant privacy.mode",
    )


def test_every_variable_named_in_the_repository_is_known() -> None:
    """A new variable has to be listed, or every start that finds it is refused."""
    listed = subprocess.run(
        ["git", "grep", "-hoIE", r"\bOWNFEED_[A-Z_]+", "--", "*.py", "*.md", "*.yml", "Makefile", ":!tests/privacy"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found = {name for name in listed.stdout.split() if not name.startswith(("OWNFEED_DEVICE_", "OWNFEED_BACKEND_"))}
    assert found - {"OWNFEED_"} == OTHER_VARIABLES


def test_command_reports_refused_settings_in_one_line(folder: Path) -> None:
    written(folder / "ownfeed.toml", mode=0o666)
    ended = subprocess.run(
        [sys.executable, "-m", "ownfeed", "device", "--port", "0"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 1
    said = f"ownfeed: ownfeed.toml is refused: others may write {folder}/ownfeed.toml (chmod go-w "
    assert said in " ".join(ended.stderr.split())
