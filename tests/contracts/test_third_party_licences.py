"""docs/third-party-licences.md lists every declared dependency at its pinned version, under its licence.

`python tests/contracts/test_third_party_licences.py` writes the document from what is installed.
"""

from __future__ import annotations

import email.message
import importlib.metadata
import json
import re
import tomllib
from pathlib import Path
from typing import cast

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "third-party-licences.md"
HEAD = """# Third-party licences

Ownfeed's direct dependencies, at the versions they are tested with; their own dependencies are pinned in
`constraints.txt` and `web/package-lock.json`. None is copied into this repository: pip and npm fetch them with their
licences. The wheel contains the browser's device with its licences (`licences.*.txt` in `web/static/device`), and the
weights of sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0).
`python tests/contracts/test_third_party_licences.py` generates this file from the installed packages.

| package | version | licence | needed by |
|---|---|---|---|
"""
TEXTS = {  # where the metadata holds a text or nothing: its SPDX name, and a sentence of the licence that is installed
    "atheris": ("Apache-2.0", "Apache License Version 2.0"),
    "axe-playwright-python": ("MIT", "Permission is hereby granted, free of charge"),
    "onnxscript": ("MIT", "Permission is hereby granted, free of charge"),
    "jinja2": ("BSD-3-Clause", "Neither the name of the copyright holder nor the names of its contributors"),
    "scipy": ("BSD-3-Clause", "Redistribution and use in source and binary forms"),
}
SPDX = {  # what metadata says instead of an SPDX expression
    "Apache": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache 2.0 License": "Apache-2.0",
    "BSD 2-Clause License": "BSD-2-Clause",
    "Dual License": "Apache-2.0 OR BSD-3-Clause",
    "MIT License": "MIT",
}
SELDOM_INSTALLED = ("ray", "flower", "load", "audit")
CLASSIFIERS = {"Apache Software License": "Apache-2.0", "MIT License": "MIT", "BSD License": "BSD"}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared() -> dict[str, str]:
    """Return by canonical name the first extra that declares a package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = {"the command": project["dependencies"], **project["optional-dependencies"]}
    found: dict[str, str] = {}
    for group, requirements in groups.items():
        for requirement in requirements:
            name = canonical(re.match(r"[\w.-]+", requirement)[0])  # type: ignore[index]
            if name != "ownfeed":
                found.setdefault(name, group)
    return found


def pinned() -> dict[str, str]:
    files = ("constraints-flower.txt", "constraints.txt")  # of two versions the one that the tests run with
    lines = [line for name in files for line in (ROOT / name).read_text(encoding="utf-8").splitlines()]
    pairs = (line.split("==") for line in lines if "==" in line)
    return {canonical(name): version.split(";")[0].strip() for name, version in pairs}


def installed_metadata(name: str) -> email.message.Message | None:
    """Return the metadata of a package; None if it isn't installed."""
    try:
        return cast(email.message.Message, importlib.metadata.metadata(name))  # what it is at run time, as 3.12 says
    except importlib.metadata.PackageNotFoundError:
        return None


def licence(name: str) -> str:
    """Return the SPDX expression of an installed package, or what its metadata has instead."""
    metadata = installed_metadata(name)
    if metadata is None:
        return documented_row(name)
    if name in TEXTS:
        spdx, sentence = TEXTS[name]
        files = [file for file in importlib.metadata.files(name) or () if "LICEN" in file.name.upper()]
        texts = [metadata.get("License") or "", *(file.read_text(encoding="utf-8") for file in files)]
        assert any(sentence in " ".join(text.split()) for text in texts), f"{name}: no longer {spdx}"
        return spdx
    if expression := metadata.get("License-Expression"):
        return expression
    stated = metadata.get("License")
    if stated and len(stated) < 40:
        return SPDX.get(stated, stated)
    kinds = [one.split(" :: ")[-1] for one in metadata.get_all("Classifier") or () if one.startswith("License :: OSI")]
    assert kinds, f"{name}: its metadata states no licence; add it to TEXTS"
    return " or ".join(CLASSIFIERS[kind] for kind in kinds)


def documented_row(name: str) -> str:
    """Return what the document says of a package of the pinned version that isn't installed here.

    Such a package belongs to an extra that is seldom installed, or to other systems.
    """
    assert declared().get(name) in SELDOM_INSTALLED or name in of_other_systems(), f"{name} is not installed"
    row = re.search(
        rf"^\| {re.escape(name)} \| {re.escape(pinned()[name])} \| (.+?) \|", DOCUMENT.read_text("utf-8"), re.M
    )
    assert row, f"{name} has a new version: install its extra, and write the document again to read its licence"
    return row[1]


def of_other_systems() -> set[str]:
    """Return packages that are declared only for another system or another Python."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    requirements = [Requirement(each) for group in (project["dependencies"], *extras) for each in group]
    return {canonical(each.name) for each in requirements if each.marker and not each.marker.evaluate()}


def scripts() -> dict[str, tuple[str, str, str]]:
    """Return version and licence of what web/package.json declares, and what needs it."""
    package = json.loads((ROOT / "web" / "package.json").read_text(encoding="utf-8"))
    lock = json.loads((ROOT / "web" / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    needed_by = dict.fromkeys(package["dependencies"], "the browser's device")
    needed_by |= dict.fromkeys(package["devDependencies"], "building the browser's device")
    entries = {name: lock[f"node_modules/{name}"] for name in needed_by}
    return {name: (each["version"], each["license"], needed_by[name]) for name, each in entries.items()}


def document() -> str:
    versions = pinned()
    rows = [f"| {name} | {versions[name]} | {licence(name)} | {group} |" for name, group in sorted(declared().items())]
    for name, (version, spdx, needed_by) in scripts().items():
        rows.append(f"| {name} (npm) | {version} | {spdx} | {needed_by} |")
    return HEAD + "\n".join(rows) + "\n"


def test_declared_dependencies_are_listed_with_version_and_licence() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document(), "run python tests/contracts/test_third_party_licences.py"


def test_declared_dependencies_are_found() -> None:
    assert {"numpy", "torch", "typer", "gmpy2", "pytest", "psycopg", "uvloop"} <= declared().keys()
    assert {"onnxruntime-web", "typescript", "@noble/curves"} <= scripts().keys()


def test_dependency_licences_are_compatible_with_ours() -> None:
    """All of these are used unchanged from where they are installed, and may be combined with Apache-2.0."""
    for name in declared():
        assert not re.search(r"\bA?GPL", re.sub(r"LGPL", "", licence(name))), name


def test_transitive_licences_are_compatible_too() -> None:
    """This covers every pinned and installed package, whoever needs it."""
    seen = 0
    for name in pinned():
        metadata = installed_metadata(name)
        if metadata is None:
            continue
        kinds = " ".join(metadata.get_all("Classifier") or ())
        text = metadata.get("License-Expression") or metadata.get("License") or ""
        stated = f"{text.splitlines()[0] if text else ''} {kinds}"  # below a name, a licence's words tell of others'
        without = re.sub(r"LGPL|GNU Lesser General Public License|OR GPL[\w.-]*", "", stated)
        assert not re.search(r"\bA?GPL|GNU (Affero )?General Public", without), f"{name}: {stated[:200]}"
        seen += 1
    assert seen > 100


def test_project_licence_matches_its_declaration() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license"] == "Apache-2.0"
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
