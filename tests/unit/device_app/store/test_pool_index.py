"""Search over the pool's cards. Oracle: words compared one by one, and BM25 by its formula (k1 = 1.2, b = .75)."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from hashlib import sha256

import pytest

from device_app.store.database import Database
from device_app.store.pool_codes import ROWS_A_STEP, PoolIndex, PoolStore
from device_app.store.searches import CARD_WEIGHT
from protocol.broadcast import CodeShard, PoolCodes
from protocol.news import NewsCard
from protocol.releases import BlobRef
from tests.unit.device_app.store.conftest import MakeCard

WORDS = ["harbour", "harbours", "Hafen", "Öl", "ölpreis", "Zürich", "strike", "striking", "東京", "naïve", "19"]
QUERIES = ["harbour", "har", "OL", "zurich str", "naive 19", "東", "strike harbours", "nothing", "%"]


def blob(content: str) -> BlobRef:
    return BlobRef(sha256=sha256(content.encode()).hexdigest(), size_bytes=len(content))


def use(pool: PoolStore, days: Sequence[Sequence[NewsCard]], at: datetime) -> None:
    shards = []
    for number, cards in enumerate(days):
        words = "".join(card.model_dump_json() for card in cards)
        shard = CodeShard(name=f"2026-11-20.{number}", count=len(cards), codes=blob("codes" + words), cards=blob(words))
        if not pool.has_cards(shard):
            pool.put_shard(shard, b"", cards)
        shards.append(shard)
    listing = PoolCodes(
        release="r1", version=1, encoder="e" * 64, subspaces=1, sharpness=1.0, book=blob("b"), priors=blob("p"),
        shards=tuple(shards),
    )  # fmt: skip
    pool.use(listing, listing.model_dump_json().encode(), at)


def tokens(text: str) -> list[str]:
    """Return the words of this test's few scripts: each Chinese character is one, case and diacritics are dropped."""
    plain = text.casefold().translate(str.maketrans("öüï", "oui"))
    return "".join(f" {each} " if each > "\u2e80" else each for each in plain).split()


def by_hand(query: str, cards: Sequence[NewsCard]) -> dict[str, float]:
    held = {card.id: tokens(f"{card.title} {card.section} {card.topic}") for card in cards}
    asked = [word for word in tokens(query) if word.isalnum()]
    fits = {
        word: {
            id: sum(one.startswith(word) if len(word) > 1 else one == word for one in words)
            for id, words in held.items()
        }
        for word in asked
    }
    mean = sum(map(len, held.values())) / len(held)
    found = {id for id in held if asked and all(fits[word][id] for word in asked)}
    scores = dict.fromkeys(found, 0.0)
    for word in asked:
        rows = sum(count > 0 for count in fits[word].values())
        rarity = max(1e-6, math.log((len(held) - rows + 0.5) / (rows + 0.5)))
        for id in found:
            f = CARD_WEIGHT * fits[word][id]
            scores[id] += rarity * f * 2.2 / (f + 1.2 * (0.25 + 0.75 * len(held[id]) / mean))
    return scores


@pytest.fixture
def cards(make_card: MakeCard) -> list[NewsCard]:
    draw = random.Random(3)
    return [
        make_card(f"N{at:03}", " ".join(draw.choices(WORDS, k=draw.randint(1, 5))), abstract="", publisher="")
        for at in range(2 * ROWS_A_STEP + 30)
    ]


def test_index_finds_every_match_with_its_relevance(database: Database, now: datetime, cards: list[NewsCard]) -> None:
    pool = PoolStore(database)
    index = PoolIndex(database, pool)
    assert index.hits("harbour") == []
    use(pool, [cards[:7], cards[7:]], now)
    for query in QUERIES:
        found = {hit.id: hit.relevance for hit in index.hits(query)}
        assert found == pytest.approx(by_hand(query, cards)), query
    assert len(index.hits("harbour")) > 100


def test_index_follows_the_listing_in_bounded_steps(database: Database, now: datetime, cards: list[NewsCard]) -> None:
    pool = PoolStore(database)
    index = PoolIndex(database, pool)
    days = [cards[: ROWS_A_STEP + 10], cards[ROWS_A_STEP + 10 : -5]]
    use(pool, days, now)
    assert index.catch_up(1) == ROWS_A_STEP
    assert index.catch_up() == len(cards) - 5 - ROWS_A_STEP
    assert index.catch_up() == 0
    use(pool, [days[1], cards[-5:]], now)
    left = [*days[1], *cards[-5:]]
    assert index.catch_up(0) == 0
    assert database.number("SELECT count(*) FROM pool_text") == len(days[1]), "a missing day is dropped first"
    assert {hit.id: hit.relevance for hit in index.hits("harbour")} == pytest.approx(by_hand("harbour", left))
    pool.drop()
    assert index.hits("harbour") == []
    assert database.number("SELECT count(*) FROM pool_text") == 0


def test_erase_empties_the_index_and_the_same_days_are_indexed_again(
    database: Database, now: datetime, cards: list[NewsCard]
) -> None:
    pool = PoolStore(database)
    index = PoolIndex(database, pool)
    use(pool, [cards[:20]], now)
    before = index.hits("harbour")
    assert before
    database.erase()
    assert index.hits("harbour") == []
    assert database.number("SELECT count(*) FROM pool_text") == 0
    use(pool, [cards[:20]], now)
    assert index.hits("harbour") == before


def test_large_day_is_stored_and_deleted_in_steps_between_which_pages_are_answered(
    database: Database, now: datetime, cards: list[NewsCard], monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, index, held = PoolStore(database), PoolIndex(database, PoolStore(database)), [0]
    begun = database.quick_transaction

    @contextmanager
    def counted() -> Iterator[None]:
        with begun():
            yield
        held.append(database.number("SELECT count(*) FROM pool_card"))

    monkeypatch.setattr(database, "quick_transaction", counted)
    use(pool, [cards], now)
    use(pool, [cards[1:]], now)
    index.catch_up()
    use(pool, [], now)
    assert held[-1] == 0
    assert max(held) == 2 * len(cards) - 1
    assert max(abs(after - before) for before, after in itertools.pairwise(held)) == ROWS_A_STEP


def test_day_whose_cards_were_stored_in_part_is_stored_again(
    database: Database, now: datetime, cards: list[NewsCard], monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, begun, allowed = PoolStore(database), database.quick_transaction, iter(range(3))

    @contextmanager
    def interrupted() -> Iterator[None]:
        if next(allowed, None) is None:
            raise KeyboardInterrupt
        with begun():
            yield

    with monkeypatch.context() as patched:
        patched.setattr(database, "quick_transaction", interrupted)
        with pytest.raises(KeyboardInterrupt):
            use(pool, [cards], now)
    assert 0 < database.number("SELECT count(*) FROM pool_card") < len(cards)
    assert pool.current() is None
    use(pool, [cards], now)
    found = pool.cards(pool.places([each.id for each in cards]).values())
    assert sorted(each.id for each in found) == sorted(each.id for each in cards)
