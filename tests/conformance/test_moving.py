"""A reader moves from one kind of device to the other and back: nothing is lost, and no budget is gained.

Oracles: the rows that the first device exported; the ledger's own sums; and the other kind of device, which must refuse
a damaged file at the same field.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from copy import deepcopy
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from device_app.errors import BudgetSpent, ExportRefused
from device_app.privacy.accounting.limits import CHANNELS
from device_app.privacy.sealed import Charge
from device_app.store.preferences import CHOSEN_SECTIONS, TRAINING_PAUSED
from tests.doubles.moved_reader import NOW, exported, in_browser, live, python_device, take

MOVED = (
    "click", "read_story", "mute_rule", "reaction", "impression", "report_meaning", "round_upload",
    "view_round", "drawn_report",
    "body", "vector",
)  # fmt: skip
"""Tables whose rows go along as they are."""


def rows(file: dict[str, Any], name: str) -> list[Any]:
    """Return the rows in a fixed order, without the numbers that each database assigns."""
    found = [{key: value for key, value in row.items() if key != "id"} for row in file["tables"][name]]
    return sorted(found, key=lambda row: json.dumps(row, sort_keys=True))


def charges(file: dict[str, Any]) -> Counter[str]:
    return Counter(json.dumps(row, sort_keys=True) for row in numbers_alike(rows(file, "charge")))


def numbers_alike(value: Any) -> Any:
    """Treat 4.0 and 4 as equal, since JavaScript writes 4.0 as 4."""
    if isinstance(value, dict):
        return {key: numbers_alike(each) for key, each in value.items()}
    if isinstance(value, list):
        return [numbers_alike(each) for each in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def choices_of(file: dict[str, Any]) -> Any:
    """Return searches, stances and choices without row numbers."""
    views = {
        name: sorted(
            ({key: value for key, value in row.items() if key != "id"} for row in file["views"]["searches"][name]),
            key=str,
        )
        for name in ("search", "stance", "opened")
    }
    chosen = {row["name"]: row["value"] for row in file["tables"]["preference"]}
    interests = [{key: one[key] for key in ("name", "muted", "news")} for one in chosen["interests"]]
    return views, chosen["privacy"], chosen["chosen_sections"], interests


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what the first Python device exported."""
    with python_device(tmp_path_factory.mktemp("first")) as device:
        live(device)
        return exported(device)


@pytest.fixture(scope="module")
def browser_exports(first: dict[str, Any]) -> dict[str, Any]:
    """Return what a browser's device exports after importing that file once and twice."""
    once, twice = in_browser(first, first)
    assert (once["refused"], twice["refused"]) == ("", "")
    remembered, read = once["looks"]
    assert remembered == read != [], "what was looked at on the other device has sunk here, too"
    assert charges(twice["exported"]) == charges(once["exported"]), "no charge is paid twice"
    assert twice["exported"]["tables"]["click"] == once["exported"]["tables"]["click"]
    found: dict[str, Any] = twice["exported"]
    return found


def test_reader_moving_into_a_browser_keeps_data_and_charges(
    first: dict[str, Any], browser_exports: dict[str, Any]
) -> None:
    for name in MOVED:
        assert numbers_alike(rows(browser_exports, name)) == numbers_alike(rows(first, name)), name
    assert len(rows(browser_exports, "click")) == 5
    assert charges(browser_exports) == charges(first)
    assert sum(charges(browser_exports).values()) == 5
    assert choices_of(browser_exports) == choices_of(first)
    assert {row["id"] for row in browser_exports["tables"]["news"]} == {f"news:{at}" for at in (0, 1, 2, 3, 5, 6)}, (
        "what it touched"
    )
    assert base64.b64decode(browser_exports["tables"]["vector"][0]["float32"])


