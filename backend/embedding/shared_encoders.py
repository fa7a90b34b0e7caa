"""News encoders for several machines: their files in the storage, and in each machine's data folder those it needs.

The data folder's encoder folder is as ever; what one machine has made is put into the storage, and the others take it
before they read. Files are written once, but for `words.json` and the like, which name the words in use; some come
later. A file that makes others complete goes last, both ways. States of titles are no part of it: each machine makes
those it needs.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from pathlib import Path

from backend.embedding.state_store import DESCRIPTION_FILE, STATES_FOLDER, TRAINED_FOLDER
from backend.settings import BackendSettings
from backend.storage.durable_files import UNFINISHED, files_below, write_durably
from backend.storage.object_store import ObjectStore

ENCODER_FOLDER = "encoder"
"""In the storage."""
TAKE_AGAIN_SEC = 10.0
WORDS_IN_USE = "words.json"
"""Ends the names of the files that name a folder of words (`word_model`)."""


class SharedEncoders:
    """Of one machine.

    Args:
        folder: this machine's encoder folder.
        objects: those of all machines; None where the data folder is the storage, and so nothing is to be done.
    """

    def __init__(self, folder: Path, objects: ObjectStore | None) -> None:
        self._folder, self._objects = folder, objects
        self._words: dict[str, bytes] = {}  # as the storage had them when they were last taken or given
        self._taken: tuple[str, float] | None = None

    @classmethod
    def of(cls, settings: BackendSettings) -> SharedEncoders:
        """As the settings have it."""
        return cls(settings.encoder_dir, settings.open_storage().under(ENCODER_FOLDER) if settings.storage else None)

    def take_for(self, release: str) -> None:
        """As `take`, but for the same release no oftener than every TAKE_AGAIN_SEC: a listing asks the storage several
        times where it holds many objects, and what a release needs is there before it."""
        now = time.monotonic()
        if self._taken is None or self._taken[0] != release or now - self._taken[1] >= TAKE_AGAIN_SEC:
            self.take()
            self._taken = (release, now)

    def take(self) -> None:
        """Take from the storage what isn't here. Raises OSError or StorageUnavailable."""
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
        """Put into the storage what is here and not there, and the words in use that this machine has chosen since they
        were taken: others may have chosen newer ones. Raises OSError, StorageUnavailable."""
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
        """Put one encoder that a round has trained into the storage; nothing where it was not trained here."""
        if self._objects is None or not (self._folder / TRAINED_FOLDER / digest / DESCRIPTION_FILE).is_file():
            return
        trained = self._objects.under(f"{TRAINED_FOLDER}/{digest}")
        there = {each.key for each in trained.list()}
        for key in sorted(self._files(f"{TRAINED_FOLDER}/{digest}"), key=_order):
            if (name := key.rpartition("/")[2]) not in there:
                trained.put(name, (self._folder / key).read_bytes())

    def sweep(self, keep: Collection[str], before: float) -> None:
        """Remove trained encoders from the storage but those in `keep`, and what was put after `before`.

        before: a time, in seconds since 1970.
        """
        if self._objects is None:
            return
        trained = self._objects.under(TRAINED_FOLDER)
        for each in list(trained.list()):
            if each.key.partition("/")[0] not in keep and each.modified <= before:
                trained.delete(each.key)

    def _files(self, below: str = "") -> Iterator[str]:
        """Keys of the finished files here."""
        for path in files_below(self._folder / below):
            key = path.relative_to(self._folder)
            unfinished = path.suffix in (".half", UNFINISHED)
            unfinished |= any(part.startswith((".making-", "words-making-")) for part in key.parts)
            if key.parts[0] != STATES_FOLDER and not unfinished:
                yield key.as_posix()


def _names_words(key: str) -> bool:
    return "/" not in key and key.endswith(WORDS_IN_USE)


def _order(key: str) -> tuple[int, str]:
    """What makes a folder complete comes after its files, and what names a folder after that."""
    return (2 if _names_words(key) else int(key.rpartition("/")[2] == DESCRIPTION_FILE), key)
