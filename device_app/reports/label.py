"""The label of a report mode: what people read about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from device_app.privacy.reporter import Clear, Mechanism
from protocol.text_catalogue import TextCatalogue

LABELS = TextCatalogue("device_app.reports", "labels.toml")


@dataclass(frozen=True)
class Label:
    """Texts about a mode, filled in with its mechanism's figures, and how its reports are shown.

    texts: title, paragraph, and for a mode that reports, sent: what a report contains. Also uncovered, if there is more
    that no epsilon covers than usual. usual: the mechanism whose figures stand in while a release offers none.

    rows and counts: the content of a report, row by row, and the counts it sends in clear. row_label names a row that
    is no channel; in_a_sentence means that there is only one true number, shown in a sentence. for_comparison: offered
    apart from the modes for readers. stricter_up_to: recommended as the stricter choice for pools of at most this many
    articles.
    """

    texts: Mapping[str, str]
    usual: Mechanism | None = None
    rows: Callable[[Any], Clear] = lambda report: ()
    counts: Callable[[Any], tuple[int, ...]] = lambda report: ()
    row_label: str | None = None
    in_a_sentence: bool = False
    for_comparison: bool = False
    stricter_up_to: int | None = None

    @property
    def title(self) -> str:
        """The mode's name for the page."""
        return self.texts["title"]

    @property
    def uncovered(self) -> str:
        """What no epsilon covers."""
        usual = LABELS("uncovered")
        return self.texts.get("uncovered", usual).format(uncovered=usual)

    def paragraph(self, mechanism: Mechanism | None) -> str:
        """The mode in a paragraph."""
        shown = mechanism or self.usual
        return self.texts["paragraph"].format(**(shown.figures() if shown else {}))

    def sent(self, mechanism: Mechanism) -> str:
        """What a report contains, in one sentence."""
        return self.texts["sent"].format(**mechanism.figures())
