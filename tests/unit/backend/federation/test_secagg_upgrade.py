"""Secure sums that were under way when the server was updated."""

from __future__ import annotations

import json
from pathlib import Path

from sqlalchemy import text

from backend.db.engine import migrate, open_engine, writing
from backend.federation.secagg.store import SecureSumStore
from backend.storage.local_folder import LocalFolder
from tests.doubles.clock import StillClock
from tests.doubles.migrated import to_revision
from tests.doubles.secure_sums import terms


def test_an_update_of_the_server_ends_sums_of_before_with_a_reason(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'old.sqlite'}"
    engine = open_engine(url)
    with writing(engine) as connection:
        to_revision(connection, "add_opened_sums")
        for name, stage, reason in (
            ("round-1", "opened", None),
            ("round-2", "failed", "late"),
            ("round-3", "masked", None),
        ):
            record = {"terms": terms(3, round=name).model_dump(mode="json"), "stage": stage, "reason": reason,
                      "members": {"a": 1}, "uploads": {"1": "00"}, "circle": [1, 2, 3]}  # fmt: skip
            connection.execute(
                text("INSERT INTO secure_sums VALUES (:name, :stage, :record, :total, 60, '2026-11-20 00:00:00')"),
                {"name": name, "stage": stage, "record": json.dumps(record), "total": "0" * 64},
            )
    migrate(engine)
    store = SecureSumStore(engine, LocalFolder(tmp_path / "sums"), StillClock())
    assert [store.stage(f"round-{n}")[0] for n in (1, 2, 3)] == ["opened", "failed", "failed"]
    reasons = [store.stages.poll(f"round-{n}").reason for n in (1, 2, 3)]
    assert reasons == [None, "late", "The server was updated while the sum was under way."]
    engine.dispose()
