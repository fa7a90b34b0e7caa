"""What simulated readers measure. Oracle: times written by hand."""

from __future__ import annotations

from device_app.fleet.latency import StageRecorder, stages_of


def test_page_time_includes_its_request_and_network_time_excludes_the_server() -> None:
    recorder = StageRecorder()
    recorder.hear("feed", {"rank": 9.0}, {})  # no request before it
    recorder.hear("recall", {"store": 1.0, "cluster": 2.0, "network": 10.0}, {"search": 3.0, "encode": 1.0})
    recorder.hear("feed", {"store": 0.5, "rank": 4.0}, {})
    recorder.hear("feed", {"rank": 9.0}, {})  # its request already counted
    assert len(recorder.pages) == 1
    found = stages_of(recorder.pages, readers=1)
    told = {(each.place, each.name): each.p50_ms for each in found.stages if each.p50_ms}
    assert told == {
        ("device", "store"): 1.5,
        ("device", "cluster"): 2.0,
        ("network", "network"): 6.0,
        ("server", "search"): 3.0,
        ("server", "encode"): 1.0,
        ("device", "rank"): 4.0,
        ("whole", "total"): 17.5,
    }
