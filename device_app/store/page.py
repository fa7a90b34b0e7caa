"""One page of a long list, newest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

PAGE_SIZE = 50


@dataclass(frozen=True)
class Page(Generic[T]):
    """Rows of page `number` (the first is 1) and how many rows all pages hold together."""

    rows: tuple[T, ...]
    number: int
    total: int
    size: int = PAGE_SIZE

    @property
    def pages(self) -> int:
        """How many pages there are; an empty list has one."""
        return max(1, -(-self.total // self.size))


def offset(number: int, size: int = PAGE_SIZE) -> int:
    """Rows before page `number`; raises ValueError below page 1."""
    if number < 1:
        raise ValueError(f"page {number}: pages count from 1")
    return (number - 1) * size
