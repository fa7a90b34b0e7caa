"""Dates of feeds. Oracle: the days written out by hand, as a reader of the language reads them; of dates as in mail,
Python's own reader of them."""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime
from itertools import product
from random import Random

import pytest

from backend.news.sources import feed_dates
from backend.news.sources.feed_dates import DateReader

READ = {
    "2026/11/25 06:09:48": "2026-11-25 06:09:48",
    "Mi, 25 Nov 2026 06:09:48": "2026-11-25 06:09:48",
    "25.11.2026 06:09": "2026-11-25 06:09",
    "11/25/2026 06:09:48 AM": "2026-11-25 06:09:48",
    "1795586988": "2026-11-25",
    "1795586988000": "2026-11-25",
    "Mo, 02 Okt 2026 10:00:00 +0200": "2026-10-02 08:00",
    "03.04.2026": "2026-04-03",
    "25/11/2026": "2026-11-25",
    "Thu, 19 Nov 26 09:00:00 GMT": "2026-11-19 09:00",
    "19 Nov 2026 04:00:00 EST": "2026-11-19 09:00",
    "2026-11-19T09:00:00Z": "2026-11-19 09:00",
    "2026-11-19T10:00:00+01:00": "2026-11-19 09:00",
    "2026-11-19T10:00:00.123+01:00": "2026-11-19 09:00",
    "20261119T09:00:00Z": "2026-11-19 09:00",
    "Thu Nov 19 09:00:00 2026": "2026-11-19 09:00",
    "2026-11-19 09:00:00": "2026-11-19 09:00",
    "mer., 25 nov. 2026 10:00:00 +0100": "2026-11-25 09:00",
    "mercredi 25 novembre 2026 à 10h30": "2026-11-25 10:30",
    "25 novembre 2026": "2026-11-25",
    "mar. 24 nov. 2026": "2026-11-24",
    "mar, 24 mar 2026": "2026-03-24",
    "Mittwoch, 25. November 2026 06:09 Uhr": "2026-11-25 06:09",
    "25. März 2026": "2026-03-25",
    "Mi, 25 Dez 2026 06:09:48 +0100": "2026-12-25 05:09:48",
    "miércoles, 25 de noviembre de 2026": "2026-11-25",
    "mié, 25 ene 2026 10:00:00 GMT": "2026-01-25 10",
    "mercoledì 25 novembre 2026": "2026-11-25",
    "mer, 25 gen 2026 10:00:00 +0100": "2026-01-25 09",
    "Qua, 25 Fev 2026 10:00:00 -0300": "2026-02-25 13",
    "25 de dezembro de 2026 às 10:00": "2026-12-25 10",
    "Ср, 25 ноя 2026 10:00:00 +0300": "2026-11-25 07",
    "25 ноября 2026 г.": "2026-11-25",
    "среда, 25 ноября 2026 г. 10:00": "2026-11-25 10",
    "śr, 25 lis 2026 10:00:00 +0100": "2026-11-25 09",
    "25 listopada 2026": "2026-11-25",
    "środa, 25 listopada 2026": "2026-11-25",
    "wo, 25 mrt 2026 10:00:00 +0100": "2026-03-25 09",
    "woensdag 25 november 2026": "2026-11-25",
    "2026年11月25日": "2026-11-25",
    "2026年11月25日 06:09:48": "2026-11-25 06:09:48",
    "2026年11月25日 下午3:04": "2026-11-25 15:04",
    "2026年11月25日（水）10時30分": "2026-11-25 10:30",
    "2026년 11월 25일": "2026-11-25",
    "2026년 11월 25일 오후 3:04": "2026-11-25 15:04",
    "2026. 11. 25. 오후 3:04": "2026-11-25 15:04",
    "25. 11. 2026 06:09": "2026-11-25 06:09",
    "November 25, 2026": "2026-11-25",
    "Nov. 25, 2026 6:09 pm EST": "2026-11-25 23:09",
    "Nov 25, 2026, 6:09 a.m.": "2026-11-25 06:09",
    "25-Nov-2026": "2026-11-25",
    "25-11-2026": "2026-11-25",
    "Wed, 25 November 2026 06:09:48 PST": "2026-11-25 14:09",
    "Sat Nov 28 2026 05:00:00 GMT+0100 (Central European Standard Time)": "2026-11-28 04",
    "25/Nov/2026:06:09:48 +0000": "2026-11-25 06:09:48",
    "2026-329": "2026-11-25",
    "2026-W48-3": "2026-11-25",
    "Wed, 25 Nov 2026 24:00:00 GMT": "2026-11-26 00:00",
    "Wed, 25 Nov 2026 23:59:60 GMT": "2026-11-25 23:59",
    "Wed, 25 Nov 2026 25:10:00 GMT": "2026-11-25",
    "Wed, 25 Nov 2026 13:05:00 PM": "2026-11-25 13:05",
    "25 Kasım 2026": "2026-11-25",
    "25 tháng 11, 2026": "2026-11-25",
    "ngày 25 tháng 11 năm 2026": "2026-11-25",
    "25 نوفمبر 2026": "2026-11-25",
    "٢٥ نوفمبر ٢٠٢٦": "2026-11-25",
    "25 בנובמבר 2026": "2026-11-25",
    "25 नवंबर 2026": "2026-11-25",
    "25 Νοεμβρίου 2026": "2026-11-25",
    "25. listopadu 2026": "2026-11-25",
    "25 listopad 2026": "2026-11-25",
    "2026. november 25.": "2026-11-25",
    "25 noiembrie 2026": "2026-11-25",
    "25 november 2026 kl. 10:00": "2026-11-25 10",
    "25. marraskuuta 2026": "2026-11-25",
    "2026/11/25": "2026-11-25",
    "2026.11.25": "2026-11-25",
    "2026-1-5": "2026-01-05",
    "20261125": "2026-11-25",
    "20261125060948": "2026-11-25 06:09:48",
    "Wed, 25 Nov 2026 06:09:48 Europe/Berlin": "2026-11-25",
    "Wed, 25 Nov 2026 06:09:48 +01:00": "2026-11-25 05:09",
    "Wed, 25 Nov 2026 06:09:48 GMT+2": "2026-11-25 04:09",
    "Wed,25 Nov 2026 06:09": "2026-11-25 06:09",
    "Wednesday, November 25th, 2026": "2026-11-25",
    "25th November 2026": "2026-11-25",
    "1er novembre 2026": "2026-11-01",
    "2026-11-25T06:09:48+0000": "2026-11-25 06:09:48",
    "2026-11-25T06:09Z": "2026-11-25 06:09",
    "2026-11-25 06:09:48 UTC": "2026-11-25 06:09",
    "2026-11-25 06:09:48 +0100": "2026-11-25 05:09",
    "2026-11-25 06:09:48.000000": "2026-11-25 06",
    "06:09 25.11.2026": "2026-11-25 06:09",
    "10/10/2026": "2026-10-10",
    "Wed, 25 Nov 26": "2026-11-25",
    "2026-11-25T00:00:00-12:00": "2026-11-25 12",
    "2026-11-25T06:09:48,5Z": "2026-11-25 06:09:48",
    "Wed, 25 Nov 2026 6:9:48 GMT": "2026-11-25",
    "Срд, 25 Ноя 2026 10:00:00 +0300": "2026-11-25",
    "Sept. 5, 2026": "2026-09-05",
    "5 Sept 2026": "2026-09-05",
    "25 août 2026": "2026-08-25",
    "sáb., 28 nov. 2026": "2026-11-28",
    "Sa., 28. Nov. 2026": "2026-11-28",
    "28 feb. 2026": "2026-02-28",
    "Do 5.3.2026": "2026-03-05",
}
UNREADABLE = (
    "Thu, 01 Jan 1970 00:00:00 GMT",
    "03/04/2026",
    "yesterday",
    "",
    "99/99/9999",
    "Thu, 32 Foo 2026",
    "0000-00-00",
    "9" * 400,
    "2026-11",
    "2026",
    "November 2026",
    "25 November",
    "10:00",
    "Wed, 31 Nov 2026 10:00:00 GMT",
    "2026-02-30",
    "25.11.26",
    "25/11/26",
    "1405/09/04",
    "0001-01-01T00:00:00Z",
    "Mon, 01 Jan 0001 00:00:00 +0000",
    "Sunday",
    "May",
    "12",
    "3 days ago",
    "now",
    "令和8年11月25日",
)
MONTHS = {
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
    "ru": "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    "pl": "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
    "sv": "januari februari mars april maj juni juli augusti september oktober november december",
    "tr": "Ocak Şubat Mart Nisan Mayıs Haziran Temmuz Ağustos Eylül Ekim Kasım Aralık",
    "cs": "ledna února března dubna května června července srpna září října listopadu prosince",
}


