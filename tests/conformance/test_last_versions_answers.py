"""What the last version's backend answered, read by the browser's device. Oracle: the Python wire of this version.

The recording is renewed at a release, as `tests/integration/test_last_version.py` says.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from device_app.wire.releases import SignedManifest
from tests.conformance.node_end import ask_node
from tests.conformance.random_messages import KINDS
from tests.doubles.last_version import LastVersion, message_of

pytestmark = pytest.mark.node


def test_the_browsers_device_reads_them_as_the_other_one_does(tmp_path: Path) -> None:
    last = LastVersion.unpacked(tmp_path)
    texts = []
    for each in (*last.exchanges, *last.of_the_round):
        name = message_of(each.method, each.path, each.status)
        if name is not None:
            texts.append((name, each.answer.decode()))
        if name == "SignedManifest":
            texts.append(("ReleaseManifest", SignedManifest.model_validate_json(each.answer).manifest))
    names = {name for name, _ in texts}
    assert len(names) >= 10
    assert names <= KINDS.keys()
    told = ask_node([("message", each) for each in texts])
    for (name, text), answer in zip(texts, told, strict=True):
        assert answer == {"written": KINDS[name].model_validate_json(text).model_dump_json()}, name
