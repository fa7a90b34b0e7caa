"""Settings where a cluster runs the backend: what Kubernetes puts into the environment and mounts as a file.

The oracle of the variables is Kubernetes's own `pkg/kubelet/envvars`, written down again here; that of the modes is its
`SetVolumeOwnership`. None of it may keep the backend from starting, or hide a misspelt setting.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.errors import BackendSettingsRefused
from backend.settings import load_settings
from device_app.errors import SettingsRefused
from device_app.service_links import service_links
from device_app.settings import DeviceSettings
from device_app.trusted_file import FileNotTrusted, read_trusted

GUIDE = (Path(__file__).parents[2] / "docs" / "operate.md").read_text(encoding="utf-8")


def of_service(name: str, host: str, *ports: tuple[str, int, str]) -> Iterator[tuple[str, str]]:
    """What the kubelet adds for one service; ports: name, number, protocol."""
    prefix = name.upper().replace("-", "_").replace(".", "_")
    joined = f"[{host}]" if ":" in host else host
    yield f"{prefix}_SERVICE_HOST", host
    yield f"{prefix}_SERVICE_PORT", str(ports[0][1])
    yield f"{prefix}_PORT", f"{ports[0][2]}://{joined}:{ports[0][1]}"
    for named, port, protocol in ports:
        if named:
            yield f"{prefix}_SERVICE_PORT_{named.upper().replace('-', '_')}", str(port)
        link = f"{prefix}_PORT_{port}_{protocol.upper()}"
        yield link, f"{protocol}://{joined}:{port}"
        yield f"{link}_PROTO", protocol
        yield f"{link}_PORT", str(port)
        yield f"{link}_ADDR", host


CLUSTER = dict(
    [
        *of_service("ownfeed", "10.96.0.7", ("http", 80, "tcp"), ("quic-alt", 443, "udp")),
        *of_service("ownfeed-backend", "10.96.0.8", ("", 8400, "tcp")),
        *of_service("ownfeed-device", "fd00::8", ("web", 8401, "tcp"), ("sig", 9, "sctp")),
        *of_service("ownfeed-data", "10.96.0.9", ("", 5432, "tcp")),
    ]
)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in CLUSTER.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("cluster")
def test_the_links_of_services_that_bear_our_name_set_nothing_and_refuse_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Red before: "the variable OWNFEED_PORT is no setting", and OWNFEED_BACKEND_PORT was no number."""
    assert (load_settings().port, DeviceSettings().port) == (8400, 8401)
    assert capsys.readouterr().err.splitlines() == [
        "ownfeed: the variable OWNFEED_BACKEND_PORT is a link to a service of Kubernetes; it sets nothing here.",
        "ownfeed: the variable OWNFEED_DEVICE_PORT is a link to a service of Kubernetes; it sets nothing here.",
    ]


@pytest.mark.usefixtures("cluster")
def test_a_setting_of_a_links_name_counts_where_it_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the pod's own `env` says stands in the place of the link, which the kubelet then leaves out."""
    monkeypatch.setenv("OWNFEED_BACKEND_PORT", "8500")
    monkeypatch.setenv("OWNFEED_DEVICE_PORT", "8501")
    assert (load_settings().port, DeviceSettings().port) == (8500, 8501)
    monkeypatch.setenv("OWNFEED_BACKEND_PORT", "tcp://backend:8400")
    with pytest.raises(BackendSettingsRefused, match="port"):
        load_settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OWNFEED_SERVICE_HOST", "10.96.0.7"),
        ("OWNFEED_SERVICE_PORT", "8400"),
        ("OWNFEED_PORT", "8400"),
        ("OWNFEED_PORT", "tcp://backend:8400"),
        ("OWNFEED_PORT", "http://10.96.0.7:8400"),
        ("OWNFEED_PORT", "tcp://10.96.0.7:84000"),
        ("OWNFEED_PORT_80_TCP", "tcp://10.96.0.7:81"),
        ("OWNFEED_PORT_80_TCP_PROTO", "udp"),
        ("OWNFEED_PORT_80_TCP_ADDR", "backend"),
        ("OWNFEED_BACKEND_URL", "tcp://10.96.0.7:80"),
    ],
)
def test_what_only_looks_like_a_link_is_refused_as_any_name_that_nobody_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(name, value)
    with pytest.raises((SettingsRefused, BackendSettingsRefused), match=f"the variable {name} is no setting"):
        (DeviceSettings(), load_settings())


def test_a_pair_of_host_and_port_takes_nothing_else_with_it() -> None:
    pair = {"ownfeed_service_host": "10.96.0.7", "ownfeed_service_port": "80"}
    others = {"ownfeed": "x", "ownfeed_service_port_http": "eighty", "ownfeed_service": "x", "ownfeed_hots": None}
    assert service_links(pair | others) == set(pair)
    assert service_links(pair | {"ownfeed_service_port": "080000"}) == frozenset()


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    """A ConfigMap mounted as a folder: links to the newest of its versions."""
    version = tmp_path / "volume" / "..2026_11_22"
    version.mkdir(parents=True)
    (version / "ownfeed.toml").write_text("[backend]\nport = 8500\n")
    (version / "ownfeed.toml").chmod(0o644)
    (version.parent / "..data").symlink_to(version.name)
    (version.parent / "ownfeed.toml").symlink_to("..data/ownfeed.toml")
    version.parent.chmod(0o777)
    return version.parent


def test_a_map_mounted_as_a_folder_is_refused_as_the_guide_says(volume: Path) -> None:
    with pytest.raises(FileNotTrusted, match=f"others may write its folder {volume}, and so decide"):
        read_trusted(volume / "ownfeed.toml")


def test_a_map_mounted_as_the_guide_shows_is_read(
    tmp_path: Path, volume: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kubelet gives the file to the group, which may read it; the folder is the image's, and the file one mount."""
    mode, group = int(shown("defaultMode"), 8), int(shown("fsGroup"))
    mounted = tmp_path / "etc" / shown("subPath")
    mounted.parent.mkdir(mode=0o755)
    assert shown("mountPath") == shown("value") == f"/etc/ownfeed/{mounted.name}"
    mounted.write_bytes((volume / "ownfeed.toml").read_bytes())
    mounted.chmod(mode | 0o440)
    if os.geteuid() == 0:
        os.chown(mounted, 0, group)
        monkeypatch.setattr(os, "geteuid", lambda: int(shown("runAsUser")))
    monkeypatch.setenv("OWNFEED_CONFIG", str(mounted))
    assert load_settings().port == 8500


def shown(name: str) -> str:
    """The first value that the guide's example gives to a field."""
    example = GUIDE.partition("### In Kubernetes")[2].partition("```yaml\n")[2].partition("```")[0]
    return re.findall(rf"\b{name}: ([^\s,}}]+)", example)[0]
