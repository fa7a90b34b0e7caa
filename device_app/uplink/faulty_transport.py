"""A transport that simulates faults of the network and of the device, for fleets and tests."""

import re
import threading
import time
from hashlib import sha256
from typing import Literal

import httpx
import numpy as np

from device_app.uplink.http import SeparatePools

ROUND_MESSAGE = re.compile(rb"^/v1/rounds/[^/]+/[^/]+/")
MASKED_VECTOR = re.compile(rb"^/v1/rounds/[^/]+/masked/")

Fault = Literal["dropout", "straggler", "crash", "malicious"]

LARGE_OFFSET = 2**29
"""Steps: an eighth of a 32-bit ring, more than any sum or its noise reaches."""


class Crashed(BaseException):
    """A simulated crash of the device.

    It is not an Exception, so that no handler of the device catches it, as in a real crash.
    """


class FaultyTransport(httpx.BaseTransport):
    """Passes requests on, except that a chosen fault occurs at one message of a round.

    Polls for rounds, feeds and releases are unaffected.
    """

    def __init__(self, network: httpx.BaseTransport | None = None, *, straggle_sec: float = 3.0) -> None:
        self._network, self._straggle_sec = network or SeparatePools(encrypted=True), straggle_sec
        self._lock = threading.Lock()
        self._fault: Fault | None = None
        self._left = 0
        self._offset_steps = LARGE_OFFSET
        self.struck = False

    def expect(self, fault: Fault | None, message: int = 0, offset_steps: int = LARGE_OFFSET) -> None:
        """Set, before a round, which fault occurs at which of its messages, counted from 0.

        None: no fault. offset_steps: what a malicious client adds to every number of a masked vector, in steps of its
        fixed point.
        """
        with self._lock:
            self._fault, self._left, self.struck, self._offset_steps = fault, message, False, offset_steps

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Raise httpx.ConnectError for a dropout, and Crashed."""
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
        if self._fault == "malicious":
            return self._tamper(request)
        response = self._network.handle_request(request)
        if self._fault == "crash":
            response.read()
            response.close()
            raise Crashed
        return response

    def _tamper(self, request: httpx.Request) -> httpx.Response:
        if not MASKED_VECTOR.match(request.url.raw_path):
            return self._network.handle_request(_changed(request, bytes(255 - byte for byte in request.read())))
        honest = request.read()
        poisoned = _poisoned(honest, self._offset_steps)
        response = self._network.handle_request(_changed(request, poisoned))
        # A malicious client would not mind that the receipt is for other bytes than the device made.
        answer = response.read().replace(sha256(poisoned).hexdigest().encode(), sha256(honest).hexdigest().encode())
        return httpx.Response(
            response.status_code, headers={"content-type": response.headers.get("content-type", "")}, content=answer
        )

    def close(self) -> None:
        self._network.close()


def _changed(request: httpx.Request, content: bytes) -> httpx.Request:
    """Return the same request with other bytes.

    With every byte flipped, no JSON or safetensors message remains valid.
    """
    return httpx.Request(
        request.method, request.url, headers=request.headers, content=content, extensions=request.extensions
    )


def _poisoned(masked: bytes, steps: int) -> bytes:
    """Return a masked vector with `steps` added to each element but the last.

    Elements are 32 bits; the last one counts samples. Masks are added in the ring, so the addition is also in the
    opened sum.
    """
    vector = np.frombuffer(masked, dtype="<u4").copy()
    vector[:-1] += np.uint32(steps % 2**32)
    return vector.tobytes()
