"""Files of a backend's folder that are cut off, empty, another file's, or have a flipped bit.

A start over such a folder must answer as over the intact one, or fail with an error that names the file. SQLite has no
checksum of its pages, so a flipped bit may change a word of a title; only its header gets flipped bits. Any text of
enough characters is a token, and any 32 bytes are the addresses' key, so a flipped bit there, or a token that lost its
end but is long enough, can't be detected.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from backend.composition import ADDRESS_KEY_FILE, METRICS_TOKEN_FILE, Services, build_services
from backend.errors import OwnfeedError
from backend.releases.blobs import blob_refs
from backend.server.public_port import TOKEN_CHARS
from backend.settings import load_settings
from protocol.releases import ReleaseManifest
from tests.qa.faults.kills import KillTally
from tests.qa.faults.processes import started
from tests.qa.faults.servers import prepare

FILES = ("ownfeed.sqlite", "signing.key", "admin.token", "metrics.token", "addresses.key", "chain.jsonl", "blobs/*")
DATABASE, HEAD_BYTES = "ownfeed.sqlite", 100
DAMAGES: Mapping[str, Callable[[bytes, random.Random], bytes]] = {
    "cut off": lambda whole, dice: whole[: dice.randrange(1, max(2, len(whole)))],
    "empty": lambda whole, dice: b"",
    "another file's": lambda whole, dice: b"\x89PNG\r\n\x1a\n" + dice.randbytes(600),
    "a bit flipped": lambda whole, dice: flipped(whole, dice),
}
Answers = dict[str, str]


def flipped(whole: bytes, dice: random.Random) -> bytes:
    """Return the bytes with one bit flipped."""
    content, place = bytearray(whole), dice.randrange(len(whole))
    content[place] ^= 1 << dice.randrange(8)
    return bytes(content)


def damaged_files(folder: Path, *, points: int, seed: int, say: Callable[[str], object] = lambda _: None) -> KillTally:
    """Try this many damages, alternating kinds of files and of damage."""
    tally, whole = KillTally(), folder / "whole"
    started(prepare, whole, {}, watched=whole, notes=folder / "notes").ended()
    expected = answers(whole)
    assert not any(each.startswith("error") for each in expected.values()), expected
    dice = random.Random(seed)
    for number in range(points):
        kind, damage = FILES[number % len(FILES)], list(DAMAGES)[number // len(FILES) % len(DAMAGES)]
        place = folder / str(number)
        shutil.copytree(whole, place)
        path = dice.choice(sorted(place.glob(kind)))
        content = path.read_bytes()
        if kind == DATABASE and damage == "a bit flipped":
            path.write_bytes(flipped(content[:16], dice) + content[16:])
        else:
            path.write_bytes(DAMAGES[damage](content, dice))
        tally.kills[f"{kind} {damage}"] += 1
        found = answers(place)
        if wrong := judged(expected, found, path, damage):
            tally.wrong.append(f"{path.name}, {damage}: {wrong}")
            say(f"wrong: {tally.wrong[-1]}")
        shutil.rmtree(place)
    return tally


def judged(expected: Answers, found: Answers, path: Path, damage: str) -> str:
    """Return what is wrong; '' for nothing."""
    for name, answer in found.items():
        if answer == expected.get(name) or (name == path.name and _is_as_good(path, damage)):
            continue
        if not answer.startswith("error: "):
            return f"{name} is another"
        if path.name not in answer and path.name[:12] not in answer:
            return f"{name}: {answer} names no file"
    return ""


def _is_as_good(path: Path, damage: str) -> bool:
    """Return whether what is left is a valid secret by itself."""
    if path.name == ADDRESS_KEY_FILE:
        return damage == "a bit flipped"
    return damage in ("a bit flipped", "cut off") and len(path.read_bytes().strip()) >= TOKEN_CHARS


def answers(folder: Path) -> Answers:
    """Return the answers of a start over this folder by request: a hash, or 'error: ' and the message."""
    try:
        services = build_services(load_settings(data_dir=folder, counts_every_minutes=0, gate=False))
    except (OwnfeedError, DBAPIError) as refused:
        return {"start": f"error: {refused}"}
    try:
        found = {"start": "served", ADDRESS_KEY_FILE: _hash((folder / ADDRESS_KEY_FILE).read_bytes)}
        for name, token in (("admin.token", services.admin_token), (METRICS_TOKEN_FILE, services.metrics_token)):
            found[name] = _hash(token.encode)
        if found.setdefault("r1", _hash(lambda: _manifest(services).model_dump_json().encode())).startswith("error"):
            return found
        for ref in blob_refs(_manifest(services)):
            found[f"blob {ref.sha256}"] = _hash(partial(services.releases.read_blob, ref.sha256))
        return found
    finally:
        services.close()


def _manifest(services: Services) -> ReleaseManifest:
    return services.releases.manifest("r1")


def _hash(read: Callable[[], bytes]) -> str:
    try:
        return sha256(read()).hexdigest()
    except OwnfeedError as refused:
        return f"error: {refused}"
