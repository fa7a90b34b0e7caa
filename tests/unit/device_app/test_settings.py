"""Settings: documented, frozen, from arguments, environment and file, in that order."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel, ValidationError

from backend.settings import load_settings
from device_app.errors import SettingsRefused
from device_app.privacy.mechanisms.basis_laplace import BasisLaplace
from device_app.settings import DeviceSettings, FeedSettings, PerformanceSettings, PrivacySettings
from protocol.releases import RecallProtocol
from protocol.settings_file import papers


@pytest.mark.parametrize("kind", [PrivacySettings, PerformanceSettings, FeedSettings, DeviceSettings])
def test_every_setting_is_documented_and_frozen(kind: type[BaseModel]) -> None:
    undocumented = [name for name, field in kind.model_fields.items() if not (field.description or "").strip()]
    assert undocumented == []
    assert kind.model_config["frozen"]
    assert kind.model_config["extra"] == "forbid"


def test_setting_names_are_unique_across_classes() -> None:
    names = [name for kind in (PrivacySettings, PerformanceSettings, FeedSettings) for name in kind.model_fields]
    assert len(names) == len(set(names))


def test_defaults_pay_for_three_reports_and_for_no_training() -> None:
    privacy = PrivacySettings()
    assert (privacy.mode, privacy.epsilon_per_report, privacy.clicks_per_report) == ("interest", 4, 20)
    assert (privacy.epsilon_per_day_reports, privacy.epsilon_lifetime_reports) == (8, 40)
    assert (privacy.training, privacy.epsilon_per_day_training) == (False, 0)
    assert privacy.weakest_scale_to_clip == 0.1
    words = PrivacySettings.model_fields["epsilon_per_day_training"].description or ""
    assert "4.9 million" in words
    assert "not a guarantee" in words


def test_arguments_override_the_environment_and_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_file_without_a_device_table_leaves_the_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ownfeed.toml").write_text("[backend]\nport = 9001\n")
    monkeypatch.chdir(tmp_path)
    assert DeviceSettings(data_dir=tmp_path).port == DeviceSettings.model_fields["port"].default


@pytest.mark.parametrize("content", ["[device", "device = 3", '[device]\nprofile = "\udcff"'])
def test_unreadable_settings_file_is_named_in_the_error(
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
        ({"backend_url": "http://x:99999"}, "backend_url"),
        ({"backend_url": "http://x:eighty"}, "backend_url"),
        ({"backend_url": "http://x:0"}, "backend_url"),
        ({"backend_url": "http://999.1.1.1"}, "backend_url"),
        ({"backend_url": "http://"}, "backend_url"),
        ({"backend_key": "ab"}, "backend_key"),
        ({"privacy": {"mode": "loud"}}, "privacy.mode"),
        ({"privacy": {"epsilon_per_day_reports": float("inf")}}, "privacy.epsilon_per_day_reports"),
        ({"performance": {"recall_limit": 5_000}}, "performance.recall_limit"),
        ({"feed": {"varietey": 0.2}}, "feed.varietey"),
    ],
)
def test_invalid_setting_is_named_in_the_error(tmp_path: Path, changes: dict[str, object], named: str) -> None:
    with pytest.raises(ValidationError) as refused:
        DeviceSettings.model_validate({"data_dir": tmp_path} | changes)
    assert ".".join(str(part) for part in refused.value.errors()[0]["loc"]) == named


def test_settings_chosen_by_the_reader_are_validated() -> None:
    assert PrivacySettings().with_overrides({"training": True}).training
    with pytest.raises(ValidationError, match="report_window_hours"):
        PrivacySettings().with_overrides({"report_window_hours": 0})
    with pytest.raises(ValidationError, match="unheard_of"):
        PrivacySettings().with_overrides({"unheard_of": 1})


def test_settings_file_location_is_configurable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other.toml").write_text("[device]\nport = 9003\n")
    monkeypatch.setenv("OWNFEED_CONFIG", str(tmp_path / "other.toml"))
    assert DeviceSettings(data_dir=tmp_path).port == 9003
    monkeypatch.setenv("OWNFEED_CONFIG", str(tmp_path / "missing.toml"))
    with pytest.raises(SettingsRefused, match="OWNFEED_CONFIG names"):
        DeviceSettings(data_dir=tmp_path)


def test_settings_file_of_an_older_version_gets_default_values_for_new_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ownfeed.toml").write_text("[device.privacy]\nepsilon_per_sum_alone = 100\nsmallest_sum = 20\n")
    monkeypatch.chdir(tmp_path)
    privacy = DeviceSettings(data_dir=tmp_path).privacy
    assert (privacy.epsilon_per_sum_alone, privacy.smallest_sum, privacy.epsilon_per_click_alone) == (100, 20, 8)
    kept = {"epsilon_per_sum_alone": 100.0, "training": True}
    assert PrivacySettings().with_overrides(kept).epsilon_per_click_alone == 8, "what a reader chose on the page"


@pytest.mark.parametrize("paper", papers())
def test_paper_presets_contain_only_valid_settings(paper: str, tmp_path: Path) -> None:
    """The settings themselves refuse a name that is no setting, and a value beyond its limits."""
    values = papers()[paper]
    assert set(values) <= {"backend", "device"}
    device = DeviceSettings(data_dir=tmp_path, as_published=paper)  # type: ignore[arg-type]
    for table, given in values["device"].items():
        assert getattr(device, table).model_dump().items() >= given.items()
    backend = load_settings(data_dir=tmp_path, as_published=paper)
    held = backend.model_dump(mode="json")
    assert {name: held[name] for name in values["backend"]} == values["backend"]


def test_explicit_setting_overrides_the_papers_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ownfeed.toml").write_text('[device]\nas_published = "uni_fedrec"\n[device.feed]\nvariety = 0.5\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OWNFEED_DEVICE_PRIVACY__EPSILON_PER_DAY_REPORTS", "50")
    settings = DeviceSettings(data_dir=tmp_path)
    assert (settings.privacy.mode, settings.privacy.epsilon_per_day_reports) == ("basis_laplace", 50)
    assert (settings.feed.variety, settings.feed.fresh_slots) == (0.5, 0)
    assert DeviceSettings(data_dir=tmp_path, as_published=None).privacy.mode == "interest"


def test_unknown_paper_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="Input should be 'uni_fedrec'"):
        DeviceSettings(data_dir=tmp_path, as_published="unifedrec")  # type: ignore[arg-type]
    offered = get_args(get_args(DeviceSettings.model_fields["as_published"].annotation)[0])
    assert set(offered) == set(papers())


def test_papers_report_has_the_price_of_its_formula_and_fits_the_daily_budget(tmp_path: Path) -> None:
    backend, device = papers()["uni_fedrec"]["backend"], DeviceSettings(data_dir=tmp_path, as_published="uni_fedrec")
    protocol = RecallProtocol(
        channels_limit=5, **{name: backend[name] for name in RecallProtocol.model_fields if name in backend}
    )
    price = BasisLaplace.under(protocol).epsilon_per_report
    assert price == pytest.approx(50)
    assert device.privacy.epsilon_per_day_reports >= price > PrivacySettings().epsilon_per_day_reports


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("HOST", "", "is not a host"),
        ("DATA_DIR", "", "it is empty"),
        ("BACKEND_URL", "https://news.example.org/?x=1", "a query, a fragment or a blank"),
        ("BACKEND_URL", "https://news.example.org\n", "a query, a fragment or a blank"),
        ("PERFORMANCE__REQUEST_TIMEOUT_SEC", "1e300", "less than or equal to 600"),
        ("PERFORMANCE__SYNC_POLL_SEC", "1e-300", "greater than or equal to 0.01"),
        ("PERFORMANCE__NEWS_DAYS", "1e300", "less than or equal to 3650"),
        ("PERFORMANCE__POOL_LIMIT", "1" + "0" * 40, "less than or equal to 10000000"),
        ("FEED__SEEN_PENALTY", "1e308", "less than or equal to 1000"),
        ("FEED__TOPIC_CAP", "1" + "0" * 40, "less than or equal to 100"),
        ("PRIVACY__BYTES_PER_LIST", "1" + "0" * 27, "less than or equal to 1000000000"),
    ],
)
def test_nonsensical_setting_is_refused_with_its_limit(
    name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"OWNFEED_DEVICE_{name}", value)
    with pytest.raises(ValidationError, match=re.escape(said)) as refused:
        DeviceSettings()
    assert ".".join(map(str, refused.value.errors()[0]["loc"])) == name.lower().replace("__", ".")


def test_table_variable_that_is_not_json_is_named_in_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWNFEED_DEVICE_PRIVACY", "none")
    with pytest.raises(SettingsRefused, match="OWNFEED_DEVICE_PRIVACY is no JSON"):
        DeviceSettings()
