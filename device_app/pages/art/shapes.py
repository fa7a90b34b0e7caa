"""SVG elements of the drawn pictures: polygons, circles, rings and lines on a canvas of 640 x 400."""

from __future__ import annotations

WIDTH, HEIGHT = 640, 400


def shape(points: list[tuple[float, float]], fill: str, opacity: float = 1.0) -> str:
    """A filled polygon."""
    path = "M" + "L".join(f"{x:.0f} {y:.0f}" for x, y in points) + "Z"
    return f'<path d="{path}" fill="{fill}"' + (f' opacity="{opacity:.2f}"/>' if opacity < 1 else "/>")


def disc(x: float, y: float, radius: float, fill: str, opacity: float = 1.0) -> str:
    """A filled circle."""
    seen = f' opacity="{opacity:.2f}"' if opacity < 1 else ""
    return f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{radius:.0f}" fill="{fill}"{seen}/>'


def ring(x: float, y: float, radius: float, stroke: str, width: float, opacity: float = 1.0) -> str:
    """A circle drawn with a stroke."""
    seen = f' opacity="{opacity:.2f}"' if opacity < 1 else ""
    return (f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{radius:.0f}" fill="none" stroke="{stroke}" '
            f'stroke-width="{width:.0f}"{seen}/>')  # fmt: skip


def box(x: float, y: float, width: float, height: float, fill: str, opacity: float = 1.0, round_: float = 0) -> str:
    """A filled rectangle, with round corners if wanted."""
    extra = (f' rx="{round_:.0f}"' if round_ else "") + (f' opacity="{opacity:.2f}"' if opacity < 1 else "")
    return f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" fill="{fill}"{extra}/>'


def line(points: list[tuple[float, float]], stroke: str, width: float, opacity: float = 1.0) -> str:
    """An open line through points."""
    path = "M" + "L".join(f"{x:.0f} {y:.0f}" for x, y in points)
    seen = f' opacity="{opacity:.2f}"' if opacity < 1 else ""
    return (f'<path d="{path}" fill="none" stroke="{stroke}" stroke-width="{width:.0f}" stroke-linecap="round" '
            f'stroke-linejoin="round"{seen}/>')  # fmt: skip


def oval(x: float, y: float, across: float, down: float, stroke: str, width: float) -> str:
    """An ellipse drawn with a stroke."""
    return (
        f'<ellipse cx="{x:.0f}" cy="{y:.0f}" rx="{across:.0f}" ry="{down:.0f}" fill="none" stroke="{stroke}" '
        f'stroke-width="{width:.0f}"/>'
    )


def arc(start: tuple[float, float], end: tuple[float, float], lift: float, stroke: str, width: float) -> str:
    """A bow from one point to another, `lift` above the higher one."""
    (ax, ay), (bx, by) = start, end
    return (
        f'<path d="M{ax:.0f} {ay:.0f}Q{(ax + bx) / 2:.0f} {min(ay, by) - lift:.0f} {bx:.0f} {by:.0f}" fill="none" '
        f'stroke="{stroke}" stroke-width="{width:.0f}"/>'
    )


def leaf(x: float, y: float, reach: float, length: float, fill: str) -> str:
    """A leaf from its foot at (x, y), `reach` to the right (or left, if negative)."""
    return (
        f'<path d="M{x:.0f} {y:.0f}q{reach * 0.4:.0f} {-length * 0.75:.0f} {reach:.0f} {-length * 0.5:.0f}'
        f'q{-reach * 0.3:.0f} {length * 0.7:.0f} {-reach:.0f} {length * 0.5:.0f}Z" fill="{fill}"/>'
    )
