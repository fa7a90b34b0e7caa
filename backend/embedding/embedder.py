"""Embeds titles as news vectors with ONNX Runtime: the serving news encoder, without torch.

Titles of similar length share a batch, so that little of it is padding.

Encoders may have inputs besides the title: an article's abstract, section and topic (NAML, LSTUR).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from backend.embedding.batch_executor import BatchExecutor, ExecutorSettings, LocalExecutor
from backend.embedding.encoder_files import GRAPH, TOKENIZER, EncoderDamaged, check_file, read_description
from backend.embedding.encoder_task import EncoderTask
from backend.embedding.state_store import DESCRIPTION_FILE, STATES_FOLDER, TRAINED_FOLDER, StateStore
from backend.errors import BackendSettingsRefused, OwnfeedError
from backend.settings import BackendSettings
from protocol.releases import CategoryVocabulary
from protocol.tensors import TensorError, TensorSpec, unpack
from protocol.words_of_titles import ABSTRACT_WORDS_LIMIT, PADDING


class NewsText(Protocol):
    """What a news encoder may read of an article, as stored in the pool.

    abstract: '' if its source gave none.
    """

    @property
    def title(self) -> str: ...

    @property
    def abstract(self) -> str: ...

    @property
    def section(self) -> str: ...

    @property
    def topic(self) -> str: ...


@dataclass(frozen=True)
class TitleAlone:
    """A text of which only the title is known."""

    title: str
    abstract: str = ""
    section: str = ""
    topic: str = ""


class ArticleInputs:
    """Converts articles to a graph's inputs.

    Args:
        tokenizer: the tokenizer's file, shared with titles; None for an encoder that reads no abstracts.
        categories: None for an encoder that reads no ids.
    """

    def __init__(self, tokenizer: Path | None, categories: CategoryVocabulary | None) -> None:
        self._categories = categories
        self._tokenizer = None if tokenizer is None else Tokenizer.from_file(str(tokenizer))
        if self._tokenizer is not None:
            self._tokenizer.no_padding()
            self._tokenizer.enable_truncation(ABSTRACT_WORDS_LIMIT)

    def inputs(self, news: Sequence[NewsText]) -> dict[str, NDArray[np.int64]]:
        """Inputs by their name in the encoder's graph; those that it doesn't read are left out.

        `abstract_pieces` and `abstract_piece_mask` [n, L], L the longest abstract's length but at least 1; `category`
        and `subcategory` [n].
        """
        read: dict[str, NDArray[np.int64]] = {}
        if (abstracts := self.abstracts(news)) is not None:
            longest = max(1, int((abstracts != PADDING).sum(axis=1).max(initial=0)))
            read["abstract_pieces"] = np.ascontiguousarray(abstracts[:, :longest], dtype=np.int64)
            read["abstract_piece_mask"] = (read["abstract_pieces"] != PADDING).astype(np.int64)
        if (ids := self.category_ids(news)) is not None:
            columns = (np.ascontiguousarray(each, dtype=np.int64) for each in ids.T)
            read["category"], read["subcategory"] = columns
        return read

    def abstracts(self, news: Sequence[NewsText]) -> NDArray[np.int32] | None:
        """Rows of the word table [n, ABSTRACT_WORDS_LIMIT], PADDING after an abstract's end."""
        if self._tokenizer is None:
            return None
        found = np.full((len(news), ABSTRACT_WORDS_LIMIT), PADDING, dtype=np.int32)
        for row, encoded in enumerate(self._tokenizer.encode_batch([each.abstract for each in news])):
            found[row, : len(encoded.ids)] = encoded.ids
        return found

    def category_ids(self, news: Sequence[NewsText]) -> NDArray[np.int32] | None:
        """Ids of section and topic [n, 2], 0 for those unknown to the release."""
        if self._categories is None:
            return None
        both = self._categories.encode([(each.section, each.topic) for each in news])
        return np.stack(both, axis=1).astype(np.int32)


PIECES_LIMIT = 48
"""Maximum number of word pieces of a title. The papers keep 30; 48 keep all but 1 in 10,000 real titles whole."""


@dataclass(frozen=True)
class TitleBatch:
    """rows [b]: the titles' indices; pieces and mask are int64 [b, L], mask 0 over padding."""

    rows: NDArray[np.int64]
    pieces: NDArray[np.int64]
    mask: NDArray[np.int64]


