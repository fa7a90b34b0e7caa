"""Two messages of torch 2.13's exporter that say nothing about our graphs; all others still come through."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_REGISTRATION = "torch.onnx._internal.exporter._registration"


def _is_news(record: logging.LogRecord) -> bool:
    return "torchvision is not installed" not in record.getMessage()


@contextmanager
def without_known_noise() -> Iterator[None]:
    """Leave out: torchvision's operators are missing (no graph of ours has one), and a deprecated class that torch
    itself copies while it decomposes a program."""
    logger = logging.getLogger(_REGISTRATION)
    logger.addFilter(_is_news)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"`isinstance\(treespec, LeafSpec\)` is deprecated", FutureWarning)
            yield
    finally:
        logger.removeFilter(_is_news)