def read_date(written: str, language: str = "", others: tuple[str, ...] = (), host: str = "") -> str | None:
    found = DateReader([written, *others], language, host).read(written)
    return None if found is None else "{:04}-{:02}-{:02} {:02}:{:02}:{:02}".format(*found)


@pytest.mark.parametrize("written", READ)
def test_dates_are_read_in_many_written_forms(written: str) -> None:
    assert (read_date(written) or "").startswith(READ[written])


@pytest.mark.parametrize("written", UNREADABLE)
def test_date_with_an_ambiguous_day_is_not_read(written: str) -> None:
    assert read_date(written) is None


@pytest.mark.parametrize("language", MONTHS)
@pytest.mark.parametrize("declared", [True, False])
def test_every_month_name_is_read_in_its_language(language: str, declared: bool) -> None:
    for month, name in enumerate(MONTHS[language].split(), start=1):
        assert read_date(f"25 {name} 2026 06:09", language if declared else "") == f"2026-{month:02}-25 06:09:00"


@pytest.mark.parametrize(
    ("written", "language", "others", "expected"),
    [
        ("03/04/2026", "", ("25/11/2026",), "2026-04-03"),
        ("03/04/2026", "", ("11/25/2026",), "2026-03-04"),
        ("03/04/2026", "", ("11/25/2026", "25/11/2026"), None),
        ("03/04/2026", "", ("03/05/2026",), None),
        ("03/04/2026", "de", (), "2026-04-03"),
        ("03/04/2026", "en-us", (), None),
        ("25.11.26", "de", (), "2026-11-25"),
        ("25 listopada 2026", "hr", (), "2026-10-25"),
        ("25 listopada 2026", "pl", (), "2026-11-25"),
    ],
)
def test_ambiguous_dates_are_resolved_by_other_dates_and_the_language(
    written: str, language: str, others: tuple[str, ...], expected: str | None
) -> None:
    found = read_date(written, language, others)
    assert found is None if expected is None else (found or "").startswith(expected)


