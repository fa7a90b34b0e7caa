"""The operator's guide's examples for Caddy and nginx, run as they stand there, but for ports, addresses and the
certificate's path, in front of a real backend that is set up for the public. Skips what isn't installed, by name.

Oracle: the backend's limit by address, here of one request a minute, and the bytes that arrived.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from starlette.types import ASGIApp, Receive, Scope, Send

from backend.app import create_app
from backend.composition import build_services
from tests.doubles.recall_world import settings_in
from tests.doubles.small_world import free_port, serving

GUIDE = (Path(__file__).parents[2] / "docs" / "operate.md").read_text(encoding="utf-8")
NAME = "news.example.org"
START_WITHIN_SEC = 120.0
UPLOAD = bytes(range(256)) * 16_384
"""4 MiB, beyond what nginx takes by itself."""
READER, OTHER, THIRD = "127.0.0.5", "127.0.0.6", "127.0.0.7"


class Arrived:
    """The backend, and a path that tells what has arrived behind the proxy."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != "/arrived":
            await self.app(scope, receive, send)
            return
        size, more = 0, True
        while more:
            message = await receive()
            size, more = size + len(message.get("body", b"")), message.get("more_body", False)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        told = json.dumps({"size": size, "headers": headers}).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": told})


@contextmanager
def public_backend(folder: Path) -> Iterator[int]:
    """A backend behind proxies of this machine; its port."""
    settings = settings_in(
        folder,
        public_origin=f"https://{NAME}",
        console_port=free_port(),
        trusted_proxies=("127.0.0.1/32",),
        requests_per_minute=1,
    )
    services = build_services(settings)
    try:
        with serving(Arrived(create_app(services=services))) as url:
            yield int(url.rpartition(":")[2])
    finally:
        services.close()


def example(first: str) -> str:
    """The code block of the guide that begins so."""
    found = [each for each in re.findall(r"(?ms)^```\w*\n(.*?)^```$", GUIDE) if each.startswith(first)]
    assert len(found) >= 1, f"the guide has no example that begins with {first!r}"
    return str(found[0])


