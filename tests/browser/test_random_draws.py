"""Random draws of the browser's device in Chromium. Oracle: the distributions in closed form, by chi-square."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page
from scipy import stats

from tests.conformance.node_end import WEB

pytestmark = [pytest.mark.browser, pytest.mark.node]
DRAWS, FALSE_ALARM = 200_000, 1e-6
SIZE, TRUTH, SIGMA = 16, 3, 5


@pytest.fixture(scope="module")
def page(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A page with the samplers of the browser's device, without a server."""
    node, made = shutil.which("node"), tmp_path_factory.mktemp("drawing") / "drawing_page.js"
    assert node is not None, "node is missing: install Node.js 20 or newer"
    entry = Path(__file__).with_name("drawing_page.ts")
    command = [node, str(WEB / "bundling.mjs"), str(entry), str(made)]
    subprocess.run(command, env=os.environ | {"PYTHON": sys.executable}, check=True, timeout=60)
    opened = chromium.new_page()
    opened.add_script_tag(path=made, type="module")
    opened.wait_for_function("() => 'response' in globalThis")  # a module runs some time after its tag is there
    yield opened
    opened.close()


def fit(counts: dict[str, int], weights: dict[int, float]) -> float:
    """Return the p-value of counts under a distribution, with rare values grouped."""
    whole = math.fsum(weights.values())
    expected = {value: DRAWS * weight / whole for value, weight in weights.items()}
    common = [value for value, each in expected.items() if each >= 20]
    seen = [counts.get(str(value), 0) for value in common]
    distribution = [expected[value] for value in common]
    assert sum(counts.values()) == DRAWS
    if len(common) < len(weights):
        seen, distribution = [*seen, DRAWS - sum(seen)], [*distribution, DRAWS - sum(distribution)]
    return float(stats.chisquare(seen, np.array(distribution) * sum(seen) / sum(distribution)).pvalue)


def codes(epsilon: float) -> dict[int, float]:
    return {code: math.exp(epsilon) if code == TRUTH else 1.0 for code in range(SIZE)}


def noise(sigma: float) -> dict[int, float]:
    return {value: math.exp(-(value**2) / (2 * sigma**2)) for value in range(-60, 61)}


def test_randomised_response_matches_its_distribution(page: Page) -> None:
    asked = {"truth": TRUTH, "size": SIZE, "epsilon": 1.0, "n": DRAWS}
    counts = page.evaluate("(asked) => response(asked)", asked)
    assert fit(counts, codes(1.0)) > FALSE_ALARM
    assert fit(counts, codes(1.1)) < FALSE_ALARM, "a law that is a tenth of an epsilon off is told apart"


def test_discrete_gaussian_matches_its_distribution(page: Page) -> None:
    counts = page.evaluate("(asked) => gaussian(asked)", {"sigma": SIGMA, "n": DRAWS})
    assert fit(counts, noise(SIGMA)) > FALSE_ALARM
    assert fit(counts, noise(1.04 * SIGMA)) < FALSE_ALARM, "noise of another width is told apart"
