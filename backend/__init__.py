"""The server."""

import protocol  # noqa: F401 - first: it switches off the telemetry of ONNX Runtime
