"""Word-based news models in the encoder's folder: graphs, words and weights.

They are those of FedNewsRec (section 3.1), NAML and LSTUR.

Their word vectors are frozen. They come from a GloVe file, else they are BERT's vectors of word pieces. `words.json`
names the folder of words in use for FedNewsRec's model, a file beside it for each of the others. An encoder that rounds
have trained is stored beside the others, in the form that the embedder reads, and shares graph, tokenizer and
categories with all encoders of the same words.
"""

import hashlib
import json
import logging
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

from backend.embedding.embedder import (
    GRAPH_FILE,
    HEAD_FILE,
    TOKENIZER_FILE,
    ArticleInputs,
    categories_of,
    encoder_digest,
    encoder_folder,
    trained_folder,
)
from backend.embedding.encoder_files import (
    GRAPH,
    HASHES,
    TOKENIZER,
    EncoderDamaged,
    hashes_of,
    read_description,
    shared_hashes,
)
from backend.embedding.state_store import DESCRIPTION_FILE
from backend.embedding.weights import WEIGHTS_FILE, BertWeights, find_weights
from backend.errors import BackendSettingsRefused
from backend.settings import BackendSettings
from backend.storage.durable_files import put_folder, write_durably
from protocol.tensors import pack
from protocol.words_of_titles import PADDING, WORDS_LIMIT

GLOVE_WORDS = 100_000
"""How many of a file's first and thus most frequent words are used: with 300 numbers per word they are 60 MB for every
device, of the 128 MiB that a round may transfer."""
PAD, UNKNOWN = "[PAD]", "[UNK]"
PIECES = "embeddings.word_embeddings.weight"


class WordVectorsRefused(BackendSettingsRefused):
    """There are no usable word vectors where the settings say."""

    code, status, title = "word-vectors-refused", 500, "The word vectors can't be used"


@dataclass(frozen=True)
class WordVectors:
    """A table float16 [V, E], whose row 0 is padding, and the tokenizer that maps titles to its rows."""

    tokenizer: Tokenizer
    table: NDArray[np.float16]

    @property
    def key(self) -> str:
        """A content key."""
        digest = hashlib.sha256(self.tokenizer.to_str().encode())
        digest.update(self.table.tobytes())
        return digest.hexdigest()


def word_vectors(settings: BackendSettings) -> WordVectors:
    """The word vectors of the settings. Raises WordVectorsRefused or WeightsRefused."""
    if settings.word_vectors is not None:
        return read_glove(settings.word_vectors)
    return word_pieces(find_weights(settings.bert, settings.bert_sha256))