def test_reader_moving_back_to_python_keeps_data_and_charges(
    first: dict[str, Any], browser_exports: dict[str, Any], tmp_path: Path
) -> None:
    with python_device(tmp_path / "new") as new, python_device(tmp_path / "same") as same:
        live(same)
        for device in (new, same):
            take(device, browser_exports)
            take(device, browser_exports)
            found = exported(device)
            for name in MOVED:
                assert numbers_alike(rows(found, name)) == numbers_alike(rows(first, name)), name
            assert charges(found) == charges(first)
            assert choices_of(found) == choices_of(first)
            assert device.privacy.overview().own.epsilon_per_day_reports == 12.5
            assert [line.search.words for line in device.library.searches().searches] == ["[1, 2]", "regatta"]
        for channel in CHANNELS:
            assert new.parts.ledger.total(channel) == pytest.approx(same.parts.ledger.total(channel))
            assert new.parts.ledger.left(channel) == pytest.approx(same.parts.ledger.left(channel))
        assert new.parts.stores.participations.may_have("round-1", NOW), "the other device may have taken part"
        assert new.privacy.overview().today.moved, "what it counts is not its own alone"
        assert not new.privacy.overview().today.up_to_limits
        new.privacy.erase()
        assert new.privacy.overview().today.moved


def test_charges_of_both_devices_add_up_after_a_move(first: dict[str, Any], tmp_path: Path) -> None:
    """The attacker spends, goes back to an old file, and spends again; the lifetime limit still holds."""
    with python_device(tmp_path) as device:
        take(device, first)
        ledger, before = device.parts.ledger, device.parts.ledger.total("reports")
        assert before == pytest.approx(12.0)
        ledger.spend(Charge("reports", "code", {}, 0.25, 0.0, "cd" * 32, "own"))
        for _ in range(3):
            take(device, first, settings=False)
        assert ledger.total("reports") == pytest.approx(12.25)
        with pytest.raises(BudgetSpent):
            ledger.spend(Charge("reports", "code", {}, 12.5, 0.0, "ef" * 32, "own"))


def test_importing_from_a_device_still_in_use_charges_every_day_to_its_limit(
    first: dict[str, Any], tmp_path: Path
) -> None:
    later = NOW + timedelta(days=2)
    with python_device(tmp_path, later) as device:
        take(device, first, used=True)
        mine, ledger = exported(device), device.parts.ledger
        assert [ledger.left(channel) for channel in ("reports", "counts")] == [0.0, 0.0]
        assert ledger.alone().today(1e-6) == pytest.approx(48, rel=1e-6)
        # 12.5 a day for three days, of which the first had seen 8 already, and the day before 4
        assert ledger.total("reports") == pytest.approx(4 + 12.5 * 2 + 11)  # 40 in a life
        moved = [row for row in mine["tables"]["charge"] if row["mechanism"] == "moved"]
        assert len(moved) == 6
        take(device, first, used=True)
        assert charges(exported(device)) == charges(mine), "of one file nothing is charged twice"
        assert device.privacy.overview().today.up_to_limits, "one charge stands for however many reports there were"
    once, theirs = in_browser(first, first, now=later, used=True)
    assert once["refused"] == theirs["refused"] == ""
    assert charges(once["exported"]) == charges(theirs["exported"])

    def of(file: dict[str, Any]) -> list[tuple[Any, ...]]:
        return [
            (row["at"], row["channel"], row["mechanism"], row["subject"], row["delta"], sorted(row["parameters"]))
            for row in file["tables"]["charge"]
        ]

    assert of(theirs["exported"]) == of(mine)
    for one, other in zip(theirs["exported"]["tables"]["charge"], mine["tables"]["charge"], strict=True):
        assert one["epsilon"] == pytest.approx(other["epsilon"], rel=1e-9)
        for name, value in one["parameters"].items():
            assert value == pytest.approx(other["parameters"][name], rel=1e-9)


