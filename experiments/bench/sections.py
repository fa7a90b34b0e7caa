"""`ownfeed evaluate sections`: how often a story's section, assigned by its vector, agrees with its source's category.

The sources' categories are coarser or finer than ours, so each is mapped to the sections that it can mean; a category
that fits no section (US news, videos, opinion) is left out. Nothing is trained on the data.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from backend.news.sections import SectionClassifier, sentences, taxonomy, text_of, with_neighbours
from experiments.bench.headlines import headlines
from experiments.datasets.mind import FOLDER, load_mind
from experiments.datasets.titles import product_vectors, title_vectors
from experiments.records import Cell, Table
from experiments.study import Study

HEADLINES, ALL = 2_000, 1_000_000
DIMENSIONS = 256
SECTIONS_OF: Mapping[str, Mapping[str, frozenset[str]]] = {
    source: {category: frozenset(named.split("|")) for category, named in categories.items()}
    for source, categories in {
        "agnews_test": {
            "World": "world|politics", "Sports": "sport", "Business": "business", "Sci/Tech": "technology|science",
        },
        "bbc": {
            "business": "business", "sport": "sport", "tech": "technology", "entertainment": "culture",
            "politics": "politics",
        },
        "huffpost_part": {
            "POLITICS": "politics", "ENTERTAINMENT": "culture", "WORLD NEWS": "world", "SPORTS": "sport",
            "CRIME": "crime", "TRAVEL": "travel", "BUSINESS": "business", "TECH": "technology",
        },
        "reuters21578": {"earn": "business", "acq": "business"},
        "hackernews": {"tech": "technology|science"},
        "MIND": {
            "sports": "sport", "finance": "business", "foodanddrink": "food", "health": "health", "tv": "culture",
            "movies": "culture", "music": "culture", "entertainment": "culture", "travel": "travel",
            "autos": "motoring", "weather": "climate", "lifestyle": "lifestyle", "newspolitics": "politics",
            "newsworld": "world", "newscrime": "crime", "newsscienceandtechnology": "science|technology",
        },
    }.items()
}  # fmt: skip
"""The sections that a category can mean, by source; for MIND's `news` the subcategories."""
WAYS = ("title", "title and abstract", "title, abstract and neighbours")


@dataclass(frozen=True)
class LabelledStory:
    """A story with its source's category."""

    source: str
    category: str
    title: str
    abstract: str


@dataclass(frozen=True)
class SectionStudy(Study[str, Table]):
    """Agreement on held-out headlines and on MIND's stories; each run returns one table."""

    data: Path
    seed: int = 12

    @property
    def jobs(self) -> Sequence[str]:
        return ("headlines", "MIND")

    @property
    def seeds(self) -> tuple[int, ...]:
        return (self.seed,)

    def run(self, job: str) -> Table:
        """Assign sections as a backend does for newly ingested stories.

        Raises DataMissing, MalformedRow.
        """
        stories = mind_stories(self.data) if job == "MIND" else held_out_headlines(self.data, self.seed)
        return agreement(job, stories)

    def line(self, job: str, run: Table) -> str:
        return f"{job}: {', '.join(map(str, run.rows[-1][1:]))}"

    def tables(self, runs: Mapping[str, Table]) -> list[Table]:
        return list(runs.values())


def held_out_headlines(data: Path, seed: int) -> list[LabelledStory]:
    """Return HEADLINES stories, spread evenly over the categories that map to a section. Raises DataMissing."""
    by_category: dict[tuple[str, str], list[LabelledStory]] = {}
    for line in headlines(data, ALL):
        if line.section in SECTIONS_OF.get(line.publisher, {}):
            story = LabelledStory(line.publisher, line.section, line.title, line.abstract)
            by_category.setdefault((line.publisher, line.section), []).append(story)
    rng = Random(seed)
    for stories in by_category.values():
        rng.shuffle(stories)
    drawn: list[LabelledStory] = []
    while len(drawn) < HEADLINES and any(by_category.values()):
        for _, stories in sorted(by_category.items()):
            if stories and len(drawn) < HEADLINES:
                drawn.append(stories.pop())
    return drawn


def mind_stories(data: Path) -> list[LabelledStory]:
    """Return MIND's stories whose category fits a section. Raises DataMissing, MalformedRow."""
    news, meant = load_mind(data / FOLDER).news, SECTIONS_OF["MIND"]
    rows = zip(news.categories, news.subcategories, news.titles, news.abstracts, strict=True)
    labelled = [(finer if category == "news" else category, title, text) for category, finer, title, text in rows]
    return [LabelledStory("MIND", name, title, text) for name, title, text in labelled if name in meant]


def sorted_stories(stories: Sequence[LabelledStory]) -> dict[str, list[str]]:
    """Return the section of each story, by method."""
    texts = [
        *sentences(),
        *(story.title for story in stories),
        *(text_of(story.title, story.abstract) for story in stories),
    ]
    vectors = product_vectors(title_vectors(texts), DIMENSIONS)
    typical, count = len(sentences()), len(stories)
    classifier = SectionClassifier(taxonomy(), vectors[:typical])
    titles, whole = vectors[typical : typical + count], vectors[typical + count :]
    none = np.zeros((0, len(classifier.names))), np.zeros((0, 0), np.float32)
    found = (
        classifier.probabilities(titles),
        classifier.probabilities(whole),
        with_neighbours(classifier.probabilities(whole), whole, *none),
    )
    return {way: [classifier.names[row] for row in each.argmax(axis=1)] for way, each in zip(WAYS, found, strict=True)}


def agreement(name: str, stories: Sequence[LabelledStory]) -> Table:
    """Return the share of stories assigned a section that their category can mean, by category and overall."""
    ways = sorted_stories(stories)
    groups = np.array([f"{story.source}: {story.category}" for story in stories])
    meant = [SECTIONS_OF[story.source][story.category] for story in stories]
    agrees: dict[str, NDArray[np.bool_]] = {
        way: np.array([section in each for section, each in zip(found, meant, strict=True)])
        for way, found in ways.items()
    }
    rows: list[tuple[Cell, ...]] = []
    for group in sorted(set(groups)):
        members = groups == group
        rows.append((group, int(members.sum()), *(f"{100 * each[members].mean():.1f} %" for each in agrees.values())))
    rows.append(("all", len(stories), *(f"{100 * each.mean():.1f} %" for each in agrees.values())))
    notes = (
        f"{len(taxonomy())} sections, described by {len(sentences())} invented sentences. Categories that fit no "
        "section are left out; neighbours are the other stories of the table.",
    )
    return Table(f"Sections by vector, {name}", ("category", "stories", *WAYS), rows, notes)
