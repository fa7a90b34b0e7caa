"""The bench's server of secure sums as the application of one of several processes."""

from __future__ import annotations

from starlette.types import ASGIApp


def summing_application(length: int, settings_json: str) -> ASGIApp:
    """Serve a folder in which the first release is published; sums have this many ring elements.

    A file of the folder `started` gets the process's id as its name.
    """
    # The supervisor only names this function; the serving process imports what it needs.
    import os

    from backend.app import create_app
    from backend.settings import BackendSettings
    from experiments.bench.secagg_http import summing_services

    settings = BackendSettings.model_validate_json(settings_json)
    services = summing_services(settings, length)
    started = settings.data_dir / "started"
    started.mkdir(exist_ok=True)
    (started / str(os.getpid())).touch()
    return create_app(services=services)
