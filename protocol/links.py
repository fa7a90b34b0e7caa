"""Check that an article's link leads to a web page outside the reader's machine and network."""

import re
import unicodedata
from ipaddress import IPv4Address, IPv6Address, ip_network
from urllib.parse import unquote, urlsplit

_LOCAL_NAMES = re.compile(r"(.*\.)?(localhost|localdomain|local|internal|home\.arpa|intranet|private|corp|home|lan)")
"""Names of the reader's machine or network, by RFC 6761, 6762 with its appendix G, 8375, ICANN, and convention."""
_RESERVED = tuple(
    ip_network(name)
    for name in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16",
        "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
        "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
    )
)  # fmt: skip
"""IPv4 networks without publishers, by IANA's registry of special addresses; 168.63.129.16 is a cloud's own."""
_GLOBAL_UNICAST = ip_network("2000::/3")
"""All public IPv6 addresses are in this range; loopback, private, link-local and mapped IPv4 ones are not."""
_RESERVED_UNICAST = tuple(ip_network(name) for name in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))
"""Exceptions: tunnels that carry an IPv4 address, and addresses for examples."""
_LEFT_OUT = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\U0001bca0-\U0001bca3\U000e0000-\U000e0fff]"
)
"""Characters that browsers drop from a host; they are removed first so that they can't hide anything."""
_OF_IPV6 = re.compile(r"([^\[\]]*@)?\[[0-9a-fA-F:.]+\](:[0-9]*)?")
_NOT_IN_A_HOST = re.compile(r"[\x00-\x20\x7f#%/:<>?@\[\\\]^|]")


def leads_out(url: str) -> bool:
    """Return whether a browser opens this URL as a page outside the reader's own network.

    False unless it is an http or https address with a host; false for loopback, private, link-local and reserved
    addresses in any notation that browsers accept (0x7f.1, 017700000001, 2130706433, fullwidth digits, IPv6 with IPv4
    in it), and for names such as localhost, printer.local and those without a dot. It doesn't know what a public name
    resolves to.
    """
    if not url.isprintable() or url != url.strip():
        return False  # browsers drop line breaks and tabs anywhere: "java\nscript:" is a script to them
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or not host or "\\" in parts.netloc:
        return False  # to a browser a backslash ends the host
    if "[" in parts.netloc or "]" in parts.netloc:
        return _OF_IPV6.fullmatch(parts.netloc) is not None and _is_public_v6(host)
    return _is_outside(_as_browsers_read(host))


def _as_browsers_read(host: str) -> str:
    """Return a host as browsers read it: without percent-encoding, wide digits and the like.

    This is nearly the URL standard's "domain to ASCII".
    """
    plain = unquote(host)
    for _ in range(2):  # a character that is left out may have kept two others from being joined
        plain = _LEFT_OUT.sub("", unicodedata.normalize("NFKC", plain).casefold()).replace("\u3002", ".")
    return plain


def _is_outside(host: str) -> bool:
    if _NOT_IN_A_HOST.search(host) or not host.isprintable():
        return False
    labels = host.removesuffix(".").split(".")
    if re.fullmatch(r"[0-9]+|0x[0-9a-f]*", labels[-1]):
        return _is_public_v4(labels)
    name = host.rstrip(".")
    return "." in name and not _LOCAL_NAMES.fullmatch(name)


def _is_public_v4(labels: list[str]) -> bool:
    """Return whether 1 to 4 numbers, decimal, octal or hexadecimal, form a public address.

    The last fills the remaining bits.
    """
    numbers = [_number(label) for label in labels]
    if len(numbers) > 4 or None in numbers:
        return False
    *first, last = (number for number in numbers if number is not None)
    if any(number > 255 for number in first) or last >= 256 ** (4 - len(first)):
        return False
    value = last + sum(number << 8 * (3 - place) for place, number in enumerate(first))
    return not any(IPv4Address(value) in network for network in _RESERVED)


def _number(label: str) -> int | None:
    if re.fullmatch(r"0x[0-9a-f]*", label):
        return int(label[2:] or "0", 16)
    if re.fullmatch(r"0[0-7]+", label):
        return int(label, 8)
    return int(label) if re.fullmatch(r"0|[1-9][0-9]{0,15}", label) else None


def _is_public_v6(host: str) -> bool:
    try:
        address = IPv6Address(host)
    except ValueError:
        return False
    return address in _GLOBAL_UNICAST and not any(address in network for network in _RESERVED_UNICAST)
