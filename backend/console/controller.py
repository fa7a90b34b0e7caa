"""The console's controller: shows a page or carries out a form for the operator who has signed in, and nobody else."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from fastapi import Request
from fastapi.responses import JSONResponse, RedirectResponse, Response

from backend.console.auth import holds_pass, is_own_form, is_token, let_in
from backend.console.renderer import HEADERS, TemplateRenderer
from backend.errors import OwnfeedError

if TYPE_CHECKING:
    from backend.composition import Services

Values = dict[str, Any]


class ConsoleController:
    """One console over the services of one backend."""

    def __init__(self, services: Services, renderer: TemplateRenderer) -> None:
        self.services = services
        self.renderer = renderer

    def show(self, request: Request, template: str, view: Callable[[], Values], **values: Any) -> Response:
        """A page with what `view` finds; the sign-in page without a pass.

        A token in the address (?token=) is taken out of it at once, so that no history or log keeps it in use.
        """
        token = self.services.admin_token
        shown = request.query_params.get("token")
        if shown is not None and is_token(shown, token):
            rest = [(name, value) for name, value in request.query_params.multi_items() if name != "token"]
            return let_in(request, token, request.url.path + (f"?{urlencode(rest)}" if rest else ""))
        if not holds_pass(request, token):
            problem = None if shown is None else "That is not this backend's token."
            return self.renderer.page(request, "sign_in", status_code=401, problem=problem)
        return self.renderer.page(request, template, **view(), **values)

    def tell(self, request: Request, view: Callable[[], Values]) -> Response:
        """The same for a script: JSON, or 401."""
        if not holds_pass(request, self.services.admin_token):
            return JSONResponse({"problem": "signed out"}, status_code=401, headers=HEADERS)
        return JSONResponse(view(), headers=HEADERS)

    def do(self, request: Request, deed: Callable[[], object], back: str, said: str) -> Response:
        """Do what a form asks, then go back. What the services refuse becomes a page that says why."""
        if not is_own_form(request):
            return self.refused(request)
        if not holds_pass(request, self.services.admin_token):
            return self.renderer.page(request, "sign_in", status_code=401)
        try:
            deed()
        except OwnfeedError as refused:
            words = refused.detail + (f" ({refused.field}: {refused.limit})" if refused.field and refused.limit else "")
            return self.renderer.page(
                request, "refused", status_code=refused.status, title=refused.title, words=words, back=back
            )
        return RedirectResponse(f"{back}?said={said}", status_code=303)

    def refused(self, request: Request) -> Response:
        """The answer to a form that was posted from elsewhere."""
        words = "Only the console's own pages may change something here. Open the page and try again."
        return self.renderer.page(request, "refused", status_code=403, title="Refused", words=words, back="/console")