def test_country_of_an_address_replaces_a_missing_language() -> None:
    assert read_date("25 listopada 2026", host="vijesti.example.hr") == "2026-10-25 00:00:00"


def test_dates_as_in_mail_are_read_without_the_names_of_other_languages(monkeypatch: pytest.MonkeyPatch) -> None:
    def unwanted() -> None:
        raise AssertionError("the names of all languages were loaded")

    monkeypatch.setattr(feed_dates, "_names", unwanted)
    weekdays = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    months = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    times = (" 06:09:48 +0200", " 6:09 GMT", " 06:09:48 EST", " 23:59:59 -0130", " 06:09:48")
    for weekday, day, month, time in product(weekdays, ("3", "03", "28"), months, times):
        written = f"{weekday}, {day} {month} 2026{time}"
        known = parsedate_to_datetime(written)
        utc = known.astimezone(UTC) if known.tzinfo else known
        for language in ("", "de", "fi", "ja"):
            assert DateReader([], language).read(written) == list(utc.timetuple()[:6]), written


def test_random_input_raises_no_error() -> None:
    draw = Random(3)
    pieces = [
        "2026",
        "11",
        "25",
        "/",
        ".",
        "-",
        ":",
        "Nov",
        "мая",
        "月",
        "年",
        "T",
        "Z",
        "+01:00",
        "(",
        "٣",
        "W48",
        "\x00",
    ]
    pieces.append(" ")
    for _ in range(2_000):
        read_date("".join(draw.choices(pieces, k=draw.randint(1, 9))))
