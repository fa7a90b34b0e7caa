"""The device's settings, in three separate groups: privacy, performance and the feed.

Privacy settings are described in `privacy.settings`, feed settings in `feed_settings`, the others here. Values come
from the environment (`OWNFEED_DEVICE_PRIVACY__MODE=none`) or from `ownfeed.toml` ([device], [device.privacy]; the file
in the working directory, or the one that OWNFEED_CONFIG names). The environment takes precedence, and what the reader
sets on the pages is stored and takes precedence over both.
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
from device_app.privacy.settings import PrivacySettings as PrivacySettings
from device_app.store.database import PAGE_CACHE_KIB
from protocol.recall import CANDIDATES_LIMIT
from protocol.setting_values import Host, HostAndPort, SetPath, has_more_than_a_path
from protocol.settings_file import FileSettings, SettingsFileRefused

ADDRESS = TypeAdapter(HttpUrl)


class PerformanceSettings(BaseModel):
    """How much work is done and how often; can't change what is sent about the reader."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    threads: int = Field(default=1, ge=1, le=64, description="Threads of ONNX Runtime.")
    feed_size: int = Field(default=30, ge=6, le=100, description="Items of one feed.")
    recall_limit: int = Field(default=400, ge=50, le=CANDIDATES_LIMIT, description="Candidates asked for: R.")
    recall_poll_sec: float = Field(
        default=900.0,
        ge=0.01,
        le=604_800,
        description="Seconds between requests for candidates, on average, whoever reads; pages are made of the last "
        "answer.",
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
    training_send_sec: float = Field(
        default=4.0,
        ge=0,
        le=3_600,
        description="An update leaves half to one and a half times so many seconds after its place in a round was "
        "taken, whatever the reader does; one that isn't computed by then counts as zeros. 0, for simulations, "
        "computes it when it is asked for.",
    )
    request_timeout_sec: float = Field(
        default=10.0, ge=0.1, le=600, description="Longest wait for one answer of the backend."
    )
    bodies_wait_sec: float = Field(
        default=2.0, ge=0, le=600, description="Opening an article waits at most this long for the bodies under way."
    )
    seen_days: float = Field(
        default=14.0, gt=0, le=3_650, description="For this many days a story that was shown ranks lower."
    )
    news_days: float = Field(
        default=21.0,
        gt=0,
        le=3_650,
        description="Stories that were never opened are deleted from the device after this many days.",
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
    lan: HostAndPort | None = Field(
        default=None,
        description="Address and port on the home network where the pages are served too, over TLS and behind a "
        "password; `ownfeed read --lan` sets it. None: on this machine alone.",
    )
    log_format: Literal["text", "json"] = Field(
        default="text", description="Logs on standard error: lines for people, or an object of JSON a line."
    )
    own_feeds: bool = Field(
        default=False,
        description="Whether the backend is this reader's own, as `ownfeed read` starts it: the pages then speak of "
        "feeds and offer nothing that takes other readers, and the reader's switches report and count nothing.",
    )
    own_feeds_token_file: SetPath | None = Field(
        default=None,
        description="A file with the token for managing that server's feeds, made and set by `ownfeed read`. None: "
        "the pages can't manage feeds.",
    )
    privacy: PrivacySettings = Field(default_factory=PrivacySettings, description="What may leave the device.")
    performance: PerformanceSettings = Field(default_factory=PerformanceSettings, description="How much, how often.")
    feed: FeedSettings = Field(default_factory=FeedSettings, description="What the local ranking weighs.")

    @field_validator("backend_url")
    @classmethod
    def _is_reachable(cls, value: str) -> str:
        """Return the address unchanged if a request can be sent to it; else raises."""
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
        """The reader's choice of `backend_key` as bytes, or None."""
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
        """Return the refusal as the device's own error."""
        return SettingsRefused(str(refused))
