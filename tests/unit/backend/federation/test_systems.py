"""Systems as values. Oracles: the papers' figures, and the presets of models for the contents of an upload."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from datetime import UTC, datetime

import pytest
from torch import nn

from backend.federation.optimizers import Sgd
from backend.federation.strategies.fedavg import FedAvg, MultiView
from backend.federation.strategies.news_words import NewsWords
from backend.federation.strategies.strategy import HasExtraTensors, RoundRequest
from backend.federation.systems import COMPOSED, STEPS, fednewsrec, lstur, naml
from backend.federation.systems.composition import GateRound, SystemSpec
from device_app.privacy.protections import registry as device_protections
from device_app.settings import PrivacySettings
from device_app.training.multiview.job import VIEWS, ViewTerms
from device_app.training.tasks import TASKS
from exporters.architectures import name_of
from models.builders.news import fednewsrec_words, lstur_words, naml_words
from models.dssm import SharedViewsRanker
from models.rankers import RANKERS
from models.shapes import NEWS_DIM, private_names
from protocol.protections import LOCAL_NOISE, SUMMED, WITH_NEWS_MODEL, LocalLaplace, SecureSum
from protocol.rounds import RoundManifest
from protocol.union import NEWS, UnionMarks

PAPERS = tuple(f"{each}/local/mean" for each in ("fednewsrec_user", "nrms", "naml", "lstur"))
RANKER_SYSTEMS = ("small_ranker/local/mean", *PAPERS)


@pytest.mark.parametrize("cohort", [60, 101, 250])
@pytest.mark.parametrize("name", [name for name, spec in COMPOSED.items() if isinstance(spec.protection, SUMMED)])
def test_devices_accept_the_terms_of_every_sum_at_any_cohort_size(name: str, cohort: int) -> None:
    """Whatever the price: an exact one is accepted by a reader who allows those."""
    spec = COMPOSED[name]
    protection = spec.protection
    assert isinstance(protection, SUMMED)
    most = spec.join.split_of(cohort).largest(cohort, 10) if spec.join else cohort
    terms = protection.terms("round-1", cohort=most, cohort_minimum=10, coordinates=262)
    shapes: dict[str, tuple[int, ...]] = (
        {NEWS: (terms.length,)} if isinstance(protection, UnionMarks) else {"g.w": (262,)}
    )
    manifest = RoundManifest(
        round="round-1", release="r1", system=name, task=spec.task, model=spec.model, shapes=shapes,
        protection=protection, negatives=4, samples_limit=32, closes_at=datetime(2026, 11, 28, tzinfo=UTC), terms=terms,
    )  # fmt: skip
    allows = PrivacySettings(
        training=True, secure_sum="noisy" if protection.sigma else "exact", epsilon_per_sum=1e9,
        epsilon_per_sum_alone=1e9, epsilon_per_click_alone=1e9,
    )  # fmt: skip
    device_protections.resolve(protection).check_again(manifest, allows)
    assert (terms.mode, terms.graph) == ("active", "sparse" if most > 100 else "complete")


def test_systems_of_four_papers_rankers_share_one_task_and_strategy() -> None:
    """LSTUR also has the paper's dropout of a reader's own vector."""
    same = {field.name for field in fields(SystemSpec)} - {"name", "architecture", "model", "dropout"}
    first = COMPOSED["fednewsrec_user/local/mean"]

    assert all(getattr(COMPOSED[name], field) == getattr(first, field) for name in PAPERS for field in same)
    assert {COMPOSED[name].task for name in RANKER_SYSTEMS} == {"full_gradient"}
    assert {type(COMPOSED[name].strategy) for name in RANKER_SYSTEMS} == {FedAvg}
    assert len({COMPOSED[name].model for name in RANKER_SYSTEMS}) == len(RANKER_SYSTEMS)


def test_devices_know_every_task_of_the_systems() -> None:
    assert {spec.task for spec in COMPOSED.values()} <= TASKS.keys()


def test_only_systems_of_rankers_have_a_gate_and_all_with_an_optimizer_do() -> None:
    rankers = {name: spec for name, spec in COMPOSED.items() if (spec.model or "") in RANKERS}
    gates = {name: spec.gate for name, spec in COMPOSED.items() if spec.gate is not None}

    assert {name for name, spec in rankers.items() if spec.optimizer is not None} <= gates.keys() <= rankers.keys()
    assert {COMPOSED[gate.system].task for gate in gates.values()} == {"evaluate"}


def test_gate_cohort_follows_its_round_within_limits() -> None:
    gate = GateRound("gate", cohort_limit=1_000, seconds_minimum=90.0)

    assert gate.after(RoundRequest("a", 60, 10, 30.0, 0.5)) == RoundRequest("gate", 60, 10, 90.0, 0.5)
    assert gate.after(RoundRequest("a", 5_000, 2_000, 600.0)) == RoundRequest("gate", 1_000, 1_000, 600.0)
    assert gate.after(RoundRequest("a", 8, 1, 600.0)).cohort_minimum == 2


def shared_numbers(model: nn.Module) -> int:
    """Return how many shared numbers of the model a device trains."""
    private = private_names(model)
    return sum(each.numel() for name, each in model.named_parameters() if name not in private)


def test_semi_and_fl_dssm_differ_only_in_view_settings() -> None:
    """FL-MV-DSSM uses the same task and strategy; only the views and whether the user tower is private differ."""
    semi, shared = COMPOSED["multi_view/exact/mean"], COMPOSED["fl_dssm"]
    assert (semi.task, type(semi.strategy)) == (shared.task, type(shared.strategy))
    named, private = [], []
    for spec in (semi, shared):
        assert spec.model is not None
        assert isinstance(spec.strategy, MultiView)
        assert isinstance(spec.protection, SecureSum)
        named.append(ViewTerms.model_validate_json(spec.strategy.terms()).views)
        model = RANKERS[spec.model].build(NEWS_DIM)
        parameters = shared_numbers(model)
        noise = spec.strategy.sigma * spec.strategy.clip * parameters**0.5  # of a device with one view
        assert noise + spec.strategy.clip < spec.protection.clip, "clipping the sum would weigh the noise"
        private.append(private_names(model))
        assert 1_000 * spec.protection.clip * 2**spec.protection.fraction_bits < 2**31
    assert named == [VIEWS, ("reading",)]
    assert all(name.startswith("user_tower.") for name in private[0])
    assert (len(private[0]), len(private[1])) == (4, 0)


def test_fl_mv_dssm_differs_from_fl_dssm_only_in_views_and_towers() -> None:
    whole, subset, one = (COMPOSED[name] for name in ("fl_mv_dssm", "fl_mv_dssm_subset", "fl_dssm"))
    same = {field.name for field in fields(SystemSpec)} - {"name", "architecture", "model", "strategy"}
    assert all(getattr(each, field) == getattr(one, field) for each in (whole, subset) for field in same)
    assert whole.model == subset.model == "ranker.fl_mv_dssm"
    terms = []
    for spec in (whole, subset, one):
        assert isinstance(spec.strategy, MultiView)
        terms.append(ViewTerms.model_validate_json(spec.strategy.terms()))
    assert [(each.views, each.at_once, each.clip, each.sigma) for each in terms] == [
        (VIEWS, None, 0.5, 1.0), (VIEWS, 1, 0.5, 1.0), (("reading",), None, 0.5, 1.0)
    ]  # fmt: skip
    assert RANKERS[whole.model].views == VIEWS
    model = RANKERS[whole.model].build(NEWS_DIM)
    assert isinstance(model, SharedViewsRanker)
    item, user = (shared_numbers(tower) for tower in (model.item_tower, model.user_tower))
    assert item == user == 18_528
    assert isinstance(whole.protection, SecureSum)
    assert 0.5 * (item / 2 + len(VIEWS) * user) ** 0.5 + 0.5 < whole.protection.clip, "clipping would weigh the noise"


def test_reader_sees_the_price_of_the_noise_used_in_training() -> None:
    reported = {
        (spec.model, spec.protection.model_copy(update={"weight_limit": 1}))  # n_u has no price in the table
        for name, spec in COMPOSED.items()
        if isinstance(spec.protection, LocalLaplace) and spec.optimizer is not None and name not in STEPS
    }
    assert reported == set(LOCAL_NOISE.items())


def test_reader_is_informed_when_a_news_model_is_trained_under_local_noise() -> None:
    """Oracles: the systems with noise that train more than their ranker, and the registry."""
    more = {
        spec.model
        for spec in COMPOSED.values()
        if isinstance(spec.protection, LocalLaplace) and isinstance(spec.strategy, HasExtraTensors)
    }
    assert more == WITH_NEWS_MODEL == {name for name, spec in RANKERS.items() if spec.news_over_words}
    for model in WITH_NEWS_MODEL:
        whole = COMPOSED[f"{model.removeprefix('ranker.')}_whole/local/mean"]
        assert (whole.model, whole.protection) == (model, LOCAL_NOISE[model]), "the price of a number is the table's"


def test_fednewsrec_has_the_papers_settings() -> None:
    spec = COMPOSED["fednewsrec"]

    assert spec.protection == LocalLaplace(clip=0.005, scale=0.015, weight_limit=1_024)
    assert (spec.samples_limit, spec.participation) == (1_024, 0.02)
    assert spec.optimizer == Sgd(learning_rate=0.5)
    assert spec.negatives == 4
    assert LocalLaplace(clip=0.005, scale=0.015).epsilon_per_coordinate() == pytest.approx(0.667, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "coordinates", "epsilon"),
    [
        ("small_ranker/local/mean", 262, 52.4),
        ("fednewsrec_user/local/mean", 693_794, 462_529.3),
        ("nrms/local/mean", 248_977, 165_984.7),
        ("naml/local/mean", 51_601, 34_400.7),
        ("lstur/local/mean", 393_984, 262_656.0),
    ],
)
def test_whole_upload_has_the_stated_size_and_price(name: str, coordinates: int, epsilon: float) -> None:
    spec = COMPOSED[name]
    assert spec.model is not None
    model = RANKERS[spec.model].build(NEWS_DIM)
    shared = shared_numbers(model)

    assert shared == coordinates
    assert isinstance(spec.protection, LocalLaplace)
    assert spec.protection.epsilon_per_upload(shared) == pytest.approx(epsilon, rel=1e-6)
    assert name_of(model, "ranker") == spec.architecture
    file = name.partition("/")[0].removesuffix("_user")
    said = (__import__(f"backend.federation.systems.{file}", fromlist=[file]).__doc__ or "").replace("\n", " ")
    assert f"{coordinates:,}" in said


@pytest.mark.parametrize(("name", "news_model"), [("naml", naml_words), ("lstur", lstur_words)])
def test_naml_and_lstur_whole_match_fednewsrec_whole_and_their_stated_sizes(
    name: str, news_model: Callable[[int], nn.Module]
) -> None:
    whole, exact = COMPOSED[f"{name}_whole/local/mean"], COMPOSED[f"{name}_whole/exact/mean"]
    of_paper = {field.name for field in fields(SystemSpec)} - {"name", "architecture", "model", "strategy", "dropout"}
    assert all(getattr(whole, field) == getattr(COMPOSED["fednewsrec_whole/local/mean"], field) for field in of_paper)
    assert (whole.strategy, whole.model) == (NewsWords(f"{name}_words", name), COMPOSED[f"{name}/local/mean"].model)
    assert replace(whole, name=exact.name, protection=exact.protection) == exact
    assert exact.protection == COMPOSED["fednewsrec_whole/exact/mean"].protection
    assert (
        COMPOSED["naml_whole/local/mean"].dropout,
        COMPOSED["lstur_whole/local/mean"].dropout,
        COMPOSED["lstur/local/mean"].dropout,
    ) == (0, 0.5, 0.5)
    assert whole.model is not None
    assert RANKERS[whole.model].news_over_words == f"{name}_words"
    sizes = {dim: shared_numbers(news_model(dim)) for dim in (384, 300)}
    said = " ".join((news_model.__doc__ or "").split())
    assert all(f"{size:,}" in said for size in sizes.values())
    numbers = sizes[384] + shared_numbers(RANKERS[whole.model].build(NEWS_DIM))
    assert f"{numbers:,}" in ((naml if name == "naml" else lstur).__doc__ or "")


def test_fednewsrec_whole_has_the_papers_step_size_and_price() -> None:
    whole, exact = COMPOSED["fednewsrec_whole/local/mean"], COMPOSED["fednewsrec_whole/exact/mean"]
    assert (whole.protection, whole.optimizer) == (
        COMPOSED["fednewsrec_user/local/mean"].protection,
        Sgd(learning_rate=0.5),
    )
    changed = {field.name for field in fields(SystemSpec) if getattr(whole, field.name) != getattr(exact, field.name)}
    assert changed == {"name", "protection"}
    assert isinstance(exact.protection, SecureSum)
    assert (exact.protection.sigma, exact.protection.weight_limit) == (0, 32), "weighed by n_u"
    sizes = {dim: shared_numbers(fednewsrec_words(dim)) for dim in (384, 300)}
    said = " ".join((fednewsrec_words.__doc__ or "").split())
    assert all(f"{size:,}" in said for size in sizes.values())
    numbers = sizes[384] + shared_numbers(RANKERS["ranker.fednewsrec"].build(NEWS_DIM))
    assert isinstance(whole.protection, LocalLaplace)
    price = whole.protection.epsilon_per_upload(numbers)
    about = fednewsrec.__doc__ or ""
    assert f"{numbers:,}" in about
    assert f"{price:,.0f}" in about
