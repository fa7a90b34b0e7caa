"""Copies of a message with one value at a limit of its field or just beyond it, from the Python wire's JSON schema."""

from __future__ import annotations

import base64
import copy
from collections.abc import Iterator
from typing import Any

Json = Any
Way = tuple[str | int, ...]
STEPS = {"maximum": 1, "exclusiveMaximum": 0, "minimum": -1, "exclusiveMinimum": 0}
"""By a limit of a number: how far beyond it the first whole number is that is refused."""


def at_the_edges(schema: dict[str, Any], message: Json, seen: set[tuple[str, str]]) -> Iterator[Json]:
    """Yield copies of a message, each with one field at or beyond a limit; `seen` holds fields tried elsewhere."""
    for way, value in _changes(schema, schema, message, (), seen):
        changed = copy.deepcopy(message)
        holder = changed
        for step in way[:-1]:
            holder = holder[step]
        holder[way[-1]] = value
        yield changed


def _changes(
    root: dict[str, Any], schema: dict[str, Any], value: Json, way: Way, seen: set[tuple[str, str]]
) -> Iterator[tuple[Way, Json]]:
    schema = _of(root, schema, value)
    if isinstance(value, dict):
        for name, inner in value.items():
            field = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
            mark = schema.get("title", ""), name
            if isinstance(field, dict) and (mark not in seen or "properties" not in schema):
                seen.add(mark)
                yield from (((*way, name), edge) for edge in _edges(_of(root, field, inner), inner))
                yield from _changes(root, field, inner, (*way, name), seen)
    elif isinstance(value, list) and value:
        yield from (((*way, 0), edge) for edge in _edges(_of(root, schema["items"], value[0]), value[0]))
        yield from _changes(root, schema["items"], value[0], (*way, 0), seen)


def _of(root: dict[str, Any], schema: dict[str, Any], value: Json) -> dict[str, Any]:
    """Return the schema, of several that a field may have, by which a value was drawn."""
    if "$ref" in schema:
        return _of(root, root["$defs"][schema["$ref"].rsplit("/", 1)[1]], value)
    if "discriminator" in schema:
        return _of(root, {"$ref": schema["discriminator"]["mapping"][value["kind"]]}, value)
    if "anyOf" in schema:
        types = {str: "string", int: "integer", float: "number", list: "array", dict: "object", type(None): "null"}
        inner = [_of(root, each, value) for each in schema["anyOf"]]
        return next((each for each in inner if each.get("type") == types[type(value)]), inner[0])
    return schema


def _edges(schema: dict[str, Any], value: Json) -> Iterator[Json]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        for limit, step in STEPS.items():
            if limit in schema:
                yield schema[limit]
                yield schema[limit] + step
                yield schema[limit] - step
        if schema["type"] == "number":
            yield from (schema[limit] * (1 + 2**-52) for limit in ("maximum", "minimum") if schema.get(limit))
    elif isinstance(value, str) and "maxLength" in schema:
        if schema.get("format") == "base64url":
            sizes = (schema["maxLength"], schema["maxLength"] + 1, max(0, schema["minLength"] - 1))
            yield from (base64.urlsafe_b64encode(bytes(size)).decode() for size in sizes)
        else:
            yield "😀" * schema["maxLength"]
            yield "a" * (schema["maxLength"] + 1)
    elif isinstance(value, list) and value:
        limits = (schema.get("maxItems"), schema.get("minItems"))
        lengths = {limit + step for limit in limits if limit is not None for step in (-1, 0, 1)}
        yield from ((value * length)[:length] for length in sorted(lengths) if length >= 0)
    elif isinstance(value, dict) and value and "maxProperties" in schema:
        one = next(iter(value.values()))
        yield from ({f"g{n}": one for n in range(schema["maxProperties"] + step)} for step in (0, 1))
