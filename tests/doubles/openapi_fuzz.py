"""Sends generated requests to every operation of an app's OpenAPI.

An undocumented answer is a failure. `fuzz(app, document)` sends valid requests and broken ones, in process.
OWNFEED_OPENAPI_EXAMPLES sets the total number; `make fuzz` sends 20,000 to each app.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.errors import InvalidSchema
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Err, Ok
from schemathesis.python.asgi import ASGIClient
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.transport.serialization import serialize_binary

EXAMPLES_VARIABLE = "OWNFEED_OPENAPI_EXAMPLES"
RESERVE = 1.05
"""Tries this many times the requested examples: an operation with few different requests runs out of them."""
A_FEW = 10
"""Requests for each operation and kind if the variable isn't set; `make fuzz` sends 20,000."""
CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
)


@schemathesis.serializer("application/vnd.safetensors")
def _tensors(context: Any, value: Any) -> bytes:
    """Schemathesis sends raw bytes only for media types that it knows."""
    return serialize_binary(value)


KINDS = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)


def fuzz(
    app: Any,
    document: Mapping[str, Any],
    *,
    headers: Mapping[str, str] | None = None,
    known: Sequence[Mapping[str, Any]] = (),
    bodies: Mapping[str, Sequence[Any]] | None = None,
    examples: int | None = None,
) -> Counter[str]:
    """Send requests to every operation of `document` and count answers by "METHOD /path status".

    Raises AssertionError with a failing request of each operation. Every run sends the same requests. The app's
    lifespan isn't run.

    Args:
        headers: of every request, such as a token.
        known: path parameters of things that exist; half of the requests take theirs from here.
        bodies: by "METHOD /path", bodies that are meaningful here, sent besides the generated ones.
        examples: number for each operation and kind, whatever the variable says.
    """
    schema = schemathesis.openapi.from_dict(dict(document))
    operations = [_operation(found) for found in schema.get_all_operations()]
    examples = examples or _examples(sum(_takes_something(operation) for operation in operations))
    client, answers, failures = ASGIClient(app), Counter[str](), list[str]()
    for operation in operations:
        for kind in KINDS if _takes_something(operation) else KINDS[:1]:
            try:
                _send(operation, kind, client, answers, examples, headers, known, bodies or {})
            except (Exception, FailureGroup) as failed:
                failures.append(f"{operation.label}, {kind.name.lower()} requests: {failed}")
    assert not failures, "\n\n".join(failures)
    return answers


def shares(answers: Mapping[str, int]) -> str:
    """A readable table: how many requests of each operation got each status, and their share."""
    by_operation: dict[str, dict[str, int]] = {}
    for answer, times in sorted(answers.items()):
        operation, status = answer.rsplit(" ", 1)
        by_operation.setdefault(operation, {})[status] = times
    lines = [f"{sum(answers.values()):,} requests to {len(by_operation)} operations"]
    for operation, statuses in by_operation.items():
        total = sum(statuses.values())
        reported = ", ".join(f"{status} {times:,} ({times / total:.0%})" for status, times in statuses.items())
        lines.append(f"{total:>7,}  {operation}: {reported}")
    return "\n".join(lines)


def _examples(operations: int) -> int:
    total = os.environ.get(EXAMPLES_VARIABLE)
    return A_FEW if total is None else math.ceil(RESERVE * int(total) / max(operations, 1) / len(KINDS))


def _takes_something(operation: Any) -> bool:
    """Whether requests of the operation can differ; all other operations get one request."""
    return bool(operation.body) or any(True for _ in operation.iter_parameters())


def _operation(found: Ok[Any] | Err[InvalidSchema]) -> Any:
    """Return an operation of the document; raises an error that explains where the document is invalid."""
    if isinstance(found, Err):
        raise found.err()
    return found.ok()


def _send(
    operation: Any,
    kind: Any,
    client: ASGIClient,
    answers: Counter[str],
    examples: int,
    headers: Mapping[str, str] | None,
    known: Sequence[Mapping[str, Any]],
    bodies: Mapping[str, Sequence[Any]],
) -> None:
    names = {parameter.name for parameter in operation.path_parameters}
    fitting = [dict(each) for each in known if names and names <= set(each)]
    cases = [operation.as_strategy(kind)]
    cases += [operation.as_strategy(kind, path_parameters={name: each[name] for name in names}) for each in fitting]
    for body in bodies.get(operation.label, ()) if kind is KINDS[0] else ():
        places: Sequence[Mapping[str, Any] | None] = fitting if fitting else (None,)
        cases += [operation.as_strategy(kind, body=body, path_parameters=each) for each in places]

    @given(case=st.one_of(*cases))
    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    def ask(case: Any) -> None:
        response = case.call(session=client, headers=dict(headers or {}), allow_redirects=False)
        answers[f"{operation.label} {response.status_code}"] += 1
        case.validate_response(response, checks=list(CHECKS))

    ask()
