"""The file of the server's Ed25519 key.

It is created once, replaced only by a rotation, and refused if it is lost. Devices trust the key that signed their
release, so the key in use is always the one that signed the newest release. A rotation keeps its new key in a second
file until a release is signed with it; whenever the server is killed, one of the two files holds the key that the
newest release names.
"""

import contextlib
import secrets
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from backend.releases.errors import SigningKeyRefused
from backend.storage.durable_files import create_secret, sync_folder

NEXT_SUFFIX = ".next"
GUIDE = "docs/operate.md"


class KeyFile:
    """The signing key at `path`, readable by its owner only. Safe for several processes.

    The key is cached until another key is needed: if the key is rotated while a server runs, the server uses the new
    one at its next signature.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._next = path.with_name(path.name + NEXT_SUFFIX)
        self._known: Ed25519PrivateKey | None = None

    def load(self, signer: bytes | None) -> Ed25519PrivateKey:
        """Return the private key of `signer`, the public key of the newest release.

        None: nothing is signed yet. A missing key is created only if nothing is signed yet. Raises SigningKeyRefused if
        the file is missing, or holds another key or none: devices would refuse releases signed with a key they don't
        know.
        """
        if self._known is not None and signer in (None, public_half(self._known)):
            return self._known
        if signer is None and not self.path.exists():
            _create(self.path)
        self._known = self._found(signer)
        return self._known

    def draft(self) -> Ed25519PrivateKey:
        """Create a new key in the second file, to sign the next release.

        Replaces what a broken rotation left. Call it only while the first file holds the key in use and no other
        process rotates.
        """
        for left in (self._next, *self.path.parent.glob(f"{self.path.name}.*.part")):
            left.unlink(missing_ok=True)
        _create(self._next)
        drafted = _read(self._next)
        assert drafted is not None
        return drafted

    def promote(self) -> None:
        """Replace the old key with the drafted one; the old key is deleted."""
        with contextlib.suppress(FileNotFoundError):  # another server has already moved it
            self._next.replace(self.path)
        sync_folder(self.path.parent)

    def set_aside(self) -> Path | None:
        """Rename a key that signed nothing here instead of deleting it.

        Returns its new name, or None.
        """
        if not self.path.exists():
            return None
        aside = self.path.with_name(f"{self.path.name}.{secrets.token_hex(4)}.unused")
        self.path.rename(aside)
        return aside

    def _found(self, signer: bytes | None) -> Ed25519PrivateKey:
        """Return the matching key from either file.

        The first file is read twice, since a rotation may end between two reads.
        """
        seen = None
        for path in (self.path, self._next, self.path):
            seen = _read(path) or seen
            if seen is not None and signer in (None, public_half(seen)):
                if path == self._next:
                    self.promote()  # a rotation was killed after its release was published
                return seen
        if seen is None:
            raise SigningKeyRefused(
                f"The signing key {self.path} is missing, and devices accept only what it has signed. Put it back from "
                f"your backup; if there is none, {GUIDE} describes what you can do."
            )
        raise SigningKeyRefused(
            f"The signing key {self.path} is not the one that signed the newest release, whose public half is "
            f"{signer.hex() if signer else ''}. Put that one back from your backup; if there is none, {GUIDE} says "
            "what is left to do."
        )


def public_half(key: Ed25519PrivateKey) -> bytes:
    """Return the 32 bytes that devices trust."""
    return key.public_key().public_bytes_raw()


def _read(path: Path) -> Ed25519PrivateKey | None:
    """Return the key in a file, or None without a file."""
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, UnsupportedAlgorithm) as broken:
        raise SigningKeyRefused(f"The signing key {path} can't be read: {broken}") from broken
    except OSError as broken:
        raise SigningKeyRefused(f"The signing key {path} can't be read: {broken.strerror}.") from broken
    if not isinstance(key, Ed25519PrivateKey):
        raise SigningKeyRefused(f"The signing key {path} is not an Ed25519 key.")
    return key


def _create(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    create_secret(path, Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