Damage = Callable[[dict[str, Any]], object]
DAMAGED: dict[str, tuple[str, Damage]] = {
    "an earlier version": ("version", lambda file: file.pop("version")),
    "a later version": ("version", lambda file: file.update(version=3)),
    "from the future": ("exported_at", lambda file: file.update(exported_at="2027-01-01T00:00:00+00:00")),
    "no moment": ("exported_at", lambda file: file.update(exported_at="yesterday")),
    "a table is missing": ("tables.charge", lambda file: file["tables"].pop("charge")),
    "a charge less than nothing": (
        "tables.charge.1.epsilon",
        lambda file: file["tables"]["charge"][1].update(epsilon=-4.0),
    ),
    "a charge of text": ("tables.charge.0.epsilon", lambda file: file["tables"]["charge"][0].update(epsilon="4")),
    "an unknown channel": ("tables.charge.0.channel", lambda file: file["tables"]["charge"][0].update(channel="x")),
    "a charge of next year": (
        "tables.charge.2.at",
        lambda file: file["tables"]["charge"][2].update(at=1_900_000_000_000_000),
    ),
    "a price that is text": (
        "tables.charge.0.parameters.rho",
        lambda file: file["tables"]["charge"][0]["parameters"].update(rho="0"),
    ),
    "a sum that gives back what others cost": (
        "tables.charge.3.parameters.rho_alone",
        lambda file: file["tables"]["charge"][3]["parameters"].update(rho_alone=-1_000.0),
    ),
    "a codebook of next year, which would count every day until then": (
        "tables.report_meaning.0.first_at",
        lambda file: file["tables"]["report_meaning"][0].update(first_at=1_900_000_000_000_000),
    ),
    "a hash that is none": (
        "tables.charge.0.payload_sha256",
        lambda file: file["tables"]["charge"][0].update(payload_sha256="x"),
    ),
    "a column of another version": ("tables.click.0.more", lambda file: file["tables"]["click"][0].update(more=1)),
    "a column is missing": ("tables.click.1.at", lambda file: file["tables"]["click"][1].pop("at")),
    "a moment with a fraction": ("tables.click.1.at", lambda file: file["tables"]["click"][1].update(at=1.5)),
    "no name of news": ("tables.click.0.news_id", lambda file: file["tables"]["click"][0].update(news_id="../x")),
    "an unknown reaction": ("tables.reaction.0.kind", lambda file: file["tables"]["reaction"][0].update(kind="x")),
    "a script for a title": (
        "tables.news.0.card.title",
        lambda file: file["tables"]["news"][0]["card"].update(title={"html": "<script>"}),
    ),
    "a card of other news": ("tables.news.0", lambda file: file["tables"]["news"][0]["card"].update(id="other")),
    "a vector of no numbers": (
        "tables.vector.0",
        lambda file: file["tables"]["vector"][0].update(float32=base64.b64encode(b"\xff" * 4).decode()),
    ),
    "a code beyond its codebook": (
        "tables.drawn_report.0",
        lambda file: file["tables"]["drawn_report"][0]["report"].update(code=16),
    ),
    "a set of topics twice": (
        "tables.drawn_report.0",
        lambda file: file["tables"]["drawn_report"][0].update(
            mechanism="subset", report={"kind": "subset", "codebook": 16, "topics": [3, 3]}
        ),
    ),
    "a mode that nobody has": ("preference.privacy.mode", lambda file: chosen(file, "privacy").update(mode="all")),
    "a switch that nobody has": ("preference.privacy.mute", lambda file: chosen(file, "privacy").update(mute=1)),
    "a limit of text": (
        "preference.privacy.epsilon_per_day_reports",
        lambda file: chosen(file, "privacy").update(epsilon_per_day_reports="much"),
    ),
    "a name too long": ("preference.interests.0.name", lambda file: chosen(file, "interests")[0].update(name="x" * 61)),
    "a stance on nothing": (
        "views.searches.stance.0.kind",
        lambda file: file["views"]["searches"]["stance"][0].update(kind="all"),
    ),
    "a search of nothing": (
        "views.searches.search.0.words",
        lambda file: file["views"]["searches"]["search"][0].update(words=""),
    ),
    "too many searches": (
        "views.searches.search",
        lambda file: file["views"]["searches"]["search"].extend(
            {"id": at, "words": f"more {at}", "saved_at": 1, "looked_at": 1} for at in range(100, 149)
        ),
    ),
}


