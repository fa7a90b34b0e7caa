"""The operator allows a feed's pictures on the pool's page. Oracle: the calls to the store."""

from __future__ import annotations

from tests.doubles.console_client import OURS, client_of
from tests.doubles.console_services import StandInServices


def test_operator_allows_a_feeds_pictures_and_sees_failures() -> None:
    services = StandInServices()
    client, courant = client_of(services), "https://courant.example/rss.xml"
    text = client.get("/console/pool").text
    assert "Withdraw pictures" in text
    assert "Allow pictures" in text
    assert "It is not a JPEG, PNG, WebP or GIF." in text
    done = client.post("/console/pool/feeds/pictures", data={"url": courant, "allowed": "off"}, headers=OURS)
    assert done.headers["location"] == "/console/pool?said=pictures-off"
    client.post("/console/pool/feeds", data={"url": "https://new.example/rss", "pictures": "on"}, headers=OURS)
    client.post("/console/pool/feeds", data={"url": "https://plain.example/rss"}, headers=OURS)
    assert services.feeds.changed == [
        ("pictures off", courant),
        ("add", "https://new.example/rss"),
        ("pictures on", "https://new.example/rss"),
        ("add", "https://plain.example/rss"),
    ]
    assert services.pictures.woken == 1
    refused = client.post("/console/pool/feeds/pictures", data={"url": courant, "allowed": "perhaps"}, headers=OURS)
    assert refused.status_code == 422
