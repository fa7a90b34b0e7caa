"""The browser's device checks the signed list of builds. Oracle: lists that the backend itself has signed.

The attacker has captured the server but not the release key, and wants a build of its own to be on the list.
"""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import cast

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from backend.browser_device.builds import BuildHistory, SignedBuilds
from backend.db.engine import open_engine
from backend.releases.signing import public_half
from backend.releases.store import ReleaseStore
from backend.storage.object_store import LocalFolder
from tests.conformance.node_end import ask_node

MINE, OTHER = "1" * 64, "2" * 64


class ReleasesStub:
    """The part of the releases that the list of builds uses: a key, and whether there is one."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key

    def require_current(self) -> None:
        return None

    def signing_key(self) -> Ed25519PrivateKey:
        return self._key


def signed_list(folder: Path, key: Ed25519PrivateKey, *builds: str) -> SignedBuilds:
    folder.mkdir()
    engine = open_engine(f"sqlite:///{folder / 'builds.sqlite'}")
    history = BuildHistory(engine, LocalFolder(folder), cast(ReleaseStore, ReleasesStub(key)))
    for build in builds:
        history.note(build)
    return history.signed()


def test_only_a_list_signed_by_the_trusted_key_confirms_a_build(tmp_path: Path) -> None:
    key, another = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    good = signed_list(tmp_path / "good", key, OTHER, MINE)
    without = signed_list(tmp_path / "without", key, OTHER)
    foreign = signed_list(tmp_path / "foreign", another, MINE)
    undomained = b64encode(key.sign(good["builds"].encode())).decode()
    answers: dict[str, tuple[object, str]] = {
        "the publisher's": (good, "listed"),
        "without the build": (without, "unlisted"),
        "with the build put in": (without | {"builds": without["builds"].replace(OTHER, MINE)}, "forged"),
        "under another key": (foreign, "forged"),
        "another key's under this one's name": (foreign | {"public_key": good["public_key"]}, "forged"),
        "signed without its domain": (good | {"signature": undomained}, "forged"),
        "without a signature": ({"builds": good["builds"], "public_key": good["public_key"]}, "forged"),
        "no list": ("nothing", "forged"),
    }
    asked = {
        "build": MINE,
        "key": public_half(key).hex(),
        "answers": [json.dumps(each) for each, _ in answers.values()],
    }
    (found,) = ask_node([("builds_verdicts", asked)])
    assert dict(zip(answers, found, strict=True)) == {name: verdict for name, (_, verdict) in answers.items()}
