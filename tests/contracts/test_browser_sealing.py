"""Whatever leaves the browser's device is sealed by its privacy/ and sent by its uplink/, and by nothing else.

The type checker ensures that the constructor is private; a search of the sources ensures that no other file seals or
sends.
"""

from __future__ import annotations

import re
from pathlib import Path

DEVICE = Path(__file__).parents[2] / "web" / "device"
CLOSING = re.compile(r"\bSealed\s*(?:\.|\?\.|\[)\s*[\"']?close|\bclose(?:Json)?\s*[,}].*=\s*Sealed|Reflect\.construct")
ASKING = re.compile(
    r"(?<![\w.])(?:self\.|window\.|globalThis\.)?fetch\(|\b(?:XMLHttpRequest|WebSocket|WebTransport|EventSource|RTCPeerConnection|sendBeacon"
    r"|importScripts)\b|\bnew Image\b"
)
COMMENT = re.compile(r"^\s*(?://|\*|/\*).*$", re.MULTILINE)


def asking(sources: dict[str, str]) -> set[str]:
    """Return files that use the network, apart from comments and declared methods of that name."""
    return {
        name for name, text in sources.items() if ASKING.search(COMMENT.sub("", re.sub(r"async fetch\(", "", text)))
    }


def closing(sources: dict[str, str]) -> set[str]:
    """Return folders of files that seal an envelope."""
    return {name.split("/")[0] for name, text in sources.items() if CLOSING.search(text)}


def test_only_the_privacy_folder_of_the_browser_device_seals_messages() -> None:
    sources = {str(path.relative_to(DEVICE)): path.read_text("utf-8") for path in sorted(DEVICE.rglob("*.ts"))}
    assert closing(sources) == {"privacy"}
    assert "private constructor(" in sources["privacy/sealed.ts"]
    assert re.search(r"if \(!\(sealed instanceof Sealed\)\) throw", sources["uplink/http.ts"])


def test_search_for_sealing_calls_finds_them_however_they_are_written() -> None:
    for text in ('Sealed.close(a, b, "", c, "")', "Sealed\n  .closeJson(form)", 'Sealed["close"](a)'):
        assert closing({"feed/build.ts": text}) == {"feed"}
    assert not closing({"feed/build.ts": 'import type { Sealed } from "../privacy/sealed"; statement.close()'})


def test_only_the_uplink_and_service_worker_use_the_network() -> None:
    """transport.ts sends what the request log holds; the others fetch files and hashes that are the same for all."""
    sources = {str(path.relative_to(DEVICE)): path.read_text("utf-8") for path in sorted(DEVICE.rglob("*.ts"))}
    assert asking(sources) == {"uplink/transport.ts", "service_worker.ts"}
    assert re.findall(r"fetch\(([\w. +]+)", COMMENT.sub("", sources["service_worker.ts"])) == [
        "FILES + name",
        "scope.location.href",
        "OFFERED",
    ]


def test_search_for_network_calls_finds_them_in_other_folders() -> None:
    for text in (
        "await fetch(address)",
        "self.fetch(a)",
        "navigator.sendBeacon(a, b)",
        "new WebSocket(a)",
        "(new Image()).src = a",
    ):
        assert asking({"feed/build.ts": text}) == {"feed/build.ts"}
    assert not asking({"sync/blobs.ts": "  // fetch(it)\n  async fetch(ref: BlobRef) {}\n  materials.fetch(ref)"})
