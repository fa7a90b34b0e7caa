"""Who shares a parameter: every reader, a group of readers, or nobody but its own device.

A module's class declares what is not shared, by the names of its own parameters or children:

    class LsturUser(UserModel):
        SCOPES: ClassVar[Mapping[str, Scope]] = {"user_embedding": "private"}

A release names its private parameters (`ModelEntry.private`); see `device_app/privacy/private_parameters.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

from torch import nn

Scope = Literal["shared", "group", "private"]
WIDEST_FIRST: tuple[Scope, ...] = ("shared", "group", "private")
DECLARATION = "SCOPES"


def scopes(model: nn.Module) -> dict[str, Scope]:
    """The scope of every parameter, by torch name.

    A declaration about a child holds for all below it; where two declarations meet, the narrower one holds. Raises
    ValueError, naming class and entry, for a declaration that fits no parameter or is no scope.
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
    """Names of the private parameters, sorted: what `ModelEntry.private` says."""
    return tuple(sorted(name for name, scope in scopes(model).items() if scope == "private"))


def _declared(module: nn.Module) -> Mapping[str, Scope]:
    return cast(Mapping[str, Scope], getattr(type(module), DECLARATION, {}))
