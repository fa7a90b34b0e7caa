"""What the demo's simulated readers allow: all that the console offers."""

from __future__ import annotations

from pathlib import Path

import pytest

from backend.demo import DEMO_READERS
from backend.federation.systems import SYSTEMS
from device_app.privacy.prices import sum_prices
from device_app.settings import DeviceSettings
from device_app.wire.protections import SecureSum
from experiments.bench.quality import WILLING

SURVIVORS, COORDINATES = 20, 16_384
"""Of a round of the bench's 24, fewer than the demo's sixty; and the numbers of a large count."""
NOISY = {
    name: spec.protection
    for name, spec in SYSTEMS.items()
    if isinstance(spec.protection, SecureSum) and spec.protection.sigma
}


@pytest.mark.parametrize("system", NOISY)
def test_no_ceiling_of_simulated_readers_is_below_what_a_noisy_sum_costs(
    system: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Red before: every device declined `private_counts_large`, so that no such round of the demo was ever applied."""
    for variable, value in DEMO_READERS.items():
        monkeypatch.setenv(variable, value)
    for privacy in (DeviceSettings(data_dir=tmp_path).privacy, WILLING):
        prices = sum_prices(NOISY[system], SURVIVORS, COORDINATES, privacy.delta_per_sum)
        assert prices.epsilon <= privacy.epsilon_per_sum
        assert prices.alone <= privacy.epsilon_per_sum_alone
        assert prices.one_click_alone <= privacy.epsilon_per_click_alone
