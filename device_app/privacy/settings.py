"""The settings that affect privacy: what may leave the device, how, and at what cost."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from protocol.recall_frontier import USUAL_BYTES, USUAL_EPSILON

MODE_NAMES = ("interest", "auto", "broadcast", "none", "code", "topics", "subset", "basis_l1", "basis_laplace")
"""The names of the report modes (`reports.modes`), in the order in which the page offers them."""


def _known_mode(name: str) -> str:
    if name not in MODE_NAMES:
        *names, last = map(repr, MODE_NAMES)
        raise PydanticCustomError("literal_error", f"Input should be {', '.join(names)} or {last}")
    return name


ModeName = Annotated[str, AfterValidator(_known_mode), WithJsonSchema({"type": "string", "enum": list(MODE_NAMES)})]


class PrivacySettings(BaseModel):
    """The privacy settings.

    All of them can change what leaves the device, and no setting outside this class can.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)

    mode: ModeName = "interest"
    """How interests are reported. 'interest': clicks are clustered, the clusters decomposed on basic interests, and the
    number of the largest one is sent by randomised response. 'auto': as 'interest', 'broadcast' or 'none', and by a
    list as long, as was measured to find most in a pool of this size. 'broadcast': nothing is reported, the device
    searches a compressed copy of the pool. 'none': nothing is reported; the feed is ranked here from the list that
    every device gets. For comparison: 'code', the number of the prototype nearest to the mean of the clicks, 'topics',
    'subset', and Uni-FedRec's noisy scores as the paper has them ('basis_laplace') or with its gaps closed
    ('basis_l1')."""
    epsilon_per_report: float = Field(default=USUAL_EPSILON, gt=0)
    """Most that one report of the modes 'interest', 'code', 'topics' and 'subset' may cost: of the release's codebooks
    the finest within it is used. 4 is 16 codes, 8 is 64. The costs of 'basis_laplace' and 'basis_l1' are the release's
    (50 and 1.67 at the paper's figures)."""
    bytes_per_list: int = Field(default=USUAL_BYTES, ge=100_000, le=1_000_000_000)
    """Most that one list of news, or the copy of the whole pool in its place, may weigh in mode 'auto'. The longest
    list of 1,000 is about 0.4 MB, a copy of 12,000 news 1.7."""
    epsilon_per_day_reports: float = Field(default=8.0, ge=0)
    """Pure epsilon that fresh reports may cost in one UTC day. A report beyond it is refused: the feed is then recalled
    on this device where it has the pool's codes, else made with the last report or the common list. The default pays
    for two codes a day; 'basis_laplace' needs 50 for one report, which is no strong guarantee but the paper's setting,
    counted honestly."""
    epsilon_lifetime_reports: float | None = Field(default=40.0, ge=0)
    """Pure epsilon that reports may cost over the life of this device; none: only the day counts. The default pays for
    ten different codes. A code that was reported once is sent again for nothing, so most readers never come near;
    whoever does is recalled on this device from then on."""
    epsilon_per_day_training: float = Field(default=0.0, ge=0)
    """Pure epsilon that training uploads may cost in one UTC day. The paper's noise costs 20 a coordinate, and there
    are about 245,000 coordinates: 4.9 million an upload; the default ranker's 262 cost 52.4. That is not a guarantee,
    so the default of 0 declines every upload; whoever trains has to write such a number here."""
    epsilon_lifetime_training: float | None = Field(default=None, ge=0)
    """Pure epsilon that training may cost over the life of this device; none: only the day counts."""
    clicks_before_report: int = Field(default=3, ge=1, le=50)
    """Until this many clicks a report is random and reveals nothing about the reader. One is sent and charged all the
    same, so that a missing request doesn't show how little was read."""
    clicks_per_report: int = Field(default=20, ge=1, le=50)
    """A new report is made after this many new clicks (earlier while clicks are few: after as many again, 3 at least);
    until then the last one is sent again, bit for bit, which costs nothing."""
    report_window_hours: float = Field(default=24.0, gt=0, le=24 * 30)
    """After this many hours a report is out of date and a new one is made; a code that was drawn before is sent again
    unchanged, and costs nothing."""
    codebooks_per_day: int = Field(default=2, ge=1, le=100)
    """Under at most so many new codebooks are reports drawn in one UTC day. A server that changes them oftener gets the
    last report, if it is still meaningful, or none."""
    searches_in_reports: bool = True
    """Whether saved searches and followed topics weigh in the report, and in recall on this device, beside what was
    read. Their words never leave either way."""
    training: bool = False
    """Whether this device may take part in training rounds. Off unless switched on."""
    counting: bool = True
    """Whether this device may take part in private counts of what was displayed and opened: its share is hidden in the
    noisy sum of at least `smallest_sum` devices. What is popular is known from nothing else."""
    epsilon_per_day_counts: float = Field(default=6.0, ge=0)
    """Epsilon (at `delta_per_sum`) that private counts may cost in one UTC day. One count costs 5.3 if it may be opened
    with ten devices, 2 if with sixty."""
    epsilon_lifetime_counts: float | None = Field(default=None, ge=0)
    """Epsilon that private counts may cost over the life of this device; none: only the day counts."""
    weakest_scale_to_clip: float = Field(default=0.1, gt=0)
    """The weakest local Laplace noise a round may ask for, as scale / clip; a round below it is declined. The paper's
    0.01 / 0.1 is exactly 0.1."""
    weakest_view_sigma: float = Field(default=1.0, gt=0)
    """The weakest noise, against its clip, that each view of this device (reading, searches) may be asked to put on its
    gradient before the views are mixed; a round below it is declined. The paper's is 1."""
    secure_sum: Literal["never", "noisy", "exact"] = "noisy"
    """Which secure sums this device takes part in. 'noisy': only those with noise inside. 'exact': also those without,
    in which the server learns the exact sum of all devices and no epsilon bounds what that reveals. 'never': none."""
    secure_sum_mode: Literal["semi_honest", "active"] = "active"
    """Against which server the masks of a secure sum must hold. 'semi_honest': one that follows the protocol and reads
    all it receives. 'active': also one that misstates which devices dropped out; sums without the consistency round are
    declined then, as sums without noise always are. No mode holds against a server that invents the other devices:
    `epsilon_per_sum_alone` limits that."""
    smallest_sum: int = Field(default=10, ge=2, le=10_000)
    """A secure sum that may be opened with fewer devices in it is declined."""
    epsilon_per_sum: float = Field(default=8.0, gt=0)
    """Most that one opened, noisy sum may cost this device if the other devices in it are real, and only as few survive
    as the round allows. It is an epsilon at `delta_per_sum`, and counts against the day's budget of training, or of
    counts."""
    epsilon_per_sum_alone: float = Field(default=24.0, gt=0)
    """Most that one noisy sum may cost this device if no other device in it is real, so that its own share of noise is
    all that hides it; an epsilon at `delta_per_sum`. A count costs 21.1, a round of the default ranker 16.7. Shares for
    thousands of devices are thinner, and such sums are declined unless this is raised."""
    epsilon_per_click_alone: float = Field(default=8.0, gt=0)
    """Most that one private count may reveal about a single click, with its display, if no other device in it is real;
    an epsilon at `delta_per_sum`. The usual count costs 7.4 for one click, 21.1 for everything; a list with one click
    per device could reveal as much about that one as about everything. A round of training is clipped as a whole, so
    one click can weigh as much as all: there `epsilon_per_sum_alone` applies."""
    epsilon_per_day_alone: float = Field(default=48.0, ge=0)
    """Most that all noisy sums of one UTC day, of counts and of training, may cost together if no other device in them
    is real; an epsilon at `delta_per_sum`, by adding up rho. The default pays for three counts, or for a count and
    three rounds of the default ranker."""
    epsilon_lifetime_alone: float | None = Field(default=None, ge=0)
    """Most that all noisy sums over the life of this device may cost together if no other device in them is real; none:
    only the day counts. A click is counted once, so what is revealed about it doesn't grow with the days; what is
    revealed about a reader's habits does. 200 pays for 23 counts."""
    delta_per_sum: float = Field(default=1e-6, gt=0, le=1e-3)
    """The delta at which this device prices noisy sums: with this probability a sum may reveal more than its epsilon.
    What a round proposes is not read."""

    def with_overrides(self, overrides: dict[str, Any]) -> PrivacySettings:
        """Return these settings with the reader's changes.

        Raises pydantic's ValidationError naming the field and its limit.
        """
        return PrivacySettings.model_validate(self.model_dump() | overrides)
