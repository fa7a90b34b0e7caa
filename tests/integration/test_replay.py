"""MIND's readers as devices, from their files to a round. Oracle: the files themselves."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from backend.news.ingest import ingest
from backend.news.pool import NewsPool
from backend.news.sources.files import read_mind
from backend.operations.admin_client import Operator
from device_app.composition import build_device
from device_app.fleet.replay import real_readers
from device_app.fleet.run import run_fleet
from tests.doubles.small_world import SmallWorld, embed_all

READERS = 6

pytestmark = pytest.mark.data


def cut_to(mind: Path, folder: Path, readers: int) -> Path:
    """Write a MIND folder with only these readers and their articles."""
    chosen = real_readers(mind, readers)
    users = {reader.user for reader in chosen}
    named = {news for one in chosen for news in one.history}
    named |= {news for one in chosen for shown in one.impressions for news in shown.shown}
    folder.mkdir()
    for name, column, wanted in (("behaviors.tsv", 1, users), ("news.tsv", 0, named)):
        lines = (mind / name).read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in lines if line.split("\t")[column] in wanted]
        (folder / name).write_text("".join(kept), encoding="utf-8")
    return folder


def test_simulated_mind_readers_keep_their_histories_and_train(
    idle_world: SmallWorld, shared_data: Path, tmp_path: Path
) -> None:
    world = idle_world
    mind = cut_to(shared_data / "mind-subset" / "train", tmp_path / "mind", READERS)
    with world.backend():
        assert world.services is not None
        pool: NewsPool = world.services.pool
        report = ingest(pool, read_mind(mind / "news.tsv", published_at=datetime.now(UTC)), source="mind")
        assert report.added > 100
        assert report.rejected == []
        embed_all(pool)
        operator = Operator(world.url, world.settings.admin_token_file)
        opened = operator.open_round("uni_fedrec", cohort=3, cohort_minimum=3, seconds=60)
        said = Console(file=io.StringIO(), width=200)
        settings = world.device_settings()
        run_fleet(settings, devices=READERS, replay=mind, seed=1, rounds=1, console=said)
        *_, status = operator.follow(opened)
        assert (status.state, status.published) == ("applied", "r2"), said.file.getvalue()  # type: ignore[attr-defined]

        held = {row.id for row in pool.live(datetime.now(UTC)) if row.duplicate_of is None}
        for number, reader in enumerate(real_readers(mind, READERS)):
            own = settings.model_copy(update={"profile": f"replay-{number:04d}"})
            device = build_device(own)
            clicks = [click.news_id for click in device.parts.stores.clicks.recent(10_000)]
            last_times = list(dict.fromkeys(reversed(reader.history)))[::-1]  # read twice counts where it was read last
            past = [news_id for news_id in last_times if news_id in held]
            assert clicks[: len(past)] == past
            assert len(past) > len(reader.history) / 2
            assert set(clicks) - set(reader.history) <= {news for one in reader.impressions for news in one.clicked}
            assert device.release().manifest.release == "r2"  # type: ignore[union-attr]
            device.close()
        reader_ids = [reader.user.encode() for reader in real_readers(mind, READERS)]
        assert not any(user in one.body + one.headers for one in world.requests() for user in reader_ids)
