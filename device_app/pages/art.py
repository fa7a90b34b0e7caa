"""Chooses the drawn picture of a story without a photograph, and its section's hue.

The pictures are the files of web/static/art: eight variants of each motif. Section and topic determine the possible
motifs; a hash of the story's id picks one of their variants. The browser's device uses the same table.
"""

import hashlib
import json
from importlib import resources

HUE_STEPS = 24
"""Section hues come in steps of 15 degrees; web/static/css/hues.css has a class for each."""
TABLE = json.loads((resources.files("device_app.pages") / "art.json").read_text("utf-8"))


def section_hue(section: str) -> int:
    """Return the section's step on the colour circle, 0 to 23.

    An unknown section is hashed by name.
    """
    name = section.strip().lower()
    known = TABLE["hues"].get(name)
    return known if known is not None else hashlib.sha256(name.encode()).digest()[0] % HUE_STEPS


def motifs_of(section: str, topic: str = "") -> list[str]:
    """Return the motifs for a section and topic; hyphens, underscores and case don't matter.

    A wrong picture misleads, so an unknown section gets a newspaper.
    """
    name = _plain(section)
    found = TABLE["topics"].get(name, {}).get(_plain(topic)) or TABLE["sections"].get(name)
    return list(found or TABLE["otherwise"])


def picture_name(section: str, news_id: str, topic: str = "") -> str:
    """Return the picture's file name in web/static/art without extension, such as 'skyline-3'."""
    motifs, variants = motifs_of(section, topic), TABLE["variants"]
    number = int.from_bytes(hashlib.sha256(news_id.encode()).digest()[:4], "big")
    motif, variant = divmod(number % (len(motifs) * variants), variants)
    return f"{motifs[motif]}-{variant + 1}"


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", " ").replace("_", " ")
