"""A small world whose news encoder trains, with the expected results of Efficient-FedRec's rounds."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sqlalchemy import select
from torch import nn

from backend.db.engine import reading_session
from backend.db.tables import RoundRow
from backend.embedding.weights import BertWeights
from backend.federation.split import adam_step, process
from backend.federation.split.news_model_files import StoredEncoder
from device_app.device import Device
from device_app.errors import BackendRefused
from device_app.training.samples import RowSamples
from exporters.graphs import table_loss
from models.builders.rankers import nrms_user
from models.news.plm import PooledHead
from protocol.ids import ReleaseId
from protocol.pooled_states import HEAD, SHARDS, joined_states, unpack_head
from protocol.recall import RecallRequest, Report
from protocol.rounds import RoundManifest, RoundStatus
from tests.doubles.small_world import DIMENSIONS, SmallWorld
from tests.doubles.words_encoder import token_states

WITHIN_SEC = 240.0


def sync(device: Device) -> ReleaseId:
    """Sync as a device's loop does, which polls again while the server switches to another encoder."""
    until = time.monotonic() + WITHIN_SEC
    while True:
        try:
            device.sync()
            break
        except BackendRefused as refused:
            if not refused.problem.type.endswith(":release-retired") or time.monotonic() > until:
                raise
            time.sleep(0.1)
    current = device.release()
    assert current is not None
    return current.id


def row_of(world: SmallWorld, status: RoundStatus) -> RoundRow:
    assert world.services is not None
    with reading_session(world.services.engine) as session:
        return session.scalars(select(RoundRow).where(RoundRow.number == int(status.round.split("-")[1]))).one()


def report_of(device: Device) -> tuple[str, Report]:
    """Return the report in use, and the release it names."""
    memo = device.parts.stores.report_memo.latest()
    assert memo is not None
    return memo.release, RecallRequest.model_validate_json(memo.payload).report


def spent_on_reports(device: Device) -> float:
    return sum(day.epsilon for day in device.parts.stores.ledger_entries.days() if day.channel == "reports")


def manifest_of(world: SmallWorld, status: RoundStatus) -> RoundManifest:
    return RoundManifest.model_validate_json(row_of(world, status).manifest)


def pooled(
    world: SmallWorld, release: str, drawn: list[RowSamples]
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], dict[str, np.ndarray]]:
    """End to end in float64: gradients for the news model, for the user model, and for the news vectors by id."""
    assert world.services is not None
    releases, pool = world.services.releases, world.services.pool
    manifest = releases.manifest(release)
    stored = StoredEncoder.find(world.settings.encoder_dir, manifest.encoder)
    news = stored.load(BertWeights(stored.folder, ""), 0).double()
    user = nrms_user().double()
    weights = releases.weights(manifest, "ranker.nrms")
    user.load_state_dict({name: torch.from_numpy(value).double() for name, value in weights.items()})
    titles = {row.id: row.title for row in pool.live(world.services.updater._clock())}
    ids = sorted({news_id for one in drawn for news_id in one.ids})
    states = [token_states(titles[news_id]) for news_id in ids]
    longest = max(map(len, states))
    padded = torch.zeros(len(ids), longest, states[0].shape[1], dtype=torch.float64)
    mask = torch.zeros(len(ids), longest, dtype=torch.float64)
    for row, each in enumerate(states):
        padded[row, : len(each)], mask[row, : len(each)] = torch.from_numpy(each.astype(np.float64)), 1.0
    # The served vectors differ in the seventh digit from what the encoder makes of its float16 states in float64.
    # Devices compute gradients at the served vectors, so the oracle does too; the derivative is the encoder's own.
    served = dict(zip(*pool.vectors(manifest.encoder), strict=True))
    made = news(padded, mask)
    vectors = made + (torch.from_numpy(np.stack([served[each] for each in ids])).double() - made).detach()
    place = {news_id: row for row, news_id in enumerate(ids)}
    clicks, masks, candidates = [], [], []
    for one in drawn:
        rows = torch.tensor([place[news_id] for news_id in one.ids])
        clicks.append(rows[torch.from_numpy(one.click_rows)])
        masks.append(torch.from_numpy(one.click_mask).double())
        candidates.append(rows[torch.from_numpy(one.candidate_rows)])
    loss = table_loss(user, vectors, torch.cat(clicks), torch.cat(masks), torch.cat(candidates))
    of_news, of_user = dict(news.named_parameters()), dict(user.named_parameters())
    found = torch.autograd.grad(loss, [*of_news.values(), *of_user.values(), vectors], materialize_grads=True)
    arrays = [slope.numpy() for slope in found]
    ends = len(of_news), len(of_news) + len(of_user)
    return (
        dict(zip(of_news, arrays[: ends[0]], strict=True)),
        dict(zip(of_user, arrays[ends[0] : ends[1]], strict=True)),
        dict(zip(ids, arrays[-1], strict=True)),
    )


