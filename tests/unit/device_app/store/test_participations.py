"""A round is bound to one upload, whichever connection tries, at once or after a restart.

Oracle: the attack of two vectors under the same masks needs a second binding; none may succeed.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from device_app.errors import RoundTakenOver
from device_app.store.database import Database
from device_app.store.participations import RoundUploads
from tests.doubles.news import NOW

ROUND = "round-1"


def test_round_is_bound_to_one_upload_by_many_connections_at_once(tmp_path: Path) -> None:
    path, together = tmp_path / "device.sqlite", Barrier(6)
    Database(path).close()

    def bind(number: int) -> str:
        database = Database(path)
        together.wait()
        try:
            RoundUploads(database).bind(ROUND, f"{number:064x}", NOW)
        except RoundTakenOver:
            return "taken over"
        finally:
            database.close()
        return "bound"

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(bind, range(6))) == ["bound", *["taken over"] * 5]


@pytest.mark.parametrize("again", ["00" * 32, "11" * 32])
def test_round_with_a_recorded_upload_refuses_any_other_after_a_restart(tmp_path: Path, again: str) -> None:
    path = tmp_path / "device.sqlite"
    first = Database(path)
    RoundUploads(first).bind(ROUND, "00" * 32, NOW)
    first.close()
    database = Database(path)
    with pytest.raises(RoundTakenOver):
        RoundUploads(database).bind(ROUND, again, NOW)
    RoundUploads(database).bind("round-2", again, NOW)
    assert dict(database.rows("SELECT round, payload_sha256 FROM round_upload")) == {ROUND: "00" * 32, "round-2": again}
    database.close()
