"""The bench's server of secure sums as the application of one of several processes."""

from __future__ import annotations

from starlette.types import ASGIApp


def summing_application(length: int, settings_json: str) -> ASGIApp:
    """Over a folder in which the first release is published; sums of so many ring elements."""
    # The supervisor only names this function; whoever serves imports what it needs.
    from backend.app import create_app
    from backend.settings import BackendSettings
    from experiments.bench.secagg_server import summing_services

    return create_app(services=summing_services(BackendSettings.model_validate_json(settings_json), length))
