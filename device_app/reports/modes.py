"""The report modes; each is a value that names its mechanism, its reporter and its label.

Modes without a report of their own:

`none`: nothing is reported; every device gets the same default list and sorts it itself.

Formal guarantees: epsilon = 0 for the content of a request: no function of the reader's clicks is sent. As with any
request, the server sees that this device sent one, when, and from which network address.

`broadcast`: the device finds articles in the whole pool's codes; nothing is reported.

Formal guarantees: epsilon = 0 for recall: every device downloads the same compressed pool; which articles are found is
computed here and revealed to nobody. Requests depend on the release and on the days already downloaded, never on
clicks.

Not covered: whether and when this device downloads, and its address; and the text of an opened article that isn't
stored yet. It is requested together with at least 99 others of the pool (`requests.seal_block`), which reveals that one
of them was opened, and which one if the server made up the others.

`auto`: stands for `interest`, `broadcast` or `none`, and sets the length of lists, by the pool's size.

Formal guarantees: those of the mode that it stands for. The choice is a function of the reader's own limits and of what
a release states to every device, never of clicks, so it reveals nothing. A release that misstates its pool's size can
only change which of the three is chosen: a report costs what the device's own mechanism computes from the codebook's
epsilon, which is at most `epsilon_per_report`, and is charged before it leaves.

A label is what people read about a mode.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from device_app.privacy.mechanisms.basis_l1 import BasisL1
from device_app.privacy.mechanisms.basis_laplace import BasisLaplace
from device_app.privacy.mechanisms.code import RandomisedCode
from device_app.privacy.mechanisms.subset import TopicSubset
from device_app.privacy.mechanisms.topics import NoisyTopics
from device_app.privacy.reporter import Clear, Mechanism
from device_app.reports.reporters import (
    BasisL1Reporter,
    BasisLaplaceReporter,
    CodeReporter,
    InterestReporter,
    ModeReporter,
    ReportTerms,
    SubsetReporter,
    TopicsReporter,
)
from protocol.recall_frontier import ListChoice, packaged_frontier
from protocol.releases import RecallProtocol
from protocol.text_catalogue import TextCatalogue

LABELS = TextCatalogue("device_app.reports", "labels.toml")


@dataclass(frozen=True)
class Label:
    """Texts about a mode, with placeholders for its mechanism's figures, and how its reports are shown.

    texts: title, paragraph, and for a mode that reports, sent: what a report contains. uncovered: if more than usual is
    not covered by epsilon. usual: the mechanism whose figures are shown while a release offers none; a paragraph with
    figures needs one.

    rows and counts: the content of a report, row by row, and the counts it sends in clear. row_label names a row that
    is not a channel; in_a_sentence means that there is only one true number, shown in a sentence. for_comparison:
    offered separately from the modes for readers. stricter_up_to: recommended as the stricter choice for pools of at
    most this many articles.
    """

    texts: Mapping[str, str]
    usual: Mechanism | None = None
    rows: Callable[[Any], Clear] = lambda report: ()
    counts: Callable[[Any], tuple[int, ...]] = lambda report: ()
    row_label: str | None = None
    in_a_sentence: bool = False
    for_comparison: bool = False
    stricter_up_to: int | None = None

    def __post_init__(self) -> None:
        try:
            self.paragraph(None)
        except KeyError as figure:
            raise ValueError(f"{self.title}: its paragraph has the figure {figure}, so it needs `usual`") from None

    @property
    def title(self) -> str:
        """The mode's name for the page."""
        return self.texts["title"]

    @property
    def uncovered(self) -> str:
        """What epsilon does not cover, in a sentence."""
        usual = LABELS("uncovered")
        return self.texts.get("uncovered", usual).format(uncovered=usual)

    def paragraph(self, mechanism: Mechanism | None) -> str:
        """Return the paragraph that describes the mode, with this mechanism's figures."""
        shown = mechanism or self.usual
        return self.texts["paragraph"].format(**(shown.figures() if shown else {}))

    def sent(self, mechanism: Mechanism) -> str:
        """What a report contains, in one sentence."""
        return self.texts["sent"].format(**mechanism.figures())


FEWEST_NEW_CLICKS = 3
STRICTER_UP_TO = 50_000
"""`broadcast` is recommended as the stricter choice for pools of at most this many articles (docs/decisions/021)."""


def as_many_again(clicks_behind: int, clicks_per_report: int) -> int:
    """Return how many new clicks make a report out of date: as many as it was made from, 3 to `clicks_per_report`.

    A report made from three clicks says little; once there are many, 20 new ones change little (docs/decisions/017).
    """
    return min(clicks_per_report, max(FEWEST_NEW_CLICKS, clicks_behind))


