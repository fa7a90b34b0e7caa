"""MovieLens as columns, its features and protocols.

Oracles: files written by hand, dense numpy, the counts of the data's own README and of FL-MV-DSSM's section V.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from experiments.datasets.mind import MalformedRow
from experiments.datasets.movielens import FOLDER, GENRES, MovieLens, load_movielens
from experiments.papers.fl_mv_dssm.features import FACTORS, ItemFactors, Vocabulary, demographics, trigrams
from experiments.papers.fl_mv_dssm.protocols import PROTOCOLS, MovieLensSplit, validation
from experiments.papers.fl_mv_dssm.training import evaluate
from experiments.records import DataMissing

DATA = Path(os.environ.get("OWNFEED_DATA", Path(__file__).parents[4] / "shared" / "data"))
ZEROS = "|".join("0" * (GENRES - 2))
FILES = {
    "u.occupation": "artist\nwriter\n",
    "u.user": "1|20|M|writer|1\n2|40|F|artist|2\n",
    "u.item": f"1|Caf\xe9 (1995)|a||b|0|1|{ZEROS}\n2|Up|a||b|1|0|{ZEROS}\n3|Up Up|a||b|0|0|{ZEROS}\n",
    "u.data": "2\t3\t1\t0\n1\t1\t5\t0\n2\t1\t3\t9\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="latin-1")
    return tmp_path


def generated(users: int = 40, films: int = 60) -> MovieLens:
    rng = np.random.default_rng(2)
    seen = (rng.random((users, films)) < 0.3).astype(np.float32)
    titles = tuple(f"Film {name} ({1990 + name % 9})" for name in range(films))
    flags = (rng.random((films, GENRES)) < 0.2).astype(np.int64)
    return MovieLens(
        rng.integers(10, 70, users), tuple(rng.choice(["F", "M"], users)), rng.integers(0, 21, users),
        tuple(f"job {one}" for one in range(21)), titles, flags, csr_array(seen), rng.permutation(int(seen.sum())),
    )  # fmt: skip


def test_columns_of_the_data_match_its_files(folder: Path) -> None:
    found = load_movielens(folder)
    assert (found.users, found.films) == (2, 3)
    assert found.titles == ("Caf\xe9 (1995)", "Up", "Up Up")
    assert found.ages.tolist() == [20, 40]
    assert found.genders == ("M", "F")
    assert found.occupations.tolist() == [1, 0]
    assert found.genres[:, :2].tolist() == [[0, 1], [1, 0], [0, 0]]
    assert found.seen.toarray().tolist() == [[1, 0, 0], [1, 0, 1]]
    assert found.places.tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("u.user", "1|20|M|writer|1\n3|4|F|artist|2\n", "u.user, line 2: number '3': expected 2"),
        ("u.user", "1|-4|M|writer|1\n", "age '-4': expected a number above 0"),
        ("u.user", "1|4|X|writer|1\n", "gender 'X': expected F or M"),
        ("u.user", "1|4|F|nurse|1\n", "occupation 'nurse' is not in u.occupation"),
        ("u.user", "1|4|F|writer\n", "line 1: 4 columns, 5 expected"),
        ("u.item", f"1| |a||b|0|0|{ZEROS}\n", "line 1: the title is empty"),
        ("u.item", f"1|Up|a||b|0|2|{ZEROS}\n", "genre flag '2'"),
        ("u.data", "1\t4\t1\t0\n", "film '4': expected a number from 1 to 3"),
        ("u.data", "1\t1\t6\t0\n", "rating '6': expected a number from 1 to 5"),
        ("u.data", "1\t1\t5\t0\n1\t1\t4\t0\n", "line 2: user 1 has rated film 1 already, in line 1"),
        ("u.data", "", "line 1: the file is empty"),
    ],
)
def test_error_for_a_bad_line_names_its_file(folder: Path, file: str, text: str, message: str) -> None:
    (folder / file).write_text(text)
    with pytest.raises(MalformedRow, match=message.replace("(", r"\(")):
        load_movielens(folder)


def test_missing_file_is_named_in_the_error(folder: Path) -> None:
    (folder / "u.item").unlink()
    with pytest.raises(DataMissing, match=r"u\.item does not exist"):
        load_movielens(folder)


def test_trigrams_use_lowercase_words_with_borders() -> None:
    assert trigrams("Up (95)") == {"#up", "up#", "#(9", "(95", "95)", "5)#"}
    assert trigrams("A") == {"#a#"}


def test_vocabulary_is_independent_of_title_order_and_ends_with_19_genres(folder: Path) -> None:
    data = load_movielens(folder)
    vocabulary = Vocabulary.of(data.titles)
    assert vocabulary == Vocabulary.of(data.titles[::-1])
    assert vocabulary.features == len(vocabulary.grams) + 19
    bits = vocabulary.films(data).toarray()
    assert set(np.unique(bits)) == {0, 1}
    assert (bits[:, -19:] == data.genres).all()
    for row, title in enumerate(data.titles):
        assert {vocabulary.grams[place] for place in np.flatnonzero(bits[row, :-19])} == trigrams(title)


def test_first_view_holds_age_gender_and_21_occupations() -> None:
    data = generated()
    view = demographics(data, np.arange(data.users))
    assert view.shape == (data.users, 23)
    assert view[:, 0].max() == 1
    young = np.flatnonzero(data.ages < 50)
    assert demographics(data, young)[:, 0] == pytest.approx(np.minimum(data.ages / data.ages[young].max(), 1))
    assert (view[:, 1] == [gender == "F" for gender in data.genders]).all()
    assert (view[:, 2:].argmax(axis=1) == data.occupations).all()
    assert (view[:, 2:].sum(axis=1) == 1).all()


def test_view_2_matches_numpys_truncated_svd_from_the_users_own_row() -> None:
    data = generated()
    factors = ItemFactors.of(data.seen)
    U, strengths, Vt = np.linalg.svd(data.seen.toarray().astype(np.float64))
    wanted = (U[:, :FACTORS] * strengths[:FACTORS]) * np.sign(np.sum(Vt[:FACTORS] * factors.V.T, axis=1))
    found = factors.fold_in(data.seen)
    assert found.shape == (data.users, 30)
    np.testing.assert_allclose(found * factors.scale, wanted, atol=1e-4)
    assert np.sqrt(np.mean(np.sum(found**2, axis=1))) == pytest.approx(1, rel=1e-5)
    np.testing.assert_allclose(factors.fold_in(data.seen[[5]])[0], found[5], atol=1e-6)
    np.testing.assert_allclose(factors.strengths, strengths[:FACTORS], rtol=1e-5)
    left = factors.left_vectors(data.seen)
    np.testing.assert_allclose(left * strengths[:FACTORS], wanted, atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(left, axis=0), np.ones(FACTORS), rtol=1e-4)
    assert not factors.fold_in(csr_array(np.zeros((1, data.films), np.float32))).any()
    with pytest.raises(ValueError, match="rank must be between 1 and 39, got 40"):
        ItemFactors.of(data.seen, 40)


@pytest.mark.parametrize("name", list(PROTOCOLS))
def test_protocols_separate_test_interactions_from_training(name: str) -> None:
    data = generated()
    split = PROTOCOLS[name](data, np.random.default_rng(1))
    train, test, seen = split.train.toarray(), split.test.toarray(), data.seen.toarray()
    assert not (train * test).any()
    assert ((train + test) <= seen).all()
    again = PROTOCOLS[name](data, np.random.default_rng(1))
    assert (again.train.toarray() == train).all()
    silent = np.setdiff1d(np.arange(data.users), split.trained)
    held = np.setdiff1d(np.arange(data.films), split.catalogue)
    assert not train[silent].any()
    assert not train[:, held].any()
    assert len(silent) == (4 if "users" in name else 0)
    assert len(held) == (6 if "items" in name else 0)
    assert test[split.asked].any(axis=1).all()
    if name in ("warm", "u1"):
        assert ((train + test) == seen).all()
    if name == "u1":
        owners, films = data.seen.nonzero()
        by_place = np.argsort(data.places)[: round(0.2 * data.seen.nnz)]
        assert set(zip(*test.nonzero(), strict=True)) == set(zip(owners[by_place], films[by_place], strict=True))
        assert (PROTOCOLS[name](data, np.random.default_rng(2)).test.toarray() == test).all()
    if name == "warm":
        assert (test.sum(axis=1) == np.round(0.2 * seen.sum(axis=1))).all()
    if name == "cold users":
        assert (test[split.asked] == seen[split.asked]).all()
    if "items" in name:
        assert split.candidates.tolist() == held.tolist()


def test_validation_uses_training_items_and_never_test_items() -> None:
    split = PROTOCOLS["warm"](generated(), np.random.default_rng(1))
    part = validation(split, np.random.default_rng(2))
    assert ((part.train + part.test).toarray() == split.train.toarray()).all()
    assert not part.test.multiply(split.test).sum()


def test_split_leaking_test_or_held_out_data_into_training_is_refused() -> None:
    one, none, rows = csr_array(np.eye(3)), csr_array((3, 3)), np.arange(3)
    with pytest.raises(ValueError, match="share no interaction"):
        MovieLensSplit("x", one, one, rows, rows, rows, rows)
    with pytest.raises(ValueError, match="users who are not in training"):
        MovieLensSplit("x", one, none, rows[:2], rows, rows, rows)
    with pytest.raises(ValueError, match="outside the catalogue"):
        MovieLensSplit("x", one, none, rows, rows, rows, rows[:2])


def test_metrics_exclude_training_items_and_match_a_hand_count() -> None:
    train, test = np.zeros((2, 14), np.float32), np.zeros((2, 14), np.float32)
    train[0, :2], test[0, [2, 13]] = 1, 1
    test[1, 0] = 1
    rows, films = np.arange(2), np.arange(14)
    split = MovieLensSplit("x", csr_array(train), csr_array(test), rows, rows, films, films)
    scores = np.tile(-np.arange(14, dtype=np.float32), (2, 1))
    found = evaluate(scores, split)
    assert found.precision == pytest.approx((1 / 10 + 1 / 10) / 2)
    assert found.recall == pytest.approx((1 / 2 + 1) / 2)
    assert found.auc == pytest.approx((0.5 + 1) / 2)
    assert found.users == 2
    among = evaluate(scores, split, np.array([2, 3, 13, 0]))
    assert among.auc == pytest.approx((0.5 + 1) / 2)
    with pytest.raises(ValueError, match=r"shape \(2, 14\), got \(2, 3\)"):
        evaluate(scores[:, :3], split)


@pytest.mark.data
def test_movielens_100k_has_the_counts_of_its_readme() -> None:
    if not (DATA / FOLDER).is_dir():
        pytest.skip("the research data is not beside the checkout")
    data = load_movielens(DATA / FOLDER)
    assert (data.users, data.films, data.seen.nnz) == (943, 1_682, 100_000)
    assert (data.seen.sum(axis=1) >= 20).all()
    assert demographics(data, np.arange(943)).shape == (943, 23)
    assert Vocabulary.of(data.titles).features == 3_916 + 19


@pytest.mark.data
def test_first_fold_of_movielens_100k_matches_u1_test() -> None:
    """20,000 ratings of 459 users, 1 to 462, and 1,410 films, as in the u1.test of the dataset's archive."""
    if not (DATA / FOLDER).is_dir():
        pytest.skip("the research data is not beside the checkout")
    split = PROTOCOLS["u1"](load_movielens(DATA / FOLDER), np.random.default_rng(0))
    assert (split.test.nnz, len(split.asked), split.asked.max() + 1) == (20_000, 459, 462)
    assert len(np.unique(split.test.indices)) == 1_410
    assert len(split.trained) == 943
