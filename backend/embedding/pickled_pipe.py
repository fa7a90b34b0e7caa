"""Messages of the process that gives a cluster its tasks, by pickle itself.

`Connection.send` pickles by rules that libraries add for processes of one parent: torch has a tensor's memory shared
rather than sent. Both ends are this program's own.
"""

from __future__ import annotations

import pickle
from multiprocessing.connection import Connection
from typing import Any


def send(connection: Connection, message: object) -> None:
    """Raises OSError."""
    connection.send_bytes(pickle.dumps(message, protocol=5))


def receive(connection: Connection) -> Any:
    """Raises EOFError, OSError."""
    return pickle.loads(connection.recv_bytes())
