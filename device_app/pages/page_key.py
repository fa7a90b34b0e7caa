"""The key to the reader's pages: printed as a link when the device starts, and kept by the browser as a cookie.

Host and Origin keep other sites out; another user of the same machine sends whatever headers it likes, and only this
key keeps it out.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from pathlib import Path
from urllib.parse import parse_qs, urlencode

from starlette.requests import cookie_parser

from device_app.errors import StoreBroken
from device_app.private_files import make_folder, write_file

KEY_NAME = "page.key"
KEY_BYTES = 32
ENTER_PATH = "/enter"
COOKIE_AGE_SEC = 400 * 24 * 3_600
"""The longest that browsers keep a cookie."""
_COOKIE_USE = b"ownfeed pages cookie 1"


class PageKey:
    """A random key of 256 bits, and the cookie made from it.

    The cookie is HMAC-SHA256 of the key, so that what a browser keeps can't be turned back into the link. Its name has
    the port: browsers send one host's cookies to all its ports, and two devices on one machine must not replace each
    other's.
    """

    def __init__(self, key: str, port: int) -> None:
        self._key, self._port = key, port
        self.cookie_name = f"ownfeed_{port}"
        self._cookie = hmac.new(key.encode(), _COOKIE_USE, hashlib.sha256).hexdigest()

    @classmethod
    def of_profile(cls, home: Path, port: int) -> PageKey:
        """The key that lies in the profile's folder (0600), drawn at its first start. Raises StoreBroken."""
        path = home / KEY_NAME
        try:
            if not path.exists():
                make_folder(home)
                write_file(path, secrets.token_urlsafe(KEY_BYTES))
            key = path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as broken:
            raise StoreBroken(path, str(broken)) from broken
        if len(key) < KEY_BYTES:
            raise StoreBroken(path, "it holds no key of 256 bits; remove it, and the next start draws a new one")
        return cls(key, port)

    def link(self, host: str) -> str:
        """The address that opens the pages in a browser, once; from then on the cookie does."""
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{self._port}{ENTER_PATH}?{urlencode({'key': self._key})}"

    def opens(self, query: bytes) -> bool:
        """Whether the query of a link holds the key; takes the same time for any wrong one."""
        shown = parse_qs(query.decode("latin-1")).get("key", [""])[-1]
        return hmac.compare_digest(shown.encode(), self._key.encode())

    def in_authorization(self, header: str) -> bool:
        """Whether an Authorization header holds the key as a bearer token."""
        scheme, _, shown = header.partition(" ")
        return hmac.compare_digest(shown.strip().encode(), self._key.encode()) and scheme.lower() == "bearer"

    def in_cookies(self, header: str) -> bool:
        """Whether a Cookie header holds this device's cookie."""
        kept = cookie_parser(header).get(self.cookie_name, "")
        return hmac.compare_digest(kept.encode(), self._cookie.encode())

    def set_cookie(self) -> str:
        """The Set-Cookie header: for this host only, out of reach of scripts, never sent along from another site."""
        return f"{self.cookie_name}={self._cookie}; Max-Age={COOKIE_AGE_SEC}; Path=/; HttpOnly; SameSite=Strict"
