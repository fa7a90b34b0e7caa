"""Baselines from words. Oracles: each score computed again in NumPy, from its paper's formula, and counts by hand."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from typer.testing import CliRunner

from experiments.datasets.mind import Impressions, MalformedRow, RaggedArray, load_entities, load_news
from experiments.datasets.samples import training_samples
from experiments.papers.fl_mv_dssm.baselines import Factorising
from experiments.papers.news_baselines import words
from experiments.papers.news_baselines.articles import TITLE_PIECES, WORD_DIM, ArticleColumns, word_vectors
from experiments.papers.news_baselines.factors import DeepFusion, FactorisationMachine, factor_scores, factorise
from experiments.papers.news_baselines.study import (
    CENTRAL,
    MODELS,
    PUBLISHED,
    BaselineJob,
    BaselineSizes,
    NewsBaselineStudy,
)
from experiments.papers.news_baselines.training import NewsRanker, central_batches, ranked, train
from experiments.papers.news_baselines.words import (
    CORRUPTED,
    WINDOWS,
    Dan,
    Denoised,
    Dkn,
    Lstur,
    Npa,
    fednewsrec_model,
    nrms_model,
)
from ownfeed import app

NEWS, READERS = 30, 4
WORDS = ["[PAD]", "sports", "finance", "racing", "markets", *(f"w{each}" for each in range(20)), "kevin", "harvick"]
KEVIN = {
    "Label": "kevin harvick",
    "Type": "P",
    "WikidataId": "Q1",
    "OccurrenceOffsets": [3],
    "SurfaceForms": ["kevin harvick"],
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    lines = []
    for each in range(NEWS):
        title = " ".join(f"w{word}" for word in rng.integers(20, size=5))
        section, topic = ("sports", "racing") if each % 2 else ("finance", "")
        lines.append(f"N{each}\t{section}\t{topic}\t{title}\t\t\t\t\n")
    lines[1] = f"N1\tsports\tracing\tw3 kevin harvick w4\t\t\t{json.dumps([KEVIN])}\t[]\n"
    found = tmp_path_factory.mktemp("mind") / "news.tsv"
    found.write_text("".join(lines))
    return found


@pytest.fixture(scope="module")
def columns(path: Path) -> ArticleColumns:
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[PAD]"))
    tokenizer.pre_tokenizer = Whitespace()
    vectors = np.random.default_rng(1).normal(size=(len(WORDS), WORD_DIM)).astype(np.float32)
    vectors[0] = 0
    return ArticleColumns.of(load_news(path), load_entities(path), tokenizer, vectors)


CLICKS = np.array([[NEWS, 3, 1, 8], [NEWS, NEWS, NEWS, 5]])
SHOWN = np.array([[2, 1, 9], [7, 11, 4]])
WHO = np.array([2, 0])


def scored(model: NewsRanker) -> np.ndarray:
    """The model's scores of two readers' three candidates; the second reader is unknown."""
    model.eval()
    with torch.no_grad():
        return model(CLICKS, SHOWN, WHO).double().numpy()


def weights(model: torch.nn.Module) -> dict[str, np.ndarray]:
    return {name: value.detach().double().numpy() for name, value in model.named_parameters()}


def softmax(x: np.ndarray) -> np.ndarray:
    return np.exp(x - x.max()) / np.exp(x - x.max()).sum()


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def linear(w: dict[str, np.ndarray], name: str, x: np.ndarray) -> np.ndarray:
    return x @ w[f"{name}.weight"].T + w.get(f"{name}.bias", 0)


def by_hand(article: object, score: object) -> np.ndarray:
    """Scores by a function of an article's row, and one of a reader's clicks, a candidate, and the reader."""
    assert callable(article)
    assert callable(score)
    return np.array(
        [
            [score([article(row) for row in clicks if row != NEWS], article(each), who) for each in shown]
            for clicks, shown, who in zip(CLICKS, SHOWN, WHO, strict=True)
        ]
    )


def attended(w: dict[str, np.ndarray], name: str, rows: list[np.ndarray], candidate: np.ndarray) -> np.ndarray:
    whole = np.concatenate([w[f"{name}.of_click.weight"], w[f"{name}.of_candidate.weight"]], axis=1)
    hidden = [relu(whole @ np.concatenate([row, candidate]) + w[f"{name}.of_candidate.bias"]) for row in rows]
    return softmax(np.array([linear(w, f"{name}.last", each)[0] for each in hidden])) @ np.array(rows)


def convolved(weight: np.ndarray, bias: np.ndarray, rows: np.ndarray, before: int) -> np.ndarray:
    """relu(W [rows t - before .. ] + b) for each t; beyond the rows there are zeros."""
    width = weight.shape[1] // rows.shape[1]
    padded = np.concatenate([np.zeros((before, rows.shape[1])), rows, np.zeros((width, rows.shape[1]))])
    return relu(np.stack([weight @ padded[at : at + width].ravel() + bias for at in range(len(rows))]))


def test_entities_stand_at_the_words_that_name_them(columns: ArticleColumns) -> None:
    sports, racing = columns.profile[3, :2]
    kevin = columns.profile[1, 2]
    assert columns.words[1, :4].tolist() == [WORDS.index(each) for each in ("w3", "kevin", "harvick", "w4")]
    assert columns.entities[1, :4].tolist() == [0, kevin, kevin, 0]
    assert (columns.words[1, TITLE_PIECES], columns.entities[1, TITLE_PIECES]) == (WORDS.index("sports"), sports)
    names = {kevin: ["kevin", "harvick"], sports: ["sports"], racing: ["racing"]}
    own = {each: columns.vectors[[WORDS.index(word) for word in words]].mean(axis=0) for each, words in names.items()}
    np.testing.assert_allclose(columns.entity_vectors[kevin], own[kevin], atol=1e-6)
    np.testing.assert_allclose(columns.contexts[kevin], (own[sports] + own[racing]) / 2, atol=1e-6)
    assert columns.profile[2, 1] == 0, "an article without a topic"
    for table in (columns.words, columns.entities, columns.profile, columns.bag.toarray()):
        assert not table[NEWS].any(), "padding"


def test_damaged_entities_are_refused_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "news.tsv").write_text('N1\ta\tb\tt\t\t\t[]\t[]\nN2\ta\tb\tt\t\t\t[{"Label": "x"}]\t[]\n')
    with pytest.raises(MalformedRow, match=r"line 2: entities"):
        load_entities(tmp_path / "news.tsv")


def test_word_vectors_are_principal_components() -> None:
    table = np.random.default_rng(2).normal(size=(500, 80)).astype(np.float32) * np.linspace(1, 3, 80)
    centred = table - table.mean(axis=0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    expected = u[:, :WORD_DIM] * s[:WORD_DIM]
    found = word_vectors(table.astype(np.float32))[1:].astype(np.float64)
    scale = np.abs(found).sum() / np.abs(expected[1:]).sum()
    np.testing.assert_allclose(np.abs(found), scale * np.abs(expected[1:]), atol=2e-3)


def test_fm_is_the_sum_over_all_pairs(columns: ArticleColumns) -> None:
    torch.manual_seed(0)
    model = FactorisationMachine(columns, READERS, factors=3)
    w, bag = weights(model), columns.bag.toarray().astype(np.float64)
    table = np.concatenate([w["reader"] if "reader" in w else w["reader.weight"], w["read"], w["shown"]])

    def score(clicks: list[np.ndarray], candidate: np.ndarray, who: int) -> float:
        x = np.concatenate([np.eye(READERS + 1)[who], np.mean(clicks, axis=0), candidate])
        places = np.flatnonzero(x)
        pairs = sum(x[i] * x[j] * (table[i, :3] @ table[j, :3]) for i, j in combinations(places, 2))
        return float(w["constant"] + x @ table[:, 3] + pairs)

    np.testing.assert_allclose(scored(model), by_hand(lambda row: bag[row], score), atol=1e-5)


def test_dfm_merges_its_channels_by_attention(columns: ArticleColumns) -> None:
    torch.manual_seed(0)
    model = DeepFusion(columns, hidden=5)
    w = weights(model)

    def article(row: int) -> np.ndarray:
        profile = columns.profile[row]
        tables = [(columns.vectors, columns.titles[row])]
        tables += [(columns.entity_vectors, ids) for ids in (profile[:1], profile[1:2], profile[2:])]
        return np.stack([table[ids[ids > 0]].sum(axis=0) / max(1, (ids > 0).sum()) for table, ids in tables])

    def score(clicks: list[np.ndarray], candidate: np.ndarray, who: int) -> float:
        merged = []
        for at, (read, shown) in enumerate(zip(np.mean(clicks, axis=0), candidate, strict=True)):
            outputs = []
            for depth in range(3):
                x = np.concatenate([read, shown])
                for layer in range(depth + 1):
                    x = relu(linear(w, f"channels.{at}.paths.{depth}.{2 * layer}", x))
                outputs.append(x)
            merged.append(relu(linear(w, f"channels.{at}.joined", np.concatenate(outputs))))
        shares = softmax(np.array([linear(w, "query", np.tanh(linear(w, "hidden", each)))[0] for each in merged]))
        return float(linear(w, "last", shares @ np.array(merged))[0])

    np.testing.assert_allclose(scored(model), by_hand(article, score), atol=1e-5)


def test_dkn_convolves_words_entities_and_contexts(columns: ArticleColumns) -> None:
    torch.manual_seed(0)
    model = Dkn(columns)
    w = weights(model)

    def article(row: int) -> np.ndarray:
        rows = []
        for word, entity in zip(columns.words[row], columns.entities[row], strict=True):
            mapped = [
                np.tanh(linear(w, "to_words", table[entity])) if entity else np.zeros(WORD_DIM)
                for table in (columns.entity_vectors, columns.contexts)
            ]
            rows.append(np.concatenate([columns.vectors[word], *mapped]))
        real = columns.words[row] > 0
        filters = [
            convolved(w[f"windows.{at}.weight"], w[f"windows.{at}.bias"], np.array(rows), 0)[real].max(axis=0)
            for at in range(len(WINDOWS))
        ]
        return np.concatenate(filters)

    def score(clicks: list[np.ndarray], candidate: np.ndarray, who: int) -> float:
        user = attended(w, "attention", clicks, candidate)
        return float(linear(w, "score.2", relu(linear(w, "score.0", np.concatenate([user, candidate]))))[0])

    np.testing.assert_allclose(scored(model), by_hand(article, score), atol=1e-5)


def test_dan_joins_attention_over_clicks_and_over_lstm_states(columns: ArticleColumns) -> None:
    torch.manual_seed(0)
    model = Dan(columns)
    w = weights(model)

    def article(row: int) -> np.ndarray:
        ids, profile = columns.titles[row], columns.profile[row]
        kinds = w["kinds.weight"][columns.kinds[profile]] * (profile > 0)[:, None]
        entities = np.concatenate([columns.entity_vectors[profile], kinds], axis=1)
        parts = []
        for name, rows, real in (("title", columns.vectors[ids], ids > 0), ("profile", entities, profile > 0)):
            parts.append(convolved(w[f"{name}.window.weight"], w[f"{name}.window.bias"], rows, 1)[real].max(axis=0))
        return np.concatenate(parts)

    def score(clicks: list[np.ndarray], candidate: np.ndarray, who: int) -> float:
        state, memory, states = np.zeros(len(candidate)), np.zeros(len(candidate)), []
        for each in clicks:
            gates = w["cell.weight_ih"] @ each + w["cell.bias_ih"] + w["cell.weight_hh"] @ state + w["cell.bias_hh"]
            taken, kept, new, shown = np.split(gates, 4)
            memory = sigmoid(kept) * memory + sigmoid(taken) * np.tanh(new)
            state = sigmoid(shown) * np.tanh(memory)
            states.append(state)
        both = [attended(w, "interest", clicks, candidate), attended(w, "sequence", states, candidate)]
        return float(linear(w, "joined", np.concatenate(both)) @ candidate)

    np.testing.assert_allclose(scored(model), by_hand(article, score), atol=1e-5)


def test_npa_attends_by_queries_of_the_reader(columns: ArticleColumns) -> None:
    torch.manual_seed(0)
    model = Npa(columns, READERS)
    w = weights(model)

    def pooled(part: int, rows: np.ndarray, who: int) -> np.ndarray:
        query = np.tanh(linear(w, f"mapped.{part}", relu(linear(w, f"queries.{part}", w["reader.weight"][who]))))
        return softmax(rows @ query) @ rows

    def article(row: int) -> np.ndarray:
        ids = columns.titles[row]
        found = convolved(w["cnn.window.weight"], w["cnn.window.bias"], columns.vectors[ids[ids > 0]], 1)
        return np.array([pooled(0, found, who) for who in range(READERS + 1)])

    def score(clicks: list[np.ndarray], candidate: np.ndarray, who: int) -> float:
        return float(pooled(1, np.array([each[who] for each in clicks]), who) @ candidate[who])

    np.testing.assert_allclose(scored(model), by_hand(article, score), atol=1e-5)


def gru(w: dict[str, np.ndarray], name: str, rows: list[np.ndarray], state: np.ndarray) -> np.ndarray:
    for each in rows:
        given, past = linear(w, f"{name}.input", each), linear(w, f"{name}.recurrent", state)
        reset, keep, new = zip(np.split(given, 3), np.split(past, 3), strict=True)
        stays = sigmoid(keep[0] + keep[1])
        state = stays * state + (1 - stays) * np.tanh(new[0] + sigmoid(reset[0] + reset[1]) * new[1])
    return state


def test_ebnr_is_a_gru_over_denoised_articles(columns: ArticleColumns) -> None:
    torch.manual_seed(0)
    model = Denoised(columns)
    w, bag = weights(model), columns.bag.toarray().astype(np.float64)

    def article(row: int) -> np.ndarray:
        b = w["encode.bias"]
        return sigmoid(w["encode.weight"] @ bag[row] * (1 - CORRUPTED) + b) - sigmoid(b)

    def score(clicks: list[np.ndarray], candidate: np.ndarray, who: int) -> float:
        return float(gru(w, "user.gru", clicks, np.zeros(len(candidate))) @ candidate)

    np.testing.assert_allclose(scored(model), by_hand(article, score), atol=1e-5)
    h0, h1, h2 = (model.encoded(torch.from_numpy(columns.bag[[row]].toarray())) for row in (0, 2, 1))
    triple = torch.from_numpy(columns.bag[[0, 2, 1]].toarray())[None]
    rebuilt = sum(((model.decode(h) - x) ** 2).sum() for h, x in zip((h0, h1, h2), triple[0], strict=True)) / 3
    expected = rebuilt + torch.log1p(torch.exp((h0 * h2).sum() - (h0 * h1).sum()))
    torch.testing.assert_close(model.denoising_loss(triple, torch.zeros(triple.shape, dtype=torch.bool)), expected)


def test_lstur_starts_its_gru_at_the_reader(columns: ArticleColumns) -> None:
    torch.manual_seed(0)
    model = Lstur(columns, READERS)
    w = weights(model)
    with torch.no_grad():
        made = model.eval().articles(np.arange(NEWS)).double().numpy()

    def score(clicks: list[np.ndarray], candidate: np.ndarray, who: int) -> float:
        return float(gru(w, "gru", clicks, w["reader.weight"][who]) @ candidate)

    np.testing.assert_allclose(scored(model), by_hand(lambda row: made[row], score), atol=1e-5)
    topics = w["topics.weight"][columns.profile[:NEWS, :2]].reshape(NEWS, -1)
    np.testing.assert_allclose(made[:, -topics.shape[1] :], topics, atol=1e-7)


@pytest.mark.parametrize("make", [fednewsrec_model, nrms_model])
def test_models_of_two_parts_score_by_inner_products(columns: ArticleColumns, make: object) -> None:
    """Their parts have oracles of their own; padding, order and the article's row are checked here."""
    assert callable(make)
    torch.manual_seed(0)
    model = make(columns).eval()

    def article(row: int) -> np.ndarray:
        ids = columns.titles[row][columns.titles[row] > 0]
        with torch.no_grad():
            found: np.ndarray = model.view(torch.from_numpy(columns.vectors[ids])[None], torch.ones(1, len(ids)))
        return found[0].numpy()

    def score(clicks: list[np.ndarray], candidate: np.ndarray, who: int) -> float:
        with torch.no_grad():
            user = model.user.user_vector(torch.from_numpy(np.array(clicks))[None], torch.ones(1, len(clicks)))
        return float(user[0].numpy() @ candidate)

    np.testing.assert_allclose(scored(model), by_hand(article, score), atol=1e-5)


