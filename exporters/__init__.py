"""Exports models to ONNX and checks that the graphs compute what torch computes."""

import protocol  # noqa: F401 - first: it switches off the telemetry of ONNX Runtime
