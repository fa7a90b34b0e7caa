"""Secrets of a first start. Oracle: of several starts at once all go on with the same one."""

from __future__ import annotations

import secrets
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from backend.composition import load_or_create_token
from backend.secret_files import load_or_create_secret

STARTS = 8


def test_a_start_during_which_another_one_ends_goes_on_with_that_ones_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, drawn, others = tmp_path / "admin.token", secrets.token_urlsafe, []

    def drawn_late(size: int) -> str:
        monkeypatch.setattr(secrets, "token_urlsafe", drawn)
        others.append(load_or_create_token(path))
        return drawn(size)

    monkeypatch.setattr(secrets, "token_urlsafe", drawn_late)
    mine = load_or_create_token(path)
    assert others == [mine] == [path.read_text(encoding="ascii").strip()]


@pytest.mark.parametrize("is_empty", [False, True], ids=["nothing there", "an empty file"])
def test_of_starts_at_once_all_have_the_secret_that_is_kept(tmp_path: Path, is_empty: bool) -> None:
    path, together = tmp_path / "secret", Barrier(STARTS)
    if is_empty:
        path.touch()

    def start(number: int) -> bytes:
        together.wait()
        return load_or_create_secret(path, lambda: b"secret of %d" % number)

    with ThreadPoolExecutor(STARTS) as starts:
        found = set(starts.map(start, range(STARTS)))
    assert found == {path.read_bytes()}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir() if each.suffix == ".part"] == []
