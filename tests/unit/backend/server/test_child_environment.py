"""What processes that read strangers' bytes inherit, and what they can return.

Oracle: a script in place of theirs, which reports on itself.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backend.news.pictures import converter
from backend.news.sources import feed_parser
from backend.server.child_processes import NAMES


def test_decoder_and_parser_get_none_of_the_servers_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "says.py"
    script.write_text(
        "import json, os, sys\nsys.stdin.buffer.read()\nprint(json.dumps({'refused': ' '.join(os.environ)}))\n",
        encoding="utf-8",
    )
    parser = tmp_path / "parser.py"
    read = "found = _read(sys.stdin.buffer.read(), content_type, base, *helpers)"
    program = Path(feed_parser.__file__).read_text(encoding="utf-8")
    assert read in program
    parser.write_text(program.replace(read, "raise FeedUnreadable(' '.join(os.environ))"), encoding="utf-8")
    monkeypatch.setenv("PGPASSWORD", "secret")
    monkeypatch.setattr(converter, "__file__", str(script))
    monkeypatch.setattr(feed_parser, "__file__", str(parser))
    reported = json.loads(converter.convert(b"a", 480, 300))["refused"].split()
    with pytest.raises(feed_parser.FeedUnreadable) as said:
        feed_parser.parse(b"a")
    for names in (reported, str(said.value).split()):
        assert "PATH" in names
        own = {
            "LC_CTYPE",
            "ORT_DISABLE_TELEMETRY",
        }  # set by Python itself, where there is no locale, and by the package
        assert {*names} <= {*NAMES, *own}


def test_compromised_decoder_cannot_fill_the_servers_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "floods.py"
    script.write_text(
        f"import sys\nfor _ in range(40):\n    sys.stdout.buffer.write(bytes({converter.ANSWER_LIMIT_BYTES}))\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(converter, "__file__", str(script))
    with pytest.raises(converter.PictureRefused, match=f"more than {converter.ANSWER_LIMIT_BYTES:,} bytes"):
        converter.convert(b"a", 480, 300)
