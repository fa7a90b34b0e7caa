"""The samples that a device drew for a union of articles.

The gradient round that follows uses exactly these. Efficient-FedRec opens rows of the article gradients by their number
of owners (EMNLP 2021, section 3.4). A device is counted as an owner of the articles in its samples, so its gradients
must use the same samples; otherwise a row with three counted owners could belong to a single device.
"""

from collections import OrderedDict
from dataclasses import dataclass, replace

from device_app.errors import NotEligible
from device_app.training.samples import ReadingMark, RowSamples

ROUNDS_KEPT = 4
"""Number of unions kept, each with the gradient rounds that followed it."""


@dataclass(frozen=True)
class UnionDraw:
    """One device's draw for one union.

    Args:
        drawn: its samples, with the columns of `features`; None if nothing could be drawn.
        marked: the articles that it marked.
        features: names of all features that its samples have.
        mark: the state of the reader's clicks when the samples were drawn.
    """

    drawn: RowSamples | None
    marked: frozenset[str]
    features: tuple[str, ...] = ()
    mark: ReadingMark | None = None

    def samples(self, features: tuple[str, ...] = ()) -> RowSamples:
        """Return the samples, with these features in this order.

        Raises ValueError if there are no samples, or if they lack a feature.
        """
        if self.drawn is None:
            raise ValueError("samples: nothing was drawn for the union")
        if unknown := [name for name in features if name not in self.features]:
            raise ValueError(f"features: {', '.join(unknown)} were not drawn for the union")
        every = self.drawn.features
        columns = [self.features.index(name) for name in features]
        return replace(self.drawn, features=every[..., columns] if every is not None and columns else None)


NOTHING_DRAWN = UnionDraw(None, frozenset())
"""The draw of a device whose marks could not be computed: it sends zeros in the round that follows.

It takes part anyway: otherwise a server that makes the computation fail for certain clicks could see which devices are
missing.
"""


class UnionDraws:
    """The draws for the last unions.

    They are kept in memory only, since they contain articles that the reader clicked. A device that was restarted in
    between doesn't take part in the next round.
    """

    def __init__(self) -> None:
        self._draws: OrderedDict[str, UnionDraw] = OrderedDict()

    def keep(self, union: str, draw: UnionDraw) -> None:
        """Store the draw for the round `union`, once it is paid for."""
        self._draws[union] = draw
        self._draws.move_to_end(union)
        while len(self._draws) > ROUNDS_KEPT:
            self._draws.popitem(last=False)

    def of(self, gradients: str, follows: str | None) -> UnionDraw:
        """Return the draw for the union that the round `gradients` follows.

        A round that replaces a failed one gets the same draw, which is kept under its name too.

        Raises NotEligible if this device did not take part in the union, or was restarted since.
        """
        if follows is None:
            raise NotEligible("it does not follow a union of articles.")
        if follows not in self._draws:
            raise NotEligible(f"only devices that drew samples for {follows} take part, and this one didn't.")
        draw = self._draws[follows]
        self.keep(gradients, draw)
        return draw