def test_fcf_solves_each_readers_factors_by_weighted_least_squares() -> None:
    rng = np.random.default_rng(3)
    Q, how = rng.normal(size=(NEWS, 4)), Factorising(factors=4, rounds=3, cohort=2)
    histories, shown = [[3, 1, 8, 3], [5]], [[2, 1, 9], [7, 11, 4]]
    given = Impressions(
        ("a", "b"),
        ("a", "b"),
        np.zeros(2, np.int64),
        RaggedArray.of(histories),
        RaggedArray.of(shown),
        np.zeros(6, int),
    )
    expected = []
    for history, candidates in zip(histories, shown, strict=True):
        r = np.isin(np.arange(NEWS), history).astype(float)
        root = np.sqrt(1 + how.confidence * r)
        design = np.concatenate([root[:, None] * Q, np.sqrt(how.ridge) * np.eye(4)])
        p = np.linalg.lstsq(design, np.concatenate([root * r, np.zeros(4)]), rcond=None)[0]
        expected += [p @ Q[each] for each in candidates]
    np.testing.assert_allclose(factor_scores(Q, given, how), expected, atol=1e-10)
    seen = csr_array((np.ones(6), ([0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2])), shape=(2, NEWS))
    found = factorise(seen, Factorising(factors=4, rounds=60, cohort=2), 0)
    together = np.abs(found[:3] @ found[:3].T).mean()
    assert together > 10 * np.abs(found[:3] @ found[3:].T).mean(), "unread articles drift to zero"


