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
    number of the largest one is sent by randomised response. 'auto': whichever of 'interest', 'broadcast' and 'none'
    was measured to find most in a pool of this size, with the list length measured to be best. 'broadcast': nothing is
    reported; the device searches a compressed copy of the pool. 'none': nothing is reported; the device ranks the list
    that every device gets. For comparison: 'code', the number of the prototype nearest to the mean of the clicks,
    'topics', 'subset', and Uni-FedRec's noisy scores as published ('basis_laplace') or with its gaps closed
    ('basis_l1').
    """
    epsilon_per_report: float = Field(default=USUAL_EPSILON, gt=0)
    """Maximum cost of one report in the modes 'interest', 'code', 'topics' and 'subset'; the device uses the finest
    codebook of the release within it. 4 means 16 codes, 8 means 64. The release sets the costs of 'basis_laplace' and
    'basis_l1' (50 and 1.67 with the paper's figures).
    """
    bytes_per_list: int = Field(default=USUAL_BYTES, ge=100_000, le=1_000_000_000)
    """Maximum size in bytes of one list of articles, or of the copy of the whole pool in its place, in mode 'auto'. The
    longest list (1,000 articles) is about 0.4 MB, a copy of 12,000 articles 1.7 MB.
    """
    epsilon_per_day_reports: float = Field(default=8.0, ge=0)
    """Pure epsilon that new reports may cost in one UTC day. A report beyond it is refused; the device then searches
    its copy of the pool if it has one, else uses the last report or the default list. The default pays for two codes a
    day. 'basis_laplace' needs 50 for one report, which is no strong guarantee but the paper's setting.
    """
    epsilon_lifetime_reports: float | None = Field(default=40.0, ge=0)
    """Pure epsilon that reports may cost over the life of this device; none: only the daily limit applies. The default
    pays for ten different codes. Sending a code again is free, so most readers never reach this limit; devices that do
    search locally from then on.
    """
    epsilon_per_day_training: float = Field(default=0.0, ge=0)
    """Pure epsilon that training uploads may cost in one UTC day. The paper's noise costs 20 per coordinate, which is
    4.9 million for about 245,000 coordinates; the default ranker's 262 coordinates cost 52.4. That is not a guarantee,
    so the default of 0 declines every upload; a reader who wants to train has to set such a number here.
    """
    epsilon_lifetime_training: float | None = Field(default=None, ge=0)
    """Pure epsilon that training may cost over the life of this device; none: only the daily limit applies."""
    clicks_before_report: int = Field(default=3, ge=1, le=50)
    """Until this many clicks a report is random and reveals nothing about the reader. It is sent and charged anyway, so
    that a missing request doesn't show how little was read.
    """
    clicks_per_report: int = Field(default=20, ge=1, le=50)
    """Number of new clicks after which a new report is made (fewer while there are few clicks: as many as the last
    report was made from, at least 3). Until then the last report is sent again unchanged, which costs nothing.
    """
    report_window_hours: float = Field(default=24.0, gt=0, le=24 * 30)
    """Hours after which a new report is made. A code that was drawn before is sent again unchanged, which costs
    nothing.
    """
    codebooks_per_day: int = Field(default=2, ge=1, le=100)
    """Maximum number of new codebooks under which reports are drawn in one UTC day. A server that changes them more
    often gets the last report if it is still meaningful, else none.
    """
    searches_in_reports: bool = True
    """Whether saved searches and followed topics influence the report, and recall on this device, together with what
    was read. The words themselves never leave the device.
    """
    training: bool = False
    """Whether this device may take part in training rounds. Off unless switched on."""
    counting: bool = True
    """Whether this device may take part in private counts of what was displayed and opened. Its share is hidden in the
    noisy sum of at least `smallest_sum` devices. Popularity is computed only from these counts.
    """
    epsilon_per_day_counts: float = Field(default=6.0, ge=0)
    """Epsilon (at `delta_per_sum`) that private counts may cost in one UTC day. One count costs 5.3 if it may be opened
    with ten devices, 2 if with sixty."""
    epsilon_lifetime_counts: float | None = Field(default=None, ge=0)
    """Epsilon that private counts may cost over the life of this device; none: only the daily limit applies."""
    weakest_scale_to_clip: float = Field(default=0.1, gt=0)
    """Weakest local Laplace noise, as scale / clip, that a round may request; a round with less is declined. The
    paper's 0.01 / 0.1 is exactly 0.1.
    """
    weakest_view_sigma: float = Field(default=1.0, gt=0)
    """Weakest noise, relative to its clip, that each view of this device (reading, searches) may be required to add to
    its gradient before the views are mixed; a round with less is declined. The paper uses 1.
    """
    secure_sum: Literal["never", "noisy", "exact"] = "noisy"
    """Which secure sums this device takes part in. 'noisy': only those with noise inside. 'exact': also those without,
    in which the server learns the exact sum of all devices and no epsilon bounds what that reveals. 'never': none."""
    secure_sum_mode: Literal["semi_honest", "active"] = "active"
    """The kind of server that the masks of a secure sum must resist. 'semi_honest': one that follows the protocol and
    reads everything it receives. 'active': also one that misstates which devices dropped out; sums without the
    consistency round are then declined, as sums without noise always are. No mode resists a server that invents the
    other devices: `epsilon_per_sum_alone` limits what that reveals.
    """
    smallest_sum: int = Field(default=10, ge=2, le=10_000)
    """Minimum number of devices with which a secure sum may be opened; sums that allow fewer are declined."""
    epsilon_per_sum: float = Field(default=8.0, gt=0)
    """Maximum cost of one opened, noisy sum if the other devices in it are real, and only as few survive as the round
    allows. It is an epsilon at `delta_per_sum`, and counts against the daily budget of training or of counts.
    """
    epsilon_per_sum_alone: float = Field(default=24.0, gt=0)
    """Maximum cost of one noisy sum if no other device in it is real, so that only this device's share of noise hides
    its data; an epsilon at `delta_per_sum`. A count costs 21.1, a round of the default ranker 16.7. In sums for
    thousands of devices each share is smaller, and they are declined unless this is raised.
    """
    epsilon_per_click_alone: float = Field(default=8.0, gt=0)
    """Maximum that one private count may reveal about a single click, with its display, if no other device in it is
    real; an epsilon at `delta_per_sum`. The usual count costs 7.4 for one click and 21.1 for everything; a list with
    one click per device could reveal as much about that click as about everything. A round of training is clipped as a
    whole, so one click can weigh as much as all: there `epsilon_per_sum_alone` applies.
    """
    epsilon_per_day_alone: float = Field(default=48.0, ge=0)
    """Maximum total cost of all noisy sums of one UTC day, of counts and of training, if no other device in them is
    real; an epsilon at `delta_per_sum`, by adding up rho. The default pays for three counts, or for a count and three
    rounds of the default ranker.
    """
    epsilon_lifetime_alone: float | None = Field(default=None, ge=0)
    """Maximum total cost of all noisy sums over the life of this device if no other device in them is real; none: only
    the daily limit applies. A click is counted once, so what is revealed about it doesn't grow with time; what is
    revealed about a reader's habits does. 200 pays for 23 counts.
    """
    delta_per_sum: float = Field(default=1e-6, gt=0, le=1e-3)
    """The delta at which this device computes the cost of noisy sums: with this probability a sum may reveal more than
    its epsilon. The value that a round proposes is ignored.
    """

    def with_overrides(self, overrides: dict[str, Any]) -> PrivacySettings:
        """Return these settings with the reader's changes.

        Raises pydantic's ValidationError naming the field and its limit.
        """
        return PrivacySettings.model_validate(self.model_dump() | overrides)
