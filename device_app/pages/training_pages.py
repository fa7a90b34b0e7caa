"""Routes of Training: the current round, what this device contributes, and the switch."""

from typing import Annotated, Literal

from fastapi import APIRouter, Form, Request
from fastapi.responses import Response

from device_app.pages.openapi import form, page
from device_app.pages.renderer import WORDS, PageRenderer, see_other
from device_app.view_models.training import TrainingView

ONE_ROUND_EPSILON = 5.0
"""Daily budget that joining sets if there was none.

One round of the usual kind is charged 4.3.
"""


def router(renderer: PageRenderer) -> APIRouter:
    """Return the training routes; a script keeps an open page up to date."""
    device = renderer.device
    routes = renderer.router()

    @routes.get("/training", **page())
    def training(request: Request) -> Response:
        view = device.training()
        return renderer.page(request, "training", training=view, steps=steps(view))

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
