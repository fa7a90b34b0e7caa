"""A page that measures how long gradients of rankers take in wasm, with the modules of the browser's device."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urljoin

import torch
from playwright.sync_api import BrowserContext, Route

from exporters.architectures import architectures
from exporters.package import export_model
from exporters.parity import FULL, draw_inputs
from protocol.tensors import pack
from tests.conformance.node_end import WEB

SCRIPT = "gradient_page.js"
HTML = f"<!doctype html><title>Gradients</title><script type=module src={SCRIPT}></script>"
RANKERS = {"default ranker": "feature_ranker", "NRMS": "nrms"}
RUNTIME = WEB / "node_modules" / "onnxruntime-web" / "dist" / "ort-wasm-simd-threaded.wasm"
BATCH = 8
"""Impressions of a gradient, each with a full history."""


@contextmanager
def bundled() -> Iterator[Path]:
    """Build a folder with the page's script and ONNX Runtime."""
    node = shutil.which("node")
    if node is None:
        raise RuntimeError("node is missing: install Node.js 20 or newer")
    with tempfile.TemporaryDirectory() as folder:
        entry = Path(__file__).with_suffix(".ts")
        subprocess.run(
            [node, str(WEB / "bundling.mjs"), str(entry), f"{folder}/{SCRIPT}"],
            env=os.environ | {"PYTHON": sys.executable},
            check=True,
        )
        shutil.copy(RUNTIME, folder)
        yield Path(folder)


def gradients(context: BrowserContext, link: str, times: int) -> dict[str, list[float]]:
    """Return the milliseconds of each gradient of BATCH impressions, by ranker, on a page of the link's origin."""
    found: dict[str, list[float]] = {}
    with bundled() as files:

        def answer(route: Route) -> None:
            name = route.request.url.rsplit("/", 1)[1]
            if name:
                route.fulfill(path=files / name)
            else:
                route.fulfill(body=HTML, content_type="text/html")

        address = urljoin(link, "/gradients/")
        context.route(f"{address}**", answer)
        page = context.new_page()
        page.goto(address)
        for shown, name in RANKERS.items():
            kind = architectures()[name]
            model = kind.build()
            spec = next(each for each in kind.graphs(model) if each.purpose == "gradient")
            exported = export_model(name, kind.kind, model, [spec])
            drawn = draw_inputs(spec, [FULL] * BATCH, torch.Generator().manual_seed(3))
            inputs = pack({each: value.numpy() for each, value in drawn.items()})
            blobs = {"graph": exported.graphs["gradient"], "weights": pack(exported.weights), "inputs": inputs}
            asked = {each: b64encode(blob).decode() for each, blob in blobs.items()}
            found[f"gradient, {shown}"] = page.evaluate("(asked) => timed(asked)", asked | {"times": times})
    return found
