"""Both devices draw the same picture of the same news. Oracle: the Python device's SVG, byte for byte."""

from __future__ import annotations

import random

from device_app.pages.art import drawing
from device_app.pages.art.colours import section_hue
from tests.conformance.node_end import ask_node

ODD = ("", "constructor", "a section/of its own", "Food_And-Drink ", "Ærø", "__proto__")


def test_a_thousand_pictures_of_every_section_and_topic_are_the_same_in_both() -> None:
    draw = random.Random(14)
    asked = [(section, f"news:{section}", "") for section in (*drawing.MOTIFS, *ODD)]
    asked += [(section, f"of {topic}", topic) for section, topics in drawing.TOPICS.items() for topic in topics]
    while len(asked) < 1_000:
        section = draw.choice(sorted(drawing.MOTIFS))
        topic = draw.choice([*drawing.TOPICS.get(section, {}), "", "constructor"])
        asked.append((section, f"news:{draw.getrandbits(40):x}", topic))
    (answers,) = ask_node([("art_drawn", asked)])
    shown = set()
    for (section, news_id, topic), (picture, hue) in zip(asked, answers, strict=True):
        assert picture == drawing.draw(section, news_id, topic), (section, news_id, topic)
        assert hue == section_hue(section), section
        shown |= set(drawing.motifs_of(section, topic))
    assert {motif.__name__ for motif in shown} >= {"skyline", "orbits", "paper", "board", "reel", "car", "prints"}
    assert len(shown) == 27, "every motif there is"
