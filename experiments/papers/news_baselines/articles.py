"""MIND's articles as the columns that word models read: word pieces, sections, entities, and TF-IDF.

No pretrained word or entity vectors come with the data. A word's vector is that of its piece in all-MiniLM-L6-v2,
reduced to E numbers by PCA. A section or topic counts as an entity of its article, named by words appended to the
title, because only 3 % of the titles have Wikidata entities. An entity's vector is the mean of its label's words, its
context the mean of the entities that occur in the same articles, where DKN has TransE vectors and the neighbours in a
knowledge graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, hstack
from tokenizers import Tokenizer

from backend.embedding.initial_encoder import load_tokenizer
from backend.embedding.torch_encoder import load_bert
from backend.embedding.weights import find_weights
from experiments.datasets.mind import MindEntity, NewsTable, load_entities
from experiments.datasets.titles import BERT

WORD_DIM = 64
TITLE_PIECES, SECTION_PIECES, NAMED = 16, 4, 5
"""Word pieces of a title, of its section's and of its topic's name; entities in an article's profile."""
SPREAD = 0.4
"""Standard deviation of the word vectors' numbers, as GloVe's."""
LEAST_TITLES = 50
"""Titles that a word must be in to have a TF-IDF column."""
SECTION_KIND, TOPIC_KIND = "section", "topic"
Rows = NDArray[np.int64]
Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class ArticleColumns:
    """n articles and, in row n, padding: all zeros. Id 0 is padding in every vocabulary.

    Args:
        words: [n + 1, L + 2 * 4] of `vectors`: the title, then the names of section and topic.
        entities: like words, of `entity_vectors`: the entity that each word names, or 0.
        profile: [n + 1, 5] of `entity_vectors`: section, topic, then entities of the title.
        kinds: [entities], numbers of the entities' types.
        vectors, entity_vectors, contexts: float32 [., E], row 0 zero.
        bag: [n + 1, F], TF-IDF of the title's words, of length 1, then section and topic as ones.
    """

    words: Rows
    entities: Rows
    profile: Rows
    kinds: Rows
    vectors: Vectors
    entity_vectors: Vectors
    contexts: Vectors
    bag: csr_array

    @property
    def padding(self) -> int:
        """The row of no article."""
        return len(self.words) - 1

    @property
    def titles(self) -> Rows:
        """The words of the titles alone [n + 1, L]."""
        return self.words[:, :TITLE_PIECES]

    @classmethod
    def load(cls, path: Path, news: NewsTable) -> ArticleColumns:
        """Read what `news`, loaded from the same file, leaves out. Raises DataMissing and MalformedRow."""
        weights = find_weights(BERT)
        table = load_bert(weights).get_input_embeddings().weight.detach().numpy()  # type: ignore[operator]
        return cls.of(news, load_entities(path), load_tokenizer(weights), word_vectors(table))

    @classmethod
    def of(
        cls,
        news: NewsTable,
        named: Sequence[tuple[tuple[MindEntity, ...], tuple[MindEntity, ...]]],
        tokenizer: Tokenizer,
        vectors: Vectors,
    ) -> ArticleColumns:
        """Make the columns of articles, the entities of their titles and abstracts, and word vectors [V, E]."""
        n, width = len(news), TITLE_PIECES + 2 * SECTION_PIECES
        words, entities = np.zeros((n + 1, width), np.int64), np.zeros((n + 1, width), np.int64)
        profile = np.zeros((n + 1, NAMED), np.int64)
        vocabulary = EntityVocabulary()
        together: list[list[int]] = []
        encoded = tokenizer.encode_batch(list(news.titles), add_special_tokens=False)
        sections: dict[str, list[int]] = {}
        for row, (title, (in_title, in_abstract)) in enumerate(zip(encoded, named, strict=True)):
            ids = title.ids[:TITLE_PIECES]
            words[row, : len(ids)] = ids
            own = []
            names = ((SECTION_KIND, news.categories[row]), (TOPIC_KIND, news.subcategories[row]))
            for place, (kind, name) in enumerate(names):
                if not name:
                    continue
                if name not in sections:
                    text = name.replace("_", " ").replace("-", " ")
                    sections[name] = tokenizer.encode(text, add_special_tokens=False).ids[:SECTION_PIECES]
                number = vocabulary.number(f"{kind} {name}", kind, sections[name])
                start = TITLE_PIECES + place * SECTION_PIECES
                pieces = slice(start, start + len(sections[name]))
                words[row, pieces], entities[row, pieces] = sections[name], number
                own.append(number)
                profile[row, place] = number
            for entity in (*in_title, *in_abstract):
                pieces_of = tokenizer.encode(entity.label, add_special_tokens=False).ids
                own.append(vocabulary.number(entity.key, entity.kind, pieces_of))
            for place, entity in enumerate(in_title):
                number = vocabulary.numbers[entity.key]
                if place < NAMED - 2:
                    profile[row, 2 + place] = number
                for at, (start, end) in enumerate(title.offsets[:TITLE_PIECES]):
                    if any(start < last and first < end for first, last in entity.places):
                        entities[row, at] = number
            together.append(own)
        of_entities, kinds, contexts = vocabulary.columns(together, vectors)
        return cls(words, entities, profile, kinds, vectors, of_entities, contexts, bags(words, profile))


