"""Every drawn picture that can be chosen exists, is small, and refers to nothing else."""

from __future__ import annotations

from xml.etree import ElementTree

from device_app.pages.art import HUE_STEPS, TABLE, motifs_of, picture_name, section_hue
from device_app.pages.assets import web_folder
from newsroom.content import sections

MOTIFS = {
    motif
    for table in (TABLE["sections"], *TABLE["topics"].values())
    for motifs in table.values()
    for motif in (*motifs, *TABLE["otherwise"])
}
NAMES = {f"{motif}-{variant + 1}" for motif in MOTIFS for variant in range(TABLE["variants"])}


def test_art_folder_holds_exactly_the_selectable_pictures() -> None:
    assert {path.name for path in (web_folder("static") / "art").iterdir()} == {f"{name}.svg" for name in NAMES}
    chosen = {picture_name(section, f"n{at}") for section in TABLE["sections"] for at in range(100)}
    assert chosen <= NAMES
    assert len({picture_name("sea", f"n{at}") for at in range(100)}) == TABLE["variants"]


def test_picture_is_well_formed_small_and_without_script_or_text() -> None:
    for path in (web_folder("static") / "art").iterdir():
        svg = path.read_text(encoding="utf-8")
        assert len(svg) < 12_000, path.name
        tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(svg).iter()}
        assert tags <= {"svg", "defs", "linearGradient", "stop", "rect", "g", "path", "circle", "ellipse"}, path.name
        assert "href" not in svg, path.name
        assert svg.count("url(") == svg.count("url(#"), path.name


def test_every_section_and_topic_has_a_motif_with_a_newspaper_as_fallback() -> None:
    kinds = {one.name: {kind.topic for kind in one.kinds} for one in sections()}
    assert set(kinds) <= set(TABLE["sections"])
    for section, topics in TABLE["topics"].items():
        assert set(topics) <= kinds.get(section, set(topics)), section
    assert motifs_of("Acq") == motifs_of("") == ["paper"]
    assert motifs_of("science", "Medical-research") == ["cells"]


def test_unknown_section_always_gets_the_same_hue() -> None:
    assert section_hue("quilting") == section_hue(" Quilting ")
    assert {section_hue(f"section {at}") for at in range(400)} == set(range(HUE_STEPS))
