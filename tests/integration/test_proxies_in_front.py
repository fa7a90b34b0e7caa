"""Runs docs/deploy/nginx.conf and Caddyfile in front of a real backend.

They run as shipped except for ports, paths and shorter times; tests of a proxy that isn't installed are skipped and say
so. The first tests check what a proxy forwards (oracles: the backend's limit by address, here one request a minute, and
the bytes that arrived). The others run the threat model's attacks on connections, without TLS (oracle: clients from
another address are served).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from backend.app import create_app
from backend.composition import build_services
from tests.doubles.certificates import certificate_of
from tests.doubles.long_form import by_length
from tests.doubles.recall_world import settings_in
from tests.doubles.served_backend import Served, serve_backend, wait_until
from tests.doubles.slow_clients import (
    PATIENCE_SEC,
    answer_of,
    begin_request,
    connected,
    is_at_an_end,
    is_closed_by_the_server,
    poured,
)
from tests.doubles.small_world import free_port, serve_app

DEPLOY = Path(__file__).parents[2] / "docs" / "deploy"
NAME = "news.example.org"
START_WITHIN_SEC = 120.0
UPLOAD = bytes(range(256)) * 16_384
"""4 MiB, beyond what nginx takes by itself."""
READER, OTHER, THIRD = "127.0.0.5", "127.0.0.6", "127.0.0.7"


class Arrived:
    """The backend, and an upload path that answers with what arrived behind the proxy."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != "/v1/rounds/arrived":
            await self.app(scope, receive, send)
            return
        size, more = 0, True
        while more:
            message = await receive()
            size, more = size + len(message.get("body", b"")), message.get("more_body", False)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        reported = json.dumps({"size": size, "headers": headers}).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": reported})


@contextmanager
def public_backend(folder: Path) -> Iterator[int]:
    """Run a backend behind proxies of this machine; yield its port."""
    settings = settings_in(
        folder,
        public_origin=f"https://{NAME}",
        console_port=free_port(),
        trusted_proxies=("127.0.0.1/32",),
        requests_per_minute=1,
    )
    services = build_services(settings)
    try:
        with serve_app(Arrived(create_app(services=services))) as url:
            yield int(url.rpartition(":")[2])
    finally:
        services.close()


def site(program: str, ports: list[int]) -> str:
    """Return the shipped configuration for backends at these ports."""
    shipped = (DEPLOY / {"nginx": "nginx.conf", "caddy": "Caddyfile"}[program]).read_text(encoding="utf-8")
    if program == "caddy":
        return replaced(shipped, "127.0.0.1:8400", " ".join(f"127.0.0.1:{port}" for port in ports))
    (line,) = re.findall(r"(?m)^ +server 127\.0\.0\.1:8400 .*\n", shipped)
    return replaced(shipped, line, "".join(line.replace("8400", str(port)) for port in ports))


def replaced(text: str, old: str, new: str) -> str:
    """Return the configuration with a part replaced. Fails if it has no such part."""
    assert old in text, f"the shipped configuration has no {old!r}"
    return text.replace(old, new)


def caddy(folder: Path, site: str, port: int) -> list[str]:
    """Return the command for Caddy with a certificate of its own authority instead of a fetched one."""
    plain, tls = (port, free_port()) if f"http://:{port}" in site else (free_port(), port)
    options = f"admin off\nhttp_port {plain}\nhttps_port {tls}\nlocal_certs\nskip_install_trust\n"
    (folder / "Caddyfile").write_text(replaced(site, "\tservers {", f"{options}\tservers {{"), encoding="utf-8")
    return ["caddy", "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]


def nginx(folder: Path, site: str, port: int) -> list[str]:
    """Return the command for nginx with its files in a folder, and a self-signed certificate."""
    certificate_of(NAME, folder)
    site = site.replace("/etc/ssl/private/", f"{folder}/").replace("/etc/ssl/", f"{folder}/")
    site = site.replace("listen 443", f"listen 127.0.0.1:{port}")
    site = replaced(site, "/run/nginx.pid", f"{folder}/pid").replace("/var/log/nginx/", f"{folder}/")
    site = replaced(site, "/var/cache/nginx/ownfeed", f"{folder}/cache")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in kinds)
    (folder / "nginx.conf").write_text(replaced(site, "http {\n", f"http {{\n{paths}"), encoding="utf-8")
    return ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf"), "-g", "daemon off; user root;"]


