"""A source needs only its registry entry: a toy source becomes a command without changes to other files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Annotated, ClassVar

import pytest
import typer
from typer.testing import CliRunner

from backend.news.errors import OptionRefused, SourceUnreachable
from backend.news.item import NewsItem, Rejection
from backend.news.sources import SOURCES
from backend.news.sources.rss import RssSource
from backend.news.sources.source import FeedLocation, NewsSource, SourceOption
from backend.terminal.source_commands import add_source_commands


@dataclass(frozen=True)
class ToySource:
    """Returns as many headlines as requested."""

    name: ClassVar[str] = "toy"
    help: ClassVar[str] = "Toy headlines."

    word: Annotated[str, SourceOption("A word of every headline.", many=True)]
    count: Annotated[int, SourceOption("How many.", minimum=1, maximum=5)] = 2
    labels: Annotated[tuple[str, ...], SourceOption("Sections, in turn.")] = ("toys",)

    @property
    def title(self) -> str:
        return f"toy {self.word}"

    @property
    def feed(self) -> FeedLocation | None:
        return None

    def read(self, now: datetime) -> Iterator[NewsItem | Rejection]:
        if self.word == "broken":
            raise SourceUnreachable(self.word, "it is broken")
        for number in range(self.count):
            section = self.labels[number % len(self.labels)]
            title = f"Headline {number} of {self.word}"
            yield NewsItem(id=f"{self.word}{number}", title=title, section=section, topic=section, published_at=now)
        yield Rejection(self.count + 1, "row", "the last is always refused")


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> typer.Typer:
    monkeypatch.setitem(SOURCES, ToySource.name, ToySource)
    app = typer.Typer()
    add_source_commands(app, SOURCES)
    return app


def test_registering_a_source_is_enough_for_a_command_and_ingest(command: typer.Typer, tmp_path: Path) -> None:
    words = ["toy", "ball", "kite", "--count", "3", "--labels", "a", "--labels", "b", "--json"]
    shown = CliRunner().invoke(command, [*words, "--data-dir", str(tmp_path / "data")])
    assert shown.exit_code == 0, shown.output
    reports = [json.loads(line) for line in shown.stdout.splitlines()]
    assert [one["source"] for one in reports] == ["toy ball", "toy kite"]
    assert [(one["report"]["added"], one["report"]["rejected_count"]) for one in reports] == [(3, 1), (3, 1)]

    again = CliRunner().invoke(command, ["toy", "ball", "broken", "kite", "--data-dir", str(tmp_path / "data")])
    assert again.exit_code == 1
    assert "broken can't be read: it is broken." in again.stderr
    assert "toy kite: 0 added" in again.stdout, "one that fails does not stop the next"


def test_toy_source_appears_in_the_help_with_its_limits(command: typer.Typer) -> None:
    assert "Toy headlines." in CliRunner().invoke(command, ["--help"]).output
    shown = CliRunner().invoke(command, ["toy", "--help"], env={"COLUMNS": "200", "TERM": "dumb"}).output
    for words in ("A word of every headline.", "How many.", "--labels", "Sections, in turn.", "--data-dir", "--json"):
        assert words in shown, words
    assert CliRunner().invoke(command, ["toy", "ball", "--count", "6"]).exit_code == 2
    assert CliRunner().invoke(command, ["toy"]).exit_code == 2


@pytest.mark.parametrize("source", SOURCES.values(), ids=lambda source: source.name)
def test_every_source_is_a_frozen_value_under_its_own_name(source: type[NewsSource]) -> None:
    assert SOURCES[source.name] is source
    assert source.help.endswith(".")
    long = {"file": Path("f" * 300), "location": "l" * 300}
    made = source(**{field.name: long[field.name] for field in fields(source) if field.name in long})  # type: ignore[arg-type]
    with pytest.raises(FrozenInstanceError):
        made.anything = 1  # type: ignore[attr-defined]
    assert 0 < len(made.title) <= 200


def test_invalid_network_is_named_in_the_error() -> None:
    with pytest.raises(OptionRefused, match=r"allow_network: '10\.1' does not appear to be an IPv4 or IPv6 network"):
        RssSource("https://example.org/feed", ("10.1",))
