"""A browser that has installed one version's build, at a backend of the other: it goes on, and its reader is asked.

Oracle: what the page shows and the server heard; of a count with both versions' devices in it, numpy's sum of what
Python's gave, beside which the page's own vector is left.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import BrowserContext, Page, expect, sync_playwright

from backend.federation.systems import SYSTEMS
from backend.operator import Operator
from device_app.wire.protections import SecureSum
from tests.browser.conftest import ARGUMENTS, find_chromium
from tests.browser.test_installed_build import TELL, UNTIL_INSTALLED
from tests.doubles.small_world import free_port
from tests.integration.version_skew.trees import ROOT, SkewedServer, SkewFailed, Tree, devices_of, server_of
from tests.integration.version_skew.wire import COUNT, DEVICES, ENDED, LOOKS, NEW_ONLY, ROUND_SEC

WITHIN_MS = 180_000
REFUSAL = re.compile("newer version of Ownfeed|can't keep a device for you")
CARD = "article.card[id]"
OWN_SHARE = 200.0
"""No device's vector has a number beyond it: one click, and noise of some units."""


def built(tree: Tree, folder: Path) -> Path:
    """A tree's build of the browser's device. Raises SkewFailed where it can't be made."""
    node, web = shutil.which("node"), tree.folder / "web"
    if node is None:
        raise SkewFailed("node is missing: install Node.js 20 or newer")
    if not (web / "node_modules").is_dir():
        wanted, here = (_packages(each / "package-lock.json") for each in (web, ROOT / "web"))
        if wanted == here:
            shutil.copytree(ROOT / "web" / "node_modules", web / "node_modules", symlinks=True)
        else:
            subprocess.run(["npm", "ci", "--silent", "--no-audit", "--no-fund"], cwd=web, check=True)
    told = subprocess.run(
        [node, str(web / "build.mjs"), str(folder)],
        env=tree.environment() | {"PYTHON": sys.executable},
        cwd=web,
        capture_output=True,
        text=True,
        check=False,
    )
    if told.returncode:
        raise SkewFailed(f"the {tree.name} build can't be made: {told.stderr[-2_000:]}")
    return folder


def _packages(lock: Path) -> dict[str, str]:
    found = json.loads(lock.read_text(encoding="utf-8"))["packages"]
    return {name: each["version"] for name, each in found.items() if name}


class BuildReader:
    """A page, and what went wrong in it."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.page: Page = context.new_page()
        self.errors: list[str] = []
        self.url = url
        self.page.set_default_timeout(WITHIN_MS)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        # what a page asks for while no server is there is told by the browser itself, as is an answer of 404
        ours = lambda text: "Failed to load resource" not in text  # noqa: E731
        self.page.on("console", lambda said: self._note(said.type, said.text) if ours(said.text) else None)

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.errors.append(text)

    def begin(self) -> None:
        """A first visit, until its build is installed."""
        self.page.goto(f"{self.url}/reader/")
        self.page.get_by_role("button", name="Begin without a choice").click()
        self.page.wait_for_selector(CARD)
        self.page.evaluate(UNTIL_INSTALLED)

    def open_story(self) -> None:
        """The first story that was not read, with its text, and back."""
        cards = self.page.locator(f"{CARD}:not(.read)")
        cards.first.locator(".headline a").click()
        expect(self.page.locator(".story .prose p").first).to_be_visible()
        self.page.get_by_role("link", name="Back to the feed").click()
        self.page.wait_for_selector(f"{CARD}.read")

    def again(self) -> int:
        """Load the page anew; how many stories it shows."""
        self.page.goto(f"{self.url}/reader/")
        self.page.wait_for_selector(CARD)
        return self.page.locator(CARD).count()

    def build(self) -> str:
        """The build that is installed, by its hash."""
        found: str = self.page.evaluate(TELL)
        return found

    def question(self) -> str | None:
        """What the reader is asked about another build; None where nobody asks."""
        asked = self.page.get_by_label("Another build of this app")
        try:
            expect(asked).to_be_visible(timeout=30_000)
        except AssertionError:
            return None
        return asked.inner_text()

    def take(self) -> None:
        """Say yes to it."""
        question = self.page.get_by_label("Another build of this app")
        with self.page.expect_navigation():
            question.get_by_role("button", name="Take it").click()


def builds(trees: tuple[Tree, Tree], data: Path, home: Path, graphs: Path, say: Callable[[str], None]) -> list[str]:
    """What was wrong; say: told what is done, step by step."""
    old, new = trees
    made = {tree.name: built(tree, home / f"build {tree.name}") for tree in trees}
    before = home / "backend of browsers, before"
    with ExitStack() as stack:
        playwright = stack.enter_context(sync_playwright())
        chromium = playwright.chromium.launch(executable_path=find_chromium(playwright), args=list(ARGUMENTS))
        stack.callback(chromium.close)
        port, context = free_port(), chromium.new_context()
        reader = BuildReader(context, f"http://127.0.0.1:{port}")
        settings: dict[str, Any] = {"graphs_dir": str(graphs)}
        with server_of(old, data, port, home / "browser 1", build=str(made["old"]), **settings) as server:
            reader.begin()
            for _ in range(2):
                reader.open_story()
            first, wrong = reader.build(), _wrong(server, reader)
        shutil.copytree(data, before)
        say(f"Chromium installs the old build {first[:12]} at the old backend and reads 2 stories")
        with server_of(new, data, port, home / "browser 2", build=str(made["new"]), **settings) as server:
            shown = reader.again()
            if reader.build() != first:
                wrong.append("the old build was replaced without its reader's word")
            reader.open_story()
            say(f"at the new backend it shows {shown} stories and opens another")
            say(_counted(trees, server, data, home, reader, wrong))
            reader.again()
            question = reader.question()
            if question is None:
                wrong.append("nobody asks the reader of the old build whether to take the new one")
            else:
                say(f"its reader is asked: {' '.join(question.split())[:240]}")
                reader.take()
                reader.page.wait_for_selector(CARD)
                reader.page.evaluate(UNTIL_INSTALLED)
                if reader.build() == first:
                    wrong.append("the new build was not taken")
                read = reader.page.locator(f"{CARD}.read").count()
                if not read:
                    wrong.append("what was read is lost with the old build")
                reader.open_story()
                say(f"the new build {reader.build()[:12]} goes on with its store, {read} stories of the page read")
            wrong += _wrong(server, reader)
        with server_of(old, before, port, home / "browser 3", build=str(made["new"]), **settings) as server:
            fresh = BuildReader(chromium.new_context(), f"http://127.0.0.1:{port}")
            fresh.begin()
            fresh.open_story()
            shown = fresh.again()
            alerts = fresh.page.locator("[role=alert]").all_inner_texts()
            if alerts:
                wrong.append(f"the new build at the old backend tells its reader {alerts}")
            wrong += _wrong(server, fresh)
            say(f"the new build at the old backend shows {shown} stories on a first visit")
        with server_of(old, before, port, home / "browser 4", build=str(made["old"]), **settings) as server:
            shown = reader.again()
            wrong += _wrong(server, reader)
            say(f"the new build, installed, at the old backend shows {shown} stories")
            say(f"whose reader takes the older build that it offers is told: {_refused(reader, wrong)}")
            reader.errors.clear()
        with server_of(old, before, port, home / "browser 5", build=str(made["new"]), **settings) as server:
            reader.page.goto(f"{reader.url}/reader/")
            if reader.question() is None:
                wrong.append("a reader whose store is newer than the build is not offered the newer one")
            else:
                reader.take()
                reader.page.wait_for_selector(CARD)
                say("and goes on with the newer one when it is offered again")
    return [f"browser: {each}" for each in wrong]


def _refused(reader: BuildReader, wrong: list[str]) -> str:
    """What the older build says to a reader who takes it, and whose store it can't read."""
    if reader.question() is None:
        wrong.append("nobody asks the reader of the new build about the older one")
        return "nothing"
    reader.take()
    told = reader.page.get_by_text(REFUSAL).first
    try:
        expect(told).to_be_visible(timeout=WITHIN_MS)
    except AssertionError:
        wrong.append("the older build doesn't say that it can't use the store of a newer one")
    return " ".join(reader.page.locator("body").inner_text().split())[:400]


