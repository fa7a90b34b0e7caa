"""Benches and the laboratory."""

import os

# ONNX Runtime 1.29 and later write an id of the machine and send what they ran to their maker, from the moment they are
# imported, unless this is set before.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
