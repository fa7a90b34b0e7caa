"""Graphs in ONNX, and the check that they compute what torch does."""

import device_app  # noqa: F401 - first: it switches the telemetry of ONNX Runtime off
