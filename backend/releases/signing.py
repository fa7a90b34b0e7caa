"""The server's Ed25519 key, made once and kept in the data folder."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from backend.errors import SettingsRefused


def load_or_create_key(path: Path) -> Ed25519PrivateKey:
    """The key at `path`; the first call makes it, readable by its owner only.

    Devices pin the public half, so a lost key means that every device has to be told of a new one: it is never
    replaced. Raises SettingsRefused if the file holds something else.
    """
    if not path.exists():
        _create(path)
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as broken:
        raise SettingsRefused(f"The signing key {path.name} can't be read: {broken}", field="data_dir") from broken
    if not isinstance(key, Ed25519PrivateKey):
        raise SettingsRefused(f"The signing key {path.name} is no Ed25519 key.", field="data_dir")
    return key


def _create(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pem = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    draft = path.with_name(f"{path.name}.{secrets.token_hex(6)}.part")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
            file.flush()
            os.fsync(file.fileno())
        # A link fails if another process was first; its key is then the one to use.
        try:
            path.hardlink_to(draft)
        except FileExistsError:
            return
    finally:
        draft.unlink(missing_ok=True)
