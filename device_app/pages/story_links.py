"""Links to stories: an address that shows one, and a token that proves a click on our link.

Anyone who knows a story's id can compute its address, for example a publisher or another page. Only these pages can
compute its token.
"""

import hmac
from urllib.parse import quote, urlencode

from device_app.pages.local_origin import PageKey

TOKEN = "token"
TOKEN_CHARS = 64


class StoryLinks:
    """Makes and verifies the story links of one device's pages.

    Formal guarantees: a token is an HMAC under the page key over the whole address, so that it is valid for one story
    opened from one page, search or list only. Without the key, one guess at the token of an address succeeds with
    probability 2^-128.
    """

    def __init__(self, key: PageKey) -> None:
        self._key = key

    def address(
        self, news_id: str, feed_id: str | None = None, found: str | None = None, listed: str | None = None
    ) -> str:
        """Return the address of a story: opened from a page, from search results, or from a list at this path."""
        parameters = {"feed": feed_id or None, "found": found, "list": listed}  # an empty search is still a search
        query = urlencode({name: value for name, value in parameters.items() if value is not None})
        return f"/story/{quote(news_id)}{'?' if query else ''}{query}"

    def link(
        self, news_id: str, feed_id: str | None = None, found: str | None = None, listed: str | None = None
    ) -> str:
        """Return the address with its token, as these pages link it: following it counts as a click."""
        address = self.address(news_id, feed_id, found, listed)
        return f"{address}{'&' if '?' in address else '?'}{TOKEN}={self._key.link_token(address)}"

    def made(self, token: str, news_id: str, feed_id: str | None, found: str | None, listed: str | None = None) -> bool:
        """Return whether these pages created the link; takes constant time."""
        expected = self._key.link_token(self.address(news_id, feed_id, found, listed))
        return hmac.compare_digest(token.encode(), expected.encode())
