"""The newsroom's data files follow the schema, and a violation is named with file, key and limit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import newsroom.tables
from newsroom.content import kind, sections
from newsroom.forms import heads_of, parsed
from newsroom.schedule import rhythms
from newsroom.tables import DATA, DataError, document, shared, tables

WORLD_FILES = {"companies", "countries", "government", "names", "publishers", "rhythms", "sections"}
STORY = """
topic = "bread"
[facts]
c = 'country()'
loaves = 'between(2, 9)'
[[stages]]
titles = ["{loaves} loaves in {c.name}"]
abstracts = ["There are {loaves}."]
leads = ["Bakers in {c.name} have [baked|sold] {loaves} loaves."]
"""


def _forget() -> None:
    for kept in (kind, document, shared, rhythms):
        kept.cache_clear()


@pytest.fixture
def read_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Read a data file of one story with a part replaced; tables of other files aren't available."""
    monkeypatch.setattr(newsroom.tables, "DATA", tmp_path)
    (tmp_path / "food").mkdir()
    (tmp_path / "rhythms.toml").write_bytes((DATA / "rhythms.toml").read_bytes())

    def read(old: str, new: str, more: str = "") -> Any:
        assert old in STORY
        (tmp_path / "food" / "bread.toml").write_text(STORY.replace(old, new) + more)
        return kind("food", "bread")

    _forget()
    yield read
    _forget()


def test_every_data_file_is_used() -> None:
    """Reading a file checks it; a file that no section lists would never be checked."""
    listed = {
        f"{section['name']}/{name}" for section in document("sections.toml")["sections"] for name in section["kinds"]
    }
    found = {path.relative_to(DATA).with_suffix("").as_posix() for path in DATA.rglob("*.toml")}
    assert {name for name in found if not name.endswith("/shared")} == listed | WORLD_FILES
    assert sum(len(section.kinds) for section in sections()) == len(listed)


def test_every_table_column_has_one_type_and_valid_forms() -> None:
    for path in DATA.rglob("*/*.toml"):
        for table in tables(path.relative_to(DATA).as_posix()).values():
            for text in _texts(table):
                parsed(text)


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return _texts(tuple(value.values()))
    if isinstance(value, tuple):
        return [text for one in value for text in _texts(one)]
    return _texts(tuple(vars(value).values())) if hasattr(value, "__dict__") else []


def test_most_facts_of_a_story_are_used_by_its_forms() -> None:
    """A fact that no form, table or other fact uses usually has a mistake in its name."""
    reported = drawn = 0
    for section in sections():
        for story in section.kinds:
            heads = set().union(*(heads_of(forms) for stage in story.stages for forms in stage.forms))
            drawn += len(story.facts.names)
            reported += len(story.facts.names & heads)
    assert reported > 0.8 * drawn


def test_valid_story_is_read(read_broken: Any) -> None:
    assert read_broken("bread", "bread").topic == "bread"


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ('topic = "bread"', 'topic = ""', "topic: must have one to 3 words"),
        ('topic = "bread"', 'topic = "bread"\ncolour = "red"', "colour: is unknown; there are facts"),
        ('topic = "bread"', 'topic = "bread"\nshare = 40', "share: must be from 0.01 to 10, is 40"),
        ('topic = "bread"', 'topic = "bread"\nrhythm = "waltz"', "rhythm: must be one of round, office"),
        ("between(2, 9)", "betwixt(2, 9)", "facts.loaves: unknown verb 'betwixt'"),
        ("between(2, 9)", "between(2, ovens)", "facts: loaves: no fact or table 'ovens' before it"),
        ("between(2, 9)", "__import__(start)", "unknown verb '__import__'"),
        ("between(2, 9)", "[1, 2]", "is not allowed"),
        ("between(2, 9)", "between(2,", "is not an expression"),
        ("'country()'", "7", "facts.c: must be an expression, or texts of which one is chosen"),
        ("{c.name} have", "{town} have", r"stages\[0\]: names 'town', which is not a fact"),
        ("[baked|sold]", "[baked|sold", "bracket without end"),
        ("[[stages]]", "[[stages]]\nweight = 1.5", r"stages\[0\].weight: must be from 0 to 1, is 1.5"),
        ("[[stages]]", "[[stages]]\nafter = [3, 1]", "after: must be two rising numbers of days from 0 to 60"),
        ("[[stages]]", "[[stages]]\nafter = [3]", "after: must have 2 values, has 1"),
        ("[[stages]]", '[[stages]]\nwhen = "sour"', r"stages\[0\]: names 'sour', which is not a fact"),
        ("[[stages]]", "[[stages]]\ntitle = []", r"stages\[0\].title: is unknown; there are titles"),
        ('leads = ["', 'lead = ["', r"stages\[0\].lead: is unknown"),
        ("topic", "[topic", "is not TOML"),
    ],
)
def test_schema_violation_is_named_in_the_error(old: str, new: str, error: str, read_broken: Any) -> None:
    with pytest.raises(DataError, match=error) as refused:
        read_broken(old, new)
    assert refused.value.file == "food/bread.toml"


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ('[[tables.ovens]]\nname = "a"\nheat = 3\n[[tables.ovens]]\nname = "b"', "row 2: has no 'heat', which other"),
        ('[[tables.ovens]]\nname = "a"\n[[tables.ovens]]\nname = 4', "row .*, name: must be of type"),
        ("[tables]\novens = []", "tables.ovens: must be a list, rows or a map with something in it"),
        ('[tables]\novens = ["a", 2]', "tables.ovens: must have values of one type"),
    ],
)
def test_table_with_differing_rows_is_refused(rows: str, error: str, read_broken: Any) -> None:
    with pytest.raises(DataError, match=error):
        read_broken("bread", "bread", rows)


def test_optional_column_may_be_left_out(read_broken: Any) -> None:
    rows = '[optional]\novens = ["heat"]\n[[tables.ovens]]\nname = "a"\nheat = 3\n[[tables.ovens]]\nname = "b"'
    read_broken("bread", "bread", rows)
    first, second = tables("food/bread.toml")["ovens"]
    assert (first.heat, second.heat) == (3, None)
    with pytest.raises(AttributeError, match="don't change"):
        first.heat = 4
