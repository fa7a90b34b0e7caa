"""Settings of the local ranking and of how a page is divided; part of `device_app.settings`."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class FeedSettings(BaseModel):
    """Weights and limits of the local ranking, which all happens on the device."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    ranker: str | None = Field(
        default=None,
        description="Model of the release that ranks; none: its default, 'ranker.features', which learns weights of "
        "content, of your sections and topics, of popularity and of recency. 'ranker.cosine' weighs content alone; the "
        "papers' 'ranker.nrms', 'ranker.naml', 'ranker.lstur' and 'ranker.fednewsrec' are there where the operator "
        "offers them.",
    )
    half_life_hours: float = Field(
        default=48.0, gt=0, le=87_600, description="The recency term halves in so many hours."
    )
    recency_weight: float = Field(
        default=0.5,
        ge=0,
        le=1_000,
        description="Weight of recency against one spread of the scores, for rankers that do not weigh it themselves.",
    )
    popularity_weight: float = Field(
        default=3.0,
        ge=0,
        le=1_000,
        description="Weight of popularity, -1 to 1, for rankers that do not weigh it themselves: what private counts "
        "say of how often a story is opened when it is shown.",
    )
    editorial_weight: float = Field(
        default=0.25, ge=0, le=1_000, description="Weight of a story's editorial weight, which its source gives."
    )
    follow_weight: float = Field(
        default=0.8, ge=0, le=1_000, description="Lift of followed topics, sections and publishers."
    )
    reaction_weight: float = Field(
        default=0.8, ge=0, le=1_000, description="Pull of likes, and push of 'less like this'."
    )
    reaction_reach: int = Field(default=3, ge=1, le=100, description="A like pulls so many news; 'less' pushes one.")
    rare_weight: float = Field(
        default=1.0,
        ge=0,
        le=1_000,
        description="Lift of a story whose publisher publishes at most once a week; at 16 a week it is 0.",
    )
    chosen_section_weight: float = Field(
        default=1.0,
        ge=0,
        le=1_000,
        description="Lift of the sections of the first visit; it falls to 0 over `blend_reads` reads.",
    )
    blend_reads: int = Field(
        default=20, ge=1, le=50, description="Over so many reads the first visit's sections give way to what is read."
    )
    chosen_share: float = Field(
        default=0.25,
        ge=0,
        le=1,
        description="Least share of a feed that sections of the first visit have until `blend_reads` reads.",
    )
    reading_share: float = Field(
        default=0.4,
        ge=0,
        le=1,
        description="Least share of a feed for the topics of recent reads (else their sections), in proportion.",
    )
    reads_for_share: int = Field(default=5, ge=1, le=50, description="With fewer reads that share is smaller.")
    section_share: float = Field(
        default=0.2,
        gt=0,
        le=1,
        description="Most of a feed that a section may have which is neither picked, followed nor read.",
    )
    seen_penalty: float = Field(
        default=1.0,
        ge=0,
        le=1_000,
        description="How far a story that was shown but not opened sinks, in standard deviations of the scores: by "
        "this much the first time, by twice as much after the third. It doesn't vanish.",
    )
    page_hours: float = Field(
        default=6.0,
        gt=0,
        le=168,
        description="A feed stays as it is until its reader asks for another, or it is so many hours old.",
    )
    variety: float = Field(
        default=0.2,
        ge=0,
        le=1,
        description="Maximal marginal relevance: 0 ranks by score alone, 1 by difference alone.",
    )
    topic_cap: int = Field(
        default=6,
        ge=1,
        le=100,
        description="Most items of one topic among the personal items of a feed; a topic that `reading_share` gives "
        "more places has those.",
    )
    publisher_cap: int = Field(default=10, ge=1, le=100, description="Most items of one publisher among them.")
    fresh_slots: int = Field(
        default=3, ge=0, le=10, description="Items of the last hours, shown whatever the reader likes."
    )
    fresh_hours: float = Field(default=6.0, gt=0, le=87_600, description="How new such an item is.")
    explore_slots: int = Field(default=2, ge=0, le=10, description="Items of sections this reader rarely reads.")
    developing_stories: int = Field(default=2, ge=0, le=5, description="Stories of two or more items shown as a group.")
