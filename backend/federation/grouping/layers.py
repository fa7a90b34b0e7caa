"""A model's parameters as layers, bottom first (FINDING, section 4.1.2)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Layers:
    """Prefixes of parameter names in definition order, the bottom layer first.

    A layer is named and not found from the order of tensors: a file of weights keeps no order of definition.

    Args:
        prefixes: `attention` holds `attention.query.weight` and all else that begins with `attention.` or is called so.
        frozen_below: layers under these that nobody trains, such as a frozen news encoder's. They count in N and i, so
            that the layers above get the weights that the whole model's would have.
    """

    prefixes: tuple[str, ...]
    frozen_below: int = 0

    def __post_init__(self) -> None:
        if not self.prefixes or len(set(self.prefixes)) != len(self.prefixes):
            raise ValueError(f"prefixes: distinct names, at least one, got {self.prefixes}")
        if self.frozen_below < 0:
            raise ValueError(f"frozen_below: at least 0, got {self.frozen_below}")

    def __len__(self) -> int:
        """How many of them are trained."""
        return len(self.prefixes)

    @property
    def depth(self) -> int:
        """N, the frozen ones counted."""
        return len(self.prefixes) + self.frozen_below

    def place(self, parameter: str) -> int:
        """Which trained layer a parameter is of, from 0. Raises ValueError if it is in none, or in several."""
        found = [
            place
            for place, prefix in enumerate(self.prefixes)
            if parameter == prefix or parameter.startswith(prefix + ".")
        ]
        if len(found) != 1:
            raise ValueError(f"parameter {parameter}: in {len(found)} of the layers {', '.join(self.prefixes)}")
        return found[0]
