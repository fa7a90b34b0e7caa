"""The console's drawing of the curves as a file that stands alone."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from backend.measurements.curves import CurveDrawing

TITLE = 26.0
INK, PAPER = "#1d1d1b", "#ffffff"


def write_figure(path: Path, drawings: Sequence[CurveDrawing]) -> None:
    """One below the other, whole or not at all. Raises ValueError if there is none."""
    if not drawings:
        raise ValueError("drawings: at least one is needed")
    height = sum(each.height + TITLE for each in drawings)
    width = max(each.width for each in drawings)
    svg = ElementTree.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {width:g} {height:g}",
            "font-family": "sans-serif",
            "font-size": "11",
            "fill": INK,
        },
    )
    ElementTree.SubElement(svg, "rect", {"width": "100%", "height": "100%", "fill": PAPER})
    top = 0.0
    for each in drawings:
        part = ElementTree.SubElement(svg, "g", {"transform": f"translate(0 {top:g})"})
        _text(part, each.left, 16, each.name, "start", size="13")
        _draw(ElementTree.SubElement(part, "g", {"transform": f"translate(0 {TITLE:g})"}), each)
        top += each.height + TITLE
    scratch = path.with_suffix(".part")
    scratch.write_bytes(ElementTree.tostring(svg))
    os.replace(scratch, path)


def _draw(part: ElementTree.Element, drawn: CurveDrawing) -> None:
    for y, label in drawn.y_ticks:
        _line(part, drawn.left, y, drawn.right, y, opacity="0.12")
        _text(part, drawn.left - 8, y + 4, label, "end")
    _line(part, drawn.left, drawn.level, drawn.right, drawn.level, opacity="0.6", dashes="2 4")
    for x, label in drawn.x_ticks:
        _text(part, x, drawn.bottom + 16, label, "middle")
    points = " ".join(f"{mark.x:g},{mark.y:g}" for mark in drawn.marks)
    ElementTree.SubElement(part, "polyline", {"points": points, "fill": "none", "stroke": INK, "stroke-width": "1.8"})
    for mark in drawn.marks:
        _line(part, mark.x, mark.low, mark.x, mark.high, opacity="0.6")
        ElementTree.SubElement(part, "circle", {"cx": f"{mark.x:g}", "cy": f"{mark.y:g}", "r": "3"})


def _line(
    part: ElementTree.Element, x1: float, y1: float, x2: float, y2: float, *, opacity: str, dashes: str = "none"
) -> None:
    places = {name: f"{value:g}" for name, value in (("x1", x1), ("y1", y1), ("x2", x2), ("y2", y2))}
    ElementTree.SubElement(
        part, "line", {**places, "stroke": INK, "stroke-opacity": opacity, "stroke-dasharray": dashes}
    )


def _text(part: ElementTree.Element, x: float, y: float, words: str, anchor: str, *, size: str = "11") -> None:
    at = {"x": f"{x:g}", "y": f"{y:g}", "text-anchor": anchor, "font-size": size}
    ElementTree.SubElement(part, "text", at).text = words
