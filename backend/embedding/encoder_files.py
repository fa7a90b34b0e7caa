"""Descriptions, checksums and exchange of the files of news encoders.

An encoder's description holds its files' hashes, since a damaged graph or tokenizer would give other vectors under the
same name.

A machine puts the encoders it has made into the storage, and the others download them into their data folder before
they read them. Files are written once, except `words.json` and the like, which name the words in use; some files are
added later. A file that marks others as complete is copied last, in both directions. Token states of titles are not
exchanged: each machine computes those it needs.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from backend.embedding.state_store import DESCRIPTION_FILE, STATES_FOLDER, TRAINED_FOLDER
from backend.errors import OwnfeedError
from backend.settings import BackendSettings
from backend.storage.durable_files import UNFINISHED, files_below, write_durably
from backend.storage.object_store import ObjectStore

GRAPH, TOKENIZER = "graph", "tokenizer"
HASHES = "sha256"
"""Key of the files' hashes in a description."""
FIELD_TYPES: dict[str, type] = {"digest": str, "dimensions": int, "parameters": dict, HASHES: dict}


class EncoderDamaged(OwnfeedError):
    """A file of a news encoder is damaged; the encoder is not used."""

    code, status, title = "encoder-damaged", 500, "A file of the news encoder is damaged"

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"{path} is damaged: {why}. Put it back from a backup or from another machine of this backend."
        )


def read_description(folder: Path) -> dict[str, Any]:
    """Read a folder's description. Raises FileNotFoundError, or EncoderDamaged."""
    path = folder / DESCRIPTION_FILE
    try:
        about = json.loads(path.read_bytes())
        if not isinstance(about, dict):
            raise ValueError("it is not a JSON object")
        for name, kind in FIELD_TYPES.items():
            if not isinstance(about.get(name), kind):
                raise ValueError(f"{name} is missing or has the wrong type")
    except ValueError as broken:
        raise EncoderDamaged(path, f"it can't be read ({str(broken).splitlines()[0]})") from broken
    return about


def sha256_of(path: Path) -> str:
    """SHA-256 of a file. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hashes_of(folder: Path, names: Mapping[str, str]) -> dict[str, str]:
    """The hashes of existing files for a description.

    names: file names below the folder, by GRAPH and TOKENIZER.
    """
    return {kind: sha256_of(folder / name) for kind, name in names.items() if (folder / name).is_file()}


def shared_hashes(folder: Path, about: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, str]:
    """Hashes of files that encoders share, as recorded when they were made, not of their current content.

    folder, about: the files' folder, and its description. names: file names by GRAPH and TOKENIZER. Raises
    EncoderDamaged, OSError.
    """
    return {kind: check_file(folder / name, about, kind) for kind, name in names.items()}


def check_file(path: Path, about: Mapping[str, Any], kind: str) -> str:
    """The hash of a file. Raises EncoderDamaged unless the description has the same."""
    found = sha256_of(path)
    if found != about[HASHES].get(kind):
        raise EncoderDamaged(path, "its bytes differ from those that were stored")
    return found


ENCODER_FOLDER = "encoder"
"""Folder in the storage."""
TAKE_AGAIN_SEC = 10.0
WORDS_IN_USE = "words.json"
"""Suffix of the files that name a folder of words (`word_model`)."""


class SharedEncoders:
    """The encoders of one machine, exchanged with the others.

    Args:
        folder: this machine's encoder folder.
        objects: the storage of all machines; None if the data folder is the storage, and nothing needs to be done.
    """

    def __init__(self, folder: Path, objects: ObjectStore | None) -> None:
        self._folder, self._objects = folder, objects
        self._words: dict[str, bytes] = {}  # as the storage had them at the last download or upload
        self._taken: tuple[str, float] | None = None

    @classmethod
    def of(cls, settings: BackendSettings) -> SharedEncoders:
        return cls(settings.encoder_dir, settings.open_storage().under(ENCODER_FOLDER) if settings.storage else None)

    def take_for(self, release: str) -> None:
        """See `take`, but for the same release at most every TAKE_AGAIN_SEC.

        A listing of many objects takes several requests, and what a release needs is stored before the release.
        """
        now = time.monotonic()
        if self._taken is None or self._taken[0] != release or now - self._taken[1] >= TAKE_AGAIN_SEC:
            self.take()
            self._taken = (release, now)

    def take(self) -> None:
        """Download from the storage what is missing here. Raises OSError or StorageUnavailable."""
        if self._objects is None:
            return
        for key in sorted((each.key for each in self._objects.list()), key=_order):
            path = self._folder / key
            if key.endswith(UNFINISHED) or (path.exists() and not _names_words(key)):
                continue
            try:
                content = self._objects.read(key)
            except FileNotFoundError:
                continue  # of an encoder that was removed meanwhile
            if _names_words(key):
                self._words[key] = content
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists() or path.read_bytes() != content:
                write_durably(path, content)

    def give(self) -> None:
        """Upload what the storage lacks, and the words in use if this machine has changed them since the last download.

        Unchanged ones are not uploaded, since others may have chosen newer ones. Raises OSError, StorageUnavailable.
        """
        if self._objects is None:
            return
        there = {each.key for each in self._objects.list()}
        for key in sorted(self._files(), key=_order):
            if not _names_words(key):
                if key not in there:
                    self._objects.put(key, (self._folder / key).read_bytes())
            elif (content := (self._folder / key).read_bytes()) != self._words.get(key):
                self._objects.put(key, content)
                self._words[key] = content

    def give_trained(self, digest: str) -> None:
        """Upload one encoder trained by a round; does nothing if it was not trained here."""
        if self._objects is None or not (self._folder / TRAINED_FOLDER / digest / DESCRIPTION_FILE).is_file():
            return
        trained = self._objects.under(f"{TRAINED_FOLDER}/{digest}")
        there = {each.key for each in trained.list()}
        for key in sorted(self._files(f"{TRAINED_FOLDER}/{digest}"), key=_order):
            if (name := key.rpartition("/")[2]) not in there:
                trained.put(name, (self._folder / key).read_bytes())

    def sweep(self, keep: Collection[str], before: float) -> None:
        """Remove trained encoders from the storage, except those in `keep` and those stored after `before`.

        before: a time, in seconds since 1970.
        """
        if self._objects is None:
            return
        trained = self._objects.under(TRAINED_FOLDER)
        for each in list(trained.list()):
            if each.key.partition("/")[0] not in keep and each.modified <= before:
                trained.delete(each.key)

    def _files(self, below: str = "") -> Iterator[str]:
        """Keys of the finished files on this machine."""
        for path in files_below(self._folder / below):
            key = path.relative_to(self._folder)
            unfinished = path.suffix in (".half", UNFINISHED)
            unfinished |= any(part.startswith((".making-", "words-making-")) for part in key.parts)
            if key.parts[0] != STATES_FOLDER and not unfinished:
                yield key.as_posix()


def _names_words(key: str) -> bool:
    return "/" not in key and key.endswith(WORDS_IN_USE)


def _order(key: str) -> tuple[int, str]:
    """Sort key: files that mark a folder as complete come after its files, and files that name a folder after those."""
    return (2 if _names_words(key) else int(key.rpartition("/")[2] == DESCRIPTION_FILE), key)
