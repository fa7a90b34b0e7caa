"""Restarts, kills, damaged files and full disks: a round is applied once, or fails cleanly."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from backend.db.engine import DatabaseUnreachable
from backend.federation.errors import RoundClosed
from backend.federation.rounds import coordinator as rounds_coordinator
from backend.federation.rounds import finalize as finalising
from backend.federation.rounds.plain import PlainRounds
from backend.federation.rounds.update_store import UpdateStore
from backend.federation.secagg.sum_files import SWEEP_AGE_SEC
from backend.storage.object_store import LocalFolder, StorageUnavailable
from protocol.tensors import pack
from tests.doubles.kills import Killed
from tests.doubles.plain_rounds import PlainRoundRig, joined, open_round, update, upload_update


def test_restart_while_open_keeps_the_offers(rig: PlainRoundRig) -> None:
    open_round(rig.coordinator(), cohort=1, minimum=1)
    offer = joined(rig.coordinator())
    rig.coordinator().plain.accept("round-1", offer.pseudonym, pack(update(0.01)))
    ended = rig.coordinator().step()

    assert ended is not None
    assert ended.state == "applied"


def test_restart_during_uploads_keeps_the_updates(rig: PlainRoundRig) -> None:
    before = rig.coordinator()
    open_round(before, cohort=3, minimum=2)
    upload_update(before, 0.02)
    upload_update(before, 0.04)
    after = rig.coordinator()
    assert after.status("round-1").uploaded == 2
    rig.clock.go_on(61)
    ended = after.step()

    assert ended is not None
    assert ended.state == "applied"
    stepped = rig.releases.weights(rig.releases.require_current(), "recall")
    np.testing.assert_allclose(stepped["values"], 0.5 - 0.05 * 0.03, atol=1e-7)


def test_round_killed_before_the_release_commit_is_applied_once_after_a_restart(
    rig: PlainRoundRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rig.coordinator()
    open_round(before, cohort=1, minimum=1)
    upload_update(before, 0.02)

    def killed(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(finalising, "publish_changes", killed)
        with pytest.raises(Killed):
            before.step()
    assert rig.releases.require_current().release == "r1"
    assert rig.coordinator().status("round-1").state == "updates"

    after = rig.coordinator()
    ended = after.step()
    assert ended is not None
    assert (ended.state, ended.published) == ("applied", "r2")
    assert after.step() is None
    assert [each.release for each in rig.releases.history()] == ["r2", "r1"]


def test_round_killed_after_the_commit_leaves_only_files_to_clean_up(
    rig: PlainRoundRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rig.coordinator()
    open_round(before, cohort=1, minimum=1)
    upload_update(before, 0.02)
    monkeypatch.setattr(LocalFolder, "delete", lambda *_: None)
    before.step()
    monkeypatch.undo()
    assert list((rig.folder / "rounds").iterdir()) != []
    after = rig.coordinator()

    assert list((rig.folder / "rounds").iterdir()) == []
    assert after.step() is None
    assert after.status("round-1").state == "applied"


def test_running_server_removes_updates_left_by_a_killed_one(
    rig: PlainRoundRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: updates of single readers stayed until a server started again, up to an hour."""
    killed, living = rig.coordinator(), rig.coordinator()
    open_round(killed, cohort=1, minimum=1)
    assert living.step() is None, "it sees the round under way"
    upload_update(killed, 0.02)
    monkeypatch.setattr(LocalFolder, "delete", lambda *_: None)
    killed.step()
    monkeypatch.undo()
    assert list((rig.folder / "rounds").iterdir()) != []
    for _ in range(2):
        living.step()

    assert list((rig.folder / "rounds").iterdir()) == []
    assert living.status("round-1").state == "applied"


def test_restart_after_the_end_changes_nothing(rig: PlainRoundRig) -> None:
    before = rig.coordinator()
    open_round(before)
    before.cancel("round-1")
    after = rig.coordinator()

    assert after.step() is None
    assert after.current() is None
    assert after.status("round-1") == before.status("round-1")


def test_damaged_update_is_left_out_and_the_rest_applied(rig: PlainRoundRig) -> None:
    coordinator = rig.coordinator()
    open_round(coordinator, cohort=3, minimum=2)
    first = upload_update(coordinator, 0.1)
    upload_update(coordinator, 0.02)
    upload_update(coordinator, 0.04)
    (damaged,) = (rig.folder / "rounds" / "round-1").glob(f"{first.pseudonym}*")
    damaged.write_bytes(b"gone")
    ended = coordinator.step()

    assert ended is not None
    assert ended.state == "applied"
    stepped = rig.releases.weights(rig.releases.require_current(), "recall")
    np.testing.assert_allclose(stepped["values"], 0.5 - 0.05 * 0.03, atol=1e-7)
    assert rig.releases.history()[0].facts["damaged"] == 1