PROXIES = {"nginx": nginx, "caddy": caddy}
EACH = pytest.mark.parametrize("proxy", PROXIES)


@contextmanager
def in_front(
    folder: Path, program: str, ports: list[int], change: Callable[[str, int], str] | None = None
) -> Iterator[int]:
    """Run the proxy before backends at these ports; yield its port. change: edits the configuration, by port."""
    found = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        pytest.skip(f"{program} isn't installed: apt-get install {program}, to run docs/deploy's configuration")
    folder.mkdir()
    port = free_port()
    configured = site(program, ports)
    command = PROXIES[program](folder, change(configured, port) if change else configured, port)
    home = {
        "HOME": str(folder),
        "XDG_DATA_HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
        "PATH": os.environ["PATH"],
    }
    log = (folder / "log").open("wb")
    process = subprocess.Popen([found, *command[1:]], env=home, stdout=log, stderr=log)
    try:
        until = time.monotonic() + START_WITHIN_SEC
        while True:
            assert process.poll() is None, (folder / "log").read_text(encoding="utf-8")[-2_000:]
            assert time.monotonic() < until, f"{program} did not start in time"
            try:
                if ask(port, "/v1/health", READER, scheme="http" if change else "https").is_success:
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
def accept_any_certificate() -> ssl.SSLContext:
    """Accept any certificate: whose it is isn't tested here."""
    made = ssl.create_default_context()
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    return made


def ask(
    port: int,
    path: str,
    source: str,
    *,
    method: str = "GET",
    body: bytes | None = None,
    scheme: str = "https",
    **said: str,
) -> httpx.Response:
    """Send a request by the public name from an address of this machine."""
    transport = httpx.HTTPTransport(local_address=source, verify=accept_any_certificate())
    headers = {"host": NAME, **{name.replace("_", "-"): value for name, value in said.items()}}
    with httpx.Client(transport=transport, timeout=60.0) as client:
        return client.request(
            method,
            f"{scheme}://127.0.0.1:{port}{path}",
            content=body,
            headers=headers,
            extensions={"sni_hostname": NAME},
        )


@EACH
def test_shipped_proxy_forwards_address_host_and_whole_uploads(tmp_path: Path, proxy: str) -> None:
    with public_backend(tmp_path / "backend") as at, in_front(tmp_path / "proxy", proxy, [at]) as port:
        reported = ask(
            port, "/v1/rounds/arrived", READER, method="PUT", body=UPLOAD, x_forwarded_for="198.51.100.7"
        ).json()
        assert reported["size"] == len(UPLOAD)
        assert reported["headers"]["host"] == NAME
        assert reported["headers"]["x-forwarded-for"].split(",")[-1].strip() == READER
        first, second = (ask(port, "/v1/keys", READER, x_forwarded_for=f"198.51.100.{number}") for number in range(2))
        assert first.headers["strict-transport-security"]
        # 503: it has no release
        assert [each.status_code for each in (first, second)] == [503, 429], "nobody chooses an address"
        assert ask(port, "/v1/keys", OTHER).status_code == 503, "another reader is another address"
        assert ask(port, "/console", THIRD).status_code == 404, "the operator's pages are on another port"


def test_shipped_cache_answers_polls_that_are_the_same_for_all(tmp_path: Path) -> None:
    """Oracle: the backend's limit of one request a minute for an address, which a poll from the cache doesn't reach."""
    with public_backend(tmp_path / "backend") as at, in_front(tmp_path / "proxy", "nginx", [at]) as port:
        first, polls = ask(port, "/v1/pictures", READER), list[httpx.Response]()
        until = time.monotonic() + 0.5
        while time.monotonic() < until or not polls:
            polls.append(ask(port, "/v1/pictures", READER, if_none_match=first.headers["etag"]))
        assert first.status_code == 200
        assert polls[0].status_code == 304, "the proxy compares the tag itself"
        assert {each.status_code for each in polls} <= {304, 429}, "429 once the second is over"
        assert ask(port, "/v1/rounds/current", OTHER).status_code == 204
        assert ask(port, "/v1/rounds/current", OTHER).status_code == 429, "polls for a round reach the backend"


