"""News encoders shared between machines. Oracle: the files of the machine that made them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from backend.embedding import encoder_files as shared_encoders
from backend.embedding.encoder_files import SharedEncoders
from backend.embedding.state_store import DESCRIPTION_FILE, STATES_FOLDER, TRAINED_FOLDER
from backend.storage.object_store import LocalFolder

IN_USE_FILES = ("words.json", "naml_words.json")
FIRST = {DESCRIPTION_FILE: "first", "encoder.onnx": "graph", **dict.fromkeys(IN_USE_FILES, "words-1")}
TRAINED = {f"{TRAINED_FOLDER}/abc/{DESCRIPTION_FILE}": "trained", f"{TRAINED_FOLDER}/abc/head.safetensors": "head"}
UNFINISHED = {
    f"{STATES_FOLDER}/below-0/states.npy": "states",
    f"{TRAINED_FOLDER}/.making-x/head.safetensors": "half",
    f"{IN_USE_FILES[0]}.half": "half",
}


def written(folder: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)


def found(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def machines(tmp_path: Path) -> list[SharedEncoders]:
    return [SharedEncoders(tmp_path / name, LocalFolder(tmp_path / "storage")) for name in ("one", "two")]


def test_encoder_files_are_shared_completely_between_machines(machines: list[SharedEncoders], tmp_path: Path) -> None:
    one, two = machines
    written(tmp_path / "one", FIRST | TRAINED | UNFINISHED)
    one.give()
    written(tmp_path / "storage", {"encoder.onnx.0a1b.part": "of a writer that was killed"})
    two.take()
    assert found(tmp_path / "two") == FIRST | TRAINED
    (tmp_path / "one" / IN_USE_FILES[0]).write_text("words-2")
    one.give()
    two.take()
    assert found(tmp_path / "two")[IN_USE_FILES[0]] == "words-2"


def test_only_the_trained_encoder_is_shared_and_its_description_is_written_last(
    machines: list[SharedEncoders], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = machines
    written(tmp_path / "one", FIRST | TRAINED)
    order: list[str] = []
    put = LocalFolder.put

    def noted(self: LocalFolder, key: str, content: bytes) -> None:
        order.append(key)
        put(self, key, content)

    monkeypatch.setattr(LocalFolder, "put", noted)
    one.give_trained("abc")
    one.give_trained("abc")
    one.give_trained("not-made-here")
    assert order == ["head.safetensors", DESCRIPTION_FILE]
    two.take()
    assert found(tmp_path / "two") == TRAINED


def test_old_trained_encoders_are_deleted_from_the_storage(machines: list[SharedEncoders], tmp_path: Path) -> None:
    one, two = machines
    written(tmp_path / "one", FIRST | TRAINED)
    one.give()
    one.sweep({"abc"}, time.time() + 5)
    one.sweep(set(), time.time() - 60)
    assert TRAINED.items() <= {k.removeprefix("encoder/"): v for k, v in found(tmp_path / "storage").items()}.items()
    one.sweep(set(), time.time() + 5)
    two.take()
    assert found(tmp_path / "two") == FIRST


def test_newer_word_files_are_not_replaced_by_older_ones(machines: list[SharedEncoders], tmp_path: Path) -> None:
    one, two = machines
    written(tmp_path / "one", FIRST)
    one.give()
    two.take()
    (tmp_path / "one" / IN_USE_FILES[0]).write_text("words-2")
    one.give()
    (tmp_path / "two" / IN_USE_FILES[1]).write_text("words of its own")
    two.give()
    one.take()
    assert found(tmp_path / "one") == FIRST | {IN_USE_FILES[0]: "words-2", IN_USE_FILES[1]: "words of its own"}


def test_storage_is_listed_once_per_release(
    machines: list[SharedEncoders], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = machines
    written(tmp_path / "one", FIRST)
    one.give()
    two.take_for("r1")
    written(tmp_path / "one", TRAINED)
    one.give()
    two.take_for("r1")
    assert found(tmp_path / "two") == FIRST
    two.take_for("r2")
    assert found(tmp_path / "two") == FIRST | TRAINED
    (tmp_path / "one" / IN_USE_FILES[0]).write_text("words-2")
    one.give()
    monkeypatch.setattr(shared_encoders, "TAKE_AGAIN_SEC", 0.0)
    two.take_for("r2")
    assert found(tmp_path / "two")[IN_USE_FILES[0]] == "words-2"


def test_sharing_is_disabled_without_a_remote_storage(tmp_path: Path) -> None:
    alone = SharedEncoders(tmp_path, None)
    written(tmp_path, FIRST)
    alone.give()
    alone.give_trained("abc")
    alone.take()
    alone.sweep(set(), time.time())
    assert found(tmp_path) == FIRST
