"""Settings: documented, frozen, from arguments, environment and file, in that order."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from device_app.errors import SettingsRefused
from device_app.settings import (
    DeviceSettings,
    FeedSettings,
    PerformanceSettings,
    PrivacySettings,
    with_overrides,
)


@pytest.mark.parametrize("kind", [PrivacySettings, PerformanceSettings, FeedSettings, DeviceSettings])
def test_every_setting_is_documented_and_frozen(kind: type[BaseModel]) -> None:
    undocumented = [name for name, field in kind.model_fields.items() if not (field.description or "").strip()]
    assert undocumented == []
    assert kind.model_config["frozen"]
    assert kind.model_config["extra"] == "forbid"


def test_no_setting_is_in_two_classes() -> None:
    names = [name for kind in (PrivacySettings, PerformanceSettings, FeedSettings) for name in kind.model_fields]
    assert len(names) == len(set(names))


def test_defaults_pay_for_three_reports_and_for_no_training() -> None:
    privacy = PrivacySettings()
    assert (privacy.mode, privacy.epsilon_per_report, privacy.clicks_per_report) == ("code", 4, 20)
    assert (privacy.epsilon_per_day_reports, privacy.epsilon_lifetime_reports) == (8, 40)
    assert (privacy.training, privacy.epsilon_per_day_training) == (False, 0)
    assert privacy.weakest_scale_to_clip == 0.1
    words = PrivacySettings.model_fields["epsilon_per_day_training"].description or ""
    assert "4.9 million" in words
    assert "not a guarantee" in words


def test_arguments_win_over_the_environment_and_that_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ownfeed.toml").write_text(
        '[device]\nport = 9001\nprofile = "filed"\n[device.privacy]\nmode = "none"\nclicks_per_report = 7\n'
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OWNFEED_DEVICE_PORT", "9002")
    monkeypatch.setenv("OWNFEED_DEVICE_PRIVACY__CLICKS_PER_REPORT", "9")
    settings = DeviceSettings(data_dir=tmp_path, profile="argued")
    assert (settings.profile, settings.port) == ("argued", 9002)
    assert (settings.privacy.mode, settings.privacy.clicks_per_report) == ("none", 9)
    assert settings.home == tmp_path / "devices" / "argued"


def test_a_file_without_a_table_for_the_device_leaves_the_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ownfeed.toml").write_text("[backend]\nport = 9001\n")
    monkeypatch.chdir(tmp_path)
    assert DeviceSettings(data_dir=tmp_path).port == DeviceSettings.model_fields["port"].default


@pytest.mark.parametrize("content", ["[device", "device = 3", '[device]\nprofile = "\udcff"'])
def test_a_file_that_cant_be_read_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    (tmp_path / "ownfeed.toml").write_bytes(content.encode("utf-8", "surrogateescape"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsRefused, match=r"^ownfeed\.toml"):
        DeviceSettings(data_dir=tmp_path)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"profile": "../up"}, "profile"),
        ({"backend_url": "ftp://x"}, "backend_url"),
        ({"backend_key": "ab"}, "backend_key"),
        ({"privacy": {"mode": "loud"}}, "privacy.mode"),
        ({"privacy": {"epsilon_per_day_reports": float("inf")}}, "privacy.epsilon_per_day_reports"),
        ({"performance": {"recall_limit": 5_000}}, "performance.recall_limit"),
        ({"feed": {"varietey": 0.2}}, "feed.varietey"),
    ],
)
def test_a_bad_setting_is_named(tmp_path: Path, changes: dict[str, object], named: str) -> None:
    with pytest.raises(ValidationError) as refused:
        DeviceSettings.model_validate({"data_dir": tmp_path} | changes)
    assert ".".join(str(part) for part in refused.value.errors()[0]["loc"]) == named


def test_overrides_of_the_reader_are_checked() -> None:
    assert with_overrides(PrivacySettings(), {"training": True}).training
    with pytest.raises(ValidationError, match="report_window_hours"):
        with_overrides(PrivacySettings(), {"report_window_hours": 0})
    with pytest.raises(ValidationError, match="unheard_of"):
        with_overrides(PrivacySettings(), {"unheard_of": 1})