@EACH
def test_shipped_load_balancer_survives_the_loss_of_a_machine(tmp_path: Path, proxy: str) -> None:
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


def attackable(configured: str, port: int) -> str:
    """Remove TLS, and replace times of ten seconds and more by one second, so that the test needn't wait."""
    if "client_header_timeout" in configured:
        configured = replaced(configured, "listen 443 ssl;", f"listen 127.0.0.1:{port};")
        configured = re.sub(r" +ssl_certificate.*\n", "", configured)
        for name, sec in NGINX_TIMES.items():
            configured = replaced(configured, f"{name} {sec}s;", f"{name} 1s;")
        return configured
    configured = replaced(configured, f"{NAME} {{", f"http://:{port} {{")
    for name, time_ in CADDY_TIMES.items():
        configured = replaced(configured, f"{name} {time_}\n", f"{name} 1s\n")
    return configured


NGINX_TIMES = {"client_header_timeout": 10, "client_body_timeout": 10, "send_timeout": 20, "keepalive_timeout": 15}
CADDY_TIMES = {"read_header": "10s", "write": "10m", "idle": "15s"}


@dataclass
class Attacked:
    """A backend behind a proxy. url: the attacker's way to it."""

    url: str
    backend: Served
    reader: httpx.Client

    def everybody_else(self) -> None:
        """Check that readers at another address are served through the proxy."""
        direct, self.backend.client = self.backend.client, self.reader
        try:
            self.backend.everybody_else()
        finally:
            self.backend.client = direct


@contextmanager
def attacked(folder: Path, proxy: str, **changes: Any) -> Iterator[Attacked]:
    """Run the proxy; the attacker's address is 127.0.0.1."""
    with ExitStack() as stack:
        served = stack.enter_context(serve_backend(folder / "backend", trusted_proxies=("127.0.0.1/32",), **changes))
        behind = int(served.url.rpartition(":")[2])
        port = stack.enter_context(in_front(folder / "proxy", proxy, [behind], attackable))
        url = f"http://127.0.0.1:{port}"
        transport = httpx.HTTPTransport(local_address=READER)
        reader = stack.enter_context(httpx.Client(base_url=url, transport=transport, timeout=PATIENCE_SEC))
        yield Attacked(url, served, reader)


@EACH
def test_slow_endless_headers_are_cut_off(tmp_path: Path, proxy: str) -> None:
    with attacked(tmp_path, proxy) as at, connected(at.url) as silent, connected(at.url) as begun_only:
        begun_only.sendall(b"GET /v1/health HTTP/1.1\r\nhost: backend\r\n")
        with suppress(ConnectionError):
            for _ in range(10_000):  # each line is in time, the headers aren't
                begun_only.sendall(b"x-more: 1\r\n")
                if not threading.Event().wait(0.02) and is_at_an_end(begun_only):
                    break
        assert is_closed_by_the_server(begun_only)
        assert is_closed_by_the_server(silent)
        at.everybody_else()


@EACH
def test_connection_is_closed_after_its_first_answer_when_idle_or_slow(tmp_path: Path, proxy: str) -> None:
    with attacked(tmp_path, proxy) as at, connected(at.url) as idle, connected(at.url) as slow:
        for client in (idle, slow):
            client.sendall(b"GET /v1/health HTTP/1.1\r\nhost: backend\r\n\r\n")
            assert answer_of(client)[0] == 200
        slow.sendall(b"GET /v1/health HTTP/1.1\r\n")
        assert is_closed_by_the_server(slow)
        assert is_closed_by_the_server(idle)


@EACH
def test_hundreds_of_stuck_connections_do_not_block_other_clients(tmp_path: Path, proxy: str) -> None:
    """Half of the connections have headers that don't end, half are silent, and the backend takes ten connections."""
    with attacked(tmp_path, proxy, connections_limit=10) as at, ExitStack() as held:
        at.backend.client.close()
        for number in range(300):
            client = held.enter_context(connected(at.url))
            if number % 2:
                client.sendall(b"GET /v1/health HTTP/1.1\r\n")
        at.everybody_else()


