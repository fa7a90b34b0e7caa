"""Imports every module of the server, so that all its errors are known."""

from __future__ import annotations

import importlib
import pkgutil

import backend

OPTIONAL = "ray"
"""The only package that a server can do without."""


def import_all() -> None:
    """Import them. Raises ModuleNotFoundError for a missing package that is required."""
    for module in pkgutil.walk_packages(backend.__path__, "backend."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as missing:
            if missing.name != OPTIONAL:
                raise
