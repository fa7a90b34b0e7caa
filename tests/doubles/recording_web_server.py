"""A web server on a loopback address that records its requests."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FEED = b"<rss version='2.0'><channel><title>t</title></channel></rss>"


class RecordingWebServer:
    """Records its requests and answers as configured: with a body, or with a redirect."""

    def __init__(self, host: str, tls: ssl.SSLContext | None = None) -> None:
        self.asked: list[tuple[str, str]] = []
        self.answer: Callable[[str], bytes | str] = lambda _: FEED
        outer = self

        class AnyPageHandler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"  # connections are kept

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
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self._server.server_address[1]
        self.url = f"{'http' if tls is None else 'https'}://{host}:{self.port}/"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
