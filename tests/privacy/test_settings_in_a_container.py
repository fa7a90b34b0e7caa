"""Settings in Kubernetes: a ConfigMap mounted as a folder or as a file.

Oracle of the file modes: Kubernetes's `SetVolumeOwnership`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from backend.errors import BackendSettingsRefused
from backend.settings import load_settings

GUIDE = (Path(__file__).parents[2] / "docs" / "operate.md").read_text(encoding="utf-8")


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


def test_config_map_mounted_as_a_folder_is_refused(volume: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWNFEED_CONFIG", str(volume / "ownfeed.toml"))
    with pytest.raises(BackendSettingsRefused, match=f"others may write {volume} "):
        load_settings()


def test_config_map_mounted_as_documented_is_read(
    tmp_path: Path, volume: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kubelet makes the file readable for the group; the folder is the image's, and the file is a mount."""
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
    """Return the first value that the guide's example gives to a field."""
    example = GUIDE.partition("### In Kubernetes")[2].partition("```yaml\n")[2].partition("```")[0]
    return re.findall(rf"\b{name}: ([^\s,}}]+)", example)[0]
