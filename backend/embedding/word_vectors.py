"""Word vectors that stand still below a news model over words: from a GloVe file, else BERT's own of word pieces."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

from backend.embedding.weights import WEIGHTS_FILE, BertWeights, find_weights
from backend.errors import BackendSettingsRefused
from backend.settings import BackendSettings
from device_app.wire.words_of_titles import PADDING

GLOVE_WORDS = 100_000
"""So many of a file's first words are taken, which are its most frequent: at 300 numbers a word they are 60 MB for
every device, of the 128 MiB that a round may bring."""
PAD, UNKNOWN = "[PAD]", "[UNK]"
PIECES = "embeddings.word_embeddings.weight"


class WordVectorsRefused(BackendSettingsRefused):
    """There are no word vectors where the settings say."""

    code, status, title = "word-vectors-refused", 500, "The word vectors can't be used"


@dataclass(frozen=True)
class WordVectors:
    """A table float16 [V, E], whose row 0 is no word, and the tokenizer that turns titles into its rows."""

    tokenizer: Tokenizer
    table: NDArray[np.float16]

    @property
    def key(self) -> str:
        """By content."""
        digest = hashlib.sha256(self.tokenizer.to_str().encode())
        digest.update(self.table.tobytes())
        return digest.hexdigest()


def word_vectors(settings: BackendSettings) -> WordVectors:
    """Those of the settings. Raises WordVectorsRefused or WeightsRefused."""
    if settings.word_vectors is not None:
        return read_glove(settings.word_vectors)
    return word_pieces(find_weights(settings.bert, settings.bert_sha256))


def word_pieces(weights: BertWeights) -> WordVectors:
    """BERT's word pieces, and the vectors that it begins with. Raises WordVectorsRefused for one with other names."""
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
    """The first words of a text file with a word and its numbers a line, in lower case; a word that stands in none of
    them has the mean of all vectors. Raises WordVectorsRefused, naming the line."""
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
            f"Line {len(words) + 1} of {path} is no word with as many numbers as the first has.", field="word_vectors"
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
