"""Which module imports which, opens sockets, or draws random numbers. Oracles: import-linter, Python's parser,
sys.modules."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DEVICE = ROOT / "device_app"
NETWORK = {
    "asyncio",
    "httpx",
    "requests",
    "urllib3",
    "aiohttp",
    "socket",
    "socketserver",
    "ftplib",
    "smtplib",
    "telnetlib",
    "ssl",
}
NETWORK_PARTS = {"urllib.request", "http.client", "http.server", "multiprocessing.connection"}
MAY_NETWORK = ("uplink", "sync")
ONLY_NAMES_A_TRANSPORT = "composition.py"
CHANCE_FOR_PAGE_AND_PAUSES = {
    "background.py": "the system's generator, for the times of polls",
    "training/due_updates.py": "the system's generator, for the moments of updates",
    "fleet/fleet.py": "the system's generator, for how long a busy backend is left alone",
    "composition.py": "the system's generator, for exploration",
    "feed/build.py": "handed on",
    "feed/exploration.py": "which section to show",
    "feed/page_order.py": "which fresh story to show",
}
"""Where Python's random may be used, and for what: never for anything that leaves the device."""
SIMULATION_AND_DRAWS = {
    "fleet/fleet.py": "simulated readers",
    "training/computation.py": "which of the reader's own samples a round uses",
    "training/multiview/worker.py": "which of a view's own samples a round uses",
    "training/tasks/multi_view.py": "which views a round asks of a device whose update could not be computed",
}


def modules(folder: Path) -> Iterator[tuple[str, ast.Module]]:
    for file in sorted(folder.rglob("*.py")):
        yield file.relative_to(DEVICE).as_posix(), ast.parse(file.read_text(encoding="utf-8"))


def imported(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module} | {f"{node.module}.{one.name}" for one in node.names}
    return found


def opens_network(tree: ast.Module) -> set[str]:
    """Return the imports of a module that can open a connection."""
    names = imported(tree)
    return {name for name in names if name.split(".")[0] in NETWORK} | {
        name for name in names if any(name == part or name.startswith(part + ".") for part in NETWORK_PARTS)
    }


def seeded_draws(tree: ast.Module) -> set[str]:
    """Return every use of numpy.random except its Generator as a type, and everything imported from it."""
    used = {
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node).startswith(("np.random.", "numpy.random."))
    }
    return (used - {"np.random.Generator"}) | {name for name in imported(tree) if name.startswith("numpy.random")}


def test_every_import_linter_contract_holds() -> None:
    # In a process of its own: it configures logging, which would silence the loggers of tests that come after it.
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout
    assert "7 kept" in done.stdout, "a contract was added or lost: say so here"


def test_only_uplink_and_sync_can_open_a_connection() -> None:
    found = {
        name: opened
        for name, tree in modules(DEVICE)
        if name.split("/")[0] not in MAY_NETWORK and (opened := opens_network(tree))
    }
    assert found == {ONLY_NAMES_A_TRANSPORT: {"httpx"}}
    tree = ast.parse((DEVICE / ONLY_NAMES_A_TRANSPORT).read_text(encoding="utf-8"))
    uses = {
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node).startswith("httpx.")
    }
    assert uses == {"httpx.BaseTransport"}, "composition hands a transport on and makes no client"


def test_imports_use_only_static_names() -> None:
    for name, tree in modules(DEVICE):
        calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        assert not calls & {"__import__", "importlib.import_module", "import_module", "exec", "eval"}, name


def test_privacy_uses_no_seeded_generator() -> None:
    for name, tree in modules(DEVICE / "privacy"):
        assert seeded_draws(tree) == set(), name
        assert not {one for one in imported(tree) if one.split(".")[0] == "random"}, name


def test_numpy_generators_are_used_only_for_simulation_and_samples() -> None:
    found = {name for name, tree in modules(DEVICE) if seeded_draws(tree)}
    assert found == set(SIMULATION_AND_DRAWS)


def test_python_random_is_used_only_for_the_page_and_pauses() -> None:
    found = {name for name, tree in modules(DEVICE) if "random" in {one.split(".")[0] for one in imported(tree)}}
    assert found == set(CHANCE_FOR_PAGE_AND_PAUSES)


