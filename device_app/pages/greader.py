"""The Google Reader API, as in FreshRSS and Miniflux, so that reader apps can show this device's feeds.

It is off until the reader makes an app password. Stories that an app marks as read one by one count as opened here, and
the ranking learns from them; it learns nothing from marking many at once.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from html import escape
from threading import Lock
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.concurrency import run_in_threadpool

from device_app.errors import BackendRefused, DeviceError, NewsNotHere
from device_app.pages.local_origin import API_PATH, API_PREFIXES, LOGIN_PATH
from device_app.pages.passwords import PasswordFile, PasswordLimiter
from device_app.store.articles import Place, Stream
from device_app.sync.own_feeds import SEPARATOR, OwnFeedsSync
from protocol.bodies import BodyError, read_body, write_body
from protocol.news import NewsCard
from protocol.own_feeds import ChangeFeed, OwnFeed

if TYPE_CHECKING:
    from device_app.device import Device

PASSWORD_FILE = "apps.password"
OPENED_AT_ONCE = 5
"""Largest batch that counts as opened. Apps sync every minute or two, so more at once was only marked as read."""
ITEMS_USUAL, ITEMS_LIMIT, IDS_LIMIT = 20, 1_000, 10_000
LATE = timedelta(days=7)
"""Apps request what is newer than their last sync; stories dated up to this long before are sent too,
since feeds may deliver them late."""
FORM_LIMIT_BYTES = 2_000_000
ITEM = "tag:google.com,2005:reader/item/"
READING_LIST, READ, STARRED = (f"user/-/state/com.google/{name}" for name in ("reading-list", "read", "starred"))
KEPT_UNREAD = "user/-/state/com.google/kept-unread"
LABEL = "user/-/label/"
STREAMS = {
    READING_LIST: Stream(),
    READ: Stream(read=True),
    STARRED: Stream(saved=True),
    KEPT_UNREAD: Stream(read=False),
}
_HEX, _DECIMAL = re.compile(r"[0-9a-f]{16}"), re.compile(r"[0-9]{1,19}")
_ANY_USER = re.compile(r"^user/[^/]+/")
_USE = b"ownfeed reader apps 1"

Form = Mapping[str, Sequence[str]]


def number_of(news_id: str) -> int:
    """Return an article's number in the API: 63 bits of a hash of its id."""
    return int.from_bytes(blake2b(news_id.encode(), digest_size=8).digest()) >> 1


def numbers_of(text: str) -> list[int]:
    """Return the article numbers that an app may mean; it may write the long form, 16 hexadecimal digits or a
    decimal."""
    if text.startswith(ITEM):
        text = text.removeprefix(ITEM)
        return [int(text, 16)] if _HEX.fullmatch(text) else []
    hexadecimal = [int(text, 16)] if _HEX.fullmatch(text) else []
    return hexadecimal + ([int(text)] if _DECIMAL.fullmatch(text) else [])


class Unknown(Exception):
    """The request names something unknown; answered with 404."""


class Refused(Exception):
    """The request is invalid; answered with 400 and this text."""


