"""Routes of the mute rules: words, phrases and expressions whose stories never appear."""

from collections.abc import Sequence
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import Response

from device_app.pages.openapi import form, page
from device_app.pages.renderer import WORDS, PageRenderer, RowId, see_other
from device_app.reading.mute_patterns import PATTERN_CHARS
from device_app.store.mute_rules import MuteRule

Field = Literal["anywhere", "title", "text", "publisher", "address"]
Kind = Literal["word", "phrase", "regex"]
Pattern = Annotated[str, Query(max_length=PATTERN_CHARS)]


def router(renderer: PageRenderer) -> APIRouter:
    """Return the routes of the list of rules and its forms."""
    device = renderer.device
    routes = renderer.router()

    def listed(request: Request, *, undo: bool = False, problem: str | None = None, **rule: str) -> Response:
        return renderer.page(
            request,
            "mute_rules",
            rules=device.muting.rules(),
            fields=WORDS.table("rule_fields"),
            kinds=WORDS.table("rule_kinds"),
            rule={"field": "anywhere", "kind": "word", "pattern": "", "replaces": ""} | rule,
            undo=undo,
            problem=problem,
            status_code=422 if problem else 200,
        )

    @routes.get("/rules", **page())
    def rules(
        request: Request,
        field: Field = "anywhere",
        kind: Kind = "word",
        pattern: Pattern = "",
        replaces: Annotated[int | None, Query(ge=1, le=2**53)] = None,
        undo: Literal["yes", "no"] = "no",
    ) -> Response:
        """List the rules. The query may contain a rule to edit, or a removed one to restore."""
        return listed(
            request, undo=undo == "yes", field=field, kind=kind, pattern=pattern, replaces=str(replaces or "")
        )

    @routes.post("/rules", **form())
    def put(
        request: Request,
        field: Annotated[Field, Form()],
        kind: Annotated[Kind, Form()],
        pattern: Annotated[str, Form(max_length=PATTERN_CHARS)] = "",
        replaces: Annotated[str, Form(pattern=r"^[0-9]{0,15}$")] = "",
    ) -> Response:
        """Add a rule, in place of another one if it was edited."""
        try:
            device.muting.add(field, kind, pattern)
        except ValueError as refused:
            words = WORDS("rule_refused", pattern=pattern, why=refused)
            return listed(request, problem=words, field=field, kind=kind, pattern=pattern, replaces=replaces)
        if replaces and not _is(device.muting.rules(), int(replaces), field, kind, pattern):
            device.muting.remove(int(replaces))
        return see_other("/rules", "rule_added")

    @routes.post("/rules/{rule_id}/delete", **form())
    def delete(rule_id: RowId) -> Response:
        deleted = device.muting.remove(rule_id)
        if deleted is None:
            return see_other("/rules")
        parameters = {"field": deleted.field, "kind": deleted.kind, "pattern": deleted.pattern, "undo": "yes"}
        return see_other(f"/rules?{urlencode(parameters)}")

    return routes


def _is(rules: Sequence[tuple[MuteRule, int]], rule_id: int, field: str, kind: str, pattern: str) -> bool:
    """Return whether this rule exists unchanged."""
    return any(
        (rule.id, rule.field, rule.kind, rule.pattern) == (rule_id, field, kind, " ".join(pattern.split()))
        for rule, _ in rules
    )
