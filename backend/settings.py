"""The server's settings: environment first (OWNFEED_BACKEND_*), then the table [backend] of ownfeed.toml.

Those of recall are described in `backend.recall_settings`, those of the news encoder in `backend.encoder_settings`,
those of where data lie in `backend.storage_settings`, the others here.

The file is `ownfeed.toml` in the working directory, or the one OWNFEED_CONFIG names.
"""

from __future__ import annotations

from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import SettingsConfigDict

from backend.encoder_settings import EncoderSettings
from backend.errors import BackendSettingsRefused
from backend.storage_settings import StorageSettings
from device_app.setting_values import Host, HttpsOrigin, SetPath
from device_app.settings_file import SettingsFileRefused
from device_app.wire.ids import SHORT_RELEASES
from device_app.wire.releases import RELEASES_ANSWERED


def _default_token_file(chosen: dict[str, Any]) -> Path:
    return Path(chosen["data_dir"] / "admin.token")


def _network(name: str) -> str:
    ip_network(name)  # its ValueError names what is wrong
    return name


def _off_or_a_minute(minutes: float) -> float:
    if 0 < minutes < 1:
        raise ValueError("it is 0, or at least 1: other people's servers are asked")
    return minutes


def _ranker(name: str) -> str:
    from models.rankers import release_name  # nobody who chooses none needs the models' package

    release_name(name)  # its ValueError names those there are
    return name