@dataclass(frozen=True)
class PoolTerms:
    """The inputs for choosing a list: the release's figures, which are the same for every device, and the reader's
    limits.

    news: size of the pool, as the release states. epsilon_limit: the maximum cost of a report; bytes_limit: the maximum
    size of an answer, or of the copy of the pool.
    """

    news: int
    protocol: RecallProtocol
    epsilon_limit: float
    bytes_limit: float


@dataclass(frozen=True)
class ReportMode:
    """One way of reporting interests, or of not reporting them.

    name: as in the settings, on the page and in the ledger. label: texts and figures for people.

    If the mode reports: mechanism randomises, and reporter uses it to make reports, which the server decodes by their
    kind. outdated_after: the number of new clicks after which a report is out of date, given the number it was made
    from and the setting `clicks_per_report`; its reporter's `meaning` decides whether a report is carried over to
    another release.

    finds: who finds articles beyond the default list: the server from a report, this device in its copy of the pool
    ('here'), or nobody. chooses: for a mode that stands for another depending on the pool's size: chooses the mode and
    the length of lists. Until a release has stated the size of its pool, the mode reports nothing.
    """

    name: str
    label: Label
    mechanism: Callable[..., Mechanism] | None = None
    reporter: type[ModeReporter[Any]] | None = None
    outdated_after: Callable[[int, int], int] = as_many_again
    finds: Literal["server", "here", "nobody"] = "server"
    chooses: Callable[[PoolTerms], ListChoice] | None = None

    def __post_init__(self) -> None:
        if not (self.finds == "server") == (self.mechanism is not None) == (self.reporter is not None):
            raise ValueError(
                f"{self.name}: a mode must have a mechanism and a reporter if, and only if, the server finds "
                "its candidates"
            )

    @property
    def decoder(self) -> str | None:
        """The name of the server's decoder, which is the kind of its reports; None if nothing is reported."""
        return None if self.reporter is None else str(self.reporter.report.model_fields["kind"].default)

    def reporter_of(self, terms: ReportTerms) -> ModeReporter[Any] | None:
        """The reporter under these terms; None if the mode makes no reports or the release lacks support."""
        if self.reporter is None or self.mechanism is None:
            return None
        return self.reporter.of(self.mechanism, terms)


def chosen(terms: PoolTerms) -> ListChoice:
    """The list for the release's pool within the reader's limits."""
    return packaged_frontier().choose(
        terms.news,
        epsilon_limit=terms.epsilon_limit,
        bytes_limit=terms.bytes_limit,
        codebooks=[(book.size, book.epsilon) for book in terms.protocol.codebooks],
        pool_codes=terms.protocol.pool_codes,
    )


def _numbered(texts: Mapping[str, str], *, for_comparison: bool = False) -> Label:
    return Label(
        texts,
        usual=RandomisedCode(16, 4.0),
        rows=lambda report: ((float(report.code),),),
        in_a_sentence=True,
        for_comparison=for_comparison,
    )


_INTEREST, _CODE = _numbered(LABELS.table("interest")), _numbered(LABELS.table("code"), for_comparison=True)
_TOPICS = Label(LABELS.table("topics"), rows=lambda report: (report.weights,), row_label="Topics", for_comparison=True)
_SUBSET = Label(
    LABELS.table("subset"),
    rows=lambda report: (tuple(map(float, report.topics)),),
    in_a_sentence=True,
    for_comparison=True,
)
_BASIS_L1 = Label(LABELS.table("basis_l1"), rows=lambda report: report.scores, for_comparison=True)
_BASIS_LAPLACE = Label(
    LABELS.table("basis_laplace"),
    rows=lambda report: report.scores,
    counts=lambda report: report.counts,
    for_comparison=True,
)
_BROADCAST = Label(LABELS.table("broadcast"), stricter_up_to=STRICTER_UP_TO)

MODES: dict[str, ReportMode] = {
    mode.name: mode
    for mode in (
        ReportMode("interest", _INTEREST, RandomisedCode, InterestReporter),
        ReportMode("auto", Label(LABELS.table("auto")), finds="nobody", chooses=chosen),
        ReportMode("broadcast", _BROADCAST, finds="here"),
        ReportMode("none", Label(LABELS.table("none")), finds="nobody"),
        ReportMode("code", _CODE, RandomisedCode, CodeReporter),
        ReportMode("topics", _TOPICS, NoisyTopics, TopicsReporter),
        ReportMode("subset", _SUBSET, TopicSubset, SubsetReporter),
        ReportMode("basis_l1", _BASIS_L1, BasisL1, BasisL1Reporter),
        ReportMode("basis_laplace", _BASIS_LAPLACE, BasisLaplace, BasisLaplaceReporter),
    )
}
"""By name, in the order in which the page offers them. A mode whose reports have a new shape also adds a member to the
protocol's union (`protocol.recall.Report`) and a decoder to the server's (`backend.recall.decode.DECODERS`)."""
