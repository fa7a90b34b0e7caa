"""Subset selection of one topic (Ye and Barg 2018), for comparison; with epsilon 4 and 16 topics it equals `code`."""

import math
from dataclasses import dataclass

import numpy as np

from device_app.privacy.exact_samplers import subset_selection
from device_app.privacy.mechanisms.code import CategoricalMechanism
from device_app.privacy.noise_sources import NoiseSource

NAME = "subset"


@dataclass(frozen=True)
class TopicSubset(CategoricalMechanism):
    """A set of w = max(1, round(K / (e^eps + 1))) of K topics; a set with the reader's topic is e^eps times as likely
    as one without it.

    size: K. epsilon: eps of one report. (Ye and Barg 2018; w is their optimum.)

    Formal guarantees, in pure local differential privacy, for any two readers whatsoever: one drawn set costs eps,
    exactly (`exact_samplers.subset_selection`). As with `code`, the set drawn for a topic is stored and sent again, so
    the lifetime cost is eps times the number of distinct topics, for readers whose topics change at the same times.

    Not covered: when reports change, that a device sends a request, and its address.
    """

    @property
    def width(self) -> int:
        """w, the number of topics in a set."""
        return max(1, round(self.size / (math.exp(self.epsilon) + 1)))

    @property
    def truth(self) -> float:
        """P(the reader's own topic is in the set)."""
        odds = self.width * math.exp(self.epsilon)
        return odds / (odds + self.size - self.width)

    def release(self, topic: int, source: NoiseSource) -> tuple[int, ...]:
        """The set to send, ascending. See the class. Raises ValueError unless topic is 0 .. K - 1."""
        self.require(topic, "topic")
        drawn = subset_selection(source, np.array([topic], dtype=np.int64), self.size, self.width, self.epsilon)
        return tuple(drawn[0].tolist())

    def parameters(self) -> dict[str, float]:
        """Return the mechanism's numbers, for the ledger."""
        return {"size": float(self.size), "epsilon": self.epsilon, "width": float(self.width)}

    def figures(self) -> dict[str, float]:
        """Return its figures for display, by their names in its label's texts."""
        return {"size": self.size, "width": self.width, "truth": self.truth}
