"""Every module of the server, imported, so that all its errors are known."""

from __future__ import annotations

import importlib
import pkgutil

import backend

OPTIONAL = "ray"
"""The only package that a server is installed without."""


def import_all() -> None:
    """Raises ModuleNotFoundError for a package that is missing and needed."""
    for module in pkgutil.walk_packages(backend.__path__, "backend."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as missing:
            if missing.name != OPTIONAL:
                raise
