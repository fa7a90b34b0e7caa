"""Following the backend's signing key from the one that this device trusts to the one that signs now."""

from __future__ import annotations

from device_app.errors import AnswerMalformed, BackendRefused, ReleaseRefused
from device_app.store.releases import TrustedKey
from device_app.uplink.http import HttpClient
from device_app.uplink.server import parsed
from device_app.wire.rotations import KEYS_LIMIT_BYTES, KeyHistory, RotationRefused, fingerprint, follow

_ANOTHER = "it is signed by another key than the pinned one"


def successor(client: HttpClient, trusted: TrustedKey, offered: bytes) -> TrustedKey:
    """`offered` as the key to trust, if rotations lead to it from the trusted one.

    What is asked is the same whatever key is trusted. Raises ReleaseRefused if no chain of rotations leads there, or if
    one of them is forged; the trusted key stays.
    """
    reader_may = (
        f"trusted is {fingerprint(trusted.public_key)}, offered {fingerprint(offered)}. If the operator told you of a "
        "new key by a way that you trust, set backend_key to it"
    )
    try:
        answer = client.get(
            "/v1/keys",
            words="A look at how the backend's signing key was rotated, the same for everybody.",
            purpose="sync",
            limit_bytes=KEYS_LIMIT_BYTES,
        )
        history = parsed(KeyHistory, answer, "keys")
        key, rotation = follow(history, trusted.public_key, trusted.rotation)
    except BackendRefused:  # a server without rotations
        key, rotation = trusted.public_key, trusted.rotation
    except (RotationRefused, AnswerMalformed) as broken:
        raise ReleaseRefused("offered now", f"{_ANOTHER}, and {broken}") from broken
    if key != offered:
        raise ReleaseRefused("offered now", f"{_ANOTHER}, which no rotation leads to ({reader_may})")
    return TrustedKey(key, trusted.first, rotation)