class AppApi:
    """Answers the API's requests from one device."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._streams = device.parts.stores.streams
        self._lock = Lock()
        self._ids: dict[int, str] = {}

    @property
    def _own(self) -> OwnFeedsSync:
        own = self._device.own_server
        if own is None:
            raise Unknown
        return own

    def feeds(self) -> tuple[OwnFeed, ...]:
        return self._own.feeds()

    def subscriptions(self) -> dict[str, Any]:
        """Return every feed with its folder."""
        return {
            "subscriptions": [
                {
                    "id": f"feed/{feed.key}",
                    "title": feed.shown,
                    "categories": [{"id": LABEL + label, "label": label, "type": "folder"} for label in _labels(feed)],
                    "url": feed.url,
                    "htmlUrl": feed.site or feed.url,
                    "iconUrl": "",
                }
                for feed in self.feeds()
            ]
        }

    def tags(self) -> dict[str, Any]:
        """Return the starred list and every folder."""
        labels = sorted({label for feed in self.feeds() for label in _labels(feed)}, key=str.casefold)
        return {"tags": [{"id": STARRED}, *({"id": LABEL + label, "type": "folder"} for label in labels)]}

    def unread_counts(self) -> dict[str, Any]:
        """Return how many stories are unread, by feed, by folder, and in total."""
        unread = {publisher: count.unread for publisher, count in self._device.parts.stores.articles.counts().items()}
        newest, counts, latest = self._streams.newest_by_publisher(), dict[str, int](), dict[str, int]()
        for feed in self.feeds():
            here = unread.get(feed.publisher, 0)
            for stream in (f"feed/{feed.key}", *(LABEL + label for label in _labels(feed)), READING_LIST):
                counts[stream] = counts.get(stream, 0) + here
                latest[stream] = max(latest.get(stream, 0), newest.get(feed.publisher, 0))
        listed = [
            {"id": stream, "count": count, "newestItemTimestampUsec": str(latest[stream])}
            for stream, count in counts.items()
        ]
        return {"max": sum(unread.values()), "unreadcounts": listed}

    def item_ids(self, form: Form) -> dict[str, Any]:
        """Return the numbers of the stories of a stream."""
        places, continuation = self._found(_one(form, "s") or READING_LIST, form, IDS_LIMIT)
        refs = [
            {"id": str(number_of(place.id)), "directStreamIds": [], "timestampUsec": str(place.published_us)}
            for place in places
        ]
        return {"itemRefs": refs} | continuation

    def contents(self, stream: str, form: Form) -> dict[str, Any]:
        """Return the stories of a stream with their texts."""
        places, continuation = self._found(stream, form, ITEMS_LIMIT)
        return self._listed(stream, [place.id for place in places]) | continuation

    def items(self, form: Form) -> dict[str, Any]:
        """Return the stories with these numbers, with their texts."""
        return self._listed(READING_LIST, self._named(form.get("i", ()))[:ITEMS_LIMIT])

    def edit_tags(self, form: Form) -> None:
        """Mark stories as read or unread, save or unsave them; other tags are ignored."""
        ids = self._named(form.get("i", ()))
        added = {_canonical(tag) for tag in form.get("a", ())}
        removed = {_canonical(tag) for tag in form.get("r", ())}
        if READ in added:
            self._read(ids)
        if READ in removed or KEPT_UNREAD in added:
            self._device.library.mark(ids, read=False)
        saved = {one.news_id for one in self._device.parts.stores.feedback.reactions("save")}
        for news_id in ids:
            if (STARRED in added and news_id not in saved) or (STARRED in removed and news_id in saved):
                self._show([news_id])
                self._device.library.react(news_id, "save")

    def mark_all(self, form: Form) -> None:
        """Mark a whole stream as read, up to a time; the ranking learns nothing from it."""
        stream, upto = self._stream(_one(form, "s") or READING_LIST), _one(form, "ts")
        until_us = int(upto) if upto and upto.isdecimal() else None
        if until_us is not None and until_us < 10**14:  # in seconds, as some apps send it
            until_us *= 1_000_000
        places = self._streams.page(Stream(stream.publishers, read=False, saved=stream.saved), 2**31)
        self._device.library.mark([place.id for place in places if until_us is None or place.published_us <= until_us])

    def edit_subscription(self, form: Form) -> None:
        """Follow, rename, move or remove a feed."""
        action, title = _one(form, "ac"), _one(form, "t")
        labels = [_label(tag) for tag in form.get("a", ())]
        for stream in form.get("s", ()):
            address = stream.removeprefix("feed/")
            if action == "subscribe":
                self._own.follow(address, title=title or "", folder=_folder(labels[0]) if labels else ())
                continue
            feed = self._feed(address)
            if action == "unsubscribe":
                self._own.remove(feed.key)
            elif action == "edit":
                moved = _folder(labels[0]) if labels else () if form.get("r") else None
                self._own.change(ChangeFeed(key=feed.key, title=title, folder=moved))
            else:
                raise Refused("ac must be subscribe, unsubscribe or edit")

    def quick_add(self, form: Form) -> dict[str, Any]:
        """Follow the best feed found for what was typed."""
        typed = (_one(form, "quickadd") or "").removeprefix("feed/")
        try:
            found = self._own.find(typed)[0]
            if not found.followed:
                self._own.follow(found.url, site=found.site)
        except (BackendRefused, IndexError) as refused:
            return {"query": typed, "numResults": 0, "error": str(refused)}
        feed = next((one for one in self.feeds() if one.url == found.url), None)
        key = found.url if feed is None else feed.key
        return {"query": typed, "numResults": 1, "streamId": f"feed/{key}", "streamName": found.title or found.url}

    def rename_tag(self, form: Form) -> None:
        self._own.rename_folder(_folder(_label(_one(form, "s") or "")), _folder(_label(_one(form, "dest") or "")))

    def disable_tag(self, form: Form) -> None:
        self._own.rename_folder(_folder(_label(_one(form, "s") or "")), ())

    def _read(self, ids: Sequence[str]) -> None:
        if len(ids) > OPENED_AT_ONCE:
            self._device.library.mark(ids)
            return
        self._show(ids)
        read = self._streams.read_among(ids)
        for news_id in ids:
            if news_id not in read:
                self._device.reading.click(news_id)

    def _found(self, stream: str, form: Form, most: int) -> tuple[list[Place], dict[str, Any]]:
        wanted, left_out = self._stream(stream), {_canonical(tag) for tag in form.get("xt", ())}
        included = {_canonical(tag) for tag in form.get("it", ())}
        read = False if READ in left_out else True if READ in included else wanted.read
        saved = False if STARRED in left_out else True if STARRED in included else wanted.saved
        since, before = _moment(form, "ot"), _moment(form, "nt")
        requested = Stream(wanted.publishers, read, saved, None if since is None else since - LATE, before)
        count = _one(form, "n") or ""
        limit = min(max(int(count), 1), most) if count.isdecimal() else ITEMS_USUAL
        found = self._streams.page(requested, limit + 1, _place(_one(form, "c")), oldest_first=_one(form, "r") == "o")
        if len(found) <= limit:
            return found, {}
        last = found[limit - 1]
        return found[:limit], {"continuation": f"{last.published_us}.{last.id}"}

    def _stream(self, name: str) -> Stream:
        name = _canonical(name)
        if name.startswith("feed/"):
            return Stream(frozenset({self._feed(name.removeprefix("feed/")).publisher}))
        if name.startswith(LABEL):
            label = name.removeprefix(LABEL)
            return Stream(frozenset(feed.publisher for feed in self.feeds() if label in _labels(feed)))
        if name not in STREAMS:
            raise Unknown
        return STREAMS[name]

    def _feed(self, named: str) -> OwnFeed:
        found = next((feed for feed in self.feeds() if named in (feed.key, feed.url)), None)
        if found is None:
            raise Unknown
        return found

    def _named(self, texts: Iterable[str]) -> list[str]:
        meant = [numbers_of(text) for text in texts]
        with self._lock:
            if any(not any(number in self._ids for number in each) for each in meant):
                self._ids = {number_of(news_id): news_id for news_id in self._streams.ids()}
            found = [next((self._ids[number] for number in each if number in self._ids), None) for each in meant]
        return [news_id for news_id in found if news_id is not None]

    def _show(self, ids: Sequence[str]) -> list[NewsCard]:
        """Return the cards of these articles, which can then be opened and saved."""
        device = self._device
        with device.lists.still():
            cards = device.whole_pool.cards_of(ids)
            device.whole_pool.show(cards)
        return cards

    def _listed(self, stream: str, ids: Sequence[str]) -> dict[str, Any]:
        cards, stores = self._show(ids), self._device.parts.stores
        texts = {card.id: stores.news.body(card.id) for card in cards}
        if missing := [news_id for news_id, text in texts.items() if text is None]:
            texts |= self._own.texts(missing)
        read, saved = self._streams.read_among(ids), {one.news_id for one in stores.feedback.reactions("save")}
        feeds = {feed.publisher: feed for feed in self.feeds()}
        return {
            "direction": "ltr",
            "id": stream,
            "title": "Ownfeed",
            "updated": int(datetime.now(UTC).timestamp()),
            "items": [
                _item(card, texts.get(card.id), feeds.get(card.publisher), card.id in read, card.id in saved)
                for card in cards
            ],
        }


def _item(card: NewsCard, text: str | None, feed: OwnFeed | None, is_read: bool, is_saved: bool) -> dict[str, Any]:
    published = int(card.published_at.timestamp())
    link = [{"href": card.url}] if card.url else []
    categories = [READING_LIST]
    categories += [READ] if is_read else []
    categories += [STARRED] if is_saved else []
    categories += [LABEL + label for label in (_labels(feed) if feed else ())]
    key = feed.key if feed else card.publisher
    return {
        "id": f"{ITEM}{number_of(card.id):016x}",
        "crawlTimeMsec": str(published * 1_000),
        "timestampUsec": str(published * 1_000_000),
        "published": published,
        "updated": published,
        "title": card.title,
        "author": card.publisher,
        "canonical": link,
        "alternate": [{**each, "type": "text/html"} for each in link],
        "categories": categories,
        "origin": {
            "streamId": f"feed/{key}",
            "title": feed.shown if feed else card.publisher,
            "htmlUrl": feed.site or feed.url if feed else "",
        },
        "summary": {"direction": "ltr", "content": _html(text, card)},
    }


def _html(text: str | None, card: NewsCard) -> str:
    """Return a story's text as checked HTML; its abstract if the text is missing or fails the check."""
    try:
        written = write_body(read_body(text)) if text else ""
    except BodyError:
        written = ""
    return written or (f"<p>{escape(card.abstract)}</p>" if card.abstract else "")


