"""`python -m exporters`."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from exporters.__main__ import main

app = typer.Typer()
app.command()(main)


def test_list_names_every_model_graph_input_and_output() -> None:
    result = CliRunner().invoke(app, ["--list"])
    assert result.exit_code == 0
    lines = [line.split()[:3] for line in result.output.splitlines()]
    assert lines == [
        ["basis", "244,993", "context"],
        ["basis", "244,993", "decompose"],
        ["basis", "244,993", "gradient"],
        ["cosine", "1", "score"],
        ["nrms", "248,977", "score"],
        ["nrms", "248,977", "gradient"],
    ]


def test_one_model_is_exported_and_tabled() -> None:
    result = CliRunner().invoke(app, ["cosine"])
    assert result.exit_code == 0
    assert "cosine" in result.output
    assert "score" in result.output
    assert "basis" not in result.output


@pytest.mark.parametrize(("words", "said"), [(["gru"], "no model gru"), ([], "--all")])
def test_bad_words_are_answered(words: list[str], said: str) -> None:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert said in result.output