def word_pieces(weights: BertWeights) -> WordVectors:
    """BERT's word pieces and its input embeddings.

    Raises WordVectorsRefused for a model with other parameter names.
    """
    tokenizer = Tokenizer.from_file(str(weights.folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    tokenizer.post_processor = TemplateProcessing(single="$A", pair="$A $B", special_tokens=[])
    with safe_open(weights.folder / WEIGHTS_FILE, framework="numpy") as file:
        named = [name for name in file.keys() if name.endswith(PIECES)]  # noqa: SIM118  no mapping
        if len(named) != 1 or tokenizer.token_to_id(PAD) != PADDING:
            raise WordVectorsRefused(
                f"{weights.folder} has no {PIECES}, or its word piece {PADDING} is not {PAD}; name a GloVe file.",
                field="word_vectors",
            )
        table = file.get_tensor(named[0]).astype(np.float16)
    table[PADDING] = 0
    return WordVectors(tokenizer, table)


def read_glove(path: Path) -> WordVectors:
    """Read the first words of a text file with a word and its numbers per line, in lower case.

    A word that is not among them gets the mean of all vectors. Raises WordVectorsRefused, naming the line.
    """
    words: list[str] = []
    rows: list[NDArray[np.float32]] = []
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                word, *numbers = line.rstrip("\n").split(" ")
                row = np.array(numbers, dtype=np.float32)
                if not len(row) or (rows and len(row) != len(rows[0])) or not np.isfinite(row).all():
                    raise ValueError
                words.append(word)
                rows.append(row)
                if len(words) == GLOVE_WORDS:
                    break
    except OSError as failed:
        raise WordVectorsRefused(f"{path} can't be read: {failed.strerror}.", field="word_vectors") from failed
    except ValueError as broken:
        raise WordVectorsRefused(
            f"Line {len(words) + 1} of {path} is not a word followed by as many numbers as on the first line.",
            field="word_vectors",
        ) from broken
    if not rows:
        raise WordVectorsRefused(f"{path} has no words.", field="word_vectors")
    known = np.stack(rows)
    vocabulary = {PAD: PADDING, UNKNOWN: 1} | {word: row for row, word in reversed(list(enumerate(words, start=2)))}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    table = np.concatenate([np.zeros((1, known.shape[1])), known.mean(axis=0, keepdims=True), known])
    return WordVectors(tokenizer, table.astype(np.float16))


FEDNEWSREC, NAML, LSTUR = "fednewsrec_words", "naml_words", "lstur_words"
"""Names of the architectures."""
READ_ABSTRACTS, READ_CATEGORIES = {NAML}, {NAML, LSTUR}
TABLE_FILE, GRADIENT_FILE, CATEGORIES_FILE = "table.safetensors", "gradient.onnx", "categories.json"
MADE_FILE = "made.json"
"""File in a folder of words with the original hashes of the files that encoders share."""
SHARED = {GRAPH: GRAPH_FILE, TOKENIZER: TOKENIZER_FILE}
CNN, ATTENTION = "layers.0.window.", "title.layers.1."
TEXTS = ("title.", "abstract.")
RANDOM = ("pooling.hidden.weight", "query.weight", "dense.weight")
"""Name suffixes of parameters with random initial values (Xavier). Since later weights start at zero, this doesn't
affect the output. Pooling queries are among these zeros.
"""
TOPICS = {"category.weight": 0.1, "category.elements.weight": 0.01}
"""Name suffixes of topic tables, and the standard deviation of their initial values. LSTUR's topics have no weight at
the start; NAML's are rectified, and weigh as much as a text."""
RIDGE = 1e-3
SEED = 7


IN_USE_KEYS = {"folder", "key", "source", "shapes"}
"""Keys of a file that names the words in use."""

_log = logging.getLogger(__name__)


class WordModelMissing(FileNotFoundError):
    """No word model is prepared in this folder."""


class WordModel:
    """The prepared word model of this architecture. Raises WordModelMissing."""

    def __init__(self, encoder_dir: Path, architecture: str = FEDNEWSREC) -> None:
        about = _in_use(encoder_dir, architecture)
        if about is None:
            raise WordModelMissing(f"no word model {architecture} in {encoder_dir}")
        self._encoder_dir, self._folder = encoder_dir, encoder_dir / about["folder"]
        self.key: str = about["key"]
        self.shapes: dict[str, tuple[int, ...]] = {name: tuple(shape) for name, shape in about["shapes"].items()}
        self.dimensions: int = about.get("dimensions", self.shapes.get(f"{ATTENTION}value.weight", (0,))[0])
        self.gradient_graph = (self._folder / GRADIENT_FILE).read_bytes()
        self.table: NDArray[np.float16] = load_file(self._folder / TABLE_FILE)["table"]
        tokenizer = self._folder / TOKENIZER_FILE
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.enable_truncation(WORDS_LIMIT)
        self._reads = _read_besides(architecture)
        self.besides = ArticleInputs(
            tokenizer if "abstracts" in self._reads else None, categories_of(self._folder, self._reads)
        )

    def words(self, titles: Sequence[str]) -> NDArray[np.int32]:
        """Rows of the word table [n, WORDS_LIMIT], PADDING after a title's end."""
        found = np.full((len(titles), WORDS_LIMIT), PADDING, dtype=np.int32)
        for row, encoded in enumerate(self._tokenizer.encode_batch(list(titles))):
            found[row, : len(encoded.ids)] = encoded.ids
        return found

    def trained(self, digest: str) -> dict[str, NDArray[np.float32]] | None:
        """The weights of an encoder with these words; None if it is another model or has other words."""
        try:
            folder = encoder_folder(self._encoder_dir, digest)
        except FileNotFoundError:
            return None
        about = read_description(folder)
        return load_file(folder / HEAD_FILE) if about.get("words") == self.key else None

    def start(
        self,
        words: NDArray[np.int32],
        vectors: NDArray[np.float32],
        abstracts: NDArray[np.int32] | None = None,
    ) -> dict[str, NDArray[np.float32]]:
        """Initial weights: the best linear prediction of `vectors` [n, D] from an article's mean word vector.

        The mean is over the title, or title and abstract, so that a system starts near the encoder in use. By ridge
        regression: M minimises |mean M - e|^2 + r |M|^2. The filters come in pairs A and -A of the middle word alone,
        whose rectified values differ by A x; [U, -U], in the values of the attention or in the last map, combines them,
        so that M = U A as far as half the number of filters allows. K = 0 and q = 0 make all attentions uniform; Q, W
        and topics are random, as in `SelfAttention.start_mean` and `AdditiveAttention.start_uniform`, topics so small
        that they hardly change any vector, or without a weight.
        """
        means = self._means(words, abstracts)
        gram = means.T @ means
        gram += RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram))
        fitted = np.linalg.solve(gram, means.T @ vectors.astype(np.float64)).T  # M [D, E]
        texts = [text for text in TEXTS if f"{text}{CNN}weight" in self.shapes]
        filters, wide = self.shapes[f"{texts[0]}{CNN}weight"]
        pairs, word_dim = filters // 2, wide // 3
        _, directions = np.linalg.eigh(fitted @ (means.T @ means) @ fitted.T)  # of the predictions, ascending
        into = directions[:, ::-1][:, :pairs]  # U [D, pairs]
        draw = np.random.default_rng(SEED)
        made = {name: np.zeros(shape) for name, shape in self.shapes.items()}
        middle = slice(word_dim, 2 * word_dim)
        for text in texts:
            made[f"{text}{CNN}weight"][:pairs, middle] = into.T[:pairs] @ fitted
            made[f"{text}{CNN}weight"][pairs : 2 * pairs, middle] = -(into.T[:pairs] @ fitted)
        last = made["joined.weight" if "joined.weight" in made else f"{ATTENTION}value.weight"]
        last[:, :pairs] = into
        last[:, pairs : 2 * pairs] = -into
        for name, shape in self.shapes.items():
            if name.endswith(RANDOM) and "pooling.query" not in name:
                bound = np.sqrt(6 / sum(shape))  # Xavier's bound
                made[name] = draw.uniform(-bound, bound, shape)
            for end, spread in TOPICS.items():
                if name.endswith(end):
                    made[name][1:] = draw.normal(scale=spread, size=(shape[0] - 1, *shape[1:]))  # 0 is unknown
        return {name: each.astype(np.float32) for name, each in made.items()}

    def _means(self, words: NDArray[np.int32], abstracts: NDArray[np.int32] | None) -> NDArray[np.float64]:
        """The mean word vector of each title [n, E].

        With abstracts the mean of title's and abstract's, if there is one.
        """
        found = self._mean_words(words)
        if abstracts is None:
            return found
        there = (abstracts != PADDING).any(axis=1)
        found[there] = (found[there] + self._mean_words(abstracts[there])) / 2
        return found

    def _mean_words(self, words: NDArray[np.int32]) -> NDArray[np.float64]:
        """The mean word vector of each text [n, E], one word position at a time: all at once would take half a GB."""
        real = words != PADDING
        sums = np.zeros((len(words), self.table.shape[1]))
        for place in range(words.shape[1]):
            (rows,) = real[:, place].nonzero()
            sums[rows] += self.table[words[rows, place]]
        means: NDArray[np.float64] = sums / np.maximum(real.sum(axis=1), 1)[:, None]
        return means

    def keep(self, parameters: Mapping[str, NDArray[np.float32]]) -> Path:
        """Store the encoder with these weights next to the others.

        Return its folder, which is named by its digest.

        The folder appears whole or not at all. Raises EncoderDamaged if graph or words are damaged.
        """
        packed = pack(parameters)
        digest = encoder_digest(self.key, packed)
        target = trained_folder(self._encoder_dir, digest)
        if (target / DESCRIPTION_FILE).is_file():
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".making-", dir=target.parent))
        try:
            (scratch / HEAD_FILE).write_bytes(packed)
            about = {
                "digest": digest,
                "dimensions": self.dimensions,
                "words": self.key,
                "pieces_limit": WORDS_LIMIT,
                "parameters": {name: list(shape) for name, shape in self.shapes.items()},
                **{name: f"../../{self._folder.name}/{file}" for name, file in (SHARED | self._reads).items()},
                HASHES: shared_hashes(self._folder, self._made(), SHARED),
            }
            (scratch / DESCRIPTION_FILE).write_text(json.dumps(about, indent=1), encoding="utf-8")
            put_folder(scratch, target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        return target

    def _made(self) -> dict[str, Any]:
        """The recorded hashes of the folder's files. Raises EncoderDamaged."""
        path = self._folder / MADE_FILE
        try:
            about: dict[str, Any] = json.loads(path.read_bytes())
            about[HASHES].items()
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError) as broken:
            raise EncoderDamaged(path, "it can't be read") from broken
        return about


