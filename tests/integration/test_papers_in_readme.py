"""Checks README's sentence on each paper against a run of the command beside it.

Oracle: what the round opened and changed. The command is the product's own and speaks HTTP; only two readers take part,
and a stand-in replaces BERT.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

from backend.console.purposes import written
from backend.embedding.word_model import keep_word_model
from backend.federation.strategies import reported_basis
from backend.federation.strategies.learned_codebook import cohort_needed
from backend.federation.strategies.reported_basis import BasisRounds, expected_noise_share
from backend.federation.systems import COMPOSED
from backend.federation.systems.composition import SystemSpec
from backend.releases.publish import publish_rankers
from backend.releases.store import ReleaseStore
from device_app.fleet.fleet import Member, search
from device_app.settings import PrivacySettings
from device_app.training.multiview.job import VIEWS, ViewJob
from device_app.training.multiview.processes import SpawnedViews
from device_app.training.multiview.worker import version
from exporters.graph_cache import GraphCache
from exporters.news_encoder import with_table
from exporters.package import export_word_model
from ownfeed import app
from protocol.protections import LocalLaplace, SecureSum
from protocol.releases import ReleaseManifest
from protocol.rounds import RoundManifest, RoundStatus
from tests.doubles.learning_world import manifest_of, row_of, stepped_in_this_process, sync
from tests.doubles.long_form import by_length
from tests.doubles.small_world import DIMENSIONS, SmallWorld, warm_up_to_train
from tests.doubles.words_encoder import keep_words_encoder, words_of

DEVICES = 2
RANKERS = ("nrms", "fednewsrec", "finding", "finding_nrms", "multi_view", "fl_mv_dssm")
ALLOWS = PrivacySettings(
    training=True,
    secure_sum="exact",
    smallest_sum=2,
    epsilon_per_sum=100.0,
    epsilon_per_sum_alone=100.0,
    epsilon_per_day_training=1e9,
    epsilon_per_day_alone=1e9,
)
WITHIN_SEC = 120.0
ROW = re.compile(r"^\| ([\w-]+) \| (.+) \| `(ownfeed round [\w -]+)` \|$", re.M)
README = ROW.findall((Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class CommandRan:
    """A command's rounds in order, and the releases before and after."""

    statuses: tuple[RoundStatus, ...]
    manifest: RoundManifest
    facts: Mapping[str, object]
    store: ReleaseStore
    before: ReleaseManifest
    after: ReleaseManifest

    def changed(self, model: str) -> bool:
        """Return whether the weights of this model changed."""
        one, two = (self.store.weights(each, model) for each in (self.before, self.after))
        return any((one[name] != two[name]).any() for name in one)


class PaperWorld:
    """A backend with the models of all papers, and two readers who allow everything."""

    def __init__(self, world: SmallWorld) -> None:
        self.world = world
        assert world.services is not None
        self.services = world.services
        titles = [row.title for row in self.services.pool.live(self.services.updater._clock())]
        keep_words_encoder(world.settings, titles)
        cache = GraphCache(world.settings.graphs_dir)
        made, words = export_word_model(DIMENSIONS, DIMENSIONS, cache), words_of(titles)
        keep_word_model(
            world.settings.encoder_dir,
            "of the small world",
            words,
            {name: each.shape for name, each in made.weights.items()},
            gradient=made.graphs["gradient"],
            encoder=with_table(made.graphs["news"], words.table),
        )
        publish_rankers(self.services.releases, RANKERS, cache=cache)
        self.devices = [world.device(f"reader-{number}", privacy=ALLOWS) for number in range(DEVICES)]
        for number, device in enumerate(self.devices):
            member = Member(device, np.random.default_rng(number))
            warm_up_to_train(member)
            search(member)

    def run(self, command: str) -> CommandRan:
        """Run the command of README, with this backend's address and a cohort of two devices."""
        words = shlex.split(command)
        before = self.catch_up()
        here = ["--backend", self.world.url, "--data-dir", str(self.world.settings.data_dir), "--json"]
        sizes = ["--cohort", str(DEVICES), "--cohort-minimum", "2", "--seconds", "900"]
        with ThreadPoolExecutor(1) as beside:
            asked = beside.submit(CliRunner().invoke, app, [*words[1:], *sizes, *here])
            said: list[object] = []
            while not asked.done():
                said = [device.train_step() for device in self.devices]
                self.services.coordinator.step()
                time.sleep(0.05)
        done = asked.result()
        assert done.exit_code == 0, (done.output, said)
        statuses = tuple(RoundStatus.model_validate_json(line) for line in done.stdout.splitlines())
        manifest, first = manifest_of(self.world, statuses[0]), row_of(self.world, statuses[0])
        releases = self.services.releases
        return CommandRan(statuses, manifest, first.facts or {}, releases, before, releases.require_current())

    def start_card(self, card: str) -> str:
        """Press a card's button on the console, for two devices; return the round that it opened."""
        with httpx.Client(base_url=self.world.url, follow_redirects=True, timeout=60) as browser:
            page = browser.get("/console/rounds", params={"token": self.services.admin_token}).text
            starts = re.search(rf'id="choice-{card}" name="system" value="([\w/]+)"( disabled)?', page)
            assert starts is not None, card
            assert not starts[2], "the card can't be started"
            form = {"system": starts[1], "cohort": str(DEVICES), "cohort_minimum": "2", "seconds": "900"}
            done = browser.post("/console/rounds", data=form, headers={"sec-fetch-site": "same-origin"})
        assert (done.status_code, done.url.query) == (200, b"said=opened"), re.search(
            "[^<>]*Nothing was changed", done.text
        )
        return self.services.coordinator.history(1)[0].round

    def go_on(self, number: str) -> list[RoundStatus]:
        """Take part until this round and those that it orders have ended; return them in order."""
        ended, until = [], time.monotonic() + WITHIN_SEC
        while True:
            status = self.services.coordinator.status(number)
            if status.state not in ("applied", "failed") or (status.orders and not status.followed_by):
                assert time.monotonic() < until, status
                for device in self.devices:
                    device.train_step()
                self.services.coordinator.step()
                time.sleep(0.05)
                continue
            ended.append(status)
            if not status.followed_by:
                return ended
            number = status.followed_by
            self.catch_up()

    def catch_up(self) -> ReleaseManifest:
        """Give every device the newest release, which is offered once the catalogue has its encoder."""
        newest, until = self.services.releases.require_current(), time.monotonic() + WITHIN_SEC
        while not all(sync(device) == newest.release for device in self.devices):
            assert time.monotonic() < until, "the devices never got the newest release"
            self.services.updater.step()
        return newest


