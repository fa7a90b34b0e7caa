"""What leaves the browser's device is sealed by its privacy/ alone: the constructor is private, and nobody else closes.

The type checker holds the first half, a search of the sources the second.
"""

from __future__ import annotations

import re
from pathlib import Path

DEVICE = Path(__file__).parents[2] / "web" / "device"
CLOSING = re.compile(r"\bSealed\s*(?:\.|\?\.|\[)\s*[\"']?close|\bclose(?:Json)?\s*[,}].*=\s*Sealed|Reflect\.construct")


def closing(sources: dict[str, str]) -> set[str]:
    """Folders of files that close an envelope."""
    return {name.split("/")[0] for name, text in sources.items() if CLOSING.search(text)}


def test_only_privacy_seals_what_leaves_the_browsers_device() -> None:
    sources = {str(path.relative_to(DEVICE)): path.read_text("utf-8") for path in sorted(DEVICE.rglob("*.ts"))}
    assert closing(sources) == {"privacy"}
    assert "private constructor(" in sources["privacy/sealed.ts"]
    assert re.search(r"if \(!\(sealed instanceof Sealed\)\) throw", sources["uplink/http.ts"])


def test_the_search_finds_who_seals_elsewhere() -> None:
    for text in ('Sealed.close(a, b, "", c, "")', "Sealed\n  .closeJson(form)", 'Sealed["close"](a)'):
        assert closing({"feed/build.ts": text}) == {"feed"}
    assert not closing({"feed/build.ts": 'import type { Sealed } from "../privacy/sealed"; statement.close()'})
