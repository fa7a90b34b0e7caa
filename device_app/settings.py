"""The device's settings, in three separate groups: privacy, performance and the feed.

Privacy settings are described in `privacy.settings`, feed settings in `feed_settings`, the others here. Values come
from the environment (`OWNFEED_DEVICE_PRIVACY__MODE=none`) or from `ownfeed.toml` ([device], [device.privacy]; the file
in the working directory, or the one that OWNFEED_CONFIG names). The environment takes precedence, and settings made on
the pages are stored and take precedence over both.
"""

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
from protocol.settings_file import FileSettings, Host, HostAndPort, SetPath, SettingsFileRefused, has_more_than_a_path

ADDRESS = TypeAdapter(HttpUrl)


class PerformanceSettings(BaseModel):
    """How much work is done and how often; these settings can't change what is sent about the reader."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)

    threads: int = Field(default=1, ge=1, le=64)
    """Threads of ONNX Runtime."""
    feed_size: int = Field(default=30, ge=6, le=100)
    """Stories of one feed."""
    recall_limit: int = Field(default=400, ge=50, le=CANDIDATES_LIMIT)
    """Candidates per request (R in the papers)."""
    recall_poll_sec: float = Field(default=900.0, ge=0.01, le=604_800)
    """Mean seconds between requests for candidates, regardless of what the reader does; pages are made from the
    last answer.
    """
    pool_limit: int = Field(default=50_000, ge=0, le=10_000_000)
    """Largest pool, in articles, of which the device keeps a copy, to find stories in without a report. Mode
    'broadcast' keeps one of any size, mode 'none' never."""
    default_list_limit: int = Field(default=600, ge=50, le=CANDIDATES_LIMIT)
    """Articles of the default list."""
    sync_poll_sec: float = Field(default=60.0, ge=0.01, le=604_800)
    """Mean seconds between polls for a release and a default list."""
    watch_backend: bool = True
    """Keeps an idle connection to the backend, so that pages show within five seconds that it has stopped; otherwise
    the next poll notices."""
    training_poll_sec: float = Field(default=15.0, ge=0.01, le=604_800)
    """Mean seconds between polls for a training round."""
    training_send_sec: float = Field(default=4.0, ge=0, le=3_600)
    """Mean seconds from joining a round to sending the update; the actual time is drawn from 0.5 to 1.5 times this,
    regardless of what the reader does. An update that isn't ready by then is sent as zeros. 0, for simulations:
    computed when requested."""
    request_timeout_sec: float = Field(default=10.0, ge=0.1, le=600)
    """Seconds to wait for one answer of the backend."""
    bodies_wait_sec: float = Field(default=2.0, ge=0, le=600)
    """Seconds that opening a story waits for texts being downloaded."""
    seen_days: float = Field(default=14.0, gt=0, le=3_650)
    """Days for which a story that was shown ranks lower."""
    news_days: float = Field(default=21.0, gt=0, le=3_650)
    """Days after which stories that were never opened are deleted from the device."""
    page_cache_kib: int = Field(default=PAGE_CACHE_KIB, ge=64, le=1_048_576)
    """KiB of its database that a device may keep in memory."""


class DeviceSettings(FileSettings):
    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix="OWNFEED_DEVICE_",
        env_nested_delimiter="__",
    )
    table: ClassVar[str] = "device"

    profile: str = Field(default="reader", pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$")
    """Name of the reader's profile."""
    data_dir: SetPath = Field(default_factory=lambda: user_data_path("ownfeed", appauthor=False))
    """Where profiles live; this one's database is <data_dir>/devices/<profile>/device.sqlite."""
    backend_url: str = Field(default="http://127.0.0.1:8400", pattern=r"^https?://")
    """Address of the server."""
    backend_key: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    """The backend's Ed25519 public key in hex, or one that it was rotated from. Without it the first key seen is
    trusted and pinned."""
    host: Host = "127.0.0.1"
    """Address of the reader's own pages. Keep it on this machine."""
    port: int = Field(default=8401, ge=0, le=65535)
    """Port of the reader's own pages."""
    lan: HostAndPort | None = None
    """Address and port on the home network where the pages are also served, over TLS and with a password; `ownfeed read
    --lan` sets it. Unset: on this machine only."""
    log_format: Literal["text", "json"] = "text"
    """Format of the logs on standard error: plain text, or one JSON object per line."""
    own_feeds: bool = False
    """Whether the backend is this reader's own, as `ownfeed read` starts it. Pages then manage feeds and leave out what
    needs other readers, and nothing is reported or counted."""
    own_feeds_token_file: SetPath | None = None
    """File with the token for managing that server's feeds, created by `ownfeed read`. Unset: the pages can't manage
    feeds."""
    privacy: PrivacySettings = Field(default_factory=PrivacySettings)
    """What may leave the device."""
    performance: PerformanceSettings = Field(default_factory=PerformanceSettings)
    """How much work is done and how often."""
    feed: FeedSettings = Field(default_factory=FeedSettings)
    """Weights and limits of the local ranking."""

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
                "address", "{value} is not an address ({why}): expected a host name or IP address and a port "
                "from 1 to 65,535",
                {"value": repr(value), "why": why},
            )  # fmt: skip
        return value

    @property
    def pinned_key(self) -> bytes | None:
        """Return the setting `backend_key` as bytes, or None if it is unset."""
        return bytes.fromhex(self.backend_key) if self.backend_key else None

    @property
    def home(self) -> Path:
        """The folder of this profile."""
        return self.data_dir / "devices" / self.profile

    @property
    def database(self) -> Path:
        return self.home / "device.sqlite"

    @classmethod
    def refusal(cls, refused: SettingsFileRefused) -> SettingsRefused:
        """Return the refusal as the device's own error."""
        return SettingsRefused(str(refused))
