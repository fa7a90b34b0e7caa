"""The sealed message: the only thing that may leave the device.

Only this package can seal; only `uplink` sends.
"""

from dataclasses import InitVar, dataclass, field
from hashlib import sha256
from typing import Generic, Never, TypeVar

from pydantic import BaseModel

M = TypeVar("M")

JSON = "application/json"
OCTETS = "application/octet-stream"
SAFETENSORS = "application/vnd.safetensors"
_TOKEN = object()


@dataclass(frozen=True)
class Charge:
    """What a release of data costs, before it's in the ledger.

    channel: 'reports', 'training' or 'counts'; or 'none' for what depends on nothing private (or only on what was
    already paid for), which costs 0 and is not recorded. epsilon and delta are those of pure or approximate
    differential privacy for one whole release, never per coordinate; parameters are the mechanism's numbers; subject
    names a release or a round.
    """

    channel: str
    mechanism: str
    parameters: dict[str, float] = field(default_factory=dict)
    epsilon: float = 0.0
    delta: float = 0.0
    payload_sha256: str = ""
    subject: str = ""


@dataclass(frozen=True, eq=False)
class Sealed(Generic[M]):
    """A message that has been paid for, with the exact bytes to send.

    words describes it to the reader. charge is what sealing it cost now: 0 if the same bytes had been paid for before.

    Formal guarantees: an instance exists only if a module of `device_app.privacy` made it, since building one needs the
    package's token and copying or unpickling is refused. It protects against mistakes inside one process, tested
    together with a search of the sources; Python can't stop code that deliberately breaks it.
    """

    message: M
    payload: bytes
    content_type: str
    charge: Charge
    words: str
    token: InitVar[object] = None

    def __post_init__(self, token: object) -> None:
        if token is not _TOKEN:
            raise TypeError("only device_app.privacy may seal what leaves the device")

    @property
    def sha256(self) -> str:
        """Hash of the payload, as stored in the ledger."""
        return digest(self.payload)

    def __reduce__(self) -> Never:
        raise TypeError("a sealed message can't be copied or pickled")


def close(message: M, payload: bytes, content_type: str, charge: Charge, words: str) -> Sealed[M]:
    """Seal a message.

    Only modules of this package call it, after `Ledger.spend` if something is charged.
    """
    return Sealed(message, payload, content_type, charge, words, token=_TOKEN)


def json_payload(message: BaseModel) -> bytes:
    """Return the bytes of a message as they go over the wire."""
    return message.model_dump_json().encode()


def digest(payload: bytes) -> str:
    """Return SHA-256 in hex, by which the ledger identifies what was paid for."""
    return sha256(payload).hexdigest()