def chosen(file: dict[str, Any], name: str) -> Any:
    return next(row["value"] for row in file["tables"]["preference"] if row["name"] == name)


def test_both_devices_refuse_a_damaged_file_at_the_same_field(first: dict[str, Any], tmp_path: Path) -> None:
    files = []
    for _, damage in DAMAGED.values():
        file = deepcopy(first)
        damage(file)
        files.append(file)
    answers = in_browser(*files)
    with ExitStack() as opened:
        device = opened.enter_context(python_device(tmp_path))
        before, theirs_before = exported(device), answers[0]["exported"]
        assert theirs_before["tables"]["charge"] == theirs_before["tables"]["preference"] == []
        for (what, (field, _)), file, answer in zip(DAMAGED.items(), files, answers, strict=True):
            with pytest.raises(ExportRefused) as refused:
                take(device, file)
            assert str(refused.value).startswith(f"Nothing was imported: {field}"), what
            assert answer["refused"].startswith(f"Nothing was imported: {field}"), (what, answer["refused"])
            assert exported(device) == before, what
            assert answer["exported"] == theirs_before, what
        assert device.parts.stores.preferences.get(CHOSEN_SECTIONS) is None
        for content in (b"", b"[]", b"{", b"\xff", b'{"version": 2}', b"[" * 100_000):
            with pytest.raises(ExportRefused):
                device.moving.take_over(content, used=False, settings=True)


def test_hidden_publisher_pictures_stay_hidden_after_a_move(first: dict[str, Any], tmp_path: Path) -> None:
    file = deepcopy(first)
    file["tables"]["preference"].append({"name": "pictures_hidden", "value": True})
    wrong = deepcopy(first)
    wrong["tables"]["preference"].append({"name": "pictures_hidden", "value": "yes"})
    taken, refused = in_browser(file, wrong)
    rows = {row["name"]: row["value"] for row in taken["exported"]["tables"]["preference"]}
    assert (taken["refused"], rows["pictures_hidden"]) == ("", True)
    assert "preference.pictures_hidden" in refused["refused"]
    with python_device(tmp_path) as device:
        with pytest.raises(ExportRefused, match=r"preference\.pictures_hidden"):
            take(device, wrong)
        assert device.parts.stores.pictures.shown()
        take(device, file)
        assert not device.parts.stores.pictures.shown()


def test_later_of_two_reactions_is_kept_on_import(first: dict[str, Any], tmp_path: Path) -> None:
    with python_device(tmp_path) as device:
        feedback = device.parts.stores.feedback
        feedback.react("news:1", "less", NOW - timedelta(minutes=1))
        feedback.react("news:6", "like", NOW - timedelta(days=1))
        device.interests.stance("topic", "rowing", "block")
        take(device, first, settings=False)
        kinds = feedback.kinds()
        assert (kinds["news:1"], kinds["news:6"]) == (frozenset({"less"}), frozenset({"less"}))
        assert device.interests.stances()["topic", "rowing"] == "block"
        assert device.privacy.overview().own.counting, "its own switches hold"


def test_own_feeds_device_imports_sections_but_no_switches(first: dict[str, Any], tmp_path: Path) -> None:
    file = deepcopy(first)
    chosen(file, "privacy").update(mode="code", training=True, counting=True)
    file["tables"]["preference"].append({"name": "training_paused", "value": True})
    with python_device(tmp_path, own_feeds=True) as device:
        before = device.privacy.overview().own
        assert (before.mode, before.training, before.counting) == ("broadcast", False, False)
        take(device, file)
        assert device.privacy.overview().own == before
        assert device.parts.stores.preferences.get(TRAINING_PAUSED) is None
        assert device.parts.stores.preferences.get(CHOSEN_SECTIONS) == ["news", "sport"]


def test_import_deletes_copies_that_lack_the_imported_charges(first: dict[str, Any], tmp_path: Path) -> None:
    with python_device(tmp_path) as device:
        device.library.save_search("a word")
        assert device.copy_step()
        assert list(tmp_path.rglob("*.copy*"))
        take(device, first)
        assert not list(tmp_path.rglob("*.copy*"))
