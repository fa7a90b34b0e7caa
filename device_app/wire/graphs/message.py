"""ONNX's file format, read strictly: whatever a reader could understand in two ways is refused.

The fields are those of onnx.proto (protobuf's wire format); only those stand here that a graph of a release has.
Nothing is recursive but what the format nests at a fixed depth, and each byte is looked at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

VARINT, BYTES, FIXED32 = 0, 2, 5
VARINT_LIMIT_BYTES = 10
NAME_LIMIT = 200
FIELDS_LIMIT = 100_000
"""Of one file: ten times the fields of the largest graph of ours."""


class GraphRefused(ValueError):
    """A graph that no device opens; the message is half a sentence that names the place and the limit."""


Kind = Literal["integer", "name", "bytes", "float"]


@dataclass(frozen=True)
class Field:
    """A field of a message. message: its own fields, if it is one; repeated: may stand several times, or packed."""

    name: str
    kind: Kind | Mapping[int, Field]
    repeated: bool = False


AXIS = {1: Field("size", "integer"), 2: Field("name", "name")}
TENSOR_TYPE = {1: Field("element", "integer"), 2: Field("shape", {1: Field("axes", AXIS, repeated=True)})}
DECLARED = {1: Field("name", "name"), 2: Field("type", {1: Field("tensor", TENSOR_TYPE)})}
TENSOR = {
    1: Field("dims", "integer", repeated=True),
    2: Field("element", "integer"),
    8: Field("name", "name"),
    9: Field("raw", "bytes"),
}
ATTRIBUTE = {
    1: Field("name", "name"),
    2: Field("f", "float"),
    3: Field("i", "integer"),
    4: Field("s", "name"),
    8: Field("ints", "integer", repeated=True),
    20: Field("type", "integer"),
}
NODE = {
    1: Field("inputs", "name", repeated=True),
    2: Field("outputs", "name", repeated=True),
    3: Field("name", "name"),
    4: Field("operator", "name"),
    5: Field("attributes", ATTRIBUTE, repeated=True),
    7: Field("domain", "name"),
}
GRAPH = {
    1: Field("nodes", NODE, repeated=True),
    2: Field("name", "name"),
    5: Field("initializers", TENSOR, repeated=True),
    11: Field("inputs", DECLARED, repeated=True),
    12: Field("outputs", DECLARED, repeated=True),
}
OPERATOR_SET = {1: Field("domain", "name"), 2: Field("version", "integer")}
MODEL = {
    1: Field("ir_version", "integer"),
    7: Field("graph", GRAPH),
    8: Field("operator_sets", OPERATOR_SET, repeated=True),
}

ParsedMessage = dict[str, Any]
"""Field name -> value: absent fields are absent, repeated ones always there."""


def read_model(content: bytes) -> ParsedMessage:
    """A model's fields by name. Raises GraphRefused for what isn't plain, or is no field of `MODEL`."""
    return _WireReader(content).message(0, len(content), MODEL, "model")


class _WireReader:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self._fields = 0

    def message(self, at: int, end: int, fields: Mapping[int, Field], where: str) -> ParsedMessage:
        found: ParsedMessage = {field.name: [] for field in fields.values() if field.repeated}
        while at < end:
            key, at = self._varint(at, end, where)
            number, wire = key >> 3, key & 7
            field = fields.get(number)
            if field is None:
                raise GraphRefused(f"{where} has field {number}, which no graph of a release has")
            self._count()
            path = f"{where}.{field.name}"
            if field.repeated:
                at = self._one_more(at, end, wire, field, path, found[field.name])
                continue
            if field.name in found:
                raise GraphRefused(f"{path} stands there twice")
            found[field.name], at = self._value(at, end, wire, field, path)
        return found

    def _count(self) -> None:
        self._fields += 1
        if self._fields > FIELDS_LIMIT:
            raise GraphRefused(f"it has more than {FIELDS_LIMIT} fields")

    def _one_more(self, at: int, end: int, wire: int, field: Field, path: str, values: list[Any]) -> int:
        if field.kind == "integer" and wire == BYTES:  # packed
            at, last = self._span(at, end, path)
            while at < last:
                self._count()
                value, at = self._varint(at, last, path)
                values.append(_signed(value))
            return at
        value, at = self._value(at, end, wire, field, path)
        values.append(value)
        return at

    def _value(self, at: int, end: int, wire: int, field: Field, path: str) -> tuple[Any, int]:
        wanted = {"integer": VARINT, "float": FIXED32}.get(field.kind, BYTES) if isinstance(field.kind, str) else BYTES
        if wire != wanted:
            raise GraphRefused(f"{path} is written as wire type {wire}, not {wanted}")
        if wire == VARINT:
            value, at = self._varint(at, end, path)
            return _signed(value), at
        if wire == FIXED32:
            if end - at < 4:
                raise GraphRefused(f"{path} is cut off")
            return self._content[at : at + 4], at + 4
        at, last = self._span(at, end, path)
        if not isinstance(field.kind, str):
            return self.message(at, last, field.kind, path), last
        part = self._content[at:last]
        return (part if field.kind == "bytes" else _name(part, path)), last

    def _span(self, at: int, end: int, path: str) -> tuple[int, int]:
        length, at = self._varint(at, end, path)
        if length > end - at:
            raise GraphRefused(f"{path} is longer than what holds it")
        return at, at + length

    def _varint(self, at: int, end: int, path: str) -> tuple[int, int]:
        value = 0
        for place in range(VARINT_LIMIT_BYTES):
            if at >= end:
                raise GraphRefused(f"{path} is cut off")
            byte = self._content[at]
            at += 1
            value |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                if (place and not byte) or value >= 1 << 64:
                    break
                return value, at
        raise GraphRefused(f"{path} has a number that is not written in the shortest way")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _name(part: bytes, path: str) -> str:
    """Printable ASCII: names go into logs, and on the reader's pages."""
    if len(part) > NAME_LIMIT or not all(0x20 < byte < 0x7F for byte in part):
        raise GraphRefused(f"{path} is no name of at most {NAME_LIMIT} printable ASCII characters")
    return part.decode("ascii")
