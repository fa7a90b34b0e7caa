"""Reads the dates of one feed in many languages and formats; ambiguous dates count as unreadable.

The names of months are translated by Babel's copy of CLDR, then python-dateutil reads the date. The order of a numeric
day and month must be certain: 25/11/2026 is, 03/04/2026 is not. Then the feed's other dates decide, or a language that
never writes the month first.

The parsing process runs this file, which imports nothing of Ownfeed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import cache
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo

Order = Literal["day first", "month first"]
LENGTH_LIMIT_CHARS = 120
FIRST_YEAR, LAST_YEAR = 1583, 9_000
"""Years of the Gregorian calendar; 1405 is Persian and 1448 Islamic."""
TWO_DIGITS_FROM = 1970
PLACEHOLDERS = (date(1, 1, 1), date(1899, 12, 30), date(1899, 12, 31), date(1900, 1, 1), date(1970, 1, 1))
"""What programs write for "no date": the zero of their calendar, or the day before in zones west of Greenwich."""

LARGE_LANGUAGES = ("en", "zh", "es", "fr", "de", "ja", "pt", "ru", "it", "nl", "pl", "ko")
"""Languages that come first if a name means different months in different languages and the feed names no language.
Listopada is November in Polish and October in Croatian.
"""
OTHER_LANGUAGES = tuple(
    """
    af ar az be bg bn bs ca cs cy da el eo et eu fa fi fil ga gl he hi hr hu hy id is ka kk lt lv mk ms nb nn ro sk sl
    sq sr sr_Latn sv sw ta te th tr uk ur uz vi
    """.split()  # noqa: SIM905 (a list would take a screen)
)
LANGUAGE_OF_COUNTRY = {"at": "de", "cz": "cs", "dk": "da", "gr": "el", "jp": "ja", "kr": "ko", "ua": "uk", "br": "pt"}
"""Languages of top-level domains that differ from the language's code."""
_SHORT_NAME = 3
_ENGLISH = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_ZONES_MIN = {
    name: minutes
    for minutes, names in {
        0: "UT UTC GMT Z WET", 60: "CET MEZ BST WEST", 120: "CEST MESZ EET SAST", 180: "EEST MSK МСК", 210: "IRST",
        240: "GST MSD", 300: "PKT", 330: "IST", 345: "NPT", 420: "ICT WIB", 480: "AWST HKT SGT", 540: "JST KST",
        570: "ACST", 600: "AEST", 630: "ACDT", 660: "AEDT", 720: "NZST", 780: "NZDT", -150: "NDT", -210: "NST",
        -180: "ADT ART BRT", -240: "AST EDT CLT", -300: "EST CDT COT", -360: "CST MDT", -420: "MST PDT",
        -480: "PST AKDT", -540: "AKST", -600: "HST",
    }.items()
    for name in names.split()
}  # fmt: skip
"""Minutes east of Greenwich by the zone names of mail and feeds; ambiguous names as in RFC 822."""
_LEFT_OUT = frozenset(
    """
    a à ad al at da das de del den der di do dos el em en et g h hrs klo kl la las le lo los o of ob ore ora os o'clock
    on om pe på r roku s saat the ti tại u uhr um ur uur v ve year à ás às в г года году год о р року рік годзіне lúc
    ngày năm pukul jam tanggal שעה ב في الساعة
    """.split()  # noqa: SIM905
)
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th|er|re|º|ª|°|\.º)(?![^\W\d_])", re.IGNORECASE)
_WORD = re.compile(r"[^\d\s\x00-\x26\x28-\x40\x5b-\x60\x7b-\xa9\xab-\xb9\xbb-\xbf\u2000-\u206f\u3000-\u303f]+")
_IN_FIGURES = re.compile(
    r"(?<![\d:.+-])(\d{1,4})(?:\s?([./-])\s?)(\d{1,2})(?:\s?\2\s?)(\d{1,4})(?:\.(?!\d))?(?![./\d-])"
)
_EPOCH = re.compile(r"(-?\d{1,13})(?:\.\d+)?")
_ORDINAL_DAY = re.compile(r"(\d{4})-(\d{3})(?!\d)")
_REGION = re.compile(r"(?<!\S)[A-Z][a-z]+(?:/[A-Z][A-Za-z_]+){1,2}(?!\S)")
"""A zone of the tz database, as in Europe/Berlin."""
_YEAR_ZERO = re.compile(r"(?<![\d+-])00\d\d(?!\d)")
"""dateutil reads the year 0001 as 2001."""
_TIME = re.compile(r"(?<!\d)(\d{1,2}):(\d{2})(?::(\d{2}))?")
_AS_IN_MAIL = re.compile(
    rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (\d{{1,2}} (?:{'|'.join(_ENGLISH)}) \d{{4}}"
    r"(?: \d{1,2}:\d{2}(?::\d{2})?(?: [A-Z]{1,5}| [+-]\d{4})?)?)"
)
"""RFC 822's form, in which most feeds write; the group leaves out the weekday."""


class DateReader:
    """Reads the dates of one feed. language: as it declares, '' if it doesn't. host: of its address."""

    def __init__(self, written: Iterable[str], language: str = "", host: str = "") -> None:
        ending = host.rpartition(".")[2].lower()
        hint = re.split(r"[-_]", language.strip().lower())[0] or LANGUAGE_OF_COUNTRY.get(ending, ending)
        self._language = hint if hint in (*LARGE_LANGUAGES, *OTHER_LANGUAGES) else ""
        self._order = self._learnt(written)
        self._known: dict[str, list[int] | None] = {}

    def read(self, written: str) -> list[int] | None:
        """Year, month, day, hour, minute and second in UTC; None if it isn't a date or is ambiguous.

        A date without a zone counts as UTC.
        """
        if written not in self._known:
            found = self._moment(_plain(written))
            self._known[written] = None if found is None else list(found.timetuple()[:6])
        return self._known[written]

    def _learnt(self, written: Iterable[str]) -> Order | None:
        """The order of numeric day and month, if the feed's dates or language show it."""
        seen: set[Order] = set()
        for text in map(_plain, written):
            for first, mark, second, last in _IN_FIGURES.findall(text):
                if len(last) == 4 and mark != ".":
                    if 12 < int(first) <= 31 and int(second) <= 12:
                        seen.add("day first")
                    elif 12 < int(second) <= 31 and int(first) <= 12:
                        seen.add("month first")
        if len(seen) == 1:
            return seen.pop()
        return "day first" if not seen and self._language not in ("", "en", "fil", "sw") else None

    def _moment(self, text: str) -> datetime | None:
        if not text or len(text) > LENGTH_LIMIT_CHARS:
            return None
        try:
            found = _since_1970(text) if _EPOCH.fullmatch(text) else None
            found = found or _ordinal_day(text) or self._in_words(text)
        except (ValueError, OverflowError):  # dateutil's errors are ValueErrors
            return None
        if found is None or found.date() in PLACEHOLDERS or not FIRST_YEAR <= found.year <= LAST_YEAR:
            return None
        utc = found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
        return None if utc.date() in PLACEHOLDERS or utc.date() == date(1969, 12, 31) else utc

    def _in_words(self, text: str) -> datetime | None:
        region = _REGION.search(text)
        if region is not None:
            text = text.replace(region[0], " ")
        ordered = self._ordered(text)
        plain = None if ordered is None or _YEAR_ZERO.search(ordered) else self._in_english(ordered)
        found = None if plain is None else _by_dateutil(plain)
        if found is None or region is None or found.tzinfo is not None:
            return found
        return found.replace(tzinfo=_zone(region[0]))

    def _ordered(self, text: str) -> str | None:
        """The text with a numeric date written as year-month-day; None if its order is uncertain."""
        found = list(_IN_FIGURES.finditer(text))
        if not found:
            return text
        if len(found) > 1:
            return None
        first, mark, second, last = found[0].groups()
        day_first = self._order == "day first" or (mark == "." and self._order is None)
        if len(first) == 4:
            parts = (first, second, last)
        elif len(last) == 4:
            candidates = {(last, second, first), (last, first, second)}
            certain = [one for one in candidates if _is_day(*one)]
            if len(certain) != 1:
                if not certain or not (day_first or self._order):
                    return None
                certain = [(last, second, first) if day_first else (last, first, second)]
            parts = certain[0]
        elif self._order is not None and len(first) == len(second) == len(last) == 2:
            year = _four_digit_year(last)
            parts = (year, second, first) if self._order == "day first" else (year, first, second)
        else:
            return None
        if not _is_day(*parts):
            return None
        dated = "{:04}-{:02}-{:02}".format(*(int(part) for part in parts))
        rest = text[found[0].end() :].lstrip("T ,")
        return f"{text[: found[0].start()]}{dated} {rest}"

    def _in_english(self, text: str) -> str | None:
        """The text with its month in English, without weekdays and words such as 'Uhr'; None for two months.

        Raises ValueError for an unknown word.
        """
        usual = _AS_IN_MAIL.fullmatch(text)
        text = usual[1] if usual else text
        words = [match[0] for match in _WORD.finditer(text)]
        # Loading the names of all languages takes half a second of processor time, and few feeds need them.
        if all(word in _ENGLISH or word.upper() in _ZONES_MIN or word in ("T", "AM", "PM") for word in words):
            return text
        names = _names()
        months: list[int] = []
        figures = bool(re.search(r"\d{4}-\d{2}-\d{2}", text))

        def in_english(match: re.Match[str]) -> str:
            word = match[0].casefold().strip("'’")
            if word in ("t", "am", "pm") or word.upper() in _ZONES_MIN:
                return match[0].upper() if word.upper() in _ZONES_MIN else match[0]
            leads = not re.search(r"\w", match.string[: match.start()])
            month_follows = leads and _names_month(match.string[match.end() :], names)
            comma = match.string[match.end() :].lstrip(".").startswith(",")
            if leads and comma and (figures or month_follows):
                return " "  # a weekday in some form
            month = None if figures else names.month(word, self._language)
            if word in names.weekdays and (month is None or month_follows):
                return " "
            if month is not None:
                months.append(month)
                return f" {_ENGLISH[month - 1]} "
            if word in _LEFT_OUT:
                return " "
            if match[0].isascii() and match[0].isupper() and len(word) <= 5:  # an unknown zone: read as UTC
                return " "
            raise ValueError(f"{match[0]!r} doesn't belong to a date")

        plain = _WORD.sub(in_english, names.joined(text))
        if len(months) > 1:
            return None
        return re.sub(r"\.(?!\d)", " ", re.sub(r"(?<=\d)\.(?=\s)", " ", plain)) if months else plain


def _names_month(text: str, names: _Names) -> bool:
    return any(names.is_month(word[0].casefold()) for word in _WORD.finditer(text))


class _Names(NamedTuple):
    """The names of months and weekdays in all languages, in lower case without a final dot."""

    months: dict[str, dict[str, int]]
    """Month by language, by name."""
    weekdays: frozenset[str]
    several_words: re.Pattern[str]
    """Names of months that have several words."""

    def joined(self, text: str) -> str:
        """The text with month names of several words replaced by English ones."""
        return self.several_words.sub(lambda found: f" {_ENGLISH[self._any(found[0].casefold()) - 1]} ", text)

    def _any(self, name: str) -> int:
        return next(iter(self.months[name].values()))

    def is_month(self, word: str) -> bool:
        """Whether this is a month's name in any language, or an abbreviation of one."""
        return word in self.months or (len(word) >= _SHORT_NAME and any(one.startswith(word) for one in self.months))

    def month(self, word: str, language: str) -> int | None:
        """The month that this name or abbreviation means; None if unknown or uncertain."""
        found = self.months.get(word)
        if found is None and len(word) >= _SHORT_NAME:
            found = {}
            for name, months in self.months.items():
                if name.startswith(word):
                    for each, month in months.items():
                        if found.setdefault(each, month) != month:
                            found[each] = 0
        if not found:
            return None
        if language in found:
            return found[language] or None
        if len(set(found.values())) == 1:
            return next(iter(found.values())) or None
        return next((found[each] for each in LARGE_LANGUAGES if found.get(each)), None)


@cache
def _names() -> _Names:
    from babel import Locale

    months: dict[str, dict[str, int]] = {}
    weekdays: set[str] = set()
    for language in (*LARGE_LANGUAGES, *OTHER_LANGUAGES):
        locale = Locale.parse(language)
        short = language.partition("_")[0]
        for form in ("format", "stand-alone"):
            for width in ("wide", "abbreviated"):
                for month, name in locale.months[form][width].items():
                    months.setdefault(_name(name), {}).setdefault(short, month)
                weekdays.update(_name(name) for name in locale.days[form][width].values())
        weekdays.update(_name(name) for name in locale.days["format"]["short"].values())
    months |= {f"ב{name}": found for name, found in months.items() if "he" in found}  # "in November"
    months = {name: found for name, found in months.items() if not re.fullmatch(r"[\d월月]+", name)}
    weekdays.update(unicodedata.normalize("NFC", name) for name in ("thur", "thurs", "tues", "weds"))
    weekdays -= {name for name in weekdays if len(name) < 2 and name.isascii()}
    several = sorted((name for name in months if not _WORD.fullmatch(name)), key=len, reverse=True)
    pattern = "|".join(rf"(?<![^\W\d_]){re.escape(name)}(?![^\W_])" for name in several)
    return _Names(months, frozenset(weekdays), re.compile(pattern, re.IGNORECASE))


def _name(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold().strip(" .").replace(".", "")


def _plain(written: str) -> str:
    """The text with ASCII digits, Chinese, Japanese and Korean dates as numbers, and no comments in brackets."""
    text = unicodedata.normalize("NFKC", written[: LENGTH_LIMIT_CHARS + 1]).replace("−", "-")
    text = "".join(str(unicodedata.digit(char)) if char.isdigit() and not char.isascii() else char for char in text)
    text = re.sub(r"\([^()]*\)|[\u200b-\u200f\u202a-\u202e\ufeff]", " ", text)
    text = re.sub(r"(\d)\s*[年년]\s*(\d{1,2})\s*[月월]\s*(\d{1,2})\s*[日號号일]?", r"\1-\2-\3 ", text)
    text = re.sub(r"(\d{1,2})\s*[時时點点시]\s*(\d{1,2})\s*[分분](?:\s*(\d{1,2})\s*[秒초])?", _clock, text)
    text = re.sub(r"上午|午前|오전|凌晨|早上", " AM ", text)
    text = re.sub(r"下午|午後|오후|晚上", " PM ", text)
    text = re.sub(r"\b(?:GMT|UTC)\s?([+-]\d)", r" \1", text)  # dateutil reads GMT+1 as west of Greenwich
    text = re.sub(r"\b([ap])\s*\.\s*m\b\.?", r" \1m ", text, flags=re.IGNORECASE)
    text = re.sub(r"(?<![^\W_])([AP]M)\s*(\d{1,2}:\d{2}(?::\d{2})?)", r"\2 \1", text)
    text = re.sub(r"(?<=\d)\s?h\s?(?=\d{2}(?!\d))", ":", text)
    text = re.sub(r"(\d{4}):(\d{1,2}:\d{2})", r"\1 \2", text)  # a web server's log: 25/Nov/2026:06:09:48
    text = re.sub(r"(?<=[A-Za-z])/|(?<=\d)/(?=[A-Za-z])", " ", text) if re.search(r"\d/[A-Za-z]", text) else text
    return " ".join(_ORDINAL.sub(" ", text).split())


def _clock(found: re.Match[str]) -> str:
    return f" {int(found[1]):02}:{int(found[2]):02}:{int(found[3] or 0):02} "


def _is_day(year: str, month: str, day: str) -> bool:
    try:
        date(int(year), int(month), int(day))
    except ValueError:
        return False
    return True


def _four_digit_year(two_digits: str) -> str:
    year = TWO_DIGITS_FROM - TWO_DIGITS_FROM % 100 + int(two_digits)
    return str(year if year >= TWO_DIGITS_FROM else year + 100)


def _since_1970(text: str) -> datetime | None:
    """The time given as seconds or milliseconds since 1970; None for other numbers, such as 20261125."""
    figures = text.partition(".")[0].lstrip("-")
    if len(figures) not in (9, 10, 13):
        return None
    return datetime.fromtimestamp(int(figures) / (1_000 if len(figures) == 13 else 1), UTC)


def _ordinal_day(text: str) -> datetime | None:
    """The date given as ISO 8601's day of the year, 2026-329, or week, 2026-W48-3; None for others."""
    if re.match(r"\d{4}-?W\d{2}-?\d", text):
        from dateutil.parser import isoparse

        found_week: datetime = isoparse(text)
        return found_week
    found = _ORDINAL_DAY.match(text)
    return None if found is None else datetime.strptime(found[0], "%Y-%j")  # noqa: DTZ007 (read as UTC)


def _by_dateutil(text: str) -> datetime | None:
    """The date that dateutil reads; None if year, month or day is missing. An impossible time is ignored."""
    from dateutil.parser import parse, parserinfo

    later = timedelta()
    if (time := _TIME.search(text)) is not None and not _is_time(time):
        if int(time[1]) == 24 and not int(time[2]) and not int(time[3] or 0):
            later = timedelta(days=1)
            text = text[: time.start()] + "00:00" + text[time.end() :]
        elif int(time[1]) < 24 and int(time[2]) < 60:  # a leap second
            text = f"{text[: time.start(3)]}59{text[time.end(3) :]}"
        else:
            text = text[: time.start()]
    if time is not None and not 0 < int(time[1]) <= 12:
        text = re.sub(r"(?<![^\W_])[AaPp][Mm](?![^\W_])", " ", text)
    info = parserinfo()
    read = [
        parse(text, parserinfo=info, tzinfos=_offset_sec, default=datetime(year, month, day))  # noqa: DTZ001
        for year, month, day in ((2000, 1, 1), (2004, 3, 30))
    ]
    one, other = read
    if one.date() != other.date() or not re.search(r"\d", text):
        return None
    moment: datetime = one + later
    return moment


def _zone(region: str) -> tzinfo:
    try:
        return ZoneInfo(region)
    except (KeyError, ValueError, OSError):  # ZoneInfoNotFoundError is a KeyError
        return UTC


def _offset_sec(name: str | None, offset_sec: int | None) -> int | None:
    """Seconds east of Greenwich; None without a zone. Unknown zones count as UTC."""
    if offset_sec is not None or name is None:
        return offset_sec
    return 60 * _ZONES_MIN.get(name.upper(), 0)


def _is_time(time: re.Match[str]) -> bool:
    return int(time[1]) < 24 and int(time[2]) < 60 and int(time[3] or 0) < 60
