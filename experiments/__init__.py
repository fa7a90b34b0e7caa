"""Benchmarks and studies."""

import device_app  # noqa: F401 - first: it switches the telemetry of ONNX Runtime off
