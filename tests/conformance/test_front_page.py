"""The front page that the browser's device saves for the next tab equals the one a device makes on opening.

A kill never leaves half a page.
"""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from device_app.feed_settings import FeedSettings
from tests.conformance.node_end import ask_node
from tests.conformance.test_pages import python_device

ACTIONS: dict[str, tuple[str, list[list[str]] | None]] = {
    "nothing": ("/you", None),
    "a story is opened": ("/story/news:5?feed=feed-2", None),
    "a story is saved": ("/story/news:8/react", [["kind", "save"], ["back", "/"]]),
    "a story is liked": ("/story/news:9/react", [["kind", "like"], ["back", "/"]]),
    "a story is waved away": ("/story/news:10/react", [["kind", "less"], ["back", "/"]]),
    "a topic is hidden": ("/stance", [["kind", "topic"], ["name", "sport"], ["stance", "block"], ["back", "/"]]),
    "a search is kept": ("/searches", [["words", "harbour"], ["back", "/searches"]]),
    "pictures are hidden": ("/settings/pictures", [["shown", "off"]]),
    "all is switched off": ("/settings/level", [["level", "off"]]),
}
ART = Path(__file__).parents[2] / "web/static/art"
BEYOND = 0.001
"""Of an hour past the last moment of a feed that is an hour old: the two clocks differ below a microsecond."""
BEFORE, AFTER = "The previous page. " * 50, "Another page, and a longer one. " * 60


@pytest.fixture(scope="module")
def fronts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return by action the page saved after it, and the page made on opening."""
    now = datetime.now(UTC)
    with python_device(tmp_path_factory.mktemp("front"), now) as device:
        device.parts.stores.database.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        given = {
            "file": base64.b64encode(device.parts.stores.database.path.read_bytes()).decode(),
            "now": now.timestamp() * 1000,
            "asked": [{"address": address, "form": form} for address, form in ACTIONS.values()],
            "art": {drawn.stem: drawn.read_text("utf-8") for drawn in ART.glob("*.svg")},
            "pageHours": FeedSettings().page_hours - 1 + BEYOND,
        }
    (found,) = ask_node([("pages_kept_fronts", given)])
    return dict(zip(ACTIONS, found, strict=True))


@pytest.mark.parametrize("action", ACTIONS)
def test_saved_page_matches_what_a_starting_device_shows(fronts: dict[str, Any], action: str) -> None:
    kept, made = fronts[action]["kept"], fronts[action]["made"]
    assert made["kind"] == "page"
    assert kept["html"] == made["html"]
    assert 'data-feed="feed-2"' in kept["html"]
    assert len(kept["pictures"]) > 5
    kinds = {re.split("[;,]", drawn)[0] for drawn in kept["pictures"].values()}
    publishers = set() if action == "pictures are hidden" else {"data:image/webp"}
    assert kinds == {"data:image/svg+xml"} | publishers
    assert kept["pictures"] == fronts[action]["drawn"]


def test_saved_page_shows_each_action(fronts: dict[str, Any]) -> None:
    pages = {action: found["kept"]["html"] for action, found in fronts.items() if action != "a search is kept"}
    assert len(set(pages.values())) == len(pages)


def test_page_older_than_its_lifetime_is_not_saved(fronts: dict[str, Any]) -> None:
    """The feed is an hour old; it may be shown until it is six hours old."""
    found = fronts["nothing"]
    assert found["later"] is None
    hours = timedelta(milliseconds=found["kept"]["until"] - found["kept"]["from"]) / timedelta(hours=2)
    assert hours == FeedSettings().page_hours


def test_tab_killed_while_saving_leaves_the_old_page_the_new_page_or_none() -> None:
    (found,) = ask_node([("front_page_deaths", {"before": BEFORE, "after": AFTER})])
    keep, wipe = found["keep"], found["wipe"]
    assert [one["dead"] for one in keep] == [True] * (len(keep) - 1) + [False]
    assert len(keep) == 3, "two writes"
    assert {one["shown"] for one in keep} <= {BEFORE, AFTER, None}
    assert keep[0]["shown"] is None, "half of it was written"
    assert keep[-1]["shown"] == AFTER
    assert {one["shown"] for one in wipe[:-1]} <= {BEFORE, None}
    assert (wipe[-1]["shown"], wipe[-1]["readable"]) == (None, False)


def test_deleted_page_leaves_no_bytes_in_freed_disk_blocks() -> None:
    """Oracle: a disk that may hold every byte written since the last sync."""
    steps = [
        ["keep", AFTER], ["keep", BEFORE], ["keep", BEFORE], ["wipe", False], ["wipe", False], ["keep", BEFORE],
        ["keep", AFTER * 2], ["wipe", False], ["wipe", True], ["keep", BEFORE],
    ]  # fmt: skip
    (found,) = ask_node([("front_page_blocks", steps)])
    assert [one["given"] for one in found] == [0] * len(steps)
    assert [one["shown"] for one in found] == [
        AFTER, BEFORE, BEFORE, None, None, BEFORE, AFTER * 2, None, None, BEFORE,
    ]  # fmt: skip
    assert found[8]["size"] == 0, "what is deleted is on the disk no more"
    assert found[2]["writes"] == 0, "it was kept already"


def test_locked_page_file_is_deleted_and_blocks_only_a_deletion() -> None:
    actions = [("/story/news:1", False), ("/story/news:1/react", True), ("/privacy/erase", True)]
    (saved,) = ask_node([("front_page_broken", {"held": True, "asked": actions})])
    assert [one["done"] for one in saved] == ["done"] * 3
    assert [one["isThere"] for one in saved] == [False] * 3
    assert [one["kept"] for one in saved] == [1, 2, 3], "each action is still followed by a saved page"
    (erased,) = ask_node([("front_page_broken", {"held": True, "asked": [("/privacy/erase", True)] * 2})])
    assert erased[0]["done"].startswith("Nothing was deleted")
    assert erased[1] == {"done": "done", "isThere": False, "kept": 2}, "none is left that could tell"
    (locked,) = ask_node([("front_page_broken", {"held": False, "asked": actions})])
    assert [(one["done"], one["isThere"]) for one in locked] == [("done", False)] * 3


def test_polls_do_not_save_the_page_again() -> None:
    (found,) = ask_node([("front_page_broken", {"held": True, "asked": [("/seen", True), ("/", False)]})])
    assert [one["kept"] for one in found] == [0, 1]


def test_saved_page_is_shown_only_by_the_same_build_and_while_its_feed_is_current() -> None:
    (found,) = ask_node([("front_page_shown", None)])
    assert found == {"unwanted": False, "now": True, "outdated": False, "early": False, "another": False}