def length_buckets(tokenizer: Tokenizer, titles: Sequence[str], batch_size: int) -> Iterator[TitleBatch]:
    """Yield batches that together contain every title once, shortest first."""
    encoded = tokenizer.encode_batch(list(titles))
    lengths = np.array([len(title.ids) for title in encoded], dtype=np.int64)
    order = np.argsort(lengths, kind="stable")
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        pieces = np.zeros((len(rows), max(1, int(lengths[rows].max()))), dtype=np.int64)
        for line, row in enumerate(rows):
            pieces[line, : lengths[row]] = encoded[row].ids
        mask = (np.arange(pieces.shape[1]) < lengths[rows, None]).astype(np.int64)
        yield TitleBatch(rows, pieces, mask)


ProgressCallback = Callable[[int, int], None]
"""Called with (finished titles, total titles)."""

GRAPH_FILE, HEAD_FILE, TOKENIZER_FILE = "encoder.onnx", "head.safetensors", "tokenizer.json"
HEAD_GRADIENT_FILE = "head-gradient.onnx"
"""The graph with which devices train the head. It is stored with the first encoder and valid for all with its BERT and
width.
"""
HEAD_LIMIT_BYTES = 16 * 1024 * 1024
BATCH_SIZE = 16
"""Titles computed at a time: 64 take 90 MB more, and a fifth more time."""


class Embedder(Protocol):
    """What the pool needs of a news encoder.

    `digest` identifies it: vectors of two digests never mix.
    """

    digest: str
    dimensions: int

    def encode(self, titles: Sequence[str], *, progress: ProgressCallback | None = None) -> NDArray[np.float32]:
        """float32 [n, dimensions], rows of unit length; n = 0 gives an empty array."""

    def encode_news(self, news: Sequence[NewsText], *, progress: ProgressCallback | None = None) -> NDArray[np.float32]:
        """See `encode`, with all fields of the articles that the encoder reads."""


class EncoderMissing(OwnfeedError):
    """No news encoder has been prepared in this data directory."""

    code, status, title = "encoder-missing", 503, "The news encoder is not prepared"

    def __init__(self) -> None:
        super().__init__("There is no news encoder yet; `ownfeed serve` or `ownfeed demo` prepares it from the pool.")


def load_embedder(
    settings: BackendSettings, digest: str | None = None, executor: BatchExecutor | None = None
) -> OnnxEmbedder:
    """Load the trained encoder with that digest if there is one, else the first encoder.

    executor: by default this process, or the cluster that the settings name.

    Raises EncoderMissing before `make_initial_encoder` has run.
    """
    if not (settings.encoder_dir / DESCRIPTION_FILE).is_file():
        raise EncoderMissing
    trained = None if digest is None else trained_folder(settings.encoder_dir, digest)
    folder = trained if trained is not None and (trained / DESCRIPTION_FILE).is_file() else settings.encoder_dir
    return OnnxEmbedder(
        folder,
        threads=settings.embed_threads,
        # A server of one reader's own feeds has no rounds that would need the states again.
        store=None if settings.own_feeds_token_file else state_store(settings.encoder_dir),
        executor=executor or ExecutorSettings.of(settings).open(settings.embed_threads),
    )


def trained_folder(encoder_dir: Path, digest: str) -> Path:
    """Folder of an encoder trained by a round.

    Raises ValueError for a digest that could name another folder.
    """
    if not digest.replace("-", "").isalnum():
        raise ValueError(f"digest: letters, digits and dashes, got {digest!r}")
    return encoder_dir / TRAINED_FOLDER / digest


def encoder_folder(encoder_dir: Path, digest: str) -> Path:
    """Folder of the encoder with that digest, the first one or a trained one.

    Raises FileNotFoundError.
    """
    for folder in (encoder_dir, trained_folder(encoder_dir, digest)):
        described = folder / DESCRIPTION_FILE
        if described.is_file() and read_description(folder)["digest"] == digest:
            return folder
    raise FileNotFoundError(f"no news encoder {digest}")


def reads_words(encoder_dir: Path, digest: str) -> bool:
    """Whether the encoder with that digest reads words, without a BERT. Raises FileNotFoundError."""
    return "words" in read_description(encoder_folder(encoder_dir, digest))


def first_encoder(encoder_dir: Path) -> str:
    """The digest of the first encoder. Raises FileNotFoundError."""
    digest: str = read_description(encoder_dir)["digest"]
    return digest


def first_dimensions(encoder_dir: Path) -> int:
    """D of the first encoder, and of all that rounds train from it. Raises FileNotFoundError."""
    dimensions: int = read_description(encoder_dir)["dimensions"]
    return dimensions


def check_dimensions(settings: BackendSettings) -> None:
    """Raise BackendSettingsRefused if the folder's encoder has another D than the settings."""
    try:
        made = first_dimensions(settings.encoder_dir)
    except FileNotFoundError:
        return
    if made != settings.news_dimensions:
        raise BackendSettingsRefused(
            f"Setting news_dimensions: {settings.news_dimensions}, but vectors in {settings.data_dir} have {made} "
            "numbers, and so does everything trained on them. To use another number, choose an empty folder.",
            field="news_dimensions",
            limit=str(made),
        )


