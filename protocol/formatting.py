"""Figures as people read them: ages, sizes, times, budgets.

The backend writes them by the same rules.
"""

import math
from datetime import datetime

WORDS_PER_MINUTE = 220


def age(then: datetime, now: datetime) -> str:
    """'just now', '14 min', '3 h', 'yesterday', '4 days', then the date."""
    seconds = (now - then).total_seconds()
    if seconds < 90:
        return "just now"
    if seconds < 3_600:
        return f"{seconds / 60:.0f} min"
    if seconds < 86_400:
        return f"{seconds // 3_600:.0f} h"
    days = int(seconds // 86_400)
    if days == 1:
        return "yesterday"
    return f"{days} days" if days < 14 else f"{then:%-d %b %Y}"


def ago(then: datetime, now: datetime) -> str:
    """'12 s ago', '14 min ago', '3 h ago', '4 days ago'."""
    seconds = max(0.0, (now - then).total_seconds())
    for limit, divisor, unit in ((120, 1, "s"), (7_200, 60, "min"), (172_800, 3_600, "h")):
        if seconds < limit:
            return f"{seconds / divisor:.0f} {unit} ago"
    return f"{seconds / 86_400:.0f} days ago"


def size(count_bytes: int | float) -> str:
    """Return bytes in decimal units: '0 B', '812 B', '1.5 kB', '2.3 MB'."""
    if count_bytes < 1_000:
        return f"{count_bytes:.0f} B"
    for unit, factor in (("kB", 1e3), ("MB", 1e6), ("GB", 1e9)):
        if count_bytes < factor * 999.95:
            return f"{count_bytes / factor:.1f} {unit}"
    return f"{count_bytes / 1e12:.1f} TB"


def milliseconds(duration_ms: float | None) -> str:
    """'0.42 ms', '9.8 ms', '120 ms', '1.30 s'; an en dash where nothing was measured."""
    if duration_ms is None:
        return "–"
    if duration_ms < 1:
        return f"{duration_ms:.2f} ms"
    if duration_ms < 10:
        return f"{duration_ms:.1f} ms"
    return f"{duration_ms:.0f} ms" if duration_ms < 1_000 else f"{duration_ms / 1_000:.2f} s"


def number(value: float) -> str:
    """Return a figure without needless decimals.

    Examples: '4', '0.333', '12,312', '1.4 million', '1,000 million'.
    """
    if math.isinf(value):
        return "without bound"
    if abs(value) >= 999_999.5:
        millions = value / 1e6
        return f"{millions:,.0f} million" if abs(millions) >= 99.95 else f"{millions:.3g} million"
    return f"{value:,.0f}" if abs(value) >= 99.95 else f"{value:.3g}"


def typed(value: float) -> str:
    """Return a figure as somebody would type it into a field: '150', '0.5', '1000000000'."""
    return f"{value:.0f}" if value == round(value) and abs(value) < 1e15 else f"{value:.12g}"


def reading_minutes(text: str) -> int:
    """Whole minutes at 220 words a minute, at least one."""
    return max(1, round(len(text.split()) / WORDS_PER_MINUTE))


def plural(count: int, one: str, many: str | None = None) -> str:
    """'1 click', '3 clicks', '10,000 clicks'."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
