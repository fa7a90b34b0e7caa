"""Connections of a device that is closed while another thread makes a request."""

import socket
import threading

import httpx
import pytest

from device_app.uplink.http import SeparatePools

PATIENCE_SEC = 10.0
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


class ClosedMeanwhile(SeparatePools):
    """Is closed by another thread when a request has its pool, before that pool connects."""

    def _opened(self, kept: int) -> httpx.HTTPTransport:
        transport = super()._opened(kept)
        connect = transport.handle_request

        def handle_request(request: httpx.Request) -> httpx.Response:
            closing = threading.Thread(target=self.close)
            closing.start()
            closing.join()
            return connect(request)

        transport.handle_request = handle_request  # type: ignore[method-assign]
        return transport


def test_connection_opened_while_the_device_closes_is_closed_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        pools = ClosedMeanwhile(encrypted=False)
        ended: list[bytes] = []

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(PATIENCE_SEC)
                connection.recv(65_536)
                connection.sendall(ANSWER)
                ended.append(connection.recv(1))  # b"": the device has closed the connection

        server = threading.Thread(target=serve)
        server.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1/releases/current"
        with pytest.raises(httpx.ConnectError, match="the device was closed"):
            pools.handle_request(httpx.Request("GET", url))
        server.join()
        assert ended == [b""]


def test_closed_device_opens_no_connection() -> None:
    pools = SeparatePools(encrypted=False)
    pools.close()
    with pytest.raises(httpx.ConnectError, match="the device was closed"):
        pools.handle_request(httpx.Request("GET", "http://127.0.0.1:1/v1/releases/current"))
