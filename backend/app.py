"""The server's web application: routes, error handling and background tasks."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI

from backend.api import admin, health, metrics, news, own_feeds, recall, releases, rounds
from backend.api.openapi import document
from backend.browser_device.builds import BuildHistory, built_folder, read_build
from backend.browser_device.routes import router as reader_router
from backend.composition import Services, build_services
from backend.console.routes import router as console_router
from backend.errors import may_pass
from backend.federation.rounds.coordinator import Coordinator
from backend.server.log import server_log
from backend.server.problems import install_problems
from backend.server.public_port import PublicPort
from backend.server.request_limits import Admission, BodyTimes, RateLimits, ReadAdmission, RequestLimits
from backend.server.shared_answers import SharedAnswers
from backend.settings import BackendSettings, load_settings
from backend.setup.backfill import missing_parts

READ_WAIT_SEC = 2.0
"""Seconds that a request may wait for a thread before it is refused."""

_log = logging.getLogger(__name__)


def create_app(settings: BackendSettings | None = None, services: Services | None = None) -> FastAPI:
    """Build the application from given services, or from services that the settings describe.

    Background work starts and stops with the application's lifespan. Services that were built here are closed with it.
    """
    built_here = services is None
    parts = services or build_services(settings or load_settings())

    builds = BuildHistory(parts.engine, parts.storage, parts.releases)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        current_default_thread_limiter().total_tokens = parts.settings.worker_threads
        with server_log(parts.settings):
            if (built := read_build(built_folder())) is not None:
                builds.note(built.build)
                builds.keep(built_folder(), built)
            parts.updater.start()
            parts.feeds.start()
            parts.pictures.start()
            fill_in = partial(_fill_in, parts)
            if parts.first_release is None:
                fill_in()
            else:
                parts.first_release.start(then=fill_in)
            rounds_clock = asyncio.create_task(_run_rounds(parts.coordinator, parts.settings.round_tick_sec))
            try:
                yield
            finally:
                rounds_clock.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await rounds_clock
                await asyncio.to_thread(parts.close if built_here else parts.stop)

    app = FastAPI(
        title="Ownfeed backend", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None,
        redirect_slashes=False,  # such a redirect leads to whatever host the request names
        telemetry={"tracing": False, "metrics": False, "logs": False},  # none of a reader's request is passed on
    )  # fmt: skip
    # The most requested routes come first: a request is matched against one route after another.
    for each in (recall, rounds, news, releases, health, admin):
        app.routes.extend(each.router(parts).routes)  # include_router would create each of its routes a second time
    measured = metrics.BackendMetrics(parts)
    app.routes.extend(metrics.router(parts, measured).routes)
    app.routes.extend(console_router(parts).routes)
    if parts.settings.own_feeds_token_file is not None:
        app.routes.extend(own_feeds.router(parts, parts.settings.own_feeds_token_file).routes)
    api = parts.settings.public_origin if parts.settings.reader_origin is not None else None
    app.routes.extend(reader_router(built_folder(), builds, api=api).routes)
    install_problems(app)
    app.openapi = lambda: document(app)  # type: ignore[method-assign]
    # The last one added is the first to see a request.
    app.add_middleware(
        ReadAdmission,
        admission=Admission(
            running=parts.settings.worker_threads, waiting=parts.settings.requests_waiting, wait_sec=READ_WAIT_SEC
        ),
    )
    app.add_middleware(
        SharedAnswers,
        keep_sec=parts.settings.shared_answers_sec,
        on_request={"/v1/rounds/current": parts.coordinator.polls.note},
    )
    app.add_middleware(
        PublicPort,
        origin=parts.settings.public_origin,
        console_port=parts.settings.console_port,
        reader_origin=parts.settings.reader_origin,
    )
    app.add_middleware(
        RequestLimits,
        recall=parts.recall_admission,
        times=BodyTimes(parts.settings.body_wait_sec, parts.settings.body_bytes_per_sec, parts.settings.body_limit_sec),
        source_of=None if parts.coordinator.addresses is None else parts.coordinator.addresses.source,
        rates=RateLimits(
            per_minute=parts.settings.requests_per_minute,
            per_minute_in_all=parts.settings.requests_per_minute_in_all,
        ),
        note=measured.note_request,
    )
    return app


def _fill_in(parts: Services) -> None:
    """Prepare in the background what the release lacks."""
    parts.backfill.begin(missing_parts(parts.settings, parts.releases, parts.pool))


async def _run_rounds(coordinator: Coordinator, every_sec: float) -> None:
    """Apply the deadlines of training rounds until cancelled."""
    while True:
        try:
            await coordinator.tick()
        except Exception as failed:
            # The round's state is in the database, so the next tick continues where this one failed.
            if may_pass(failed):
                _log.warning("training rounds are waiting: %s", failed)
            else:
                _log.exception("training rounds could not be advanced")
        await asyncio.sleep(every_sec)