def test_requests_whose_bodies_never_arrive_hold_no_backend_connection(tmp_path: Path) -> None:
    """nginx forwards a small body once it is complete. Caddy doesn't wait for it, so the backend's own times apply."""
    with attacked(tmp_path, "nginx", connections_limit=10) as at, ExitStack() as held:
        at.backend.client.close()
        waiting = [
            held.enter_context(begin_request(at.url, "POST", "/v1/recall", "application/json", 60_000, b"{"))
            for _ in range(40)
        ]
        at.everybody_else()
        assert is_closed_by_the_server(waiting[0])


def test_clients_that_do_not_read_answers_hold_no_backend_connection(tmp_path: Path) -> None:
    with attacked(tmp_path, "nginx", connections_limit=10) as at, ExitStack() as held:
        at.backend.client.close()
        stuck = unread_answers(at, held, 40)
        at.everybody_else()
        for client in stuck[:2]:
            assert was_cut_off(client)


def test_caddy_cuts_off_clients_that_do_not_read(tmp_path: Path) -> None:
    with attacked(tmp_path, "caddy") as at, ExitStack() as held:
        for client in unread_answers(at, held, 10):
            assert was_cut_off(client)
        at.everybody_else()


def test_one_address_takes_only_its_share_of_nginx(tmp_path: Path) -> None:
    with attacked(tmp_path, "nginx") as at, ExitStack() as held:

        def begin() -> socket.socket:
            return held.enter_context(begin_request(at.url, "POST", "/v1/recall", "application/json", 60_000, b"{"))

        def is_refused() -> bool:
            waiting.append(begin())  # on a busy machine nginx may have given up some already
            return ask(port_of(at.url), "/v1/health", "127.0.0.1", scheme="http").status_code == 429

        waiting = [begin() for _ in range(64)]
        wait_until(is_refused)
        at.everybody_else()
        assert is_closed_by_the_server(waiting[0])


POURED_BYTES = by_length(1_500_000, long=64_000_000)
RECALL = (
    b"POST /v1/recall HTTP/1.1\r\nhost: backend\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
)


@pytest.mark.long_form
@EACH
def test_oversized_heads_and_trailers_do_not_block_others(tmp_path: Path, proxy: str) -> None:
    """The proxy gives up, or reads and discards all of it; nothing of it reaches the backend.

    The short form sends 1.5 MB each, more than any limit of a head.
    """
    with attacked(tmp_path, proxy) as at:
        for head, piece in (
            (b"GET /", b"a" * 65_536),
            (b"GET / HTTP/1.1\r\nx: ", b"a" * 65_536),
            (b"GET / HTTP/1.1\r\n", b"a: b\r\n" * 10_000),
            (RECALL + b"0\r\n", b"a: b\r\n" * 10_000),
            (RECALL + b"0\r\nx: ", b"a" * 65_536),
            (RECALL + b"1;", b"a" * 65_536),
            (b"", b"GET /v1/health HTTP/1.1\r\nhost: x\r\n\r\n" * 2_000),
        ):
            flood = threading.Thread(target=poured, args=(at.url, head, piece, POURED_BYTES), daemon=True)
            flood.start()
            at.everybody_else()
            flood.join(PATIENCE_SEC)
            assert not flood.is_alive(), head


def unread_answers(at: Attacked, held: ExitStack, number: int) -> list[socket.socket]:
    """Open clients that request more than the system buffers for a connection, and read one byte of it."""
    large = at.backend.services.releases.add_blob(bytes(16_000_000))
    clients = []
    for _ in range(number):
        client = held.enter_context(socket.socket())
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        client.connect(("127.0.0.1", port_of(at.url)))
        client.settimeout(PATIENCE_SEC)
        client.sendall(f"GET /v1/blobs/{large.sha256} HTTP/1.1\r\nhost: backend\r\n\r\n".encode("ascii"))
        assert client.recv(1)
        clients.append(client)
    return clients


def was_cut_off(client: socket.socket) -> bool:
    """Return whether the connection is closed in time, without reading from it."""

    def gone() -> bool:
        try:
            client.sendall(b"x")
        except ConnectionError:
            return True
        return False

    wait_until(gone)
    return True


def port_of(url: str) -> int:
    """Return the port of a local address."""
    return int(url.rpartition(":")[2])
