"""Systems as values. Oracles: the papers' figures, and the presets of models for what an upload holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import pytest
from torch import nn

from backend.federation.optimizers import Adam, Sgd
from backend.federation.strategies.fedavg import FedAvg
from backend.federation.strategies.grouped import Grouped
from backend.federation.strategies.multi_view import MultiView
from backend.federation.strategies.news_union import NewsUnion
from backend.federation.strategies.news_words import NewsWords
from backend.federation.strategies.strategy import RoundRequest, TrainsBesides
from backend.federation.systems import SYSTEMS, fednewsrec_nrms_naml_lstur
from backend.federation.systems.system import GateRound, SystemSpec
from device_app.training.multiview.job import VIEWS, ViewTerms
from device_app.training.tasks import TASKS
from device_app.wire.protections import LOCAL_NOISE, WITH_NEWS_MODEL, LocalLaplace, SecureSum
from device_app.wire.union import UnionMarks
from exporters.architectures import name_of
from models.builders.news import fednewsrec_words, lstur_words, naml_words
from models.dssm import SharedViewsRanker
from models.rankers import RANKERS
from models.scopes import private_names
from models.shapes import NEWS_DIM

PAPERS = ("fednewsrec", "nrms", "naml", "lstur")
RANKER_SYSTEMS = ("small_ranker", *PAPERS)


def test_four_rankers_add_no_task_and_no_strategy() -> None:
    """LSTUR has the paper's dropout of a reader's own vector besides."""
    same = {field.name for field in fields(SystemSpec)} - {"name", "architecture", "model", "dropout"}
    first = SYSTEMS["fednewsrec"]

    assert all(getattr(SYSTEMS[name], field) == getattr(first, field) for name in PAPERS for field in same)
    assert {SYSTEMS[name].task for name in RANKER_SYSTEMS} == {"full_gradient"}
    assert {type(SYSTEMS[name].strategy) for name in RANKER_SYSTEMS} == {FedAvg}
    assert len({SYSTEMS[name].model for name in RANKER_SYSTEMS}) == len(RANKER_SYSTEMS)


def test_the_devices_know_every_task_that_a_system_asks_for() -> None:
    assert {spec.task for spec in SYSTEMS.values()} <= TASKS.keys()


def test_every_system_that_trains_a_ranker_names_the_gate_and_no_other_does() -> None:
    trains = {name for name, spec in SYSTEMS.items() if spec.optimizer is not None and (spec.model or "") in RANKERS}
    gates = {name: spec.gate for name, spec in SYSTEMS.items() if spec.gate is not None}

    assert gates.keys() == trains
    assert {SYSTEMS[gate.system].task for gate in gates.values()} == {"evaluate"}


def test_a_gates_cohort_is_like_the_one_before_within_its_room_and_has_time_to_take_the_release() -> None:
    gate = GateRound("gate", cohort_limit=1_000, seconds_minimum=90.0)

    assert gate.after(RoundRequest("a", 60, 10, 30.0, 0.5)) == RoundRequest("gate", 60, 10, 90.0, 0.5)
    assert gate.after(RoundRequest("a", 5_000, 2_000, 600.0)) == RoundRequest("gate", 1_000, 1_000, 600.0)
    assert gate.after(RoundRequest("a", 8, 1, 600.0)).cohort_minimum == 2


def shared_numbers(model: nn.Module) -> int:
    """How many numbers of the model a device trains for everybody."""
    private = private_names(model)
    return sum(each.numel() for name, each in model.named_parameters() if name not in private)


def test_semi_and_fl_dssm_are_values_of_one_setting_whose_terms_devices_read() -> None:
    """FL-MV-DSSM: one task and one strategy; the views asked and whether the user tower is private differ."""
    semi, shared = SYSTEMS["multi_view"], SYSTEMS["fl_dssm"]
    assert (semi.task, type(semi.strategy), semi.optimizer) == (shared.task, type(shared.strategy), shared.optimizer)
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


def test_fl_mv_dssm_differs_from_fl_dssm_by_its_views_and_their_towers_and_fits_the_sum() -> None:
    whole, subset, one = (SYSTEMS[name] for name in ("fl_mv_dssm", "fl_mv_dssm_subset", "fl_dssm"))
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


@pytest.mark.parametrize(("base", "depth", "trained"), [("nrms", 5, (0.8944, 1.0)), ("naml", 4, (1.0,))])
def test_findings_bases_are_its_exact_form_with_another_model_and_the_papers_layers(
    base: str, depth: int, trained: tuple[float, ...]
) -> None:
    """Oracles: h(i) = ((i + 1) / N)^.5 of the paper's N (its NRMS has 5 layers, its NAML 4), and the models."""
    found, exact = SYSTEMS[f"finding_{base}"], SYSTEMS["finding_exact"]
    other = {"name", "architecture", "model", "strategy", "optimizer"}
    same = {field.name for field in fields(SystemSpec)} - other
    assert all(getattr(found, field) == getattr(exact, field) for field in same)
    assert found.optimizer == Adam(learning_rate=1e-4)
    assert isinstance(found.strategy, Grouped)
    layers, at = found.strategy.layers, 10_000
    assert layers.depth == depth
    assert found.strategy.personalisation.coefficients(at, layers) == pytest.approx(trained, abs=1e-4)
    assert found.model is not None
    model = RANKERS[found.model].build(NEWS_DIM)
    assert {layers.place(name) for name, _ in model.named_parameters()} == set(range(len(layers)))
    assert (found.architecture, RANKERS[found.model].groups) == (base, 4)
    clustering = SYSTEMS[found.strategy.clustering]
    assert (clustering.model, clustering.task) == (found.model, "nearest_group")
    assert clustering.architecture == found.architecture


