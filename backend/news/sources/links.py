"""One canonical link for a piece of news, however it was shared."""

from __future__ import annotations

from hashlib import blake2b
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

LINK_LIMIT_CHARS = 2_000
LINK_READ_CHARS = 20_000
"""A longer one isn't read at all; what stands in it besides its canonical form may be longer than that."""
DEFAULT_PORTS = {"http": 80, "https": 443}
TRACKING_PREFIXES = ("utm_", "mtm_", "hsa_", "at_medium", "at_campaign", "at_custom", "ns_")
TRACKING_PARAMETERS = frozenset(
    """
    fbclid gclid dclid gbraid wbraid msclkid twclid yclid igshid mc_cid mc_eid mkt_tok oly_anon_id oly_enc_id
    vero_id _hsenc _hsmi cmpid ncid ocid ref_src smid spm source_rss wt_mc xtor
    """.split()  # noqa: SIM905 (a list would take a screen)
)


def canonical(link: str, base: str = "") -> str:
    """`link` made absolute, its host in lower case; without tracking parameters, fragment, default port and user.

    Raises ValueError, naming what is wrong, on a link that is not http or https, has no host, or is too long.
    """
    if len(link) > LINK_READ_CHARS:
        raise ValueError(f"has {len(link):,} characters; the limit is {LINK_LIMIT_CHARS:,}")
    try:
        parts = urlsplit(urljoin(base, link.strip()))
        port = parts.port
    except ValueError as error:
        raise ValueError(f"is no link ({error})") from error
    if parts.scheme not in DEFAULT_PORTS:
        raise ValueError("must begin with http:// or https://")
    if not parts.hostname:
        raise ValueError("names no host")
    host = _ascii_host(parts.hostname)
    if port is not None and port != DEFAULT_PORTS[parts.scheme]:
        host = f"{host}:{port}"
    found = urlunsplit((parts.scheme, host, parts.path or "/", _without_tracking(parts.query), ""))
    if len(found) > LINK_LIMIT_CHARS:
        raise ValueError(f"has {len(found):,} characters; the limit is {LINK_LIMIT_CHARS:,}")
    return found


def news_id(canonical_link: str) -> str:
    """An id that depends on the canonical link alone; http and https count as the same."""
    return "w" + blake2b(canonical_link.partition("://")[2].encode(), digest_size=12).hexdigest()


def _ascii_host(host: str) -> str:
    host = host.rstrip(".").lower()
    if host.isascii():
        return f"[{host}]" if ":" in host else host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError as error:
        raise ValueError(f"names a host that can't exist ({error})") from error


def _without_tracking(query: str) -> str:
    pairs = parse_qsl(query, keep_blank_values=True)
    kept = [
        (name, value)
        for name, value in pairs
        if not name.lower().startswith(TRACKING_PREFIXES) and name.lower() not in TRACKING_PARAMETERS
    ]
    return query if len(kept) == len(pairs) else urlencode(kept)
