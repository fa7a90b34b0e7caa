"""Every setting is described where it is defined, and a misspelt one is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

import backend.settings
import device_app.settings
from backend.errors import BackendSettingsRefused
from backend.settings import BackendSettings, load_settings
from device_app.settings import DeviceSettings

ROOT = Path(__file__).parents[2]
ROOTS: tuple[type[BaseModel], ...] = (BackendSettings, DeviceSettings)
PREFIXES = {"OWNFEED_BACKEND_": backend.settings, "OWNFEED_DEVICE_": device_app.settings}


def classes(root: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield root
    for field in root.model_fields.values():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from classes(field.annotation)


ALL = [one for root in ROOTS for one in classes(root)]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_setting_description_is_a_sentence(kind: type[BaseModel]) -> None:
    assert kind.model_fields
    for name, field in kind.model_fields.items():
        assert field.description, name
        assert len(field.description) >= 12, name
        assert field.description.endswith("."), name


def test_nested_settings_are_found() -> None:
    assert {kind.__name__ for kind in ALL} == {
        "BackendSettings",
        "DeviceSettings",
        "PrivacySettings",
        "PerformanceSettings",
        "FeedSettings",
    }


@pytest.mark.parametrize("prefix", sorted(PREFIXES))
def test_environment_prefix_is_documented(
    prefix: str,
) -> None:
    assert f"{prefix}*" in (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert prefix in (PREFIXES[prefix].__doc__ or "")
    assert prefix in {str(kind.model_config.get("env_prefix")) for kind in ROOTS}


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_unknown_setting_is_named_in_the_error_and_settings_are_frozen(kind: type[BaseModel]) -> None:
    with pytest.raises(ValidationError) as refused:
        kind(prot=1)
    assert refused.value.errors()[0]["loc"] == ("prot",)
    name = next(iter(kind.model_fields))
    with pytest.raises(ValidationError, match="frozen"):
        setattr(kind(), name, None)


def test_misspelt_key_in_either_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ownfeed.toml").write_text("[backend]\nprot = 1\n[device]\nprot = 1\n", encoding="utf-8")
    with pytest.raises(BackendSettingsRefused, match="prot"):
        load_settings()
    with pytest.raises(ValidationError, match="prot"):
        DeviceSettings()


def test_misspelt_nested_key_is_refused_from_file_and_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ownfeed.toml").write_text("[device.privacy]\nmoed = 'none'\n", encoding="utf-8")
    with pytest.raises(ValidationError, match=r"privacy\.moed"):
        DeviceSettings()
    (tmp_path / "ownfeed.toml").unlink()
    monkeypatch.setenv("OWNFEED_DEVICE_PRIVACY__MOED", "none")
    with pytest.raises(ValidationError, match=r"privacy\.moed"):
        DeviceSettings()


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_defaults_satisfy_their_own_limits(kind: type[BaseModel]) -> None:
    assert kind.model_validate(kind().model_dump()) == kind()