def _wrong(server: SkewedServer, reader: BuildReader) -> list[str]:
    """What the server answered that no device should be answered, and what the page complained of."""
    found = server.wrong()
    for each in server.heard():
        absent = (server.tree.name == "old" and each["path"] in NEW_ONLY) or _forgotten(each["path"])
        if each["status"] >= 400 and not absent:
            found.append(
                f"{each['method']} {each['path']} was answered {each['status']} by the {server.tree.name} server"
            )
    found += reader.errors
    reader.errors.clear()
    return found


def _forgotten(path: str) -> bool:
    """What this part makes a server forget: rounds of a folder in whose place another one is put, and files of the
    old build, where the old version has not kept them for others."""
    return path.startswith(("/v1/rounds/round-", "/reader/files/service_worker."))


def _counted(
    trees: tuple[Tree, Tree], server: SkewedServer, data: Path, home: Path, reader: BuildReader, wrong: list[str]
) -> str:
    """A count by old and new devices in Python, and the old build in Chromium."""
    with ExitStack() as stack:
        fleets = []
        for tree in trees:
            devices = stack.enter_context(devices_of(tree, home / f"browser {tree.name} log"))
            devices.make(tree.name, DEVICES, server.url, home / "browser devices" / tree.name, training=False)
            devices.ask("warm up", tree.name)
            fleets.append((devices, tree.name))
        operator, cohort = Operator(server.url, data / "admin.token"), 2 * DEVICES + 1
        status = operator.open_round(COUNT, cohort=cohort, cohort_minimum=10, seconds=ROUND_SEC)
        for _ in range(LOOKS):
            for devices, name in fleets:
                devices.ask("train", name)
            reader.page.wait_for_timeout(500)  # its worker looks for rounds by itself
            status = operator.status(status.round)
            if status.state in ENDED:
                break
        given = [each for devices, _ in fleets for each in devices.given()]
    left = np.inf
    if (status.state, status.survivors) != ("applied", cohort):
        wrong.append(f"{status.round} is {status.state}, with {status.survivors} in it: {status.reason}")
    else:
        left = _left(server.opened()[0], given)
        if not 0 < left <= OWN_SHARE:
            wrong.append(f"beside what Python's devices gave {left:g} is left for the page")
    return (
        f"{status.round} of {cohort}, the old build among them: {status.state}, {status.survivors}; its share {left:g}"
    )


def _left(opened: list[float], given: list[str]) -> float:
    """The largest number of what was opened, less what these gave."""
    protection = SYSTEMS[COUNT].protection
    assert isinstance(protection, SecureSum)
    total = np.array([np.frombuffer(bytes.fromhex(each), dtype="<u4")[:-1] for each in given], dtype=np.int64).sum(
        axis=0
    )
    all_of_them = np.rint(np.array(opened) * 2.0**protection.fraction_bits).astype(np.int64)
    rest = ((all_of_them - total) & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
    return float(np.abs(rest).max() * 2.0**-protection.fraction_bits)
