"""The demo's simulated readers allow everything that the console offers."""

from __future__ import annotations

from pathlib import Path

import pytest

from backend.demo import DEMO_READERS
from backend.federation.systems import COMPOSED
from device_app.privacy.accounting.cost_of_sums import sum_prices
from device_app.settings import DeviceSettings
from experiments.bench.quality import WILLING
from protocol.protections import SecureSum

SURVIVORS, COORDINATES = 20, 16_384
"""Of a round of the bench's 24, fewer than the demo's sixty; and the numbers of a large count."""
NOISY = {
    name: spec.protection
    for name, spec in COMPOSED.items()
    if isinstance(spec.protection, SecureSum) and spec.protection.sigma
}


@pytest.mark.parametrize("system", NOISY)
def test_simulated_readers_limits_allow_every_noisy_sum(
    system: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Regression: every device declined the system with less noise, so no such round of the demo was ever applied."""
    for variable, value in DEMO_READERS.items():
        monkeypatch.setenv(variable, value)
    for privacy in (DeviceSettings(data_dir=tmp_path).privacy, WILLING):
        prices = sum_prices(NOISY[system], SURVIVORS, COORDINATES, privacy.delta_per_sum)
        assert prices.epsilon <= privacy.epsilon_per_sum
        assert prices.alone <= privacy.epsilon_per_sum_alone
        assert prices.one_click_alone <= privacy.epsilon_per_click_alone