def test_searches_of_imports_find_their_examples() -> None:
    for cheat in (
        "import httpx",
        "from urllib.request import urlopen",
        "import urllib.request as u",
        "from http import client",
        "import socket",
        "import asyncio",
        "def f():\n    import http.client",
    ):
        assert opens_network(ast.parse(cheat)), cheat
    for cheat in ("x = np.random.default_rng(1)", "from numpy.random import default_rng", "np.random.normal()"):
        assert seeded_draws(ast.parse(cheat)), cheat
    assert not opens_network(ast.parse("from urllib.parse import quote\nfrom http.cookiejar import CookieJar"))
    assert not seeded_draws(ast.parse("def f(rng: np.random.Generator) -> None: ..."))


OURS = {"protocol", "device_app", "backend", "models", "exporters", "experiments", "newsroom"}
EXTERNAL: dict[str, str] = {
    "protocol": "cryptography numpy pydantic pydantic_core pydantic_settings safetensors",
    "device_app": "cryptography fastapi filelock httpx jinja2 numpy onnxruntime platformdirs prometheus_client "
    "pydantic pydantic_core pydantic_settings pythonjsonlogger rich safetensors scipy starlette yoyo",
    "models": "numpy scipy torch",
    "exporters": "numpy onnx onnxruntime onnxscript rich sympy torch typer",
    "backend": "PIL alembic anyio babel brotli charset_normalizer cryptography datasketch dateutil dp_accounting faiss "
    "fastapi feedparser filelock "
    "fsspec httpx huggingface_hub jinja2 lxml nh3 numpy onnxruntime platformdirs prometheus_client "
    "pydantic pydantic_settings pythonjsonlogger ray rich safetensors scipy sqlalchemy starlette "
    "tokenizers torch trafilatura transformers typer uvicorn zstandard",
    "newsroom": "",
}
"""All that the modules of a package may import besides the standard library and OURS; what isn't named may not be.
`experiments` and the tests may import everything. Which of OURS may import which, pyproject's contracts say."""


def not_allowed(names: set[str], allowed: str) -> set[str]:
    """Return imported names that are in neither the standard library, nor OURS, nor the list."""
    return {
        name
        for name in names
        if name.split(".")[0] not in sys.stdlib_module_names | OURS
        and not any(name == one or name.startswith(f"{one}.") for one in allowed.split())
    }


def modules_named(tree: ast.Module) -> set[str]:
    """Return modules that a file imports, or imports from, anywhere."""
    named = {
        node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module and not node.level
    }
    return named | {one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names}


@pytest.mark.parametrize("package", EXTERNAL)
def test_package_imports_only_its_allowed_dependencies(package: str) -> None:
    inner = [ROOT / other.replace(".", "/") for other in EXTERNAL if other.startswith(f"{package}.")]
    files = [
        file
        for file in sorted((ROOT / package.replace(".", "/")).rglob("*.py"))
        if not any(file.is_relative_to(folder) for folder in inner)
    ]
    assert files
    for file in files:
        names = modules_named(ast.parse(file.read_text(encoding="utf-8")))
        assert not_allowed(names, EXTERNAL[package]) == set(), file.relative_to(ROOT)


def test_allow_lists_admit_only_what_they_name() -> None:
    cheat = ast.parse(
        "import torch.nn\nfrom numpyro import x\nimport backend.app\ndef f():\n    from requests import y"
    )
    assert not_allowed(modules_named(cheat), "numpy") == {"torch.nn", "numpyro", "requests"}
    assert not_allowed({"json", "numpy.typing", "device_app.store.news"}, "numpy") == set()


LIGHT = (
    "torch",
    "transformers",
    "onnx",
    "onnxscript",
    "faiss",
    "sqlalchemy",
    "alembic",
    "backend",
    "models",
    "exporters",
)
SERVER_LIGHT = ("torch", "transformers", "onnx", "onnxscript", "models", "exporters", "experiments")


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("device_app.app", (*LIGHT, "scipy")),
        ("device_app.fleet.run", LIGHT),
        ("protocol.releases", (*LIGHT, "onnxruntime", "scipy", "fastapi", "httpx")),
        ("backend.app", (*SERVER_LIGHT, "scipy")),
        ("experiments.simulation.clients", ("torch", "onnx", "transformers", "scipy")),
        ("ownfeed", (*(name for name in LIGHT if name != "backend"), "numpy", "fastapi", "onnxruntime")),
    ],
)
def test_importing_a_package_does_not_load_heavy_libraries(module: str, absent: tuple[str, ...]) -> None:
    code = f"import json, sys\nimport {module}\nprint(json.dumps([n for n in {absent!r} if n in sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []
