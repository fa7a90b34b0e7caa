"""Both devices pull publishers' pictures alike while the reader switches and erases, and the backend fails or lies.

Oracles: what each pull may request and leave, by hand; the other kind of device, which must do the same.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest

from device_app.composition import build_device
from device_app.settings import DeviceSettings
from protocol.pictures import Pictured, PictureList, PictureShard, pack_pictures
from protocol.releases import BlobRef
from tests.conformance.node_end import ask_node
from tests.doubles.moved_reader import NOW
from tests.doubles.picture_files import bare_picture

pytestmark = pytest.mark.node

Actions = dict[int, tuple[str, ...]]
BLOBS: dict[str, bytes] = {}
COUNT = 2


def shard(name: str) -> PictureShard:
    """Return two pictures under that name."""
    blob = pack_pictures([Pictured(f"{name}:{at // 2}", at % 2, bare_picture(bytes(2 * at))) for at in range(COUNT)])
    digest = sha256(blob).hexdigest()
    BLOBS[digest] = blob
    return PictureShard(count=COUNT, pictures=BlobRef(sha256=digest, size_bytes=len(blob)))


def names_of(digests: Any) -> str:
    """Return shards by the letters of their names, in order."""
    known = {shard(letter).pictures.sha256: letter for letter in "abcdefghij"}
    return "".join(known[digest] for digest in digests)


def in_python(folder: Path, looks: list[tuple[str, Actions]]) -> list[dict[str, Any]]:
    now: dict[str, Any] = {}

    def answer(request: httpx.Request) -> httpx.Response:
        actions = now["actions"].get(len(now["asked"]), ())
        now["asked"].append(request.url.path)
        for action in actions:
            if action in ("off", "on"):
                device.parts.stores.pictures.show(action == "on")
            if action == "erase":
                device.privacy.erase()
        if "dead" in actions:
            raise httpx.ReadTimeout("no answer in time", request=request)
        body = now["listing"] if request.url.path == "/v1/pictures" else BLOBS[request.url.path.rsplit("/", 1)[-1]]
        if "lie" in actions:
            body = bytes([body[0] ^ 1]) + body[1:]
        return httpx.Response(404 if "gone" in actions else 200, content=body)

    settings = DeviceSettings(data_dir=folder, backend_url="http://127.0.0.1:9")
    device = build_device(settings, transport=httpx.MockTransport(answer), clock=lambda: NOW)
    found: list[dict[str, Any]] = []
    for letters, actions in looks:
        now.update(asked=[], actions=actions, listing=listing_of(letters))
        device.parts.syncing.take_pictures()
        stores, status = device.parts.stores, device.status()
        rows = stores.database.rows("SELECT shard, count(*) FROM picture GROUP BY shard")
        used = stores.pictures.current()
        found.append(
            {
                "asked": now["asked"],
                "kept": dict(rows),
                "used": None if used is None else list(used.shards),
                "shown": stores.pictures.shown(),
                "online": status.online,
                "alerts": len(status.alerts),
            }
        )
    device.close()
    return found


def in_browser(looks: list[tuple[str, Actions]]) -> Any:
    given = [{"listing": listing_of(letters).decode(), "actions": actions} for letters, actions in looks]
    blobs = {digest: blob.hex() for digest, blob in BLOBS.items()}
    (found,) = ask_node([("pictures_pulled", {"now": NOW.timestamp() * 1_000, "looks": given, "blobs": blobs})])
    return found


def listing_of(letters: str) -> bytes:
    return PictureList(shards=tuple(map(shard, letters))).model_dump_json().encode()


NOTHING: Actions = {}
CASES: dict[str, tuple[list[tuple[str, Actions]], list[tuple[str, str, str | None]]]] = {
    "all goes well": (
        [("abc", NOTHING), ("abd", NOTHING)],
        [("abc", "abc", "abc"), ("d", "abd", "abd")],
    ),
    "switched off while the second of three is on its way": (
        [("abc", {2: ("off",)}), ("abc", NOTHING), ("abc", NOTHING)],
        [("ab", "", None), ("-", "", None), ("-", "", None)],
    ),
    "switched off while the list is on its way": (
        [("abc", {0: ("off",)}), ("abc", NOTHING)],
        [("", "", None), ("-", "", None)],
    ),
    "switched off while the last is on its way": (
        [("abc", {3: ("off",)}), ("abc", NOTHING)],
        [("abc", "", None), ("-", "", None)],
    ),
    "off and on again within a pull": (
        [("abc", {2: ("off", "on")}), ("abc", NOTHING)],
        [("abc", "bc", None), ("a", "abc", "abc")],
    ),
    "erased within a pull": (
        [("abc", {2: ("erase",)}), ("abc", NOTHING)],
        [("abc", "bc", None), ("a", "abc", "abc")],
    ),
    "switched off, then erased": (
        [("ab", {0: ("off", "erase")}), ("ab", NOTHING)],
        [("", "", None), ("-", "", None)],
    ),
    "lists whose last shard never comes": (
        [("a", NOTHING), ("bcd", {3: ("gone",)}), ("efg", {3: ("gone",)}), ("hij", {3: ("gone",)})],
        [("a", "a", "a"), ("bcd", "abc", "a"), ("efg", "aef", "a"), ("hij", "ahi", "a")],
    ),
    "a shard that doesn't come in time": (
        [("abc", {3: ("dead",)}), ("abc", NOTHING)],
        [("abc", "ab", None), ("c", "abc", "abc")],
    ),
    "a shard of other bytes": (
        [("abc", {2: ("lie",)}), ("abc", NOTHING)],
        [("ab", "a", None), ("bc", "abc", "abc")],
    ),
    "a list of other bytes": ([("abc", {0: ("lie",)})], [("", "", None)]),
}
"""By case: looks, each of a list of shards and what happens at its requests; after each, what it asked for ("-": not
even the list), what is kept, and what is in use."""


@pytest.mark.parametrize("case", CASES)
def test_both_devices_keep_the_same_pictures_after_a_pull(case: str, tmp_path: Path) -> None:
    looks, expected = CASES[case]
    found = in_python(tmp_path, looks)
    assert in_browser(looks) == found
    assert [
        (
            names_of(path.rsplit("/", 1)[-1] for path in one["asked"][1:]) if one["asked"] else "-",
            "".join(sorted(names_of(one["kept"]))),
            None if one["used"] is None else names_of(one["used"]),
        )
        for one in found
    ] == expected
    assert all(count == COUNT for one in found for count in one["kept"].values())
    assert {(one["online"], one["alerts"]) for one in found} == {(None, 0)}, "of pictures pages say nothing"