def test_updates_lost_below_the_minimum_fail_the_round(rig: PlainRoundRig) -> None:
    coordinator = rig.coordinator()
    open_round(coordinator, cohort=2, minimum=2)
    upload_update(coordinator, 0.1)
    upload_update(coordinator, 0.02)
    shutil.rmtree(rig.folder / "rounds" / "round-1")
    ended = coordinator.step()

    assert ended is not None
    assert ended.state == "failed"
    assert "2 accepted updates are damaged" in str(ended.reason)


@pytest.mark.parametrize(
    "passing",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        OSError(errno.EROFS, "Read-only file system"),
        DatabaseUnreachable("postgresql://", "terminating connection due to administrator command"),
    ],
)
def test_round_ending_on_a_full_disk_waits_and_is_applied_once(
    rig: PlainRoundRig, monkeypatch: pytest.MonkeyPatch, passing: Exception
) -> None:
    coordinator = rig.coordinator()
    open_round(coordinator, cohort=1, minimum=1)
    upload_update(coordinator, 0.02)

    def full(*_: object, **__: object) -> None:
        raise passing

    with monkeypatch.context() as patch:
        patch.setattr(finalising, "publish_changes", full)
        assert coordinator.step() is None
        assert coordinator.status("round-1").state == "updates"
    ended = coordinator.step()

    assert ended is not None
    assert (ended.state, ended.published) == ("applied", "r2")
    assert coordinator.step() is None


def test_unexpected_error_fails_the_round_and_is_raised(rig: PlainRoundRig, monkeypatch: pytest.MonkeyPatch) -> None:
    coordinator = rig.coordinator()
    open_round(coordinator, cohort=1, minimum=1)
    upload_update(coordinator, 0.02)

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(finalising, "publish_changes", broken)
    with pytest.raises(ZeroDivisionError):
        coordinator.step()
    assert coordinator.status("round-1").reason == "unforeseen: ZeroDivisionError"


