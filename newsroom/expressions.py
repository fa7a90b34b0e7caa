"""A closed language of expressions in which data files say what is drawn and when a report is printed.

`pick(c.cities)`, `ayes - between(2, 17)`, `'cyclone' if warm else 'storm'`: names, attributes, literals, calls of the
given verbs, arithmetic, comparisons, conditions and formatted text, in Python's notation. It has no assignment, loop,
import or method call, and no name that begins with two underscores, so a data file can't run code.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

Verb = Callable[..., Any]

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda one, pool: one in pool,
    ast.NotIn: lambda one, pool: one not in pool,
}
_VALUES = (ast.Constant, ast.Name, ast.Load, ast.Attribute, ast.Subscript, ast.Slice, ast.Tuple, ast.Dict)
_TEXTS = (ast.JoinedStr, ast.FormattedValue)
_CALLS = (ast.Call, ast.keyword, ast.Starred)
_LOGIC = (ast.IfExp, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.BinOp, ast.Compare)
_ALLOWED = (*_VALUES, *_TEXTS, *_CALLS, *_LOGIC, *_BINARY, *_COMPARED)


class ExpressionError(ValueError):
    """An expression that is not allowed; the message says why, and quotes it."""


class Expression:
    """One expression, checked when it is made: every verb is known and only the language is used."""

    def __init__(self, source: str, verbs: Mapping[str, Verb] | None = None) -> None:
        self.source = source
        self._verbs = verbs or {}
        if not source.strip():
            raise ExpressionError("an expression can't be empty")
        try:
            self._root = ast.parse(f"({source})", mode="eval").body
        except SyntaxError as error:
            raise ExpressionError(f"{source!r} is not an expression: {error.msg}") from error
        called: set[int] = set()
        self.names: set[str] = set()
        for node in ast.walk(self._root):
            if not isinstance(node, _ALLOWED):
                raise ExpressionError(f"{ast.unparse(node)!r} in {source!r} is not allowed")
            if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
                raise ExpressionError(f"the attribute {node.attr!r} in {source!r} is private")
            if isinstance(node, ast.Call):
                if not isinstance(node.func, ast.Name) or node.func.id not in self._verbs:
                    known = ", ".join(sorted(self._verbs)) or "none"
                    raise ExpressionError(f"unknown verb {ast.unparse(node.func)!r} in {source!r}; known are {known}")
                called.add(id(node.func))
            elif isinstance(node, ast.Name) and id(node) not in called:
                self.names.add(node.id)

    @property
    def verb(self) -> Verb | None:
        """Return the verb if the whole expression is a call of one."""
        match self._root:
            case ast.Call(func=ast.Name(id=name)):
                return self._verbs[name]
        return None

    def evaluated(self, scope: Mapping[str, Any], scene: Any = None) -> Any:
        """Return the value with the scope's names; verbs get the scene first, and are called left to right."""
        return self._value(self._root, scope, scene)

    def of(self, facts: object) -> Any:
        """Return the value with the attributes of the facts as names."""
        return self.evaluated(vars(facts))

    def _value(self, node: ast.AST, scope: Mapping[str, Any], scene: Any) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return scope[name]
            case ast.Attribute(value=owner, attr=attribute):
                return getattr(self._value(owner, scope, scene), attribute)
            case ast.Call(func=ast.Name(id=verb), args=args, keywords=keywords):
                given = self._each(args, scope, scene)
                named = {str(one.arg): self._value(one.value, scope, scene) for one in keywords}
                return self._verbs[verb](scene, *given, **named)
            case ast.Tuple(elts=elements):
                return tuple(self._each(elements, scope, scene))
            case ast.JoinedStr(values=parts):
                return "".join(str(self._value(part, scope, scene)) for part in parts)
            case ast.FormattedValue(value=value, format_spec=spec):
                return format(self._value(value, scope, scene), self._value(spec, scope, scene) if spec else "")
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._value(body if self._value(test, scope, scene) else orelse, scope, scene)
            case ast.BoolOp(op=op, values=values):
                for part in values[:-1]:
                    value = self._value(part, scope, scene)
                    if bool(value) is isinstance(op, ast.Or):
                        return value
                return self._value(values[-1], scope, scene)
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                value = self._value(left, scope, scene)
                for sign, compared in zip(ops, comparators, strict=True):
                    other = self._value(compared, scope, scene)
                    if not _COMPARED[type(sign)](value, other):
                        return False
                    value = other
                return True
            case ast.BinOp(left=left, op=op, right=right):
                return _BINARY[type(op)](self._value(left, scope, scene), self._value(right, scope, scene))
            case ast.UnaryOp(op=op, operand=operand):
                value = self._value(operand, scope, scene)
                return not value if isinstance(op, ast.Not) else -value
            case ast.Subscript(value=owner, slice=ast.Slice(lower=lower, upper=upper)):
                low, high = (None if end is None else self._value(end, scope, scene) for end in (lower, upper))
                return self._value(owner, scope, scene)[low:high]
            case ast.Subscript(value=owner, slice=index):
                return self._value(owner, scope, scene)[self._value(index, scope, scene)]
            case ast.Dict(keys=keys, values=values):
                pairs = zip(keys, values, strict=True)
                return {self._value(key, scope, scene): self._value(one, scope, scene) for key, one in pairs if key}
        raise ExpressionError(f"{ast.unparse(node)!r} in {self.source!r} is not allowed")

    def _each(self, nodes: list[ast.expr], scope: Mapping[str, Any], scene: Any) -> list[Any]:
        values = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                values += self._value(node.value, scope, scene)
            else:
                values.append(self._value(node, scope, scene))
        return values