def caddy(folder: Path, site: str, port: int) -> list[str]:
    """Caddy with a certificate of its own authority in the place of one that is fetched."""
    options = f"{{\n local_certs\n skip_install_trust\n admin off\n http_port {free_port()}\n https_port {port}\n}}\n"
    (folder / "Caddyfile").write_text(options + site, encoding="utf-8")
    return ["caddy", "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]


def nginx(folder: Path, site: str, port: int) -> list[str]:
    """nginx with its files in a folder, and a certificate that nobody signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    name, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)]), datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    (folder / f"{NAME}.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / f"{NAME}.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    site = site.replace("/etc/ssl/private/", f"{folder}/").replace("/etc/ssl/", f"{folder}/")
    site = site.replace("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "\n".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    made = f"error_log {folder}/error.log;\npid {folder}/pid;\nevents {{}}\nhttp {{\n{paths}\n{site}}}\n"
    (folder / "nginx.conf").write_text(made, encoding="utf-8")
    return ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf"), "-g", "daemon off; user root;"]


def nginx_of_several() -> str:
    """The guide's nginx with the changes that it names for several machines."""
    one = example("server {").replace(
        "proxy_pass http://127.0.0.1:8400;", 'proxy_pass http://ownfeed;\n        proxy_set_header Connection "";'
    )
    return example("upstream ownfeed {") + one


Configure = Callable[[Path, str, int], list[str]]
SITES: dict[str, tuple[Configure, str, str]] = {
    "caddy": (caddy, example(f"{NAME} {{\n    reverse_proxy 127.0.0.1:8400\n"), "127.0.0.1:8400"),
    "nginx": (nginx, example("server {"), "127.0.0.1:8400"),
    "several caddy": (caddy, example(f"{NAME} {{\n    reverse_proxy 10.0.0.11"), "10.0.0.11:8400 10.0.0.12:8400"),
    "several nginx": (nginx, nginx_of_several(), "10.0.0.11:8400 10.0.0.12:8400"),
}


@contextmanager
def in_front(folder: Path, proxy: str, ports: list[int]) -> Iterator[int]:
    """The proxy of the guide before backends at these ports, once it answers; its port."""
    configure, site, upstreams = SITES[proxy]
    program = proxy.split()[-1]
    if shutil.which(program) is None:
        pytest.skip(f"{program} isn't installed: apt-get install {program}, to run the guide's example")
    for upstream, at in zip(upstreams.split(), ports, strict=True):
        assert upstream in site, f"{proxy}: the guide's example has no {upstream}"
        site = site.replace(upstream, f"127.0.0.1:{at}")
    folder.mkdir()
    port = free_port()
    command = configure(folder, site, port)
    home = {
        "HOME": str(folder),
        "XDG_DATA_HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
        "PATH": os.environ["PATH"],
    }
    log = (folder / "log").open("wb")
    process = subprocess.Popen(command, env=home, stdout=log, stderr=log)
    try:
        until = time.monotonic() + START_WITHIN_SEC
        while True:
            assert process.poll() is None, (folder / "log").read_text(encoding="utf-8")[-2_000:]
            assert time.monotonic() < until, f"{program} did not start in time"
            try:
                if ask(port, "/v1/health", READER).is_success:
                    break
            except httpx.TransportError:
                pass  # it isn't there yet
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait()
        log.close()


@cache
def trusting() -> ssl.SSLContext:
    """Whose certificate it is isn't the question."""
    made = ssl.create_default_context()
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    return made


def ask(
    port: int, path: str, source: str, *, method: str = "GET", body: bytes | None = None, **said: str
) -> httpx.Response:
    """A request by the public name from an address of this machine."""
    transport = httpx.HTTPTransport(local_address=source, verify=trusting())
    headers = {"host": NAME, **{name.replace("_", "-"): value for name, value in said.items()}}
    with httpx.Client(transport=transport, timeout=60.0) as client:
        return client.request(
            method,
            f"https://127.0.0.1:{port}{path}",
            content=body,
            headers=headers,
            extensions={"sni_hostname": NAME},
        )


@pytest.mark.parametrize("proxy", ["caddy", "nginx"])
def test_the_guides_proxy_passes_on_who_asks_the_name_and_whole_uploads(tmp_path: Path, proxy: str) -> None:
    with public_backend(tmp_path / "backend") as at, in_front(tmp_path / "proxy", proxy, [at]) as port:
        told = ask(port, "/arrived", READER, method="PUT", body=UPLOAD, x_forwarded_for="198.51.100.7").json()
        assert told["size"] == len(UPLOAD)
        assert told["headers"]["host"] == NAME
        assert told["headers"]["x-forwarded-for"].split(",")[-1].strip() == READER
        first, second = (ask(port, "/v1/keys", READER, x_forwarded_for=f"198.51.100.{number}") for number in range(2))
        assert first.headers["strict-transport-security"]
        # 503: it has no release
        assert [each.status_code for each in (first, second)] == [503, 429], "nobody chooses an address"
        assert ask(port, "/v1/keys", OTHER).status_code == 503, "another reader is another address"
        assert ask(port, "/console", THIRD).status_code == 404, "the operator's pages are on another port"


@pytest.mark.parametrize("proxy", ["several caddy", "several nginx"])
def test_the_guides_proxy_of_several_machines_answers_when_one_is_gone(tmp_path: Path, proxy: str) -> None:
    with ExitStack() as stack:
        first, dying = ExitStack(), ExitStack()
        stack.enter_context(first)
        stack.enter_context(dying)
        ports = [
            first.enter_context(public_backend(tmp_path / "one")),
            dying.enter_context(public_backend(tmp_path / "other")),
        ]
        port = stack.enter_context(in_front(tmp_path / "proxy", proxy, ports))
        assert {ask(port, "/v1/health", READER).status_code for _ in range(8)} == {200}
        dying.close()
        assert {ask(port, "/v1/health", READER).status_code for _ in range(8)} == {200}
