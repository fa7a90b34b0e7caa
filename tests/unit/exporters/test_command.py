"""`python -m exporters`."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from exporters.__main__ import main
from exporters.architectures import architectures

app = typer.Typer()
app.command()(main)


def test_list_names_every_model_graph_input_and_output() -> None:
    result = CliRunner().invoke(app, ["--list"])
    assert result.exit_code == 0
    lines = [tuple(line.split()[:3]) for line in result.output.splitlines()]
    assert {name for name, _, _ in lines} == set(architectures())
    assert {
        ("basis", "244,993", "decompose"),
        ("nrms_400", "561,601", "table_gradient"),
        ("fednewsrec", "1,602,002", "user"),
        ("fl_dssm_news", "37,056", "score"),
    } <= set(lines)
    assert len(lines) == len(set(lines))


def test_list_of_one_model_shows_its_inputs_and_outputs() -> None:
    result = CliRunner().invoke(app, ["--list", "feature_ranker"])
    assert result.exit_code == 0
    given, made = result.output.splitlines()[0].split(" -> ")
    assert given.endswith("candidates ['batch', 'news', 256], features ['batch', 'news', 4]")
    assert made == "scores"


def test_command_exits_with_1_if_a_graph_fails_and_still_checks_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("exporters.parity.SCORE_TOLERANCE", -1.0)
    result = CliRunner().invoke(app, ["cosine", "naml"])
    assert result.exit_code == 1
    assert "cosine: graph score, output scores" in result.output
    assert "naml: graph user" in result.output


def test_one_model_is_exported_and_listed() -> None:
    result = CliRunner().invoke(app, ["cosine"])
    assert result.exit_code == 0
    assert "cosine" in result.output
    assert "score" in result.output
    assert "basis" not in result.output


@pytest.mark.parametrize(("words", "said"), [(["gru"], "no model gru"), ([], "--all")])
def test_invalid_arguments_are_refused_with_a_message(words: list[str], said: str) -> None:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert said in result.output