class EntityVocabulary:
    """Numbers entities from 1 in the order in which they first occur."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self._labels: list[list[int]] = [[]]
        self._kinds: list[str] = [""]

    def number(self, key: str, kind: str, label: list[int]) -> int:
        """Return an entity's number. label: the word pieces of its name."""
        if key not in self.numbers:
            self.numbers[key] = len(self._labels)
            self._labels.append(label)
            self._kinds.append(kind)
        return self.numbers[key]

    def columns(self, together: Sequence[Sequence[int]], vectors: Vectors) -> tuple[Vectors, Rows, Vectors]:
        """Return vectors [m, E], types [m] and contexts [m, E] of all entities. together: those of each article."""
        own = np.stack([vectors[label].mean(axis=0) if label else np.zeros_like(vectors[0]) for label in self._labels])
        _, kinds = np.unique(self._kinds, return_inverse=True)
        beside: list[set[int]] = [set() for _ in self._labels]
        for group in together:
            for each in group:
                beside[each].update(group)
        near = [sorted(others - {each}) for each, others in enumerate(beside)]
        contexts = np.stack([own[others].mean(axis=0) if others else np.zeros_like(own[0]) for others in near])
        return own, kinds.astype(np.int64), contexts


def word_vectors(table: Vectors) -> Vectors:
    """Return the first WORD_DIM principal components of a table of word pieces [V, S]; row 0 is zero."""
    centred = table - table.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    found = centred @ axes[:, ::-1][:, :WORD_DIM]
    found *= SPREAD / found.std()
    found[0] = 0
    return np.ascontiguousarray(found, dtype=np.float32)


def bags(words: Rows, profile: Rows) -> csr_array:
    """Return TF-IDF of title words, rows of length 1, with section and topic appended as ones [n + 1, F]."""
    titles = words[:, :TITLE_PIECES]
    row, _ = np.nonzero(titles)
    counts = csr_array((np.ones(len(row)), (row, titles[titles > 0])), shape=(len(words), int(titles.max()) + 1))
    counts.sum_duplicates()
    found_in = np.bincount(counts.indices, minlength=counts.shape[1])
    kept = np.flatnonzero(found_in >= min(LEAST_TITLES, found_in.max()))
    weighed = counts[:, kept] @ diags_array(np.log((len(words) - 1) / found_in[kept]) + 1)
    lengths = np.sqrt((weighed**2).sum(axis=1))
    weighed = diags_array(1 / np.maximum(lengths, 1e-12)) @ weighed
    row, place = np.nonzero(profile[:, :2])
    numbers, columns = np.unique(profile[row, place], return_inverse=True)
    ones = csr_array((np.ones(len(row)), (row, columns)), shape=(len(words), len(numbers)))
    return csr_array(hstack([weighed, ones]), dtype=np.float32)
