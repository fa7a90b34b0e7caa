"""Settings are documented, read from environment and file, and named when refused."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from backend.errors import BackendSettingsRefused
from backend.recall.merge import MERGES
from backend.recall.posterior import READINGS
from backend.recall.service import RANKINGS
from backend.settings import BackendSettings, load_settings


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_every_setting_has_a_description() -> None:
    for name, field in BackendSettings.model_fields.items():
        assert field.description, name
        assert len(field.description) > 15, name


def test_everything_is_in_the_data_folder_by_default(tmp_path: Path) -> None:
    settings = load_settings(data_dir=tmp_path / "d")
    assert settings.database_url == f"sqlite:///{tmp_path / 'd' / 'ownfeed.sqlite'}"
    assert settings.admin_token_file == tmp_path / "d" / "admin.token"
    for place in (settings.blob_dir, settings.index_dir, settings.encoder_dir):
        assert place.is_relative_to(tmp_path / "d")


def test_environment_overrides_the_file_and_the_file_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ownfeed.toml").write_text("[backend]\nport = 9001\nrecall_workers = 3\n[device]\nport = 1\n")
    monkeypatch.setenv("OWNFEED_BACKEND_PORT", "9002")
    settings = load_settings()
    assert (settings.port, settings.recall_workers, settings.host) == (9002, 3, "127.0.0.1")


def test_file_without_a_backend_table_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "ownfeed.toml").write_text("[device]\nport = 1\n")
    assert load_settings().port == 8400


def test_settings_file_location_is_configurable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other.toml").write_text("[backend]\nport = 9003\n")
    monkeypatch.setenv("OWNFEED_CONFIG", str(tmp_path / "other.toml"))
    assert load_settings().port == 9003
    monkeypatch.setenv("OWNFEED_CONFIG", str(tmp_path / "missing.toml"))
    with pytest.raises(BackendSettingsRefused, match="OWNFEED_CONFIG names"):
        load_settings()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[backend]\nprot = 1\n", "prot"),
        ("[backend]\nport = 70000\n", "port"),
        ("backend = 3\n", "table"),
        ("[[", "TOML"),
    ],
)
def test_invalid_file_is_refused_in_one_line_naming_the_setting(tmp_path: Path, text: str, named: str) -> None:
    (tmp_path / "ownfeed.toml").write_text(text)
    with pytest.raises(BackendSettingsRefused, match=named) as refused:
        load_settings()
    assert "\n" not in refused.value.detail


def test_database_password_is_not_printed() -> None:
    settings = load_settings(database_url="postgresql://ownfeed:hidden@db/ownfeed")
    assert "hidden" not in repr(settings)


@pytest.mark.parametrize(
    ("name", "offered"),
    [
        ("index", "'auto', 'basis', 'exact', 'ivf' or 'fastscan'"),
        ("score_decoder", "'posterior' or 'softmax'"),
        ("recall_ranking", "'popularity' or 'inner_product'"),
        ("recall_merge", "'in_turns' or 'reference'"),
    ],
)
def test_unknown_recall_component_is_refused_with_the_available_ones(name: str, offered: str) -> None:
    with pytest.raises(BackendSettingsRefused, match=f"Setting {name}: Input should be {offered}"):
        load_settings(**{name: "hnsw"})


def test_recall_settings_offer_exactly_the_available_components() -> None:
    for name, parts in (("score_decoder", READINGS), ("recall_ranking", RANKINGS), ("recall_merge", MERGES)):
        assert get_args(BackendSettings.model_fields[name].annotation) == tuple(parts), name


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("public_origin", "https://news.example.org:70000", "a port from 1 to 65,535"),
        ("public_origin", "https://news.example.org:443", "other than 443"),
        ("public_origin", "https://...", "is not an origin such as"),
        ("public_origin", "https://192.168.1.999", "is not an origin such as"),
        ("reader_origin", "https://reader.example.org", "it needs the setting public_origin"),
        ("host", "", "'' is not a host: give a name or an IP address"),
        ("host", "127.0.0.1:8400", "without a port"),
        ("console_port", "8400", "it is 8400, the same as the setting port"),
        ("data_dir", "", "it is empty"),
        ("fleet_figures", "", "it is empty"),
        ("data_dir", "~nobody-of-this-name/x", "~nobody-of-this-name"),
        ("embed_cluster", "10.0.0.5:70000", "is not a host with a port from 1 to 65,535"),
        ("trusted_proxies", '["10.0.0.1/8"]', "10.0.0.1/8 has host bits set"),
        ("unbounded_addresses", '["nonsense"]', "'nonsense' does not appear to be an IPv4 or IPv6 network"),
        ("trusted_proxies", "10.0.0.0/8", "OWNFEED_BACKEND_TRUSTED_PROXIES is no JSON"),
        ("feed_refresh_minutes", "0.001", "it must be 0 or at least 1"),
        ("round_tick_sec", "1e-300", "greater than or equal to 0.01"),
        ("score_noise", "inf", "a finite number"),
    ],
)
def test_nonsensical_setting_is_refused_with_its_name_and_limit(
    name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"OWNFEED_BACKEND_{name.upper()}", value)
    with pytest.raises(BackendSettingsRefused) as refused:
        load_settings()
    assert name in refused.value.detail.lower()
    assert said in refused.value.detail
    assert "\n" not in refused.value.detail


def test_unusual_but_valid_settings_are_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = load_settings(data_dir="~/news", host="::1", feed_refresh_minutes=0, embed_cluster="node-1:6379")
    assert settings.data_dir == tmp_path / "news"
    for origin in ("https://203.0.113.7", "https://xn--bcher-kva.example:8443"):
        assert load_settings(public_origin=origin, host="localhost").public_origin == origin
