"""The drawing of moves between groups. Oracles: its counts, read back from the paths, and the page."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from backend.console.quality_pages import BAR, GAP, HEIGHT, LEFT, WIDTH, drawn, state_of
from backend.federation.strategies.grouped import GroupMoves
from tests.doubles.console_client import client_of
from tests.doubles.console_services import StandInServices, fresh_services

FOUND = GroupMoves("round-12", "prototypes", "r9", ((5, 2, 0), (0, 8, 1), (3, 0, 0)))
PATH = re.compile(r"M([\d.]+) ([\d.]+)C[\d. ]+ ([\d.]+) ([\d.]+)V([\d.]+)C[\d. ]+ ([\d.]+) ([\d.]+)Z")


def test_bands_are_proportional_to_the_devices_that_moved_and_fill_the_bars() -> None:
    drawing = drawn(FOUND)
    scale = (HEIGHT - 2 * GAP) / 19
    assert (drawing.devices, drawing.stayed, drawing.sizes) == (19, 13, (8, 10, 1))
    counted = {(0, 0): 5, (0, 1): 2, (1, 1): 8, (1, 2): 1, (2, 0): 3}
    assert [(band.old - 1, band.new - 1, band.devices) for band in drawing.bands] == [
        (old, new, count) for (old, new), count in counted.items()
    ]
    assert [band.stays for band in drawing.bands] == [old == new for old, new in counted]
    before, after = drawing.bars[:3], drawing.bars[3:]
    ends: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for band, ((old, new), count) in zip(drawing.bands, counted.items(), strict=True):
        found = PATH.fullmatch(band.path)
        assert found is not None
        left, top, right, end, low_end, _, low = map(float, found.groups())
        assert (left, right) == (LEFT + BAR, WIDTH - LEFT - BAR)
        assert low - top == pytest.approx(count * scale, abs=0.11)
        assert low_end - end == pytest.approx(count * scale, abs=0.11)
        ends.setdefault(("before", old), []).append((top, low))
        ends.setdefault(("after", new), []).append((end, low_end))
    for side, bars in (("before", before), ("after", after)):
        for group, bar in enumerate(bars):
            spans = sorted(ends[side, group])
            assert spans[0][0] == pytest.approx(bar.y, abs=0.06)
            assert spans[-1][1] == pytest.approx(bar.y + bar.height, abs=0.06)
            for (_, low), (top, _) in pairwise(spans):
                assert low == pytest.approx(top, abs=0.11), "bands of a bar lie side by side"
        assert bars[-1].y + bars[-1].height == pytest.approx(HEIGHT)
    assert [bar.label for bar in drawing.bars] == ["1: 7", "2: 9", "3: 3", "1: 8", "2: 10", "3: 1"]


def test_moves_that_are_not_square_are_refused_and_empty_moves_draw_no_bands() -> None:
    with pytest.raises(ValueError, match="must be square"):
        drawn(GroupMoves("round-1", "prototypes", None, ((1, 2), (3,))))
    nobody = drawn(GroupMoves("round-1", "prototypes", None, ((0, 0), (0, 0))))
    assert nobody.bands == ()


def test_page_draws_each_clustering_and_changes_when_another_ends() -> None:
    services = StandInServices()
    page = client_of(services).get("/console/rounds").text
    assert page.count('<svg class="moves"') == 2
    assert "round-6, prototypes: 54 of 58 stayed" in page
    assert "<title>30 from group 2 to group 2</title>" in page
    row = r'<th scope="row" class="nowrap">round-6</th><td>2</td>' + "".join(
        rf'<td class="num">{count}</td>' for count in (0, 30, 1, 1)
    )
    assert re.search(row, page), "the table says the same"
    reported = client_of(services).get("/console/rounds/groups").json()
    assert reported["state"] == "round-6" == state_of(services.coordinator.group_moves(4))
    assert f'data-live="/console/rounds/groups" data-state="{reported["state"]}"' in page
    empty = client_of(fresh_services()).get("/console/rounds").text
    assert "Readers have not been regrouped yet." in empty
    assert 'data-state="never"' in empty
