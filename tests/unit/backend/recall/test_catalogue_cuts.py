"""What devices download from the live catalogue: of an empty one, and how long the catalogue stays in memory for it."""

from __future__ import annotations

import gc
import threading
import weakref
from datetime import UTC, datetime
from pathlib import Path

import pytest

from backend.db.engine import open_engine
from backend.news.pool import NewsPool
from backend.recall import pool_codes
from backend.recall.catalogue import Catalogue, LiveCatalogue, build_catalogue
from backend.recall.pool_codes import PoolCodeStore
from backend.recall.service import AnswerCache, CodeQuery
from backend.recall.vector_shards import VectorShardStore
from backend.settings import BackendSettings
from backend.storage.object_store import LocalFolder
from protocol.broadcast import PoolCodes
from tests.doubles.recall_world import ENCODER, fill, indexes_in, publish, settings_in

ASKED = CodeQuery("r1", "16", 3, 60)


def build(settings: BackendSettings) -> Catalogue:
    pool = NewsPool(open_engine(settings.database_url))
    return build_catalogue(pool, ENCODER, datetime.now(UTC), indexes_in(settings))


@pytest.fixture(autouse=True)
def _a_slow_machine_has_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_codes, "MADE_WITHIN_SEC", 120)


def test_empty_catalogue_has_no_shards_or_codes(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    publish(settings)
    catalogue = build(settings)
    assert len(catalogue) == 0
    live = LiveCatalogue(catalogue)
    assert VectorShardStore(live).list() == (ENCODER, ())
    found = PoolCodes.model_validate_json(PoolCodeStore(live, LocalFolder(tmp_path / "codes")).listing("r1")[0])
    assert (found.count, found.shards) == (0, ())


def test_replaced_catalogue_is_freed_even_without_further_requests(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    fill(settings, 300)
    live = LiveCatalogue(build(settings))
    shards, codes, answers = VectorShardStore(live), PoolCodeStore(live, LocalFolder(tmp_path)), AnswerCache(1_000)
    shards.list()
    codes.listing("r1")
    answers.keep(live.current, ASKED, b"answer")
    assert answers.get(live.current, ASKED) == b"answer"
    for thread in threading.enumerate():
        if thread.name == "pool-codes":
            thread.join()
    before = weakref.ref(live.current)
    live.swap(build(settings))
    gc.collect()
    assert before() is None
    assert answers.get(live.current, ASKED) is None
