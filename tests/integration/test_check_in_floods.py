"""An attacker tries to fill the server's disk through a round.

It uses check-ins, unused places, and messages of the maximum size. Oracle: rows of the database and files of the data
folder.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import func, select

from backend.api.rounds import READ_AT_ONCE_BYTES
from backend.db.engine import reading
from backend.db.tables import ParticipationRow, RoundRow, SumKeyRow, SumMessageRow
from backend.federation.systems import COMPOSED
from device_app.privacy.secagg.messages import begin_sum
from device_app.uplink.backend_client import stage_path, upload_path
from protocol.ids import PROTOCOL_VERSION
from tests.doubles.long_form import by_length
from tests.doubles.secure_sums import SumDevice, random_vector
from tests.doubles.served_backend import Served, serve_backend
from tests.integration.test_slow_clients import JSON, TENSORS, send_stage, terms_of, update_of

PLACES, CHECK_INS = 40, by_length(250, long=1_000)
UNBOUNDED = {"unbounded_addresses": ("127.0.0.0/8",)}
"""An attacker with so many addresses that none has more than its share."""


def rows_of(served: Served, table: type[ParticipationRow | SumMessageRow | SumKeyRow]) -> int:
    with reading(served.services.engine) as connection:
        return connection.scalar(select(func.count()).select_from(table)) or 0


def files_of(served: Served) -> dict[str, int]:
    """Return files of updates, running sums and incoming uploads, with their sizes."""
    folder = served.services.settings.data_dir
    found = [path for name in ("rounds", "sums", "uploads") for path in folder.joinpath(name).rglob("*")]
    return {str(path.relative_to(folder)): path.stat().st_size for path in found if path.is_file()}


def at_once(count: int, work: Callable[[int], object]) -> list[object]:
    with ThreadPoolExecutor(8) as threads:
        return list(threads.map(work, range(count)))


@pytest.mark.long_form
@pytest.mark.parametrize("system", ["private_counts/secure/huber", "private_counts/local/mean"])
def test_flood_of_check_ins_takes_at_most_the_places_of_its_round(tmp_path: Path, system: str) -> None:
    with serve_backend(tmp_path, **UNBOUNDED) as served:
        coordinator = served.services.coordinator
        coordinator.open_round(system, cohort=PLACES, cohort_minimum=PLACES, seconds=3_600)
        asked = {"protocol": PROTOCOL_VERSION, "release": 1, "tasks": [COMPOSED[system].task]}
        codes = at_once(CHECK_INS, lambda _: served.client.post("/v1/rounds/check-in", json=asked).status_code)
        given = codes.count(200)
        assert PLACES <= given <= 2 * PLACES, "the system's own share for devices that vanish is in it"
        assert set(codes) == {200, 204}
        assert rows_of(served, ParticipationRow) == given
        with reading(served.services.engine) as connection:
            (counted,) = connection.scalars(select(RoundRow.check_ins))
        assert counted == {"full": CHECK_INS - given}, "those without a place are a number"
        served.everybody_else()
        coordinator.cancel("round-1")
        assert served.client.post("/v1/rounds/check-in", json=asked).status_code == 204
        assert rows_of(served, ParticipationRow) == given


def test_updates_of_an_abandoned_round_are_deleted(tmp_path: Path) -> None:
    with serve_backend(tmp_path, **UNBOUNDED) as served:
        offers = served.offers("private_counts/local/mean", PLACES)
        update, headers = update_of(offers[0]), {"content-type": TENSORS}
        limit = served.services.coordinator.plain.limit_bytes(offers[0].manifest.round, offers[0].pseudonym)

        def send(at: int) -> int:
            turn, place = divmod(at, PLACES - 1)
            content = update[:64] + bytes(limit - 64) if turn % 2 else update  # the former is no update
            return served.client.put(upload_path(offers[place]), content=content, headers=headers).status_code

        codes = at_once(4 * (PLACES - 1), send)
        assert set(codes) <= {200, 409}
        kept = files_of(served)
        assert len(kept) == PLACES - 1, "one a place"
        assert max(kept.values()) <= limit
        served.everybody_else()
        served.services.coordinator.cancel(offers[0].manifest.round)
        assert files_of(served) == {}


def test_messages_of_an_abandoned_sum_are_deleted(tmp_path: Path) -> None:
    with serve_backend(tmp_path, **UNBOUNDED) as served:
        offers = served.offers("private_counts/secure/huber", 10)
        devices = [
            SumDevice(offer.pseudonym, begin_sum(terms_of(offer)), random_vector(terms_of(offer).length))
            for offer in offers
        ]
        send_stage(served, offers, devices, "keys")
        send_stage(served, offers[:9], devices[:9], "shares", after="keys")
        full = b" " * READ_AT_ONCE_BYTES["shares"]
        codes = {
            served.client.put(
                stage_path(offers[at % 10], "shares"), content=full, headers={"content-type": JSON}
            ).status_code
            for at in range(200)
        }
        assert codes == {400}, "read, refused and not kept"
        assert rows_of(served, SumMessageRow) == 19
        served.everybody_else()
        served.services.coordinator.cancel(offers[0].manifest.round)
        assert (rows_of(served, SumMessageRow), rows_of(served, SumKeyRow), files_of(served)) == (0, 0, {})


def test_invalid_pseudonym_is_refused_and_not_stored(tmp_path: Path) -> None:
    with serve_backend(tmp_path, **UNBOUNDED) as served:
        (offer, *_) = served.offers("private_counts/local/mean", 10)
        before = rows_of(served, ParticipationRow)
        for name, code in (("p" * 65, 422), ("p" * 40_000, 422), ("p" * 64, 403), ("..%2f..%2fx", 404)):
            path = f"/v1/rounds/{offer.manifest.round}/updates/{name}"
            assert (
                served.client.put(path, content=update_of(offer), headers={"content-type": TENSORS}).status_code == code
            )
        assert (rows_of(served, ParticipationRow), files_of(served)) == (before, {})