def keep_word_model(
    encoder_dir: Path,
    source: str,
    words: WordVectors,
    shapes: Mapping[str, tuple[int, ...]],
    *,
    gradient: bytes,
    encoder: bytes,
    architecture: str = FEDNEWSREC,
    categories: bytes = b"",
) -> None:
    """Put the word model into use from the next round on.

    source: the settings' name of the words. gradient, encoder: graphs, for devices and for the embedder. categories: a
    packed vocabulary, for an architecture that reads ids.
    """
    reads = _read_besides(architecture)
    key = words.key
    if reads:
        key = hashlib.sha256(f"{architecture} {words.key} ".encode() + categories).hexdigest()
    folder = encoder_dir / f"words-{key[:16]}"
    scratch = Path(tempfile.mkdtemp(prefix="words-making-", dir=encoder_dir))
    try:
        (scratch / GRADIENT_FILE).write_bytes(gradient)
        (scratch / GRAPH_FILE).write_bytes(encoder)
        save_file({"table": words.table}, scratch / TABLE_FILE)
        words.tokenizer.save(str(scratch / TOKENIZER_FILE))
        (scratch / MADE_FILE).write_text(json.dumps({HASHES: hashes_of(scratch, SHARED)}, indent=1), encoding="utf-8")
        if "categories" in reads:
            (scratch / CATEGORIES_FILE).write_bytes(categories)
        if not folder.is_dir():
            put_folder(scratch, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    last = shapes.get("joined.weight") or shapes[f"{ATTENTION}value.weight"]
    about = {"folder": folder.name, "key": key, "source": source, "shapes": dict(shapes), "dimensions": last[0]}
    write_durably(_in_use_file(encoder_dir, architecture), json.dumps(about, indent=1).encode())


def word_source(encoder_dir: Path, architecture: str = FEDNEWSREC) -> str | None:
    """The settings' name of the words in use; None before any."""
    about = _in_use(encoder_dir, architecture)
    return None if about is None else str(about["source"])


def word_model_shapes(encoder_dir: Path, architecture: str = FEDNEWSREC) -> dict[str, tuple[int, ...]] | None:
    """Shapes of the trainable parameters; None before any model is prepared."""
    about = _in_use(encoder_dir, architecture)
    return None if about is None else {name: tuple(shape) for name, shape in about["shapes"].items()}


def _read_besides(architecture: str) -> dict[str, str]:
    """Return the inputs of this architecture's encoder besides titles, each with the file in its folder."""
    abstracts = {"abstracts": TOKENIZER_FILE} if architecture in READ_ABSTRACTS else {}
    return abstracts | ({"categories": CATEGORIES_FILE} if architecture in READ_CATEGORIES else {})


def _in_use_file(encoder_dir: Path, architecture: str) -> Path:
    return encoder_dir / ("words.json" if architecture == FEDNEWSREC else f"{architecture}.json")


def _in_use(encoder_dir: Path, architecture: str) -> dict[str, Any] | None:
    """The content of the file.

    None if it is missing or incomplete: the words are then prepared again.
    """
    path = _in_use_file(encoder_dir, architecture)
    try:
        about: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if not about.keys() >= IN_USE_KEYS:
            raise ValueError(f"some of {', '.join(sorted(IN_USE_KEYS))} are missing")
    except FileNotFoundError:
        return None
    except (ValueError, AttributeError) as broken:
        _log.error("%s can't be read (%s): the words are prepared again", path, broken)
        return None
    return about
