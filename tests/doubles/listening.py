"""A web server on an address of the loopback, which keeps what it was asked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FEED = b"<rss version='2.0'><channel><title>t</title></channel></rss>"


class Listening:
    """A web server that keeps what it was asked and answers as told: a body, or an address to go on to."""

    def __init__(self, host: str) -> None:
        self.asked: list[tuple[str, str]] = []
        self.answer: Callable[[str], bytes | str] = lambda _: FEED
        outer = self

        class AnyPageHandler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append((self.headers["Host"], self.path))
                said = outer.answer(self.path)
                self.send_response(302 if isinstance(said, str) else 200)
                if isinstance(said, str):
                    self.send_header("Location", said)
                self.send_header("Content-Length", str(len(said) if isinstance(said, bytes) else 0))
                self.end_headers()
                if isinstance(said, bytes):
                    self.wfile.write(said)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer((host, 0), AnyPageHandler)
        self.port = self._server.server_address[1]
        self.url = f"http://{host}:{self.port}/"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
