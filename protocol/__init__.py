"""The protocol: what devices and server must agree on bit for bit.

It has messages, tensors, limits and the arithmetic of secure sums. It also has the base classes of settings and text
catalogues. It imports none of our other packages.
"""

import os

# ONNX Runtime 1.29 and later write an id of the machine and send what they ran to their maker, from the moment they are
# imported, unless this is set before. Every package of ours that imports it imports this one first.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
