"""Routes of Training: the current round, what this device contributes, and the switch."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Form, Request
from fastapi.responses import JSONResponse, Response

from device_app.pages.openapi import form, page
from device_app.pages.renderer import WORDS, PageRenderer, see_other
from device_app.view_models.training import TrainingView
from protocol.formatting import age, size

ONE_ROUND_EPSILON = 5.0
"""Daily budget that joining sets if there was none.

One round of the usual kind is charged 4.3.
"""


def router(renderer: PageRenderer) -> APIRouter:
    """Return the training routes; a script polls `/training/live` while the page is open."""
    device = renderer.device
    routes = renderer.router()

    @routes.get("/training", **page())
    def training(request: Request) -> Response:
        view = device.training()
        return renderer.page(request, "training", training=view, steps=steps(view), mark=mark(view))

    @routes.get("/training/live")
    def live() -> Response:
        view = device.training()
        looked = view.looked_at if view.round is None else view.seen_at
        figures = {} if looked is None else {"looked": _ago(looked)}
        if view.round is None or view.gone:
            return JSONResponse({"round": None, "state": mark(view), "live": False, "figures": figures})
        figures |= {
            "joined": f"{view.round.joined:,}",
            "uploaded": f"{view.round.uploaded:,}",
            "received": size(view.round.received_bytes),
        }
        return JSONResponse(
            {
                "round": view.round.round,
                "state": mark(view),
                "stage": view.stage,
                "live": view.round.state not in ("applied", "failed"),
                "figures": figures,
            }
        )

    @routes.post("/training/pause", **form())
    def pause(paused: Annotated[Literal["yes", "no"], Form()]) -> Response:
        device.pause_training(paused == "yes")
        return see_other("/training", "paused" if paused == "yes" else "resumed")

    @routes.post("/training/switch", **form())
    def switch(training: Annotated[Literal["on", "off"], Form()]) -> Response:
        allowed = device.training().settings.epsilon_per_day_training
        budget = {"epsilon_per_day_training": ONE_ROUND_EPSILON} if training == "on" and not allowed else {}
        device.privacy.change(training=training == "on", **budget)
        return see_other("/training", "settings")

    return routes


def mark(view: TrainingView) -> str:
    """Return what a page shows besides its figures, as one text; a page with another one is out of date.

    '' if the device checks for no rounds and shows none.
    """
    current = view.round
    if current is None and not (view.settings.training or view.settings.counting):
        return ""
    shown = "none" if current is None else f"{current.round} {current.state}{' gone' if view.gone else ''}"
    checked = "" if view.looked_at is None else "checked"
    parts = ", ".join(f"{one.round} {one.state}" for one in view.contributions)
    return f"{shown}; {checked}; {view.paused}; {parts}"


def _ago(then: datetime) -> str:
    words = age(then, datetime.now(UTC))
    return words if words in ("yesterday", "just now") else f"{words} ago"


def steps(view: TrainingView) -> list[tuple[str, str, str]]:
    """Return a round's stages as (label, description, state).

    state is 'done', 'now', 'failed' or ''.
    """
    current = view.round
    if current is None:
        return []
    order = ("open", "updates", "applied")
    # In secure aggregation, the states after 'keys' are those in which updates arrive and are unmasked.
    at = 0 if current.state == "keys" else order.index(current.state) if current.state in order else 1
    ended_without = current.state == "applied" and current.published is None
    end = WORDS("ended_plain" if ended_without else "ended_published")
    ended = WORDS("not_yet" if current.finished_at is None else "published_nothing")
    labels = (
        (WORDS("stage_check_in"), WORDS("stage_joined", joined=current.joined, wanted=current.cohort)),
        (WORDS("stage_updates"), WORDS("stage_uploaded", uploaded=current.uploaded, needed=current.cohort_minimum)),
        (
            end,
            current.summary or (WORDS("orders_next") if current.published else ended),
        ),
    )
    now = "" if view.gone else "now"
    states = ["done" if step < at or current.state == "applied" else now if step == at else "" for step in range(3)]
    if current.state == "failed":
        states = ["done", "failed", ""]
    return [(label, words, state) for (label, words), state in zip(labels, states, strict=True)]
