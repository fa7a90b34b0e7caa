"""Messages between the server and the process that submits tasks to a Ray cluster.

Messages to the process are pickled with pickle itself, since `Connection.send` adds libraries' rules for processes of
one parent, by which torch shares a tensor's memory instead of sending it. Answers are not pickled, since unpickling can
execute code: an answer is the length of a header (8 bytes, little-endian), the header in JSON, and the content's arrays
one after another. In the header an array is {"array": [dtype, shape]}, other types are {"list": ...} and so on.
"""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

LENGTH_BYTES = 8
DTYPES = ("float16", "float32", "float64", "int32", "int64")


class AnswerUnreadable(ValueError):
    """An answer does not have this form."""


def send(connection: Connection, message: object) -> None:
    """Send a message. Raises OSError."""
    connection.send_bytes(pickle.dumps(message, protocol=5))


def messages(connection: Connection, idle_sec: float) -> Iterator[Any]:
    """Yield messages until none has arrived for `idle_sec` at the start or after a ("rest",).

    Between a task and its rest the other end may take its time. Raises EOFError, OSError once it has ended.
    """
    rests = True
    while not rests or connection.poll(idle_sec):
        message = receive(connection)
        rests = message[0] == "rest"
        yield message


def receive(connection: Connection) -> Any:
    """Receive a message. Raises EOFError, OSError."""
    return pickle.loads(connection.recv_bytes())


def send_answer(connection: Connection, kind: str, content: object) -> None:
    """Send an answer of arrays, numbers, strings and None, in lists, tuples and dicts with string keys.

    Raises AnswerUnreadable for other content, before anything is sent; OSError.
    """
    arrays: list[NDArray[Any]] = []
    header = json.dumps([kind, _described(content, arrays)]).encode()
    parts = [len(header).to_bytes(LENGTH_BYTES, "little"), header, *(each.tobytes() for each in arrays)]
    connection.send_bytes(b"".join(parts))


def receive_answer(connection: Connection) -> tuple[str, Any]:
    """Receive an answer's kind and content. Raises AnswerUnreadable, EOFError, OSError."""
    message = connection.recv_bytes()
    start = LENGTH_BYTES + int.from_bytes(message[:LENGTH_BYTES], "little")
    try:
        kind, described = json.loads(message[LENGTH_BYTES:start])
    except (ValueError, TypeError, RecursionError) as broken:
        raise AnswerUnreadable("its header can't be read") from broken
    arrays = _Arrays(message, start)
    content = arrays.content(described)
    if arrays.place != len(message) or not isinstance(kind, str):
        raise AnswerUnreadable("more stands in it than its header says")
    return kind, content


def _described(content: object, arrays: list[NDArray[Any]]) -> object:
    """The header's description of the content; its arrays are appended to `arrays`."""
    if content is None or isinstance(content, str | int | float):
        return content
    if isinstance(content, np.ndarray) and content.dtype.name in DTYPES:
        arrays.append(content)
        return {"array": [content.dtype.name, list(content.shape)]}
    if isinstance(content, list | tuple):
        return {type(content).__name__: [_described(each, arrays) for each in content]}
    if isinstance(content, dict) and all(isinstance(name, str) for name in content):
        return {"dict": {name: _described(each, arrays) for name, each in content.items()}}
    raise AnswerUnreadable(f"{type(content).__name__} can't be in it")


class _Arrays:
    """A message's content, whose arrays are read in order from `place` on."""

    def __init__(self, message: bytes, place: int) -> None:
        self._message, self.place = message, place

    def content(self, described: Any) -> Any:
        """Rebuild the described content. Raises AnswerUnreadable."""
        if described is None or isinstance(described, str | int | float):
            return described
        match described:
            case {"array": [str(dtype), list(shape)]}:
                return self._array(dtype, shape)
            case {"list": list(each)}:
                return [self.content(one) for one in each]
            case {"tuple": list(each)}:
                return tuple(self.content(one) for one in each)
            case {"dict": dict(named)}:
                return {name: self.content(one) for name, one in named.items()}
        raise AnswerUnreadable("its header has a part of no known kind")

    def _array(self, dtype: str, shape: list[Any]) -> NDArray[Any]:
        if dtype not in DTYPES or not all(type(each) is int and each >= 0 for each in shape):
            raise AnswerUnreadable(f"an array of {dtype} and shape {shape} can't be in it")
        count, start = math.prod(shape), self.place
        self.place += count * np.dtype(dtype).itemsize
        if self.place > len(self._message):
            raise AnswerUnreadable(f"an array of {dtype} and shape {shape} is cut off")
        return np.frombuffer(self._message, dtype, count, start).reshape(shape).copy()
