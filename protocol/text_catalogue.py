"""Text catalogues: the sentences that people read, in TOML files.

A contract test checks that every sentence is used, that none is missing, and that the values filled in match its
placeholders; another finds sentences written in code.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

Template = tuple[str, str, None]
"""A template's text, the file that errors name, and None in place of a check for changes of the file."""


class TextCatalogue:
    """The sentences of one file.

    A module holds it as a constant: `WORDS = TextCatalogue("device_app.feed", "words.toml")`. The top of the file has
    sentences with placeholders in braces, as for `str.format`. A table has texts whose names the code computes at run
    time: plain strings, or pairs of a short name and a sentence.
    """

    def __init__(self, package: str, file: str) -> None:
        """Read the file.

        Raises FileNotFoundError, tomllib.TOMLDecodeError, and ValueError for an entry of another shape.
        """
        self.sentences: dict[str, str] = {}
        self.tables: dict[str, Mapping[str, Any]] = {}
        for key, value in _read(package, file).items():
            if isinstance(value, str):
                self.sentences[key] = value
            elif isinstance(value, dict) and all(map(_is_words, value.values())):
                self.tables[key] = value
            else:
                raise ValueError(f"{package}/{file}: {key} is neither a text nor a table of texts")

    def __call__(self, key: str, /, **values: object) -> str:
        """Return the sentence `key`, filled in.

        Raises KeyError for a key or a name in braces that isn't there.
        """
        return self.sentences[key].format(**values)

    def table(self, name: str) -> Mapping[str, str]:
        """Return a table of plain strings. Raises KeyError."""
        return self.tables[name]

    def pairs(self, name: str) -> Mapping[str, tuple[str, str]]:
        """Return a table of short names and sentences. Raises KeyError."""
        return {key: (pair[0], pair[1]) for key, pair in self.tables[name].items()}


def read_templates(folder: Path) -> dict[str, Template]:
    """Return every template of a folder by its name ("device/feed.html").

    `jinja2.FunctionLoader` takes them in this form. All are read at the start: if a newer version is installed while
    the process is running, its templates would not match this process's values.
    """
    return {
        path.relative_to(folder).as_posix(): (path.read_text("utf-8"), str(path), None)
        for path in sorted(folder.rglob("*.html"))
    }


@cache
def _read(package: str, file: str) -> dict[str, Any]:
    return tomllib.loads((resources.files(package) / file).read_text("utf-8"))


def _is_words(value: object) -> bool:
    pair = isinstance(value, list) and len(value) == 2 and all(isinstance(part, str) for part in value)
    return isinstance(value, str) or pair
