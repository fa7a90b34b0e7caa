"""No module outside device_app.privacy can seal messages, and only sealed messages can be sent."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from device_app.reports.modes import MODES

ROOT = Path(__file__).parents[2]
PRIVACY = ROOT / "device_app" / "privacy"
SEALERS = {"close", "_TOKEN"}
NOISE_FOR_SIMULATION = "SeededNoise"


def sources(folder: str) -> Iterator[tuple[Path, ast.Module]]:
    for file in sorted((ROOT / folder).rglob("*.py")):
        yield file, ast.parse(file.read_text())


def offences(tree: ast.Module) -> list[str]:
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "device_app.privacy.sealed":
            found += [f"imports {one.name}" for one in node.names if one.name in SEALERS]
        if isinstance(node, ast.Attribute) and (node.attr == "_TOKEN" or ast.unparse(node).endswith("sealed.close")):
            found.append(f"reads {ast.unparse(node)}")
        if isinstance(node, ast.Call) and ast.unparse(node.func).split("[")[0].split(".")[-1] == "Sealed":
            found.append("builds Sealed")
    return found


def test_only_the_privacy_package_seals() -> None:
    seen = 0
    for folder in ("device_app", "backend", "experiments", "exporters", "models"):
        for file, tree in sources(folder):
            seen += 1
            if PRIVACY not in file.parents:
                assert offences(tree) == [], file.relative_to(ROOT)
    assert seen > 50


def test_search_for_seals_finds_each_bypass() -> None:
    for cheat in (
        "from device_app.privacy.sealed import close",
        "from device_app.privacy.sealed import _TOKEN as t",
        "import device_app.privacy.sealed as s\nx = s._TOKEN",
        "from device_app.privacy import sealed\nsealed.close(1)",
        "Sealed(1, b'', '', c, '')",
        "Sealed[int](1, b'', '', c, '')",
    ):
        assert offences(ast.parse(cheat)), cheat


def test_device_never_uses_seeded_noise() -> None:
    for file, tree in sources("device_app"):
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        allowed = file == PRIVACY / "noise_sources.py" or "fleet" in file.parts
        assert allowed or NOISE_FOR_SIMULATION not in names, file.relative_to(ROOT)


def test_every_releasing_privacy_function_states_its_guarantee() -> None:
    releasing = (
        *("seal", "release", "clip", "spend", "laplace", "memoised", "last_report", "reseal", "shared_part"),
        *("divide", "randomised", "subset_selection", "discrete_laplace", "composed"),
    )
    bounding = {
        *("Clipped", "SharedUpdate", "Ledger", "LaplaceProtection", "Sealed"),
        *(mode.mechanism.__name__ for mode in MODES.values() if isinstance(mode.mechanism, type)),
        *(mode.reporter.__name__ for mode in MODES.values() if mode.reporter is not None),
    }
    assert {"RandomisedCode", "InterestReporter", "BasisL1"} <= bounding
    checked: set[str] = set()
    missing: list[str] = []
    for _, tree in (*sources("device_app/privacy"), *sources("device_app/reports")):
        for node in tree.body:
            if (isinstance(node, ast.FunctionDef) and node.name.startswith(releasing)) or (
                isinstance(node, ast.ClassDef) and node.name in bounding
            ):
                checked.add(node.name)
                if "Formal guarantees" not in (ast.get_docstring(node) or ""):
                    missing.append(node.name)
    assert checked >= {*bounding, "seal_report", "laplace", "clip_elementwise"}
    assert missing == []