class InProcessPool:
    """Replaces a pool of one process: its work needs torch, which this process has loaded."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def __enter__(self) -> InProcessPool:
        return self

    def __exit__(self, *_: object) -> None: ...

    def submit(self, made: Callable[..., bytes], *given: object) -> Future[bytes]:
        future: Future[bytes] = Future()
        future.set_result(made(*given))
        return future


@pytest.fixture
def no_process_for_torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Do in this process, which has torch, what the server does in separate ones."""
    monkeypatch.setattr(reported_basis, "ProcessPoolExecutor", InProcessPool)
    with stepped_in_this_process(monkeypatch):
        yield


@pytest.fixture(scope="module")
def papers(idle_world: SmallWorld) -> Iterator[PaperWorld]:
    idle_world.leave_steps_to_the_test()
    with idle_world.backend() as world:
        yield PaperWorld(world)


def uni_fedrec(ran: CommandRan) -> set[str]:
    draft, vote = ran.statuses
    assert (draft.system, draft.published, vote.system) == ("basis/exact/mean", None, "basis_vote")
    assert isinstance(ran.manifest.protection, SecureSum)
    assert ran.manifest.protection.sigma == 0
    size, axes = ran.manifest.shapes["g.steps"]
    assert ran.after.recall.codebook(size) is not None
    assert "Clicks held out by 2 devices" in (vote.summary or "")
    strategy, noisy = COMPOSED["basis/secure/mean"].strategy, COMPOSED["basis/secure/mean"].protection
    assert isinstance(strategy, BasisRounds)
    assert isinstance(noisy, SecureSum)
    enough = cohort_needed(partial(expected_noise_share, noisy, size * axes))
    return {f"the {size} basic interests that reports refer to", "vote", f"{enough:,} devices"}


def efficient_fedrec(ran: CommandRan) -> set[str]:
    (status,) = ran.statuses
    assert isinstance(ran.manifest.protection, SecureSum)
    assert (ran.manifest.protection.sigma, status.epsilon, status.follows) == (0, None, None)
    assert not any(name == "g.news" for name in ran.manifest.shapes), "no row of a piece of news"
    assert {"g.news.head.weight", "g.news.head.bias"} <= ran.manifest.shapes.keys()
    assert ran.changed("ranker.nrms")
    assert ran.after.encoder != ran.before.encoder
    return {"the head of the news encoder", "NRMS", "one exact secure sum", "names no article", "new vector"}


def fednewsrec(ran: CommandRan) -> set[str]:
    (status,) = ran.statuses
    protection = ran.manifest.protection
    assert isinstance(protection, LocalLaplace)
    assert (status.stages, status.uploaded) == ("updates", DEVICES)
    assert ran.changed("ranker.fednewsrec")
    whole = COMPOSED["fednewsrec_whole/local/mean"]
    assert (whole.task, whole.protection) == ("word_gradient", protection)
    clip, scale = (f"{each:g}".removeprefix("0") for each in (protection.clip, protection.scale))
    return {
        f"clips every number of its gradient to {clip}",
        f"Laplace noise of {scale}",
        "without a sum",
        "`fednewsrec_whole`: the news model, too",
    }


