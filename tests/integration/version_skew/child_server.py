"""A backend process of the tree it is run under, which notes what it is asked and what it opens.

`python child_server.py SETTINGS HEARD OPENED [BUILD]`: settings as JSON, a file for the requests and their answers, one
for opened counts, and the folder of another build of the browser's device than the tree's own.
"""

from __future__ import annotations

import json
import sys
import threading
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import backend.app
from backend.federation.strategies.counting import Counting
from backend.server import serve_until_stopped
from backend.settings import load_settings
from device_app.wire.popularity import CLICKED, DISPLAYED

TAKEN_OVER_BYTES = 64 * 1024 * 1024


class NotingServer:
    """ASGI around the whole application: each request and its answer, to the byte, as a line of JSON."""

    def __init__(self, app: Any, heard: Path) -> None:
        self._app, self._heard, self._lock = app, heard, threading.Lock()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body, answer, told = bytearray(), bytearray(), {"status": 0, "headers": []}

        async def hearing() -> Any:
            message = await receive()
            body.extend(message.get("body", b""))
            return message

        async def saying(message: Any) -> None:
            if message["type"] == "http.response.start":
                told["status"] = message["status"]
                told["headers"] = [[name.decode(), value.decode()] for name, value in message["headers"]]
            answer.extend(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, hearing, saying)
        finally:
            line = {
                "method": scope["method"],
                "path": scope["path"],
                "query": scope["query_string"].decode(),
                "headers": [[name.decode(), value.decode()] for name, value in scope["headers"]],
                "body": b64encode(body).decode(),
                "status": told["status"],
                "answer_headers": told["headers"],
                "answer": b64encode(answer).decode(),
            }
            with self._lock, self._heard.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")


def note_opened(file: Path) -> None:
    """Have the sums of each private count written down as they are opened."""
    conclude: Callable[..., Any] = Counting.conclude

    def concluded(strategy: Any, system: Any, total: Any, *others: Any) -> Any:
        sums = total.sums()
        numbers = np.concatenate([sums[CLICKED], sums[DISPLAYED]]).tolist()
        with file.open("a", encoding="utf-8") as opened:
            opened.write(json.dumps(numbers) + "\n")
        return conclude(strategy, system, total, *others)

    setattr(Counting, "conclude", concluded)  # noqa: B010 (of the old tree, whose types nobody checks here)


def main(settings_json: str, heard: Path, opened: Path, build: str = "") -> None:
    """Serve until stopped."""
    note_opened(opened)
    if build:
        setattr(backend.app, "built_folder", lambda: Path(build))  # noqa: B010
    settings = load_settings(**json.loads(settings_json))
    serve_until_stopped(NotingServer(backend.app.create_app(settings), heard), settings)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), *sys.argv[4:])
