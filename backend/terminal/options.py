"""Shared parts of the terminal's commands: console output, options of a server, and its operator client."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console

if TYPE_CHECKING:
    from backend.operations.admin_client import Operator

says = Console(stderr=True, highlight=False, soft_wrap=True)

Workers = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=64,
        help="Server processes behind the port, under one more that restarts them, on SIGHUP without a gap. Without "
        "it this one process serves.",
    ),
]
Pictures = Annotated[
    Literal["on", "off"] | None,
    typer.Option(
        help="Of all feeds that are followed, whether the pictures that they name are fetched and shown. All are "
        "fetched whether or not it is read; their hosts see this machine's address. On for new feeds unless "
        "it was off before."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output.")]
BackendDir = Annotated[
    Path | None, typer.Option("--data-dir", help="The backend's folder; from the settings by default.")
]
BackendUrl = Annotated[
    str | None,
    typer.Option(
        "--backend",
        help="The backend's address; by default where the server of the folder listens, else from the settings.",
    ),
]


def operator(backend: str | None, data_dir: Path | None) -> Operator:
    """The operator client of a server at its address, by default the address of the folder's running server."""
    from backend.operations.admin_client import Operator, address_of
    from backend.settings import load_settings

    settings = load_settings(**chosen(data_dir=data_dir))
    return Operator(backend or address_of(settings), settings.admin_token_file)


def chosen(**options: Any) -> dict[str, Any]:
    """The options that were given; the settings supply the rest."""
    return {name: value for name, value in options.items() if value is not None}
