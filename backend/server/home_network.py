"""Serves a reader's pages on their home network: finds the address, makes a certificate, and runs a second listener.

The certificate is its own authority, and by its name constraints for this one address only: a phone that installs it
trusts nothing else by it, even if its key is stolen.
"""

import ipaddress
import socket
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from starlette.types import ASGIApp

from backend.errors import OwnfeedError
from protocol.private_files import make_folder, write_file

CERTIFICATE_FILE, KEY_FILE = "lan.crt", "lan.key"
VALID = timedelta(days=800)
"""Validity of a certificate. Phones accept no longer one: iOS takes at most 825 days."""
RENEWED_BEFORE = timedelta(days=30)
NOWHERE = ("192.0.2.1", 9)
"""A documentation address (RFC 5737). Connecting a datagram socket to it sends nothing, but shows which of this
machine's addresses leads to the internet.
"""


class NoHomeNetwork(OwnfeedError):
    """This machine has no private address to serve on."""

    code, status, title = "no-home-network", 500, "The pages can't be served on a home network"


def home_address(chosen: str | None = None) -> str:
    """Return the IPv4 address of this machine on its home network: the chosen one, or the one that leads to the
    internet.

    Raises NoHomeNetwork for an address that isn't private: the pages are not made for the internet.
    """
    found = chosen or _leading_out()
    try:
        address = ipaddress.IPv4Address(found or "")
    except ValueError as broken:
        why = f"{chosen!r} is no IPv4 address" if chosen else "this machine is on no network"
        raise NoHomeNetwork(f"--lan: {why}; name one of this machine's addresses with --lan-address.") from broken
    if not address.is_private or address.is_loopback or address.is_unspecified:
        raise NoHomeNetwork(
            f"--lan: {address} is not an address in a home network. Name a private address of this machine with "
            "--lan-address, such as 192.168.1.5."
        )
    return str(address)


def _leading_out() -> str | None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(NOWHERE)
        except OSError:
            return None
        return str(probe.getsockname()[0])


@dataclass(frozen=True)
class OwnCertificate:
    """The files of a certificate and its key. fingerprint: SHA-256, as browsers show it."""

    certificate: Path
    key: Path
    fingerprint: str


def own_certificate(folder: Path, address: str, now: datetime | None = None) -> OwnCertificate:
    """Return the certificate for this address. It is made if there is none, or if it is for another one or ends
    soon.
    """
    files, now = (folder / CERTIFICATE_FILE, folder / KEY_FILE), now or datetime.now(UTC)
    known = _known(files[0], address, now) if files[1].is_file() else None
    if known is None:
        make_folder(folder)
        known, key = _made(address, now)
        write_file(files[1], key)
        write_file(files[0], known.public_bytes(serialization.Encoding.PEM).decode())
    return OwnCertificate(*files, known.fingerprint(hashes.SHA256()).hex(":").upper())


def _known(file: Path, address: str, now: datetime) -> x509.Certificate | None:
    try:
        found = x509.load_pem_x509_certificate(file.read_bytes())
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, x509.ExtensionNotFound):
        return None
    is_for_it = names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address(address)]
    return found if is_for_it and now + RENEWED_BEFORE < found.not_valid_after_utc else None


def _made(address: str, now: datetime) -> tuple[x509.Certificate, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Ownfeed at {address}")])
    only_here = x509.IPAddress(ipaddress.ip_network(f"{address}/32"))
    usage = {"digital_signature": True, "key_cert_sign": True}
    usage |= dict.fromkeys(
        ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "crl_sign"), False
    )
    usage |= {"encipher_only": False, "decipher_only": False}
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + VALID)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.NameConstraints(permitted_subtrees=[only_here], excluded_subtrees=None), critical=True)
        .add_extension(x509.KeyUsage(**usage), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate, pem.decode()


def serve_beside(app: ASGIApp, host: str, port: int, certificate: OwnCertificate, **limits: Any) -> uvicorn.Server:
    """Serve an application over TLS in a new thread, besides the server of this process; its lifespan isn't run.

    limits: further settings of uvicorn.
    """
    config = uvicorn.Config(
        app, host=host, port=port, lifespan="off", proxy_headers=False,
        ssl_certfile=certificate.certificate, ssl_keyfile=certificate.key, **limits,
    )  # fmt: skip
    server = uvicorn.Server(config)
    threading.Thread(target=server.run, name="home-network", daemon=True).start()
    return server