def state_store(encoder_dir: Path, layers: int = 0) -> StateStore:
    """The store of token states below the top `layers` layers of BERT."""
    return StateStore(encoder_dir / STATES_FOLDER / f"below-{layers}")


def encoder_digest(bert_sha256: str, packed: bytes) -> str:
    """The digest of the encoder with these trained parameters on that BERT: vectors of two digests never mix."""
    digest = hashlib.sha256()
    for part in (bert_sha256.encode(), hashlib.sha256(packed).digest(), PIECES_LIMIT.to_bytes(4, "big")):
        digest.update(part)
    return digest.hexdigest()[:16]


def categories_of(folder: Path, about: Mapping[str, Any]) -> CategoryVocabulary | None:
    """The categories whose ids an encoder reads, by its description; None if it reads none."""
    return CategoryVocabulary.unpack((folder / about["categories"]).read_bytes()) if "categories" in about else None


class OnnxEmbedder:
    """BERT, attention pooling and the head as one ONNX graph (Efficient-FedRec, section 3.2).

    Pooling and head are inputs of the graph, so that training them changes weights and not graphs. Token states that
    BERT computes on the way are kept in the state store, if there is one: a trained head then needs no BERT.
    """

    def __init__(
        self, folder: Path, *, threads: int, store: StateStore | None = None, executor: BatchExecutor | None = None
    ) -> None:
        about = read_description(folder)
        self.digest: str = about["digest"]
        self.dimensions: int = about["dimensions"]
        # A trained encoder shares what it has not changed.
        tokenizer = folder / about.get("tokenizer", TOKENIZER_FILE)
        check_file(tokenizer, about, TOKENIZER)
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(about.get("pieces_limit", PIECES_LIMIT))
        # Trained layers give other states than the stored ones.
        self._store = None if about.get("layers", 0) else store
        specs = {name: TensorSpec("float32", tuple(shape)) for name, shape in about["parameters"].items()}
        packed = (folder / HEAD_FILE).read_bytes()
        try:
            head = unpack(packed, specs, limit_bytes=HEAD_LIMIT_BYTES)
        except TensorError as broken:
            raise EncoderDamaged(folder / HEAD_FILE, str(broken)) from broken
        below = about.get("words", about.get("bert_sha256", ""))
        if not about.get("layers", 0) and encoder_digest(below, packed) != self.digest:
            raise EncoderDamaged(folder / HEAD_FILE, f"its weights are not those of {self.digest}")
        graph = folder / about.get("graph", GRAPH_FILE)
        sha256 = check_file(graph, about, GRAPH)
        self._task = EncoderTask(graph, sha256, head, self.dimensions, states=self._store is not None)
        self._executor = executor or LocalExecutor(threads)
        self._besides = ArticleInputs(
            folder / about["tokenizer"] if about.get("abstracts") else None, categories_of(folder, about)
        )

    def encode(self, titles: Sequence[str], *, progress: ProgressCallback | None = None) -> NDArray[np.float32]:
        """float32 [n, dimensions], rows of unit length.

        An encoder that reads more fields gets titles alone.

        Raises ClusterUnavailable if the settings name a cluster.
        """
        return self.encode_news([TitleAlone(title) for title in titles], progress=progress)

    def encode_news(self, news: Sequence[NewsText], *, progress: ProgressCallback | None = None) -> NDArray[np.float32]:
        """See `encode`, with all fields of the articles that the encoder reads."""
        titles = [each.title for each in news]
        vectors = np.zeros((len(titles), self.dimensions), dtype=np.float32)
        done = 0
        kept: dict[str, NDArray[np.float16]] = {}
        # The longest first: else one node would compute it alone, after all others have finished.
        batches = list(length_buckets(self._tokenizer, titles, BATCH_SIZE))[::-1]
        found = self._executor.map(self._task, (self._inputs(batch, news) for batch in batches))
        for batch, (part, states) in zip(batches, found, strict=True):
            vectors[batch.rows] = part
            if states is not None:
                kept.update((titles[row], each) for row, each in zip(batch.rows, states, strict=True))
            done += len(batch.rows)
            if progress is not None:
                progress(done, len(titles))
        if self._store is not None:
            new = self._store.missing(list(kept))
            self._store.put(new, [kept[title] for title in new])
        return vectors

    def _inputs(self, batch: TitleBatch, news: Sequence[NewsText]) -> dict[str, NDArray[np.int64]]:
        inputs = {"pieces": batch.pieces, "piece_mask": batch.mask}
        return inputs | self._besides.inputs([news[row] for row in batch.rows])
