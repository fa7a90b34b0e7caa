"""Many devices in one process have separate stores, share what they load, and don't stop each other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import device_app.fleet.fleet as fleet_module
from device_app.composition import build_device
from device_app.device import Device
from device_app.errors import BackendUnreachable
from device_app.fleet.fleet import ENOUGH_CLICKS, Fleet, Member, catch_up, read, search, warm_up
from device_app.settings import DeviceSettings
from tests.doubles.backend import FakeBackend


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend()


@pytest.fixture
def fleet(tmp_path: Path, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    def with_backend(settings: DeviceSettings, **shared: object) -> Device:
        return build_device(settings, **{**shared, "transport": backend.transport()})  # type: ignore[arg-type]

    monkeypatch.setattr(fleet_module, "build_device", with_backend)
    made = Fleet(DeviceSettings(data_dir=tmp_path), 5, seed=3)
    yield made
    made.close()


def test_simulated_readers_read_until_they_have_enough_clicks_to_train_on(fleet: Fleet) -> None:
    assert list(fleet.each(warm_up)) == [1, 2, 3, 4, 5]
    assert fleet.failures == []
    assert fleet.releases() == {"r1": 5}
    clicks = [member.device.parts.stores.clicks.count() for member in fleet.members]
    assert sum(count >= ENOUGH_CLICKS for count in clicks) >= 3, clicks
    for member in fleet.members:
        assert member.interests is not None
        liked = {section for section, _ in member.interests.favourites}
        news = member.device.parts.stores.news
        opened = [news.card(entry.news_id).section for entry in member.device.library.history().entries]
        assert sum(section in liked for section in opened) > len(opened) / 2


def test_simulated_reader_searches_and_follows_so_that_both_views_have_data(fleet: Fleet) -> None:
    """Regression: simulated readers only read, and rounds of several views had one."""
    fleet.run(warm_up)
    opened = [search(member) for member in fleet.members]
    assert min(opened) > 0
    for member in fleet.members:
        assert member.interests is not None
        liked = {topic for _, topic in member.interests.favourites}
        (saved,) = member.device.parts.stores.searches.saved()
        assert saved.words in liked
        assert member.device.interests.stances() == {("topic", saved.words): "follow"}
        assert len(member.device.parts.stores.searches.openings()) > 0
    assert [search(member) for member in fleet.members] == [0] * 5, "a fleet that starts again searches no more"
    assert fleet.failures == []


def test_each_device_has_its_own_store_and_all_share_models_and_blobs(fleet: Fleet, tmp_path: Path) -> None:
    fleet.run(warm_up)
    homes = {member.device.settings.home for member in fleet.members}
    assert len(homes) == 5
    assert all((home / "device.sqlite").is_file() for home in homes)
    assert not any(list(home.rglob("*blob*")) for home in homes)
    assert len({id(member.device.parts.serving.models()) for member in fleet.members}) == 1
    histories = [tuple(entry.news_id for entry in member.device.library.history().entries) for member in fleet.members]
    assert len(set(histories)) == 5


def test_database_cache_is_bounded_and_sixteen_times_smaller_in_a_fleet(fleet: Fleet, tmp_path: Path) -> None:
    """Oracle: SQLite's own setting, in KiB where it is negative."""
    settings = DeviceSettings(data_dir=tmp_path / "alone")
    alone = build_device(settings)
    kept = [each.parts.stores.database.number("PRAGMA cache_size") for each in (alone, fleet.members[0].device)]
    alone.close()
    assert kept == [-settings.performance.page_cache_kib, -settings.performance.page_cache_kib // 16]


def test_visit_of_a_simulated_reader_opens_stories_and_fetches_texts_of_whole_lists(
    fleet: Fleet, backend: FakeBackend
) -> None:
    member = fleet.members[0]
    member.device.sync()
    opened = read(member)
    assert member.device.parts.stores.clicks.count() == opened
    assert not member.device.prefetch_step(), "no list waits"
    for entry in member.device.library.history().entries:
        assert member.device.parts.stores.news.body(entry.news_id)


def test_failure_of_one_device_is_counted_and_the_others_continue(fleet: Fleet) -> None:
    def step(member: Member) -> None:
        if member is fleet.members[1]:
            raise BackendUnreachable("http://backend", "refused")
        member.device.sync()

    fleet.run(step)
    assert fleet.failures == ["fleet-0001: The server at http://backend does not answer (refused)."]
    assert fleet.releases() == {"r1": 4, "none": 1}


def test_programming_error_is_not_counted_as_a_device_failure(fleet: Fleet) -> None:
    def step(member: Member) -> None:
        raise KeyError(member.device.settings.profile)

    with pytest.raises(KeyError):
        fleet.run(step)


def test_all_devices_catch_up_with_a_new_release(fleet: Fleet, backend: FakeBackend) -> None:
    fleet.run(catch_up)
    backend.publish()
    fleet.run(catch_up)
    assert fleet.releases() == {"r2": 5}


def test_backend_outage_fails_every_simulated_device_without_ending_the_program(
    fleet: Fleet, backend: FakeBackend
) -> None:
    backend.down = True
    fleet.run(warm_up)
    assert len(fleet.failures) == 5
    assert fleet.releases() == {"none": 5}
