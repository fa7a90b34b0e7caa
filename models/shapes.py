"""Symbols of tensor shapes, shape checks, and the scope of parameters.

Shapes are given in end-of-line comments such as `# [b, C, D]`, with the same symbols in every module:

| symbol | meaning                                            | here        |
|--------|----------------------------------------------------|-------------|
| b      | batch: readers or training samples                 | any         |
| H      | clicked articles, left-padded, newest last         | 50          |
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
| n      | distinct articles                                  | any         |

Masks are floating point, 1 for real and 0 for padding.

The scope of a parameter says who shares it: every reader, a group of readers, or only its own device. A module's class
declares all scopes except the first, by the names of its own parameters or children:

    class LsturUser(UserModel):
        SCOPES: ClassVar[Mapping[str, Scope]] = {"user_embedding": "private"}

A release names its private parameters (`ModelEntry.private`); see `device_app/privacy/private_parameters.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal, cast

if TYPE_CHECKING:
    from torch import Tensor, nn

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
    """Return h and d of attention over news vectors of D = `dim`, as equal as possible: 16 of 16, or 20 of 20."""
    heads = next(each for each in range(math.isqrt(dim), 0, -1) if dim % each == 0)
    return heads, dim // heads


class ShapeMismatch(ValueError):
    """A tensor does not have the shape that the module needs."""

    def __init__(self, argument: str, expected: str, got: Tensor) -> None:
        super().__init__(f"{argument} must have shape {expected}, got {_shown(got.shape)}")


def expect_shape(argument: str, value: Tensor, *axes: object) -> None:
    """Raise ShapeMismatch if a tensor's shape does not fit.

    An axis is a size, or a symbol of the table above, which stands for any size. While a graph is exported, its free
    axes have no size yet; the check skips them and so never fixes them.
    """
    sizes = tuple(value.shape)
    fits = len(sizes) == len(axes) and all(
        size == axis for size, axis in zip(sizes, axes, strict=True) if isinstance(size, int) and isinstance(axis, int)
    )
    if not fits:
        raise ShapeMismatch(argument, _shown(axes), value)


def _shown(axes: Iterable[object]) -> str:
    return f"[{', '.join(map(str, axes))}]"


Scope = Literal["shared", "group", "private"]
WIDEST_FIRST: tuple[Scope, ...] = ("shared", "group", "private")
DECLARATION = "SCOPES"


def scopes(model: nn.Module) -> dict[str, Scope]:
    """Return the scope of every parameter, by torch name.

    A declaration about a child applies to everything below it; where two declarations overlap, the narrower one
    applies. Raises ValueError, naming class and entry, for a declaration that matches no parameter or is not a scope.
    """
    found: dict[str, Scope] = {name: "shared" for name, _ in model.named_parameters()}
    for prefix, module in model.named_modules():
        for entry, scope in _declared(module).items():
            if scope not in WIDEST_FIRST:
                raise ValueError(f"{type(module).__name__}.{DECLARATION}[{entry!r}] must be one of {WIDEST_FIRST}")
            below = f"{prefix}.{entry}" if prefix else entry
            fitting = [name for name in found if name == below or name.startswith(f"{below}.")]
            if not fitting:
                raise ValueError(f"{type(module).__name__}.{DECLARATION} names {entry!r}, which has no parameters")
            for name in fitting:
                found[name] = max(found[name], scope, key=WIDEST_FIRST.index)
    return found


def private_names(model: nn.Module) -> tuple[str, ...]:
    """Return the sorted names of the private parameters, for `ModelEntry.private`."""
    return tuple(sorted(name for name, scope in scopes(model).items() if scope == "private"))


def _declared(module: nn.Module) -> Mapping[str, Scope]:
    return cast(Mapping[str, Scope], getattr(type(module), DECLARATION, {}))
