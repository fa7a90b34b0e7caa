"""Both devices show the same drawn picture for a story. Oracles: the Python device, and four recorded choices."""

from __future__ import annotations

import random
from pathlib import Path

from device_app.pages.art import TABLE, picture_name, section_hue
from tests.conformance.node_end import ask_node

ART = Path(__file__).parents[2] / "web" / "static" / "art"
ODD = ("", "constructor", "a section/of its own", "Food_And-Drink ", "Ærø", "__proto__")
GOLDEN = {
    ("sea", "newsroom:0001", ""): "waves-4",
    ("science", "newsroom:0002", "Medical-research"): "cells-2",
    ("business", "feed:3f2a", ""): "skyline-1",
    ("quilting", "news:é", "patterns"): "paper-5",
}
"""A changed rule gives every story another picture: change these only together with the pictures."""


def test_picture_name_matches_the_recorded_one_for_each_section_and_topic() -> None:
    assert {asked: picture_name(*asked) for asked in GOLDEN} == GOLDEN


def test_both_devices_choose_the_same_picture_and_hue() -> None:
    draw = random.Random(14)
    asked = [*GOLDEN, *((section, f"news:{section}", "") for section in (*TABLE["sections"], *ODD))]
    asked += [(section, f"of {topic}", topic) for section, topics in TABLE["topics"].items() for topic in topics]
    while len(asked) < 1_000:
        section = draw.choice(sorted(TABLE["sections"]))
        topic = draw.choice([*TABLE["topics"].get(section, {}), "", "constructor"])
        asked.append((section, f"news:{draw.getrandbits(40):x}", topic))
    (answers,) = ask_node([("art_chosen", asked)])
    assert answers == [[picture_name(*each), section_hue(each[0])] for each in asked]
    drawn = {file.stem for file in ART.glob("*.svg")}
    assert {name for name, _ in answers} <= drawn, "each is among the files that come with the build"
