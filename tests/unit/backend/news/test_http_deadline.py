"""Servers that never finish, over real sockets. Oracle: they are cut off before they give up by themselves."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from backend.news.errors import SourceUnreachable
from backend.news.pictures import fetcher as picture_download
from backend.news.pictures.fetcher import PictureMissing, download
from backend.news.public_addresses import networks
from backend.news.sources import download as feed_download

LOOPBACK = networks(["127.0.0.0/8"])
PIECES = 400
"""A server that wasn't cut off gives up by itself, after 20 s, so that a broken deadline fails rather than hangs."""
DRIPS = {
    "silence": (b"", b""),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"X-A: 1\r\n"),
    "interim answers": (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "a chunk's extension": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"a"),
    "a body without a length": (b"HTTP/1.1 200 OK\r\n\r\n", b"a"),
}


@pytest.fixture(autouse=True)
def _no_limit_of_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture_download, "SILENCE_SEC", 60.0)
    monkeypatch.setattr(feed_download, "ANSWER_TIMEOUT_SEC", 60.0)


@contextmanager
def dripping(head: bytes, piece: bytes, asked: threading.Event) -> Iterator[str]:
    """Yield the address of a server that sends the head, then piece after piece until it is cut off."""
    listener = socket.create_server(("127.0.0.1", 0))
    left, gave_up = threading.Event(), threading.Event()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65_536)
            asked.set()
            try:
                connection.sendall(head)
                if not piece:
                    connection.settimeout(PIECES * 0.05)
                    connection.recv(1)
                    return
                for _ in range(PIECES):
                    connection.sendall(piece)
                    if left.wait(0.05):
                        return
            except TimeoutError:
                pass
            except OSError:
                return
            gave_up.set()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/a"
    finally:
        left.set()
        listener.close()
        thread.join()
    assert not gave_up.is_set()


def of_pictures(url: str, cancelled: Callable[[], bool]) -> None:
    download(url, allowed=LOOPBACK, cancelled=cancelled)


def of_feeds(url: str, cancelled: Callable[[], bool]) -> None:
    feed_download.fetch(url, allowed=LOOPBACK, cancelled=cancelled)


BOTH = pytest.mark.parametrize("get", [of_pictures, of_feeds])


@BOTH
@pytest.mark.parametrize("kind", DRIPS)
def test_download_ends_at_its_deadline_despite_a_slow_server(
    get: Callable[[str, Callable[[], bool]], None], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picture_download, "DOWNLOAD_SEC", 0.5)
    monkeypatch.setattr(feed_download, "DOWNLOAD_TIMEOUT_SEC", 0.5)
    with (
        dripping(*DRIPS[kind], threading.Event()) as url,
        pytest.raises((PictureMissing, SourceUnreachable), match=r"took longer than 0\.5 s"),
    ):
        get(url, lambda: False)


@BOTH
def test_download_from_a_silent_server_is_cancelled_at_once(
    get: Callable[[str, Callable[[], bool]], None],
) -> None:
    asked = threading.Event()
    with (
        dripping(b"", b"", asked) as url,
        pytest.raises((PictureMissing, SourceUnreachable), match="server is stopping"),
    ):
        get(url, asked.is_set)