def test_a_reader_is_told_the_price_of_the_noise_under_which_a_model_is_trained() -> None:
    told = {
        (spec.model, spec.protection)
        for spec in SYSTEMS.values()
        if isinstance(spec.protection, LocalLaplace) and spec.optimizer is not None
    }
    assert told == set(LOCAL_NOISE.items())


def test_a_reader_is_told_of_a_news_model_where_a_system_trains_one_under_noise_of_the_device() -> None:
    """Oracles: the systems that devices add noise for and that train more than their ranker, and the registry."""
    more = {
        spec.model
        for spec in SYSTEMS.values()
        if isinstance(spec.protection, LocalLaplace) and isinstance(spec.strategy, TrainsBesides)
    }
    assert more == WITH_NEWS_MODEL == {name for name, spec in RANKERS.items() if spec.news_over_words}
    for model in WITH_NEWS_MODEL:
        whole = SYSTEMS[f"{model.removeprefix('ranker.')}_whole"]
        assert (whole.model, whole.protection) == (model, LOCAL_NOISE[model]), "the price of a number is the table's"


def test_efficient_fedrec_as_printed_is_the_form_in_rows_after_a_union_by_random_marks() -> None:
    """Section 3.4, eq. 8: marks tell which news somebody holds, so the row of a single owner is opened, too."""
    printed, rows = SYSTEMS["efficient_fedrec_rows_as_printed"], SYSTEMS["efficient_fedrec_rows"]
    assert printed == replace(rows, name=printed.name, begins_with="news_union_as_printed")
    union, counted = SYSTEMS["news_union_as_printed"], SYSTEMS["news_union"]
    assert isinstance(union.protection, UnionMarks)
    assert (union.protection.counts, union.protection.dummies) == (False, 0)
    assert union == replace(
        counted, name=union.name, protection=union.protection, strategy=NewsUnion(follow=printed.name)
    )


def test_fednewsrec_is_the_papers_setting() -> None:
    spec = SYSTEMS["fednewsrec"]

    assert spec.protection == LocalLaplace(clip=0.005, scale=0.015)
    assert spec.optimizer == Sgd(learning_rate=0.5)
    assert spec.negatives == 4
    assert LocalLaplace(clip=0.005, scale=0.015).epsilon_per_coordinate() == pytest.approx(0.667, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "coordinates", "epsilon"),
    [
        ("small_ranker", 262, 52.4),
        ("fednewsrec", 693_794, 462_529.3),
        ("nrms", 248_977, 165_984.7),
        ("naml", 51_601, 34_400.7),
        ("lstur", 393_984, 262_656.0),
    ],
)
def test_a_whole_upload_has_the_size_and_the_price_that_the_system_says(
    name: str, coordinates: int, epsilon: float
) -> None:
    spec = SYSTEMS[name]
    assert spec.model is not None
    model = RANKERS[spec.model].build(NEWS_DIM)
    shared = shared_numbers(model)

    assert shared == coordinates
    assert isinstance(spec.protection, LocalLaplace)
    assert spec.protection.epsilon_per_upload(shared) == pytest.approx(epsilon, rel=1e-6)
    assert name_of(model, "ranker") == spec.architecture
    file = "fednewsrec_nrms_naml_lstur" if name in ("fednewsrec", "nrms", "naml", "lstur") else name
    said = (__import__(f"backend.federation.systems.{file}", fromlist=[file]).__doc__ or "").replace("\n", " ")
    assert f"{coordinates:,}" in said


@pytest.mark.parametrize(("name", "news_model"), [("naml", naml_words), ("lstur", lstur_words)])
def test_naml_and_lstur_whole_are_trained_as_fednewsrec_whole_and_have_the_sizes_that_they_say(
    name: str, news_model: Callable[[int], nn.Module]
) -> None:
    whole, exact = SYSTEMS[f"{name}_whole"], SYSTEMS[f"{name}_whole_exact"]
    of_paper = {field.name for field in fields(SystemSpec)} - {"name", "architecture", "model", "strategy", "dropout"}
    assert all(getattr(whole, field) == getattr(SYSTEMS["fednewsrec_whole"], field) for field in of_paper)
    assert (whole.strategy, whole.model) == (NewsWords(f"{name}_words", name), SYSTEMS[name].model)
    assert replace(whole, name=exact.name, protection=exact.protection) == exact
    assert exact.protection == SYSTEMS["fednewsrec_whole_exact"].protection
    assert (SYSTEMS["naml_whole"].dropout, SYSTEMS["lstur_whole"].dropout, SYSTEMS["lstur"].dropout) == (0, 0.5, 0.5)
    assert whole.model is not None
    assert RANKERS[whole.model].news_over_words == f"{name}_words"
    sizes = {dim: shared_numbers(news_model(dim)) for dim in (384, 300)}
    said = " ".join((news_model.__doc__ or "").split())
    assert all(f"{size:,}" in said for size in sizes.values())
    numbers = sizes[384] + shared_numbers(RANKERS[whole.model].build(NEWS_DIM))
    assert f"{numbers:,}" in (fednewsrec_nrms_naml_lstur.__doc__ or "")


def test_the_whole_of_fednewsrec_is_the_papers_step_and_has_the_size_and_the_price_that_it_says() -> None:
    whole, exact = SYSTEMS["fednewsrec_whole"], SYSTEMS["fednewsrec_whole_exact"]
    assert (whole.protection, whole.optimizer) == (SYSTEMS["fednewsrec"].protection, Sgd(learning_rate=0.5))
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
    about = fednewsrec_nrms_naml_lstur.__doc__ or ""
    assert f"{numbers:,}" in about
    assert f"{price:,.0f}" in about
