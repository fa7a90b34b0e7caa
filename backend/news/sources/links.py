"""Makes an article's link absolute and removes tracking parameters."""

import re
from urllib.parse import unquote_plus, urljoin, urlsplit

LINK_LIMIT_CHARS = 2_000
LINK_READ_CHARS = 20_000
"""A longer link isn't read at all. More than LINK_LIMIT_CHARS, since the canonical form may be shorter."""
DEFAULT_PORTS = {"http": 80, "https": 443}
TRACKING_PREFIXES = ("utm_", "mtm_", "hsa_", "at_medium", "at_campaign", "at_custom", "ns_")
TRACKING_PARAMETERS = frozenset(
    """
    fbclid gclid dclid gbraid wbraid msclkid twclid yclid igshid mc_cid mc_eid mkt_tok oly_anon_id oly_enc_id
    vero_id _hsenc _hsmi cmpid ncid ocid ref_src smid spm source_rss wt_mc xtor
    """.split()  # noqa: SIM905 (a list would take a screen)
)
_ABSOLUTE = re.compile(r"(https?):/{2}([^/?#]*)([^?#]*)", re.IGNORECASE)
_SEPARATOR = re.compile(r"(&amp;|[&;])")


def canonical(link: str, base: str = "") -> str:
    """`link` as an absolute URL with a lower-case host, without tracking parameters, default port and user.

    Every other byte of its path, query and fragment stays, since re-encoding breaks links on some sites.

    Raises ValueError with the reason for a link that is not http or https, has no host, or is too long.
    """
    if len(link) > LINK_READ_CHARS:
        raise ValueError(f"has {len(link):,} characters; the limit is {LINK_LIMIT_CHARS:,}")
    link = re.sub(r"[\t\r\n]", "", link.strip())
    try:
        absolute = link if _ABSOLUTE.match(link) else urljoin(base, link)
        parts = urlsplit(absolute)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"is not a link ({error})") from error
    written = _ABSOLUTE.match(absolute)
    if parts.scheme not in DEFAULT_PORTS:
        raise ValueError("must begin with http:// or https://")
    if written is None or not parts.hostname:
        raise ValueError("has no host")
    host = _ascii_host(parts.hostname)
    if port is not None and port != DEFAULT_PORTS[parts.scheme]:
        host = f"{host}:{port}"
    found = f"{parts.scheme}://{host}{written[3] or '/'}{_without_tracking(absolute[written.end() :])}"
    if len(found) > LINK_LIMIT_CHARS:
        raise ValueError(f"has {len(found):,} characters; the limit is {LINK_LIMIT_CHARS:,}")
    return found


def _ascii_host(host: str) -> str:
    host = host.rstrip(".").lower()
    if host.isascii():
        return f"[{host}]" if ":" in host else host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError as error:
        raise ValueError(f"has an impossible host name ({error})") from error


def _without_tracking(rest: str) -> str:
    """A link's query and fragment without tracking parameters."""
    before, mark, fragment = rest.partition("#")
    if mark and fragment and not _cut(fragment):
        mark = fragment = ""
    query = before[1:]
    kept = _cut(query)
    if kept == query:
        return before + mark + fragment
    return (f"?{kept}" if kept else "") + mark + fragment


def _cut(query: str) -> str:
    """The parameters that don't track, with the separators between them.

    After a semicolon, a piece without "=" belongs to the value before it.
    """
    first, *others = _SEPARATOR.split(query)
    kept: list[str] = []
    cut = _tracks(first)
    if not cut:
        kept.append(first)
    for separator, piece in zip(others[::2], others[1::2], strict=True):
        cut = _tracks(piece) or (cut and separator == ";" and "=" not in piece)
        if not cut:
            kept += [separator, piece] if kept else [piece]
    return "".join(kept)


def _tracks(parameter: str) -> bool:
    name = unquote_plus(parameter.partition("=")[0]).lower()
    return name.startswith(TRACKING_PREFIXES) or name in TRACKING_PARAMETERS