def finding(ran: CommandRan) -> set[str]:
    (status,) = ran.statuses
    protection, entry = ran.manifest.protection, ran.after.models["ranker.finding"]
    assert isinstance(protection, SecureSum)
    assert protection.sigma > 0
    assert status.epsilon is not None
    assert status.epsilon > 0
    assert entry.groups is not None
    old = ran.before.models["ranker.finding"].groups
    assert old is not None
    assert old.weights != entry.groups.weights
    size = entry.groups.size
    assert all(shape[0] == size for shape in ran.manifest.shapes.values()), "a block for each group"
    assert len(ran.facts["members"]) == size  # type: ignore[arg-type]
    return {f"each of {size} groups", "finds its group by itself", "part of a noisy secure sum"}


def multi_view(ran: CommandRan) -> set[str]:
    (status,) = ran.statuses
    entry = ran.after.models["ranker.multi_view"]
    assert status.uploaded == DEVICES
    assert ran.changed("ranker.multi_view")
    assert all(name.startswith("user_tower.") for name in entry.private)
    shared = ran.store.weights(ran.after, "ranker.multi_view")
    assert shared
    assert all(name.startswith("item_tower.") for name in shared), "no user tower reaches the server"
    assert {name.removeprefix("g.") for name in ran.manifest.shapes} == set(shared)
    return {"an item tower", "reading and searching", "Gaussian noise", "user towers stay on the device"}


PAPERS = {
    "Uni-FedRec": uni_fedrec,
    "Efficient-FedRec": efficient_fedrec,
    "FedNewsRec": fednewsrec,
    "FINDING": finding,
    "FL-MV-DSSM": multi_view,
}


def test_readme_has_one_sentence_and_one_command_for_each_paper() -> None:
    assert [paper for paper, _, _ in README] == list(PAPERS)
    assert len({command for _, _, command in README}) == len(PAPERS)


@pytest.mark.usefixtures("no_process_for_torch")
@pytest.mark.parametrize(("paper", "sentence", "command"), README, ids=list(PAPERS))
def test_paper_commands_do_what_the_readme_says(
    papers: PaperWorld, monkeypatch: pytest.MonkeyPatch, paper: str, sentence: str, command: str
) -> None:
    if paper == "FL-MV-DSSM" and not version():
        pytest.skip("this kernel has no Landlock, and so no views are kept apart")
    systems: dict[str, SystemSpec] = papers.services.coordinator._systems  # type: ignore[assignment]
    exact = systems["basis/exact/mean"]
    assert isinstance(exact.strategy, BasisRounds)
    at_once = replace(exact, strategy=replace(exact.strategy, vote_every=1, rate=50.0))
    monkeypatch.setitem(systems, exact.name, at_once)
    monkeypatch.setattr(papers.services.coordinator._loader, "held_out", 0.3 if paper == "Uni-FedRec" else 0.0)
    jobs: list[ViewJob] = []
    gradient = SpawnedViews.gradient

    def recording(self: SpawnedViews, job: ViewJob) -> object:
        jobs.append(job)
        return gradient(self, job)

    monkeypatch.setattr(SpawnedViews, "gradient", recording)
    ran = papers.run(command)
    assert [status.state for status in ran.statuses] == ["applied"] * len(ran.statuses)
    missing = {words for words in PAPERS[paper](ran) if words not in sentence}
    assert not missing, sentence
    if paper == "FL-MV-DSSM":
        assert {job.view for job in jobs} == set(VIEWS)
        assert all(job.terms.sigma > 0 for job in jobs)


OF_PAPERS = (each for purpose in written().purposes for each in purpose.choices if each.paper and not each.variant)


CARDS = by_length(["uni_fedrec", "fl_mv_dssm"], long=[*(each.system for each in OF_PAPERS), "basis"])
"""The others' systems are those of README's commands, above; the console's own tests press every card."""


@pytest.mark.long_form
@pytest.mark.usefixtures("no_process_for_torch")
@pytest.mark.parametrize("card", CARDS)
def test_each_papers_card_starts_a_round_that_is_applied(papers: PaperWorld, card: str) -> None:
    """Oracle: the rounds' own final states, including those that they order."""
    if card == "fl_mv_dssm" and not version():
        pytest.skip("this kernel has no Landlock, and so no views are kept apart")
    papers.catch_up()
    ended = papers.go_on(papers.start_card(card))
    assert {(each.state, each.uploaded) for each in ended} == {("applied", DEVICES)}, ended
    assert card in {each.system.partition("/")[0] for each in ended}
