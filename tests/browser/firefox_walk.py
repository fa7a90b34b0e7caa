"""`python -m tests.browser.firefox_walk LINK`: walks through the browser's device in Firefox, from the first visit on.

LINK is /reader/ of a running backend. Puppeteer drives the distribution's Firefox (Debian: firefox-esr) over WebDriver
BiDi. No test needs Puppeteer and no set-up installs it; if it is missing, the program says how to install it. It prints
how long the feed took, what the browser gives the device, and each page's title, and exits with 1 for an error on a
page.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from tests.conformance.node_end import WEB

PUPPETEER = WEB / "node_modules" / "puppeteer-core" / "lib" / "esm" / "puppeteer" / "puppeteer-core.js"
INSTALL = "npm install --no-save --prefix web puppeteer-core@24.43.1"
FIREFOXES = ("firefox-esr", "firefox")
WITHIN_SEC = 900.0


def walk(link: str, puppeteer: Path = PUPPETEER) -> int:
    """Return the walk's exit status. Raises RuntimeError for what has to be installed first."""
    node, firefox = shutil.which("node"), next(filter(None, map(shutil.which, FIREFOXES)), None)
    if node is None or firefox is None:
        raise RuntimeError("node or Firefox is missing: install Node.js 20 or newer, and firefox-esr")
    if not puppeteer.is_file():
        raise RuntimeError(f"Puppeteer is missing: {INSTALL}")
    script = Path(__file__).with_suffix(".mjs")
    return subprocess.run([node, script, puppeteer, firefox, link], check=False, timeout=WITHIN_SEC).returncode


if __name__ == "__main__":
    wanted = argparse.ArgumentParser(description=__doc__)
    wanted.add_argument("link", help="The address of the reader's own app at a running backend.")
    sys.exit(walk(wanted.parse_args().link))