def test_undeletable_updates_are_logged_as_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = UpdateStore(LocalFolder(tmp_path / "updates"))
    store.keep("round-1", "p" * 32, b"an update")

    def refuse(*args: object, **rest: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", refuse)
        store.discard("round-1")
        store.sweep(list)
    assert len([one for one in caplog.records if "could not be removed" in one.getMessage()]) >= 2
    assert str(tmp_path / "updates" / "round-1") in caplog.text
    caplog.clear()
    store.discard("round-1")
    store.discard("round-1")
    assert not (tmp_path / "updates" / "round-1").exists()
    assert not caplog.records


def test_round_opened_during_a_server_start_keeps_its_updates(tmp_path: Path) -> None:
    store = UpdateStore(LocalFolder(tmp_path / "updates"))
    store.keep("round-1", "p" * 32, b"of a round that has ended")

    def opened_meanwhile() -> list[str]:
        store.keep("round-2", "p" * 32, b"an update")
        return []  # as a look before the listing would have it

    store.sweep(opened_meanwhile)
    assert [path.name for path in (tmp_path / "updates").iterdir()] == ["round-2"]


def test_update_stored_as_its_round_ends_is_refused_and_deleted(
    rig: PlainRoundRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = rig.coordinator()
    open_round(coordinator, cohort=2, minimum=1)
    offer, keep = joined(coordinator), UpdateStore.keep

    def ended_meanwhile(self: UpdateStore, *what: object) -> str:
        coordinator.cancel("round-1")
        return keep(self, *what)  # type: ignore[arg-type]

    monkeypatch.setattr(UpdateStore, "keep", ended_meanwhile)
    with pytest.raises(RoundClosed):
        coordinator.plain.accept("round-1", offer.pseudonym, pack(update(0.01)))
    assert [path for path in (rig.folder / "rounds").rglob("*") if path.is_file()] == []


def stored(rig: PlainRoundRig) -> list[Path]:
    return [path for path in (rig.folder / "rounds").rglob("*") if path.is_file()]


def away(*_: object) -> None:
    raise DatabaseUnreachable("postgresql://", "terminating connection due to administrator command")


def test_updates_are_deleted_even_if_the_database_fails_after_applying(
    rig: PlainRoundRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = rig.coordinator()
    open_round(coordinator, cohort=1, minimum=1)
    upload_update(coordinator, 0.02)
    with monkeypatch.context() as patch:
        patch.setattr(rounds_coordinator, "has_ended", away)
        assert coordinator.step() is None
    assert coordinator.status("round-1").state == "applied"
    assert len(stored(rig)) == 1
    coordinator.step()
    assert stored(rig) == [], "not only at the next start"


def test_update_stored_during_a_database_outage_is_deleted_after_its_round(
    rig: PlainRoundRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = rig.coordinator()
    open_round(coordinator, cohort=2, minimum=1)
    offer = joined(coordinator)

    def ended_and_away(*_: object) -> None:
        coordinator.cancel("round-1")
        away()

    with monkeypatch.context() as patch:
        patch.setattr(PlainRounds, "_noted", ended_and_away)
        patch.setattr(UpdateStore, "discard", lambda *_: None)  # the end of the round was quicker than the write
        with pytest.raises(DatabaseUnreachable):
            coordinator.plain.accept("round-1", offer.pseudonym, pack(update(0.01)))
    assert len(stored(rig)) == 1
    coordinator.step()
    assert stored(rig) == []


def test_round_cannot_fail_while_the_storage_is_down(rig: PlainRoundRig, monkeypatch: pytest.MonkeyPatch) -> None:
    coordinator = rig.coordinator()
    open_round(coordinator, cohort=2, minimum=2)
    rig.clock.go_on(61)

    def down(*_: object) -> None:
        raise StorageUnavailable("ConnectTimeoutError")

    with monkeypatch.context() as patch:
        patch.setattr(coordinator._loader, "context_of", down)
        assert coordinator.step() is None
    ended = coordinator.step()
    assert ended is not None
    assert ended.state == "failed"


def test_unavailable_storage_delays_a_round_without_failing_it(
    rig: PlainRoundRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = rig.coordinator()
    open_round(coordinator, cohort=1, minimum=1)
    upload_update(coordinator, 0.02)

    def down(*_: object) -> bytes:
        raise StorageUnavailable("ConnectTimeoutError")

    with monkeypatch.context() as patch:
        patch.setattr(LocalFolder, "read", down)
        assert coordinator.step() is None
    assert coordinator.status("round-1").state == "updates"
    ended = coordinator.step()
    assert ended is not None
    assert (ended.state, ended.published) == ("applied", "r2")


def left_over(rig: PlainRoundRig) -> Path:
    """Write a running sum that no row names, more than an hour old."""
    path = rig.folder / "sums" / f"{'0' * 64}.sum"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(bytes(16))
    os.utime(path, (0, path.stat().st_mtime - SWEEP_AGE_SEC - 60))
    return path


def test_unreferenced_running_sums_are_deleted_while_the_server_runs(
    rig: PlainRoundRig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Regression: they stayed until the next start."""
    coordinator = rig.coordinator()
    path = left_over(rig)
    coordinator.step()
    assert path.exists(), "it isn't looked for at every step"
    rig.clock.go_on(SWEEP_AGE_SEC)

    def down(*_: object) -> None:
        raise StorageUnavailable("ConnectTimeoutError")

    with monkeypatch.context() as patch:
        patch.setattr(LocalFolder, "delete", down)
        coordinator.step()
    assert "could not be removed" in caplog.text
    rig.clock.go_on(SWEEP_AGE_SEC)
    coordinator.step()
    assert not path.exists()


def test_failed_masked_upload_triggers_a_cleanup(rig: PlainRoundRig, monkeypatch: pytest.MonkeyPatch) -> None:
    coordinator = rig.coordinator()
    path = left_over(rig)
    monkeypatch.setattr(coordinator.sums._store.exchange, "add_received", away)
    with pytest.raises(DatabaseUnreachable):
        coordinator.sums.receive_masked("round-1", "p" * 32, path, "0" * 64)
    coordinator.step()
    assert not path.exists()


def test_interruption_during_a_cleanup_is_remembered(rig: PlainRoundRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: the cleanup, which had listed files earlier, forgot that another was needed."""
    plain = rig.coordinator().plain

    def interrupted_meanwhile(*_: object) -> None:
        plain.interrupted = True

    with monkeypatch.context() as patch:
        patch.setattr(UpdateStore, "sweep", interrupted_meanwhile)
        plain.sweep()
    assert plain.interrupted
    plain.sweep()
    assert not plain.interrupted
    with monkeypatch.context() as patch:
        patch.setattr(UpdateStore, "sweep", away)
        with pytest.raises(DatabaseUnreachable):
            plain.sweep()
    assert plain.interrupted
