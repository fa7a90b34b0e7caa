"""The colours of a section: one hue each, and a set of printing inks for its art."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from importlib import resources
from random import Random

HUE_STEPS = 24
"""Section hues come in steps of 15 degrees; web/static/css/hues.css has a class for each."""

SECTION_HUES: dict[str, int] = json.loads((resources.files("device_app.pages.art") / "hues.json").read_text("utf-8"))
"""Steps by section, for the browser's device as well."""


def section_hue(section: str) -> int:
    """The section's step on the colour circle, 0 to 23; a section without a place of its own gets one by its name."""
    name = section.strip().lower()
    known = SECTION_HUES.get(name)
    if known is not None:
        return known
    return hashlib.sha256(name.encode()).digest()[0] % HUE_STEPS


def oklch(lightness: float, chroma: float, hue_degrees: float) -> str:
    """An OKLCH colour as sRGB hex (Ottosson 2020), chroma reduced until it is printable."""
    while True:
        red, green, blue = _linear_srgb(lightness, chroma, hue_degrees)
        if chroma <= 0 or all(-1e-4 <= value <= 1 + 1e-4 for value in (red, green, blue)):
            return "#" + "".join(f"{round(_gamma(value) * 255):02x}" for value in (red, green, blue))
        chroma -= 0.01


def _linear_srgb(lightness: float, chroma: float, hue_degrees: float) -> tuple[float, float, float]:
    a = chroma * math.cos(math.radians(hue_degrees))
    b = chroma * math.sin(math.radians(hue_degrees))
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )


def _gamma(value: float) -> float:
    value = min(max(value, 0.0), 1.0)
    return 12.92 * value if value <= 0.0031308 else 1.055 * value ** (1 / 2.4) - 0.055


@dataclass(frozen=True)
class Inks:
    """Colours of one picture, from the sky to the nearest layer, and a spot colour used once."""

    sky: str
    glow: str
    far: str
    middle: str
    near: str
    spot: str


def mix_inks(section: str, chance: Random) -> Inks:
    """Inks around the section's hue, in one of four lights: noon, dusk, night, overprint."""
    hue = section_hue(section) * 360 / HUE_STEPS + chance.uniform(-12, 12)
    other = hue + chance.choice((150, 180, 210, 40, -40))
    light = chance.randrange(4)
    if light == 0:  # noon: pale paper, clear layers
        return Inks(oklch(0.92, 0.03, hue), oklch(0.97, 0.02, other), oklch(0.80, 0.07, hue), oklch(0.63, 0.11, hue),
                    oklch(0.42, 0.09, hue), oklch(0.70, 0.15, other))  # fmt: skip
    if light == 1:  # dusk: warm sky, dark ground
        return Inks(oklch(0.80, 0.08, other), oklch(0.92, 0.06, other), oklch(0.66, 0.10, hue), oklch(0.50, 0.10, hue),
                    oklch(0.30, 0.07, hue), oklch(0.86, 0.13, other))  # fmt: skip
    if light == 2:  # night: dark sky, lit layers
        return Inks(oklch(0.28, 0.06, hue), oklch(0.40, 0.08, hue), oklch(0.46, 0.09, hue), oklch(0.62, 0.11, hue),
                    oklch(0.82, 0.09, hue), oklch(0.83, 0.14, other))  # fmt: skip
    return Inks(oklch(0.86, 0.06, hue), oklch(0.78, 0.09, hue), oklch(0.72, 0.10, other), oklch(0.56, 0.13, hue),
                oklch(0.38, 0.10, other), oklch(0.95, 0.03, hue))  # fmt: skip
