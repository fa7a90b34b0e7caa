"""Who shares a parameter: every reader, a group of readers, or nobody but its own device.

A module's class declares what is not shared, by the names of its own parameters or children:

    class LsturUser(UserModel):
        SCOPES: ClassVar[Mapping[str, Scope]] = {"user_embedding": "private"}

A release names its private parameters (`ModelEntry.private`); there `device_app/privacy/shared.py` takes over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, cast

from torch import Tensor, nn

Scope = Literal["shared", "group", "private"]
WIDEST_FIRST: tuple[Scope, ...] = ("shared", "group", "private")
DECLARATION = "SCOPES"


class PrivateParameter(ValueError):
    """A private parameter was about to be shared; the message names it."""

    def __init__(self, parameter: str) -> None:
        super().__init__(f"parameter {parameter}: it is private and never leaves its device")
        self.parameter = parameter


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


@dataclass(frozen=True, eq=False)
class SharedParameters(Mapping[str, Tensor]):
    """Values of parameters of one model, or their gradients, that may go to others: none of them is private.

    Made by naming the model; raises PrivateParameter for a private one, ValueError for a name the model does not have.
    """

    model: nn.Module
    tensors: Mapping[str, Tensor]

    def __post_init__(self) -> None:
        known = scopes(self.model)
        for name in self.tensors:
            if name not in known:
                raise ValueError(f"parameter {name}: {type(self.model).__name__} has none of that name")
            if known[name] == "private":
                raise PrivateParameter(name)

    @classmethod
    def of(cls, model: nn.Module) -> SharedParameters:
        """Detached copies of all that the model shares."""
        private = set(private_names(model))
        return cls(model, {name: p.detach().clone() for name, p in model.named_parameters() if name not in private})

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)


def _declared(module: nn.Module) -> Mapping[str, Scope]:
    return cast(Mapping[str, Scope], getattr(type(module), DECLARATION, {}))
