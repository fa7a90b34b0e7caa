"""The settings of where the server's data lie, part of `backend.settings.BackendSettings`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import platformdirs
from pydantic import Field

from backend.recall_settings import RecallSettings
from backend.storage.object_store import ObjectStore
from backend.storage.opening import open_storage
from device_app.setting_values import SetPath

CHAIN_FILE = "chain.jsonl"


def _default_data_dir() -> Path:
    return platformdirs.user_data_path("ownfeed") / "backend"


def _default_database_url(chosen: dict[str, Any]) -> str:
    return f"sqlite:///{chosen['data_dir'] / 'ownfeed.sqlite'}"


def _default_chain_file(chosen: dict[str, Any]) -> Path:
    return Path(chosen["data_dir"] / CHAIN_FILE)


def _default_graphs_dir(chosen: dict[str, Any]) -> Path:
    return Path(chosen["data_dir"] / "graphs")


class StorageSettings(RecallSettings):
    """The data folder, the database, and what several machines share."""

    data_dir: SetPath = Field(
        default_factory=_default_data_dir,
        description="Where the server keeps its database, blobs, index and keys; made if missing.",
    )
    database_url: str = Field(
        default_factory=_default_database_url,
        repr=False,
        description="SQLAlchemy URL of the database; by default the SQLite file ownfeed.sqlite in data_dir. "
        "Left out of printed settings, since it may hold a password.",
    )
    storage: str | None = Field(
        default=None,
        description="Where blobs, updates, running sums, news encoders and the index lie for several machines: "
        "'s3://bucket/folder', or 'file:///folder' for one that they all mount; none: in data_dir. S3 needs "
        "ownfeed[storage], and its keys and endpoint stand in the environment (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL) "
        "or in ~/.aws.",
    )
    chain_file: SetPath = Field(
        default_factory=_default_chain_file,
        description="Where each release is noted before it is published; by default chain.jsonl in data_dir, or the "
        "setting storage where that is set. On a disk "
        "of its own it lets a database that was put back from a backup go on where devices are.",
    )
    graphs_dir: SetPath = Field(
        default_factory=_default_graphs_dir,
        description="Where exported graphs are kept, so that none is made twice; by default graphs in data_dir. A "
        "folder that several data folders share lets each of them start sooner after the first.",
    )

    @property
    def servers_dir(self) -> Path:
        """Where the servers that run on this folder listen: a file each, written by it, gone when it has stopped."""
        return self.data_dir / "servers"

    def open_storage(self) -> ObjectStore:
        """What the machines of this backend share besides the database. Raises BackendSettingsRefused."""
        return open_storage(self.storage, self.data_dir)

    @property
    def chain_in_storage(self) -> bool:
        """Whether releases are noted there, since no file is named for it."""
        return self.storage is not None and self.chain_file == self.data_dir / CHAIN_FILE

    @property
    def has_noted_releases(self) -> bool:
        """Whether the file for it names a release, so that the database has held one."""
        return self.chain_file.is_file() and self.chain_file.stat().st_size > 0

    @property
    def blob_dir(self) -> Path:
        """Immutable blobs of releases, by hash, where no storage is named."""
        return self.data_dir / "blobs"

    @property
    def encoder_dir(self) -> Path:
        """The prepared news encoder: graph, head and tokenizer."""
        return self.data_dir / "encoder"

    @property
    def index_dir(self) -> Path:
        """The persisted index and its checksum."""
        return self.data_dir / "index"
