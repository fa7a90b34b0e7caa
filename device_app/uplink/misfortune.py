"""A network, and a device behind it, that fail on purpose: for fleets and tests."""

from __future__ import annotations

import re
import threading
import time
from typing import Literal

import httpx

from device_app.uplink.pools import SeparatePools

ROUND_MESSAGE = re.compile(rb"^/v1/rounds/[^/]+/[^/]+/")

Fault = Literal["dropout", "straggler", "crash", "liar"]


class Crashed(BaseException):
    """The device died here. Not an Exception: no handler of the device may see it, as none sees a kill."""


class Misfortune(httpx.BaseTransport):
    """Passes requests on, but for what befalls the one message of a round that it was told of.

    Looking whether a round is under way, feeds and releases go on as ever.
    """

    def __init__(self, network: httpx.BaseTransport | None = None, *, straggle_sec: float = 3.0) -> None:
        self._network, self._straggle_sec = network or SeparatePools(encrypted=True), straggle_sec
        self._lock = threading.Lock()
        self._fault: Fault | None = None
        self._left = 0
        self.struck = False

    def expect(self, fault: Fault | None, message: int = 0) -> None:
        """Before a round: which fault strikes at which of its messages, counted from 0; None: none."""
        with self._lock:
            self._fault, self._left, self.struck = fault, message, False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Raises httpx.ConnectError for one that dropped out, and Crashed."""
        if self._fault is None or not ROUND_MESSAGE.match(request.url.raw_path):
            return self._network.handle_request(request)
        with self._lock:
            sends = request.method == "PUT"
            strikes = sends and self._left == 0 and not self.struck
            self._left -= sends and self._left > 0
            self.struck = self.struck or strikes
            out = self.struck and self._fault == "dropout"
        if out:
            raise httpx.ConnectError("out of reach", request=request)
        if not strikes:
            return self._network.handle_request(request)
        if self._fault == "straggler":
            time.sleep(self._straggle_sec)
        if self._fault == "liar":
            return self._network.handle_request(_forged(request))
        response = self._network.handle_request(request)
        if self._fault == "crash":
            response.read()
            response.close()
            raise Crashed
        return response

    def close(self) -> None:
        """Close the network."""
        self._network.close()


def _forged(request: httpx.Request) -> httpx.Request:
    """Every byte flipped: no message in JSON or safetensors survives it, and a masked vector is another one."""
    forged = bytes(255 - byte for byte in request.read())
    return httpx.Request(
        request.method, request.url, headers=request.headers, content=forged, extensions=request.extensions
    )
