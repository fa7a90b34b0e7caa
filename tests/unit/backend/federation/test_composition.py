"""Systems and their axes. Oracles: the papers for presets, and the purpose of protections and aggregations for
refusals."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backend.federation.errors import RoundImpossible, UnknownSystem
from backend.federation.protections.registry import resolve
from backend.federation.strategies.fedavg import Median, TrimmedMean
from backend.federation.strategies.joined_sums import HuberOfSums, MedianOfSums
from backend.federation.systems import COMPOSED, PRESETS, STEPS, SYSTEMS, full_name
from backend.federation.systems.composition import AGGREGATIONS, EXACT, LOCAL, PROTECTIONS, SECURE, SECURE_LARGE
from protocol.protections import LOCAL_NOISE, LocalLaplace, SecureSum
from protocol.rounds import RoundManifest

PAPERS = {"uni_fedrec", "fednewsrec", "efficient_fedrec", "finding", "fl_mv_dssm"}


def test_every_paper_has_a_preset_and_names_are_unique() -> None:
    assert PRESETS.keys() >= PAPERS
    names = [*SYSTEMS, *PRESETS, *STEPS]
    assert len(names) == len(set(names)), "a preset is not called as a system is"


def test_name_of_a_system_consists_of_system_protection_and_aggregation() -> None:
    (limit,) = (each.max_length for each in RoundManifest.model_fields["system"].metadata)
    for name, spec in COMPOSED.items():
        assert spec.name == name
        assert len(name) <= limit
        if name not in PRESETS.keys() | STEPS.keys():
            system, protection, aggregation = name.split("/")
            assert SYSTEMS[system].compose(protection, aggregation) == spec


def test_every_combination_is_composed_or_refused_with_a_reason() -> None:
    for system in SYSTEMS.values():
        for protection in PROTECTIONS:
            for aggregation in AGGREGATIONS:
                name = f"{system.name}/{protection}/{aggregation}"
                reason = system.refusal(protection, aggregation)
                assert (reason is None) == (name in COMPOSED), name
                if reason is not None:
                    assert reason.endswith("."), "a sentence for people"
                    with pytest.raises(RoundImpossible) as refused:
                        full_name(system.name, protection, aggregation)
                    assert refused.value.detail == reason
                    assert refused.value.field in ("protection", "aggregation")


def test_protection_matches_its_name() -> None:
    for name, spec in COMPOSED.items():
        protection = name.split("/")[1] if "/" in name else None
        if protection == LOCAL:
            assert isinstance(spec.protection, LocalLaplace)
            assert spec.model is None or spec.protection == LOCAL_NOISE[spec.model]
        elif protection in (SECURE, SECURE_LARGE, EXACT):
            assert isinstance(spec.protection, SecureSum)
            assert bool(spec.protection.sigma) == (protection != EXACT)


def test_aggregation_applies_to_visible_updates_or_to_group_sums() -> None:
    ranker = SYSTEMS["small_ranker"]
    assert ranker.compose(LOCAL, "median").centre == Median()
    assert ranker.compose(LOCAL, "trimmed").centre == TrimmedMean(share=0.1)
    assert ranker.compose(SECURE, "median").join == MedianOfSums()
    assert (ranker.compose(SECURE, "mean").join, ranker.compose(SECURE, "mean").centre) == (None, None)
    assert isinstance(SYSTEMS["private_counts"].compose().join, HuberOfSums)
    for spec in COMPOSED.values():
        summed = resolve(spec.protection).summed
        assert spec.centre is None or not summed
        assert spec.join is None or summed


def test_exact_sums_are_never_grouped_and_counts_use_no_median() -> None:
    for spec in COMPOSED.values():
        if spec.join is not None:
            assert resolve(spec.protection).noise_variance(1) > 0, spec.name
        if spec.changes == "counts":
            assert spec.centre is None
            assert not isinstance(spec.join, MedianOfSums)


def test_omitted_parts_of_a_system_name_use_defaults_and_full_names_stay() -> None:
    assert full_name("small_ranker") == "small_ranker/secure/median"
    assert full_name("small_ranker", LOCAL) == full_name("small_ranker/local") == "small_ranker/local/mean"
    assert full_name("small_ranker", aggregation="mean") == "small_ranker/secure/mean"
    assert full_name("small_ranker/local/trimmed") == "small_ranker/local/trimmed"
    assert full_name("nrms", SECURE, "median") == "nrms/secure/median"
    assert [full_name(each) for each in ("fednewsrec", "prototypes")] == ["fednewsrec", "prototypes"]


def test_unknown_system_is_refused_and_presets_have_no_axes() -> None:
    with pytest.raises(UnknownSystem) as unknown:
        full_name("small_ranker_secure")
    assert unknown.value.limit == ", ".join((*SYSTEMS, *PRESETS, *STEPS))
    for name in ("fednewsrec", "release_gate"):
        with pytest.raises(RoundImpossible, match="a fixed configuration"):
            full_name(name, SECURE)
        with pytest.raises(RoundImpossible, match="a fixed configuration"):
            full_name(name, aggregation="mean")
    for odd, field in (("small_ranker/loud", "protection"), ("small_ranker/secure/mode", "aggregation")):
        with pytest.raises(RoundImpossible) as refused:
            full_name(odd)
        assert refused.value.field == field
    with pytest.raises(RoundImpossible):
        full_name("small_ranker/secure/median/again")


def test_fednewsrec_preset_is_the_whole_model_under_the_papers_noise() -> None:
    published = PRESETS["fednewsrec"]
    whole, own = COMPOSED["fednewsrec_whole/local/mean"], ("name", "protection", "samples_limit", "participation")
    assert replace(whole, **{each: getattr(published, each) for each in own}) == published
    assert published.protection == LocalLaplace(clip=0.005, scale=0.015, weight_limit=1_024)