class BackendSettings(StorageSettings, EncoderSettings):
    """Everything an operator may set. Unknown keys are refused, so that a misspelt one is noticed."""

    model_config = SettingsConfigDict(env_prefix="OWNFEED_BACKEND_", extra="forbid", frozen=True, allow_inf_nan=False)
    table: ClassVar[str] = "backend"

    host: Host = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8400, ge=0, le=65_535, description="Port to listen on; 0 takes a free one.")
    admin_token_file: SetPath = Field(
        default_factory=_default_token_file,
        description="File with the operator's token; by default admin.token in data_dir, made at the first start "
        "and readable by its owner only.",
    )
    feed_networks: tuple[Annotated[str, AfterValidator(_network)], ...] = Field(
        default=(),
        description="Networks that are not public, such as '10.1.0.0/16', and that feeds may be fetched from all the "
        "same. Whoever runs a feed can then have this server fetch what is there.",
    )
    feed_refresh_minutes: Annotated[float, AfterValidator(_off_or_a_minute)] = Field(
        default=30.0,
        ge=0,
        le=7 * 24 * 60,
        description="How often each followed feed is asked for news, about a tenth longer by chance, and longer after "
        "errors or where its server asks for it; 0: never.",
    )
    pictures_served_bytes: int = Field(
        default=4_000_000,
        ge=0,
        le=30_000_000,
        description="Bytes of publishers' pictures that every device takes, of feeds that may have theirs shown: about "
        "400 stories, those of the default list first, then the newest. 0: none are fetched or served.",
    )
    pictures_every_minutes: float = Field(
        default=10.0,
        ge=0,
        le=7 * 24 * 60,
        description="How often the list of pictures changes at most, each time by some 250 KB for every device; what "
        "was taken down or withdrawn goes at once.",
    )
    news_lifetime_days: float = Field(default=30.0, gt=0, le=3_650, description="News older than this leave the pool.")
    pool_poll_sec: float = Field(
        default=2.0, ge=0.01, le=3_600, description="How often the server looks whether the pool has changed."
    )
    expire_every_sec: float = Field(
        default=300.0, gt=0, le=86_400, description="How often news past their lifetime are taken out of the pool."
    )
    round_tick_sec: float = Field(
        default=0.5, ge=0.01, le=60, description="How often the deadlines of training rounds are looked at."
    )
    gate: bool = Field(
        default=True,
        description="Whether a round that trains a ranker is followed by one that scores its release on clicks which "
        "devices hold out, and rolls it back if it has clearly fallen, or if too few devices score it. Costs the "
        "devices a second noisy sum, and a third where groups of them doubt the release.",
    )
    gate_held_out: float = Field(
        default=0.2, gt=0, le=0.5, description="Share of their samples that devices hold out while the gate is on."
    )
    gate_tolerance: float = Field(
        default=0.003, ge=0, le=0.5, description="A release whose AUC falls by no more than this is never rolled back."
    )
    gate_confidence: float = Field(
        default=0.95,
        gt=0.5,
        lt=1,
        description="One-sided: a release that is no worse is rolled back with a probability of at most 1 less this.",
    )
    releases_answered: int = Field(
        default=RELEASES_ANSWERED,
        ge=1,
        le=SHORT_RELEASES,
        description="How many of the last releases recall still answers, since devices swap at their own time. A "
        "device names one by its number modulo 16, so more can't be told apart. Devices learn a change with the next "
        "release.",
    )
    releases_kept: int = Field(
        default=10,
        ge=2,
        le=10_000,
        description="How many of the last releases can be rolled back to, at least those that recall answers. Graphs, "
        "weights and trained news encoders that only older ones name are removed when a release is published.",
    )
    worker_threads: int = Field(
        default=10,
        ge=2,
        le=256,
        description="Threads for requests that read the database or a file. The process opens up to so many "
        "connections to the database, one more for each of round_threads, and 16: PostgreSQL's max_connections has to "
        "allow that for each process.",
    )
    requests_waiting: int = Field(
        default=256,
        ge=1,
        le=100_000,
        description="Requests that wait for such a thread, for 2 s at most; every further one is answered 503.",
    )
    round_threads: int = Field(
        default=3,
        ge=1,
        le=64,
        description="Threads that check and store what devices send to rounds, kept apart so that a busy round can't "
        "hold up the news.",
    )
    uploads_limit: int = Field(
        default=128, ge=1, le=10_000, description="Uploads to rounds that may come in at the same time."
    )
    uploads_limit_bytes: int = Field(
        default=1024**3,
        ge=64 * 1024 * 1024,
        le=1024**4,
        description="Bytes of disk that uploads still coming in may take together.",
    )
    connections_limit: int = Field(
        default=2_000,
        ge=10,
        le=1_000_000,
        description="Open connections. Fewer where the process may not open so many files: 320 stay reserved. Beyond, "
        "the one that has waited longest for its headers is closed, else for a small body or its answer to be read; "
        "where none does, the new one gets 503.",
    )
    header_sec: float = Field(
        default=10.0,
        ge=0.01,
        le=600,
        description="A request's headers must be complete so long after connecting or after their first byte.",
    )
    idle_sec: int = Field(
        default=15, ge=1, le=600, description="A connection without a request is closed after so many seconds."
    )
    unread_sec: float = Field(
        default=20.0,
        ge=0.01,
        le=600,
        description="A connection that reads nothing of its answer for so long is closed.",
    )
    body_wait_sec: float = Field(
        default=10.0,
        ge=0.01,
        le=600,
        description="How long a body may keep the server waiting in all, besides a second for every "
        "body_bytes_per_sec that have come.",
    )
    body_bytes_per_sec: int = Field(
        default=4_096, ge=1, le=10**9, description="The slowest a body may come once that wait is used up."
    )
    body_limit_sec: float = Field(
        default=600.0,
        ge=0.01,
        le=86_400,
        description="The longest a body may keep the server waiting, however it comes.",
    )
    rankers: tuple[Annotated[str, AfterValidator(_ranker)], ...] = Field(
        default=(),
        description="The papers' rankers that releases carry besides the two small ones, by their names in "
        "models/rankers.py without 'ranker.', such as 'nrms'; any other name is refused with a list of them. Each is a "
        "choice of the reader on the device and can be trained; it makes every release up to 3 MB larger. What is "
        "named here later is added at the next start, at its cosine start.",
    )
    counts_every_minutes: float = Field(
        default=60.0,
        ge=0,
        le=7 * 24 * 60,
        description="How often a private count opens by itself, on a server whose schedule nobody has changed, if so "
        "many devices wait that it can tell something; 0: never. The console changes the schedule for good.",
    )
    counts_cohort: int = Field(
        default=60,
        ge=10,
        le=1_000,
        description="Devices wanted for such a count. It may be opened with a third of them, or with 18 where that is "
        "less. From 66 that come it is several sums of 22 and more, so that one device that lies spoils one of them.",
    )
    rounds_system: str | None = Field(
        default=None,
        description="The system whose rounds open by themselves in the place of private counts, on a server whose "
        "schedule nobody has changed; none: counts do.",
    )
    rounds_every_minutes: float = Field(
        default=60.0, gt=0, le=7 * 24 * 60, description="How often such a round opens, if any device waits for one."
    )
    places_per_address: int = Field(
        default=3,
        ge=0,
        le=10_000,
        description="Places in one round for one client address (a whole IPv4 address, or the first 64 bits of an IPv6 "
        "one), so that nobody fills a round alone; 0: any number. Readers behind one address share them, round by "
        "round.",
    )
    check_ins_per_minute: int = Field(
        default=120,
        ge=0,
        le=100_000,
        description="Check-ins for a place that one client address may make in a minute; beyond, it is told to wait; "
        "0: any number.",
    )
    requests_per_minute: int = Field(
        default=6_000,
        ge=0,
        le=10_000_000,
        description="Requests of any kind that one client address may make in a minute, all at once or evenly; beyond, "
        "it is told to wait (429). Readers behind one address share them. 0: any number.",
    )
    requests_per_minute_in_all: int = Field(
        default=120_000,
        ge=0,
        le=1_000_000_000,
        description="Requests that all client addresses together may make in a minute, in one process; 0: any number.",
    )
    public_origin: HttpsOrigin | None = Field(
        default=None,
        description="Where readers reach this server, such as 'https://news.example.org', in front of which TLS is "
        "ended. Requests for any other host are refused then, but for those from this machine to the console's port.",
    )
    console_port: int | None = Field(
        default=None,
        ge=1,
        le=65_535,
        description="A port of its own on the loopback for console, the operator's commands and figures, which the "
        "public port then doesn't have. None: all are on the one port.",
    )
    trusted_proxies: tuple[Annotated[str, AfterValidator(_network)], ...] = Field(
        default=(),
        description="Networks of your own proxies, such as '10.0.0.0/8': only from them X-Forwarded-For is believed. "
        "Behind a proxy that is not named here all devices count as one address.",
    )
    unbounded_addresses: tuple[Annotated[str, AfterValidator(_network)], ...] = Field(
        default=(),
        description="Networks without these bounds, such as '127.0.0.0/8' for a fleet on this machine; the demo sets "
        "that. None by default.",
    )
    round_retries: int = Field(
        default=2,
        ge=0,
        le=10,
        description="How often a round that its members made fail, by lies or by leaving after their keys, is opened "
        "again by itself, without the addresses of those who are known to have lied; once where nobody is; 0: never. "
        "Devices that had paid in the failed round pay again, within their own budget.",
    )
    rounds_wait_for_devices: bool = Field(
        default=False,
        description="Whether a round that is asked for waits in the queue until about as many devices as it needs at "
        "least have asked for rounds in half a minute, rather than open and fail without them; the demo sets it, whose "
        "readers read for some minutes first.",
    )
    rounds_polls_per_device: float = Field(
        default=2.0,
        ge=0.01,
        le=1_000,
        description="How often a device that waits for a round asks for one in half a minute, by which requests are "
        "counted as devices: 2 at a device's usual settings. It decides how many devices a share of them is, whether a "
        "count could be told from its noise, and when rounds that wait for devices open.",
    )
    popularity_half_life_hours: float = Field(
        default=24.0,
        gt=0,
        le=72,
        description="A private count of displays and clicks weighs half after so many hours.",
    )
    fleet_figures: SetPath | None = Field(
        default=None,
        description="A file in which a fleet of simulated readers on this machine tells the console what it alone "
        "knows; the demo sets it. No device and no request can write it. None by default.",
    )
    log_format: Literal["text", "json"] = Field(
        default="text", description="server.log: lines for people, or an object of JSON a line."
    )
    latency_window: int = Field(
        default=2_000, ge=10, le=1_000_000, description="Requests of each kind that the latency figures look back on."
    )

    @field_validator("console_port")
    @classmethod
    def _is_another_port(cls, console_port: int | None, found: ValidationInfo) -> int | None:
        if console_port is not None and console_port == found.data.get("port"):
            raise ValueError(f"it is {console_port}, as the setting port; the console has a port of its own, or none")
        return console_port

    @classmethod
    def refusal(cls, refused: SettingsFileRefused) -> BackendSettingsRefused:
        """Names the variable, the file or the table."""
        return BackendSettingsRefused(f"{refused}.", field=refused.named)


def load_settings(**overrides: object) -> BackendSettings:
    """Read the settings; raises BackendSettingsRefused in one plain line that names the setting and its limit."""
    try:
        return BackendSettings(**overrides)  # type: ignore[arg-type]
    except ValidationError as refused:
        first = refused.errors(include_input=False, include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        raise BackendSettingsRefused(f"Setting {name}: {first['msg']}.", field=name, limit=first["msg"]) from refused


def url_of(host: str, port: int) -> str:
    """The address for this machine's own use: a server that listens on every address is reached on the loopback."""
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{reached}]:{port}" if ":" in reached else f"http://{reached}:{port}"
