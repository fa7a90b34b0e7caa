"""The device's settings: what can change privacy, what can change speed, what can change the feed, kept apart.

The first are described in `privacy.settings`, the last in `feed_settings`, the others here.

From the environment (`OWNFEED_DEVICE_PRIVACY__MODE=none`) or from `ownfeed.toml` ([device], [device.privacy]; the file
in the working directory, or the one that OWNFEED_CONFIG names); the environment wins. What the reader sets on the pages
is kept in the store and wins over both.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from platformdirs import user_data_path
from pydantic import BaseModel, ConfigDict, Field, HttpUrl, TypeAdapter, ValidationError, field_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import SettingsConfigDict

from device_app.errors import SettingsRefused
from device_app.feed_settings import FeedSettings as FeedSettings
from device_app.privacy.modes import MODES
from device_app.privacy.settings import PrivacySettings as PrivacySettings
from device_app.recall_frontier import ListChoice
from device_app.setting_values import Host, SetPath, has_more_than_a_path
from device_app.settings_file import FileSettings, Renames, SettingsFileRefused
from device_app.store.database import PAGE_CACHE_KIB
from device_app.wire.recall import CANDIDATES_LIMIT

ADDRESS = TypeAdapter(HttpUrl)
RENAMES: Renames = {
    ("performance", "front_limit"): "default_list_limit",
    ("performance", "shelf_days"): "news_days",
}


class PerformanceSettings(BaseModel):
    """How much work is done and how often; can't change what is sent about the reader."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    threads: int = Field(default=1, ge=1, le=64, description="Threads of ONNX Runtime.")
    feed_size: int = Field(default=30, ge=6, le=100, description="Items of one feed.")
    recall_limit: int = Field(default=400, ge=50, le=CANDIDATES_LIMIT, description="Candidates asked for: R.")
    recall_max_age_sec: float = Field(
        default=300.0,
        ge=0,
        le=604_800,
        description="A recall answer serves another feed while it is younger than this and the report is the same.",
    )
    pool_limit: int = Field(
        default=50_000,
        ge=0,
        le=10_000_000,
        description="The pool's codes are kept while the pool has at most so many news, as a stand-by for a spent "
        "budget; in mode 'broadcast' however many there are, in mode 'none' never.",
    )
    default_list_limit: int = Field(default=600, ge=50, le=CANDIDATES_LIMIT, description="News of the default list.")
    sync_poll_sec: float = Field(
        default=60.0,
        ge=0.01,
        le=604_800,
        description="Seconds between polls for a release and a default list, on average.",
    )
    watch_backend: bool = Field(
        default=True,
        description="Keeps a connection to the backend open that carries nothing, so that a page says within five "
        "seconds that it has stopped; else that is found out by the next poll.",
    )
    training_poll_sec: float = Field(
        default=15.0, ge=0.01, le=604_800, description="Seconds between polls for a training round, on average."
    )
    training_idle_sec: float = Field(
        default=10.0,
        ge=0,
        le=604_800,
        description="No training while a feed was made or a story opened within so many seconds: the reader comes "
        "first. 0 trains at any time.",
    )
    request_timeout_sec: float = Field(
        default=10.0, ge=0.1, le=600, description="Longest wait for one answer of the backend."
    )
    bodies_wait_sec: float = Field(
        default=2.0, ge=0, le=600, description="Opening an article waits at most this long for the bodies under way."
    )
    seen_days: float = Field(
        default=14.0, gt=0, le=3_650, description="That a story was looked at counts against it for so many days."
    )
    news_days: float = Field(
        default=21.0, gt=0, le=3_650, description="News never clicked leaves the device after so many days."
    )
    page_cache_kib: int = Field(
        default=PAGE_CACHE_KIB, ge=64, le=1_048_576, description="Most of its database that a device keeps in memory."
    )


class DeviceSettings(FileSettings):
    """One reader's device app."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix="OWNFEED_DEVICE_",
        env_nested_delimiter="__",
    )
    table: ClassVar[str] = "device"
    renames: ClassVar[Renames] = RENAMES

    profile: str = Field(
        default="reader", pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$", description="Name of the reader's profile."
    )
    data_dir: SetPath = Field(
        default_factory=lambda: user_data_path("ownfeed", appauthor=False),
        description="Where profiles live; this one's database is <data_dir>/devices/<profile>/device.sqlite.",
    )
    backend_url: str = Field(default="http://127.0.0.1:8400", pattern=r"^https?://", description="The backend.")
    backend_key: str | None = Field(
        default=None,
        pattern=r"^[0-9a-f]{64}$",
        description="The backend's Ed25519 public key in hex, or one that it was rotated from. Without it the first "
        "key seen is trusted and pinned.",
    )
    host: Host = Field(default="127.0.0.1", description="Address of the reader's own pages. Keep it on this machine.")
    port: int = Field(default=8401, ge=0, le=65535, description="Port of the reader's own pages.")
    log_format: Literal["text", "json"] = Field(
        default="text", description="Logs on standard error: lines for people, or an object of JSON a line."
    )
    own_feeds: bool = Field(
        default=False,
        description="Whether the backend is this reader's own, as `ownfeed read` starts it: the pages then speak of "
        "feeds and offer nothing that takes other readers, and the reader's switches report and count nothing.",
    )
    privacy: PrivacySettings = Field(default_factory=PrivacySettings, description="What may leave the device.")
    performance: PerformanceSettings = Field(default_factory=PerformanceSettings, description="How much, how often.")
    feed: FeedSettings = Field(default_factory=FeedSettings, description="What the local ranking weighs.")

    @field_validator("backend_url")
    @classmethod
    def _is_reachable(cls, value: str) -> str:
        """The address as it was given, if a request can be sent there at all."""
        try:
            port, why = ADDRESS.validate_python(value).port, "port 0"
        except ValidationError as broken:
            port, why = None, broken.errors()[0]["ctx"]["error"]
        if has_more_than_a_path(value):
            port, why = None, "a query, a fragment or a blank"
        if not port:
            raise PydanticCustomError(
                "address", "{value} is no address ({why}): a host is a name or an address, a port from 1 to 65,535",
                {"value": repr(value), "why": why},
            )  # fmt: skip
        return value

    @property
    def pinned_key(self) -> bytes | None:
        """The reader's own choice of `backend_key`, as bytes."""
        return bytes.fromhex(self.backend_key) if self.backend_key else None

    @property
    def home(self) -> Path:
        """The folder of this profile."""
        return self.data_dir / "devices" / self.profile

    @property
    def database(self) -> Path:
        """The database of this profile."""
        return self.home / "device.sqlite"

    @classmethod
    def refusal(cls, refused: SettingsFileRefused) -> SettingsRefused:
        """The refusal as the device's own error."""
        return SettingsRefused(str(refused))


def list_length(choice: ListChoice | None, performance: PerformanceSettings) -> int:
    """Places of the default list: as its mode chooses where nothing else is looked for, else as the reader set it."""
    alone = choice is not None and MODES[choice.mode].finds == "nobody"
    return choice.places if choice is not None and alone else performance.default_list_limit


def keeps_pool(privacy: PrivacySettings, performance: PerformanceSettings, news: int) -> bool:
    """Whether a device keeps the codes of a pool of so many news: a matter of its settings, never of its reader."""
    finds = MODES[privacy.mode].finds
    if finds == "nobody":
        return False
    return finds == "here" or (performance.pool_limit > 0 and news <= performance.pool_limit)
