"""Secrets of a first start. Oracle: several simultaneous starts all continue with the same one."""

from __future__ import annotations

import errno
import secrets
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from backend.composition import load_or_create_token
from backend.errors import BackendSettingsRefused
from backend.storage.durable_files import load_or_create_secret

STARTS = 8


def test_concurrent_starts_use_the_first_stored_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, drawn, others = tmp_path / "admin.token", secrets.token_urlsafe, []

    def drawn_late(size: int) -> str:
        monkeypatch.setattr(secrets, "token_urlsafe", drawn)
        others.append(load_or_create_token(path))
        return drawn(size)

    monkeypatch.setattr(secrets, "token_urlsafe", drawn_late)
    mine = load_or_create_token(path)
    assert others == [mine] == [path.read_text(encoding="ascii").strip()]


@pytest.mark.parametrize("has_links", [True, False], ids=["hard links", "none"])
def test_concurrent_starts_share_one_stored_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_links: bool
) -> None:
    path, together = tmp_path / "secret", Barrier(STARTS)

    def refused(_: Path, __: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")  # as FAT answers

    if not has_links:
        monkeypatch.setattr(Path, "hardlink_to", refused)

    def start(number: int) -> bytes:
        together.wait()
        return load_or_create_secret(path, lambda: b"secret of %d" % number)

    with ThreadPoolExecutor(STARTS) as starts:
        found = set(starts.map(start, range(STARTS)))
    assert found == {path.read_bytes()}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir() if each.suffix == ".part"] == []


@pytest.mark.timeout(60)
def test_dangling_link_is_named_in_the_error(tmp_path: Path) -> None:
    """Regression: the start looked for the file and created it, over and over."""
    path = tmp_path / "admin.token"
    path.symlink_to(tmp_path / "nowhere" / "admin.token")
    with pytest.raises(BackendSettingsRefused, match=r"admin\.token is a link to .*nowhere.*, which does not exist"):
        load_or_create_token(path)
    assert path.is_symlink()


def test_link_to_a_file_is_followed(tmp_path: Path) -> None:
    kept, path = tmp_path / "kept", tmp_path / "admin.token"
    kept.write_text("x" * 40, encoding="ascii")
    path.symlink_to(kept)
    assert load_or_create_token(path) == "x" * 40


def test_empty_secret_file_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "secret").touch()
    assert load_or_create_secret(tmp_path / "secret", lambda: b"another") == b""
    assert (tmp_path / "secret").read_bytes() == b""
