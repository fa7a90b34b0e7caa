"""The commands `ownfeed ingest NAME`, generated from the sources: a source's field is an option of its command."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from inspect import Parameter, Signature
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from backend.news.sources.source import NewsSource, SourceOption
from backend.terminal.options import AsJson, BackendDir


def add_source_commands(app: typer.Typer, sources: Mapping[str, type[NewsSource]]) -> None:
    """Add one command for each source, in the order given."""
    for name, source in sources.items():
        app.command(name)(_command(source))


def _command(source: type[NewsSource]) -> Callable[..., None]:
    """The function for typer, with the source's fields as its parameters."""
    hints = get_type_hints(source, include_extras=True)
    described = {field.name: _option(source, field, hints[field.name]) for field in _fields(source)}

    def run(data_dir: BackendDir = None, as_json: AsJson = False, **given: Any) -> None:
        from backend.settings import load_settings
        from backend.terminal.ingest import ingest_sources

        settings = load_settings(**({} if data_dir is None else {"data_dir": data_dir}))
        if not ingest_sources(_built(source, described, given), settings, as_json):
            raise typer.Exit(1)

    common = [
        Parameter("data_dir", Parameter.KEYWORD_ONLY, default=None, annotation=BackendDir),
        Parameter("as_json", Parameter.KEYWORD_ONLY, default=False, annotation=AsJson),
    ]
    own = [_parameter(field, hints[field.name], described[field.name]) for field in _fields(source)]
    signature = Signature([*own, *common])
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {name: each.annotation for name, each in signature.parameters.items()}
    run.__name__, run.__doc__ = source.name, source.help
    return run


def _built(
    source: type[NewsSource], described: Mapping[str, SourceOption], given: Mapping[str, Any]
) -> list[NewsSource]:
    """The sources that a command line names: one, or one per value of a repeatable argument."""
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    # None: an option that wasn't given and for which typer has no default.
    values = {name: value for name, value in values.items() if value is not None}
    repeated = next((name for name, option in described.items() if option.many), None)
    if repeated is None:
        return [source(**values)]
    return [source(**(values | {repeated: value})) for value in values[repeated]]


def _fields(source: type[NewsSource]) -> tuple[Field[Any], ...]:
    return fields(source)  # type: ignore[arg-type]  # a Protocol can't say that it wants dataclasses


def _option(source: type[NewsSource], field: Field[Any], hint: Any) -> SourceOption:
    found = next((extra for extra in get_args(hint)[1:] if isinstance(extra, SourceOption)), None)
    if get_origin(hint) is not Annotated or found is None:
        raise TypeError(f"{source.__name__}.{field.name} must be Annotated[type, SourceOption(...)]")
    return found


def _parameter(field: Field[Any], hint: Any, option: SourceOption) -> Parameter:
    kind: Any = get_args(hint)[0]
    if field.default is MISSING:
        shown: Any = typer.Argument(help=option.help, min=option.minimum, max=option.maximum)
        return Parameter(
            field.name, Parameter.KEYWORD_ONLY, annotation=Annotated[list[kind] if option.many else kind, shown]
        )
    shown = typer.Option(help=option.help, min=option.minimum, max=option.maximum)
    if get_origin(kind) is tuple:
        several: Any = list[get_args(kind)[0]]  # type: ignore[misc]
        return Parameter(field.name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[several | None, shown])
    return Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=Annotated[kind, shown])
