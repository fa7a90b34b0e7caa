"""Pictures are the same every time, different from each other, small, and refer to nothing."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from device_app.pages.art import motifs, motifs_arts, motifs_play
from device_app.pages.art.colours import HUE_STEPS, oklch, section_hue
from device_app.pages.art.drawing import MOTIFS, TOPICS, draw, motifs_of
from newsroom.content import sections

SECTIONS = [*MOTIFS, "quilting", "", "Ångström"]


def test_the_same_news_gets_the_same_picture_and_other_news_another() -> None:
    draw.cache_clear()
    first = draw("sea", "n1")
    draw.cache_clear()
    assert draw("sea", "n1") == first
    assert len({draw("sea", f"n{at}") for at in range(200)}) == 200


@pytest.mark.parametrize("section", SECTIONS)
def test_a_picture_is_well_formed_small_and_without_script_text_or_reference(section: str) -> None:
    for at in range(8):
        svg = draw(section, f"n{at}")
        root = ElementTree.fromstring(svg)
        assert len(svg) < 12_000
        tags = {element.tag.rpartition("}")[2] for element in root.iter()}
        assert tags <= {"svg", "defs", "linearGradient", "stop", "rect", "g", "path", "circle", "ellipse"}
        assert "href" not in svg
        assert svg.count("url(") == svg.count("url(#")
        assert "nan" not in svg


def test_an_unknown_section_keeps_one_motif_and_one_hue() -> None:
    assert section_hue("quilting") == section_hue(" Quilting ")
    assert {section_hue(f"section {at}") for at in range(400)} == set(range(HUE_STEPS))


def test_every_motif_is_drawn_for_some_section() -> None:
    used = {motif for table in (MOTIFS, *TOPICS.values()) for some in table.values() for motif in some}
    written = {
        each
        for module in (motifs, motifs_arts, motifs_play)
        for each in vars(module).values()
        if getattr(each, "__module__", "") == module.__name__ and not isinstance(each, type)
    }
    assert used == written


def test_each_section_and_topic_of_the_newspaper_has_a_motif_and_unknown_ones_a_newspaper() -> None:
    kinds = {one.name: {kind.topic for kind in one.kinds} for one in sections()}
    assert len(kinds) == 20
    assert set(kinds) <= set(MOTIFS)
    for section, topics in TOPICS.items():
        assert set(topics) <= kinds.get(section, set(topics)), section
    assert motifs_of("Acq") == motifs_of("") == (motifs_play.paper,)
    assert motifs_of("science", "Medical-research") == (motifs_play.cells,)


def test_oklch_agrees_with_the_published_example_of_white_black_and_red() -> None:
    """CSS Color 4 gives red as oklch(0.62796 0.25768 29.234)."""
    assert oklch(1.0, 0.0, 0.0) == "#ffffff"
    assert oklch(0.0, 0.0, 0.0) == "#000000"
    red = oklch(0.62796, 0.2576, 29.234)
    assert int(red[1:3], 16) >= 250
    assert max(int(red[3:5], 16), int(red[5:7], 16)) <= 12