def pooled_by_head(
    world: SmallWorld, manifest: RoundManifest, drawn: list[RowSamples]
) -> tuple[dict[str, np.ndarray], set[str]]:
    """The same from the pooled states of a round, by name in an update, and the articles those states belong to."""
    assert world.services is not None
    releases = world.services.releases

    def material(name: str) -> bytes:
        return releases.read_blob(manifest.materials[name].sha256)

    weights = unpack_head(material(HEAD), DIMENSIONS)
    shards = [material(name) for name in manifest.materials if name.startswith(SHARDS)]
    row_of_news, states = joined_states(shards, DIMENSIONS)
    head, user = PooledHead.sized(DIMENSIONS, DIMENSIONS).double(), nrms_user().double()
    head.load_state_dict({name: torch.from_numpy(value).double() for name, value in weights.items()})
    trained = releases.weights(releases.manifest(manifest.release), "ranker.nrms")
    user.load_state_dict({name: torch.from_numpy(value).double() for name, value in trained.items()})
    vectors = head(torch.from_numpy(states).double())
    return gradients_of_both(head, user, vectors, row_of_news, drawn), set(row_of_news)


def gradients_of_both(
    news: nn.Module, user: nn.Module, vectors: torch.Tensor, row_of: Mapping[str, int], drawn: list[RowSamples]
) -> dict[str, np.ndarray]:
    """Gradients of a news model and the user model above it, by name in an update, over all readers' samples.

    vectors [n, D]: the news model's output with its autograd graph; row_of: by article id.
    """
    clicks, masks, candidates = [], [], []
    for one in drawn:
        rows = torch.tensor([row_of[news_id] for news_id in one.ids])
        clicks.append(rows[torch.from_numpy(one.click_rows)])
        masks.append(torch.from_numpy(one.click_mask).double())
        candidates.append(rows[torch.from_numpy(one.candidate_rows)])
    loss = table_loss(user, vectors, torch.cat(clicks), torch.cat(masks), torch.cat(candidates))
    named = {f"g.news.{name}": each for name, each in news.named_parameters()}
    named |= {f"g.{name}": each for name, each in user.named_parameters()}
    found = torch.autograd.grad(loss, [*named.values()], materialize_grads=True)
    return {name: each.numpy() for name, each in zip(named, found, strict=True)}


@contextmanager
def stepped_in_this_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Step the news model in this process, which has torch: starting another process takes seconds."""
    threads = torch.get_num_threads()

    def here(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        adam_step.run(Path(command[-1]))
        return subprocess.CompletedProcess(command, 0, "", "")

    stand_in = SimpleNamespace(run=here, TimeoutExpired=subprocess.TimeoutExpired)
    monkeypatch.setattr(process, "subprocess", stand_in)  # for this module alone
    try:
        yield
    finally:
        torch.set_num_threads(threads)
