"""How an update must be protected before it leaves a device: a tagged union, like reports."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from device_app.wire.ids import Message


class LocalLaplace(Message):
    """Uni-FedRec 2.5: clip every coordinate to [-clip, clip], add Laplace(0, scale) to each, on the device."""

    kind: Literal["local_laplace"] = "local_laplace"
    clip: float = Field(default=0.1, gt=0, description="theta")
    scale: float = Field(default=0.01, gt=0, description="lambda_g")

    def epsilon_per_coordinate(self) -> float:
        """The papers' figure, 2 theta / lambda_g: pure epsilon of one coordinate of one upload."""
        return 2 * self.clip / self.scale

    def epsilon_per_upload(self, coordinates: int) -> float:
        """The honest pure epsilon of a whole upload of that many coordinates (ALGORITHMS 2.6)."""
        return self.epsilon_per_coordinate() * coordinates


Protection = LocalLaplace