def world(readers: int = READERS) -> Impressions:
    rng = np.random.default_rng(4)
    histories = [rng.permutation(NEWS)[:9] for _ in range(readers)]
    users = tuple(f"U{each}" for each in range(readers))
    shown = RaggedArray.of([rng.permutation(NEWS)[: 3 + each] for each in range(readers)])
    clicked = (np.arange(len(shown.values)) == shown.offsets[shown.owners]).astype(np.int64)
    return Impressions(users, users, np.zeros(readers, np.int64), RaggedArray.of(histories), shown, clicked)


@pytest.mark.parametrize("method", MODELS)
def test_every_model_trains_all_its_parts_and_ranks_alike_in_any_batch(
    columns: ArticleColumns, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(words, "DENOISING_STEPS", 2)
    given = world()
    samples = training_samples(given, NEWS)
    assert samples.names == given.users
    torch.manual_seed(0)
    model = MODELS[method](columns, samples.readers)
    before = {name: value.clone() for name, value in model.named_parameters()}
    train(model, samples, central_batches(samples, 2, 8, 0), 1e-3, 0)
    moved = {name for name, value in model.named_parameters() if not torch.equal(value, before[name])}
    still = {name for name in before.keys() - moved if not name.startswith("channels.3.")}  # few titles name entities
    # Constants cancel in a softmax: FM's, and the last biases of attention and of DKN's and DFM's scores.
    assert all(name == "constant" or name.endswith(("query.bias", "last.bias", "score.2.bias")) for name in still), (
        still
    )
    readers = np.arange(READERS)
    flat = ranked(model, given, readers)
    with torch.no_grad():
        for row in range(READERS):
            alone = model(given.histories[row][None], given.candidates[row][None], readers[[row]])[0].numpy()
            first, after = given.candidates.offsets[row : row + 2]
            np.testing.assert_allclose(flat[first:after], alone, atol=1e-5)


def test_table_has_paired_differences_and_resumes() -> None:
    study = NewsBaselineStudy(Path("nowhere"), BaselineSizes(seeds=2), ("FM", CENTRAL))
    gains = np.array([0.1, -0.05, 0.25])
    whole = ((0.5, 0.3, 3.0), (0.6, 0.3, 3.0), (0.7, 0.3, 3.0))
    better = tuple((a + gain, b, c) for (a, b, c), gain in zip(whole, gains, strict=True))
    runs = {job: better if job.method == "FM" else whole for job in study.jobs}
    assert study.runs(json.loads(json.dumps([row for each in runs.items() for row in study.rows(*each)]))) == runs
    (table,) = study.tables(runs)
    assert table.rows[0][:2] == ("FM", "0.7000 (0.0000)")
    error = gains.std(ddof=1) / np.sqrt(3)
    assert table.rows[0][4:] == (f"+0.1000 +- {error:.4f}", round(4 * gains.var(ddof=1) / 0.1**2), 58.41, None)
    assert table.rows[1][4:] == (None, None, 66.45, 66.92)
    assert BaselineJob("FM", 1) in study.jobs


def test_unknown_method_is_refused() -> None:
    done = CliRunner().invoke(app, ["evaluate", "news-baselines", "--method", "XYZ"])
    assert done.exit_code == 1
    assert "method: XYZ is none of FM, " in done.stderr
    assert set(MODELS) < set(PUBLISHED)
