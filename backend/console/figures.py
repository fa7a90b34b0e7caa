"""Figures as an operator reads them. The device's pages have their own: neither side may import the other."""

from __future__ import annotations

import math
from datetime import datetime


def ago(then: datetime, now: datetime) -> str:
    """'12 s ago', '14 min ago', '3 h ago', '4 days ago'."""
    seconds = max(0.0, (now - then).total_seconds())
    for limit, divisor, unit in ((120, 1, "s"), (7_200, 60, "min"), (172_800, 3_600, "h")):
        if seconds < limit:
            return f"{seconds / divisor:.0f} {unit} ago"
    return f"{seconds / 86_400:.0f} days ago"


def size(count_bytes: int) -> str:
    """'812 B', '1.5 kB', '2.3 MB', '1.2 GB'."""
    if count_bytes < 1_000:
        return f"{count_bytes} B"
    value, units = count_bytes / 1_000, ["kB", "MB", "GB"]
    while value >= 999.95 and len(units) > 1:
        value, units = value / 1_000, units[1:]
    return f"{value:,.1f} {units[0]}"


def milliseconds(duration_ms: float) -> str:
    """'0.42 ms', '9.8 ms', '120 ms', '1.30 s'."""
    if duration_ms < 1:
        return f"{duration_ms:.2f} ms"
    if duration_ms < 10:
        return f"{duration_ms:.1f} ms"
    return f"{duration_ms:.0f} ms" if duration_ms < 1_000 else f"{duration_ms / 1_000:.2f} s"


def number(value: float) -> str:
    """'0.333', '12,312', '4.9 million', '1,000 million'."""
    if math.isinf(value):
        return "without bound"
    if abs(value) >= 999_999.5:
        millions = value / 1e6
        return f"{millions:,.0f} million" if abs(millions) >= 99.95 else f"{millions:.3g} million"
    return f"{value:,.0f}" if abs(value) >= 99.95 else f"{value:.3g}"
