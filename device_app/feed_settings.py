"""Settings for ranking and laying out a page; part of `device_app.settings`."""

from pydantic import BaseModel, ConfigDict, Field


class FeedSettings(BaseModel):
    """Weights and limits of the ranking on the device."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)

    ranker: str | None = None
    """Ranking model of the release. Unset: 'ranker.features', which learns how much content, your sections and topics,
    popularity and recency count. 'ranker.cosine' uses content only. Others, such as the papers' 'ranker.nrms', exist if
    the operator offers them."""
    half_life_hours: float = Field(default=48.0, gt=0, le=87_600)
    """Hours in which the recency term halves."""
    recency_weight: float = Field(default=0.5, ge=0, le=1_000)
    """Weight of recency, in standard deviations of the scores, for rankers that don't use recency."""
    popularity_weight: float = Field(default=3.0, ge=0, le=1_000)
    """Weight of popularity (-1 to 1, from private counts of how often a shown story is opened), for rankers that don't
    use popularity."""
    editorial_weight: float = Field(default=0.25, ge=0, le=1_000)
    """Weight of the importance that a story's source gives it."""
    follow_weight: float = Field(default=0.8, ge=0, le=1_000)
    """Added to the score of followed topics, sections and publishers."""
    reaction_weight: float = Field(default=0.8, ge=0, le=1_000)
    """How much likes raise, and 'less like this' lowers, similar stories."""
    reaction_reach: int = Field(default=3, ge=1, le=100)
    """Number of stories that a like raises; 'less' lowers one."""
    rare_weight: float = Field(default=1.0, ge=0, le=1_000)
    """Added to the score if the publisher publishes at most once a week; falls to 0 at 16 a week."""
    chosen_section_weight: float = Field(default=1.0, ge=0, le=1_000)
    """Added to the score in sections picked at the first visit; falls to 0 over `blend_reads` reads."""
    blend_reads: int = Field(default=20, ge=1, le=50)
    """Number of reads over which the sections of the first visit lose their influence."""
    chosen_share: float = Field(default=0.25, ge=0, le=1)
    """Minimum share of a feed for sections of the first visit, until `blend_reads` reads."""
    reading_share: float = Field(default=0.4, ge=0, le=1)
    """Minimum share of a feed for topics read recently, or their sections, in proportion to reads."""
    reads_for_share: int = Field(default=5, ge=1, le=50)
    """Reads needed for the full `reading_share`."""
    section_share: float = Field(default=0.2, gt=0, le=1)
    """Maximum share of a feed for a section that is neither picked, followed nor read. Others may have half."""
    seen_penalty: float = Field(default=1.0, ge=0, le=1_000)
    """How much a story that was shown but not opened loses, in standard deviations of the scores: this much the first
    time, twice as much after the third. It never disappears for this reason."""
    page_hours: float = Field(default=6.0, gt=0, le=168)
    """Hours after which a feed is replaced; until then it changes only when its reader refreshes it."""
    variety: float = Field(default=0.2, ge=0, le=1)
    """Maximal marginal relevance: 0 ranks by score only, 1 by diversity only."""
    topic_cap: int = Field(default=6, ge=1, le=100)
    """Maximum number of stories of one topic among the personal stories of a feed, unless `reading_share` gives the
    topic more."""
    publisher_cap: int = Field(default=10, ge=1, le=100)
    """Maximum number of those from one publisher."""
    fresh_slots: int = Field(default=3, ge=0, le=10)
    """Stories of the last hours, shown to every reader."""
    fresh_hours: float = Field(default=6.0, gt=0, le=87_600)
    """Maximum age of such a story, in hours."""
    explore_slots: int = Field(default=2, ge=0, le=10)
    """Stories from sections that this reader rarely reads."""
    developing_stories: int = Field(default=2, ge=0, le=5)
    """Number of developing stories, each shown as a group of reports."""
