"""A device with default settings in front of a malicious server.

Its reader has seen and clicked articles of a count's list.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import numpy as np

from backend.federation.systems import COMPOSED
from device_app.settings import PrivacySettings
from device_app.training.participant import Outcome
from protocol.popularity import CountList
from protocol.protections import SecureSum
from tests.doubles.malicious_server import MaliciousServer
from tests.doubles.round_rig import BackendRig, DeviceRig

PRIVATE_COUNTS = COMPOSED["private_counts/secure/huber"]

LISTED, SHOWN, CLICKED = 1_500, 20, 3
NEWS = tuple(f"n{row}" for row in range(LISTED))
assert isinstance(PRIVATE_COUNTS.protection, SecureSum)
HONEST: SecureSum = PRIVATE_COUNTS.protection
UNIT = 3 / 16
LIST = CountList(news=NEWS, displayed_limit=32, clicked_limit=5, displayed_unit=UNIT, window_hours=24)


@dataclass
class Victim:
    device: DeviceRig
    clicked: frozenset[int]
    shown: tuple[int, ...]

    @classmethod
    def before(cls, server: MaliciousServer, backend: BackendRig, folder: Path, seed: int, **changes: object) -> Victim:
        """Return a victim that has read and clicked, and knows no other server.

        It has default settings except for the changes.
        """
        privacy = PrivacySettings(**changes)  # type: ignore[arg-type]
        device = DeviceRig(
            folder / "device.sqlite", backend.clock, server, privacy, seed=seed, blob_folder=folder.parent / "blobs"
        )
        device.sync()
        draw = np.random.default_rng(1_000 + seed)
        shown = tuple(draw.choice(LISTED, SHOWN, replace=False).tolist())
        at = backend.clock() - timedelta(hours=2)
        ids = tuple(NEWS[row] for row in shown)
        device.stores.impressions.record("feed", ids, at)
        for place, news_id in enumerate(ids[:CLICKED]):
            device.stores.clicks.add(news_id, "feed", at + timedelta(minutes=place + 1))
        return cls(device, frozenset(shown[:CLICKED]), shown)

    def step_through(self) -> Outcome:
        """Step until the device waits for nothing more, or has asked often enough."""
        outcome = self.device.trainer.step()
        for _ in range(8):
            if outcome.state != "waiting":
                break
            outcome = self.device.trainer.step()
        return outcome

    def choose(self, *, restarted: bool = False, **changes: object) -> None:
        """Change the reader's settings; restarted: with a new process."""
        self.device.privacy = PrivacySettings.model_validate(self.device.privacy.model_dump() | changes)
        if restarted:
            self.device.stop()
            self.device.start()

    def named(self, server: MaliciousServer) -> int:
        """Return how many of the three clicks are among the three highest numbers."""
        if server.opened is None:
            return 0
        return len(self.clicked & set(np.argsort(server.clicks())[-CLICKED:].tolist()))

    def charges(self) -> list[dict[str, float]]:
        rows = self.device.ledger.repository.entries().rows
        return [{**row.parameters, "epsilon": row.epsilon, "delta": row.delta} for row in rows]


Meets = Callable[..., Victim]
"""Takes a server, a seed, and changes of the reader's settings."""