def _labels(feed: OwnFeed) -> list[str]:
    return [SEPARATOR.join(feed.folder)] if feed.folder else []


def _label(tag: str) -> str:
    return _canonical(tag).removeprefix(LABEL)


def _folder(label: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in label.split(SEPARATOR) if name.strip())


def _canonical(tag: str) -> str:
    """Return a tag with '-' as its user, since there is only one reader."""
    return _ANY_USER.sub("user/-/", tag)


def _one(form: Form, name: str) -> str | None:
    return next(iter(form.get(name, ())), None)


def _moment(form: Form, name: str) -> datetime | None:
    text = _one(form, name) or ""
    if not text.isdecimal() or not 0 < int(text) < 10**11:
        return None
    return datetime.fromtimestamp(int(text), UTC)


def _place(text: str | None) -> Place | None:
    published_us, dot, news_id = (text or "").partition(".")
    return Place(int(published_us), news_id) if dot and published_us.lstrip("-").isdecimal() else None


def router(device: Device, password: PasswordFile, guesses: PasswordLimiter) -> APIRouter:
    """Return the routes of the API; all answer 401 or 403 until there is an app password."""
    routes = APIRouter(include_in_schema=False)
    api = AppApi(device)
    answered_as_json = {
        "user-info": lambda form: {
            "userId": "1", "userName": device.settings.profile, "userProfileId": "1", "userEmail": "",
        },
        "subscription/list": lambda form: api.subscriptions(),
        "tag/list": lambda form: api.tags(),
        "unread-count": lambda form: api.unread_counts(),
        "stream/items/ids": api.item_ids,
        "stream/items/contents": api.items,
        "subscription/quickadd": api.quick_add,
    }  # fmt: skip
    done = {
        "edit-tag": api.edit_tags,
        "mark-all-as-read": api.mark_all,
        "subscription/edit": api.edit_subscription,
        "rename-tag": api.rename_tag,
        "disable-tag": api.disable_tag,
    }

    def login(form: Form, address: str) -> Response:
        """Exchange the app password for a token, as ClientLogin did; the name may be anything."""
        if not password.is_set():
            return PlainTextResponse("Error=ServiceDisabled\n", 403)
        if wait_sec := guesses.wait_sec(address):
            return PlainTextResponse("Error=TooManyTries\n", 429, {"retry-after": str(wait_sec)})
        if not password.matches(_one(form, "Passwd") or ""):
            guesses.wrong(address)
            return PlainTextResponse("Error=BadAuthentication\n", 401)
        guesses.right(address)
        token = f"{device.settings.profile}/{password.derived(_USE)}"
        return PlainTextResponse(f"SID={token}\nLSID={token}\nAuth={token}\n")

    def signed_in(header: str) -> bool:
        kept = password.derived(_USE)
        scheme, _, shown = header.partition(" ")
        token = shown.strip().removeprefix("auth=").rpartition("/")[2]
        return (
            kept is not None and scheme.lower() == "googlelogin" and hmac.compare_digest(token.encode(), kept.encode())
        )

    def answer(what: str, form: Form) -> Response:
        try:
            if what == "token":
                return PlainTextResponse(password.derived(_USE + b" token"))
            if what.startswith("stream/contents/") or what == "stream/contents":
                stream = what.removeprefix("stream/contents").lstrip("/") or _one(form, "s") or READING_LIST
                return JSONResponse(api.contents(stream, form))
            if what in answered_as_json:
                return JSONResponse(answered_as_json[what](form))
            if what in done:
                done[what](form)
                return PlainTextResponse("OK")
            raise Unknown
        except (Unknown, NewsNotHere):
            return PlainTextResponse("Not found\n", 404)
        except Refused as refused:
            return PlainTextResponse(f"{refused}\n", 400)
        except BackendRefused as refused:
            return PlainTextResponse(f"{refused.problem.detail}\n", 400)
        except DeviceError as trouble:
            return PlainTextResponse(f"{trouble}\n", 503)

    async def form_of(request: Request) -> Form | None:
        """Return the query's and the form's values by name; None if the form is too large."""
        values: dict[str, list[str]] = {}
        pairs = list(request.query_params.multi_items())
        size = request.headers.get("content-length", "0")
        if request.method == "POST":
            if not size.isdecimal() or int(size) > FORM_LIMIT_BYTES:
                return None
            async with request.form(max_fields=2 * ITEMS_LIMIT + 20) as form:
                pairs += [(name, value) for name, value in form.multi_items() if isinstance(value, str)]
        for name, value in pairs:
            values.setdefault(name, []).append(value)
        return values

    async def client_login(request: Request) -> Response:
        form = await form_of(request)
        if form is None:
            return PlainTextResponse("Too large\n", 413)
        return await run_in_threadpool(login, form, request.client.host if request.client else "")

    async def ask(request: Request, what: str) -> Response:
        if not signed_in(request.headers.get("authorization", "")):
            return PlainTextResponse("Unauthorized\n", 401, {"google-bad-token": "true"})
        form = await form_of(request)
        if form is None:
            return PlainTextResponse("Too large\n", 413)
        return await run_in_threadpool(answer, what, form)

    for prefix in API_PREFIXES:
        routes.add_api_route(prefix + LOGIN_PATH, client_login, methods=["GET", "POST"])
        routes.add_api_route(f"{prefix}{API_PATH}{{what:any}}", ask, methods=["GET", "POST"])
    return routes
