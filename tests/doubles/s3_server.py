"""An S3 server on the loopback (moto's, in its own process), with a bucket."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from tests.doubles.small_world import START_WITHIN_SEC, free_port

SERVER = """
import sys
import time
from itertools import count
from werkzeug.serving import run_simple
from moto.server import DomainDispatcherApplication, create_backend_app
application, asked, refusals = DomainDispatcherApplication(create_backend_app), count(1), int(sys.argv[2])
late_sec = float(sys.argv[3])

def sometimes(environ, start_response):
    time.sleep(late_sec)
    # Every so many-th request is told to come again, as S3 does under load.
    if refusals and next(asked) % refusals == 0 and environ["PATH_INFO"] != "/moto-api/":
        start_response("503 Slow Down", [("Content-Type", "application/xml"), ("Content-Length", "0")])
        return [b""]
    return application(environ, start_response)

run_simple("127.0.0.1", int(sys.argv[1]), sometimes, threaded=True)
"""


@dataclass(frozen=True)
class S3Server:
    """Where it listens; `environment`: what a process needs to use it; `url`: an existing bucket."""

    endpoint: str
    url: str = "s3://ownfeed"

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables of this server only: none of the machine's own settings are read."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }


@contextmanager
def s3_server(refuses_every: int = 0, late_sec: float = 0.0) -> Iterator[S3Server]:
    """A server while the block runs.

    refuses_every: one in this many requests is answered 503; 0: none. late_sec: delay of each answer.
    """
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", SERVER, str(port), str(refuses_every), str(late_sec)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    server = S3Server(f"http://127.0.0.1:{port}")
    try:
        until = time.monotonic() + START_WITHIN_SEC
        with httpx.Client(timeout=5.0) as client:
            while True:
                assert process.poll() is None, "the S3 server ended while starting"
                assert time.monotonic() < until, "the S3 server did not start in time"
                try:
                    if client.put(f"{server.endpoint}/ownfeed").is_success:
                        break
                except httpx.TransportError:
                    time.sleep(0.05)
        yield server
    finally:
        process.kill()
        process.wait()
