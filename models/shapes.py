"""The symbols of tensor shapes, the same in every module, in end-of-line comments such as `# [b, C, D]`.

| symbol | meaning                                            | here        |
|--------|----------------------------------------------------|-------------|
| b      | batch: readers or training samples                 | any         |
| H      | clicked news, left-padded, newest last             | 50          |
| h      | attention heads                                    | 16, 20      |
| d      | size of one head                                   | 16, 20      |
| D      | size of a news or user vector, h * d               | 256, 400    |
| A      | hidden size of additive attention                  | 128 or 200  |
| C      | interest channels of a reader, at most C_max       | 5           |
| B      | basic interests                                    | 30          |
| K      | negatives of one positive; candidates are 1 + K    | 4           |
| R      | candidates to rank                                 | any         |
| L      | words or word pieces of a text                     | 30          |
| V      | words of the vocabulary, with padding and unknown  | 30,000      |
| E      | size of a word vector                              | 300         |
| F      | filters of the text CNN; features of a candidate   | 256, 400; 4 |
| S      | size of a token state of the language model        | 384         |
| n      | distinct news                                      | any         |

Masks are floating point, 1 for real and 0 for padding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from torch import Tensor

CLICKS = 50  # H
HEADS = 16  # h
HEAD_DIM = 16  # d
NEWS_DIM = HEADS * HEAD_DIM  # D
PAPER_DIM = 400  # D of Efficient-FedRec and FedNewsRec, 20 heads of 20
CHANNELS_LIMIT = 5  # C_max
BASIS_SIZE = 30  # B
NEGATIVES = 4  # K
TITLE_WORDS = 30  # L
ABSTRACT_WORDS = 50  # L of abstracts


def heads_of(dim: int) -> tuple[int, int]:
    """h and d of attention over news vectors of D = `dim`, as near each other as can be: 16 of 16, or 20 of 20."""
    heads = next(each for each in range(math.isqrt(dim), 0, -1) if dim % each == 0)
    return heads, dim // heads


class ShapeMismatch(ValueError):
    """An argument has another shape than its module needs."""

    def __init__(self, argument: str, expected: str, got: Tensor) -> None:
        super().__init__(f"{argument} must have shape {expected}, got {_shown(got.shape)}")


def expect_shape(argument: str, value: Tensor, *axes: object) -> None:
    """Refuse a tensor whose shape does not fit.

    An axis is a size or a symbol of the table above, which stands for any size. Free axes of a graph that is being
    exported have no size yet and are not looked at, so a check never fixes them. Raises ShapeMismatch.
    """
    sizes = tuple(value.shape)
    fits = len(sizes) == len(axes) and all(
        size == axis for size, axis in zip(sizes, axes, strict=True) if isinstance(size, int) and isinstance(axis, int)
    )
    if not fits:
        raise ShapeMismatch(argument, _shown(axes), value)


def _shown(axes: Iterable[object]) -> str:
    return f"[{', '.join(map(str, axes))}]"
