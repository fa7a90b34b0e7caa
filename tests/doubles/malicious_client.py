"""A malicious client: its network adds the attacker's vector to the masked vector that the device sends.

Masks are added in the ring, so what is added to a masked vector is added to the opened sum, and nobody can tell who
added it. The device itself is honest: its keys, shares and signatures follow the protocol.
"""

from __future__ import annotations

import re
from hashlib import sha256

import httpx
import numpy as np
from numpy.typing import NDArray

MASKED = re.compile(rb"^/v1/rounds/[^/]+/masked/")


class ForgingTransport(httpx.BaseTransport):
    """added: int64 [length], in steps of the sum's fixed point; None sends the device's own vector."""

    def __init__(self, network: httpx.BaseTransport, added: NDArray[np.int64] | None = None) -> None:
        self.network, self.added = network, added
        self.sent = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self.added is None or request.method != "PUT" or not MASKED.match(request.url.raw_path):
            return self.network.handle_request(request)
        masked = np.frombuffer(request.read(), dtype="<u4")
        assert masked.shape == self.added.shape, f"an addition of {self.added.shape} for a vector of {masked.shape}"
        self.sent += 1
        forged = (masked + (self.added % 2**32).astype("<u4")).astype("<u4").tobytes()
        response = self.network.handle_request(
            httpx.Request(
                request.method, request.url, headers=request.headers, content=forged, extensions=request.extensions
            )
        )
        # The server acknowledges what it received; an attacker's own client wouldn't check.
        answered = response.read().replace(
            sha256(forged).hexdigest().encode(), sha256(masked.tobytes()).hexdigest().encode()
        )
        return httpx.Response(response.status_code, headers={"content-type": "application/json"}, content=answered)
