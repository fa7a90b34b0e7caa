"""A build that a browser has installed opens offline, and is replaced only when the reader agrees.

Oracle: a second build, whose page has another title, served in place of the first.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from playwright.sync_api import Browser, expect

from backend.browser_device.builds import read_build
from backend.browser_device.routes import router
from tests.browser.conftest import Serve

pytestmark = [pytest.mark.browser, pytest.mark.node]
WITHIN_MS = 60_000
TITLE, OTHER = b"<title>Ownfeed</title>", b"<title>Another</title>"


def other_build(first: Path, second: Path) -> Path:
    """Copy the build into a new folder, with a page of another title."""
    shutil.copytree(first, second)
    reported = json.loads((first / "manifest.json").read_text(encoding="utf-8"))
    old = reported["script"]
    script = gzip.decompress((second / f"{old}.gz").read_bytes())
    assert script.count(TITLE) == 1
    changed = script.replace(TITLE, OTHER)
    name = f"service_worker.{sha256(changed).hexdigest()[:16]}.js"
    (second / f"{old}.gz").unlink()
    (second / f"{name}.gz").write_bytes(gzip.compress(changed))
    reported["files"][name] = reported["files"].pop(old) | {
        "sha256": sha256(changed).hexdigest(),
        "bytes": len(changed),
    }
    reported |= {"build": sha256(changed).hexdigest(), "script": name}
    reported["shell"] = reported["shell"].replace(TITLE.decode(), OTHER.decode())
    (second / "manifest.json").write_text(json.dumps(reported), encoding="utf-8")
    return second


@pytest.fixture(scope="module")
def builds(reader_build: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the checkout's build, and a copy with a page of another title."""
    return reader_build, other_build(reader_build, tmp_path_factory.mktemp("made") / "second")


class SwappableBuildServer:
    """Serves one build, and another after a swap."""

    def __init__(self, folder: Path) -> None:
        self.asked: list[str] = []
        self.serve(folder)

    def serve(self, folder: Path) -> None:
        self.app = FastAPI(redirect_slashes=False)
        self.app.routes.extend(router(folder).routes)

    async def __call__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[Any], Awaitable[None]],
    ) -> None:
        if scope["type"] == "http":
            self.asked.append(scope["path"])
        await self.app(scope, receive, send)


INSTALLED = "navigator.serviceWorker.controller !== null"
UNTIL_INSTALLED = """async () => { const until = Date.now() + 60_000;
  while (navigator.serviceWorker.controller === null) {
    if (Date.now() > until) throw new Error('nothing was installed within a minute');
    await new Promise((resolve) => setTimeout(resolve, 50));
  } }"""
TELL = """async () => { const { port1, port2 } = new MessageChannel();
  navigator.serviceWorker.controller.postMessage('installed', [port2]);
  return await new Promise((resolve) => { port1.onmessage = ({ data }) => resolve(data.build); }); }"""


def test_installed_build_works_offline_until_the_reader_accepts_a_new_one(
    chromium: Browser, serve: Serve, builds: tuple[Path, Path]
) -> None:
    first, second = builds
    reported = [read_build(folder) for folder in builds]
    assert reported[0] is not None
    assert reported[1] is not None
    served = SwappableBuildServer(first)
    url = serve(lambda _: served)  # type: ignore[arg-type, return-value]
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"{url}/reader/")
    page.evaluate(UNTIL_INSTALLED)
    assert page.evaluate("crossOriginIsolated")
    assert page.evaluate(TELL) == reported[0].build

    context.set_offline(True)
    page.goto(f"{url}/reader/#/privacy")
    page.reload()
    assert page.evaluate(INSTALLED)
    context.set_offline(False)

    served.serve(second)
    served.asked.clear()
    page.goto(f"{url}/reader/#/story/n1")
    page.reload()
    page.evaluate("navigator.serviceWorker.getRegistration('/reader/').then((one) => one.update().catch(() => null))")
    question = page.get_by_label("Another build of this app")
    expect(question).to_be_visible(timeout=WITHIN_MS)
    assert page.evaluate(TELL) == reported[0].build, "whatever the server has by now"
    assert not [path for path in served.asked if "story" in path], "the server gets no request that names a page"
    assert context.cookies() == []

    expect(question).to_contain_text("can't tell whether the new build is in it")  # there is no list of builds here
    question.get_by_text("SHA-256 of both").click()
    expect(question).to_contain_text(reported[0].build)
    expect(question).to_contain_text(reported[1].build)
    with page.expect_navigation(timeout=WITHIN_MS):
        question.get_by_role("button", name="Use the new build").click()
    page.evaluate(UNTIL_INSTALLED)
    assert page.evaluate(TELL) == reported[1].build
    context.close()
