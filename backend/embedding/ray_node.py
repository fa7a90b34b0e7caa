"""Code that runs on a node of a Ray cluster.

It is imported there by name: a node has the same software as the server.
"""

import hashlib
import platform
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from backend.embedding.batch_executor import BatchTask
from backend.embedding.ray_executor import NODE_THREADS

NODE_ENVIRONMENT = {
    "OMP_NUM_THREADS": str(NODE_THREADS),
    "OPENBLAS_NUM_THREADS": str(NODE_THREADS),
    "TOKENIZERS_PARALLELISM": "false",
}
SAME_VERSIONS = ("ownfeed", "numpy", "onnxruntime", "torch", "transformers")
"""Packages on which a bit-identical result depends; Ray itself requires the same versions of Ray and Python."""
SAME_SOURCES = ("backend/embedding", "backend/federation/split", "models")
"""Sources of the tasks, compared by hash: one version can have many working states."""
KERNEL_INSTRUCTIONS = ("sse", "ssse", "avx", "fma", "f16c", "amx", "asimd", "neon", "sve", "bf16", "i8mm", "fphp")
"""Prefixes, as Linux names them, of instructions by which numerical libraries choose their kernels."""
CPU_INFO = Path("/proc/cpuinfo")

RESULT, FAILED, REFUSED = "result", "failed", "refused"
"""Outcomes of a batch: its result; a failure that would occur on any node; or a failure of this node."""

_opened: tuple[str, Callable[[Any], Any]] | None = None
"""On a node: the last task's key and the function that computes its batches."""


class NodeDiffers(RuntimeError):
    """A node differs from the server in something on which a bit-identical result depends."""


def same() -> dict[str, str]:
    """The values on this machine that must be equal on all nodes, by name."""
    found = {name: _version(name) for name in SAME_VERSIONS}
    return (
        found | {"source": sources(Path(__file__).parents[2]), "machine": platform.machine()} | processor(_cpu_info())
    )


def processor(info: str) -> dict[str, str]:
    """The processor's vendor, on which libraries' choices depend too, and its instructions.

    info: Linux's description.
    """
    first = info.split("\n\n", 1)[0]
    fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in first.splitlines())}
    instructions = fields.get("flags", fields.get("Features", "")).split()
    return {
        "processor": fields.get("vendor_id", fields.get("CPU implementer", platform.processor())),
        "instructions": " ".join(sorted({each for each in instructions if each.startswith(KERNEL_INSTRUCTIONS)})),
    }


def check_same(expected: Mapping[str, str]) -> None:
    """Compare this node with `expected`, the result of `same` on the server's machine.

    Raises NodeDiffers.
    """
    here = same()
    for name, backend in expected.items():
        if here.get(name) != backend:
            node, other = here.get(name, "").split(), backend.split()
            raise NodeDiffers(
                f"node {platform.node()} differs from the backend in {name}: "
                f"{' '.join(each for each in node if each not in other) or 'none'} there, "
                f"{' '.join(each for each in other if each not in node) or 'none'} here"
            )


def compute(key: str, held: list[Any], expected: dict[str, str], batch: Any) -> tuple[str, Any]:
    """On a node: compute one batch.

    Return RESULT and the result, or FAILED or REFUSED and the reason.

    held: the reference to the task, in a list so that Ray transfers it only on request.
    """
    global _opened
    if _opened is None or _opened[0] != key:
        try:
            check_same(expected)
            import ray

            task: BatchTask[Any, Any] = ray.get(held[0])
            _opened = key, task.open(NODE_THREADS)
        except Exception as unfit:  # a missing model, module or memory: all are this node's failures
            return REFUSED, line(unfit)
    try:
        return RESULT, _opened[1](batch)
    except Exception as failed:
        return FAILED, line(failed)


def line(error: BaseException) -> str:
    """The first line of the error message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"


def sources(root: Path) -> str:
    """A hash of the files of SAME_SOURCES below `root`."""
    digest = hashlib.sha256()
    files = {path.relative_to(root).as_posix(): path for each in SAME_SOURCES for path in (root / each).rglob("*.py")}
    for name in sorted(files):
        digest.update(f"{name} {hashlib.sha256(files[name].read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()[:16]


def _cpu_info() -> str:
    try:
        return CPU_INFO.read_text(encoding="utf-8")
    except OSError:
        return ""  # not Linux: compared by the platform's name alone
