"""Preparation in a separate process: its steps and refusals are shown, and its libraries aren't loaded here."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from backend.server.local_processes import StartRefused
from backend.server.progress import Advance, SilentSteps
from backend.settings import BackendSettings
from backend.setup.first_start_process import COMMAND, FirstStartProcess

ROOT = Path(__file__).parents[4]
REPORTS_STEPS = """
import sys
from backend.setup.first_start_process import StepWriter
from backend.settings import BackendSettings
settings = BackendSettings.model_validate_json(sys.stdin.read())
steps = StepWriter(sys.stdout)
with steps.step(f"Preparing {settings.data_dir.name} for {settings.port}"):
    pass
with steps.step("Reading") as advance:
    advance(1, None)
    advance(2, 3)
"""
ENDS_WITHIN_A_STEP = (
    REPORTS_STEPS
    + """
import os
with steps.step("Exporting") as advance:
    advance(1, 2)
    os._exit(3)
"""
)
ENDS_UNREAD = "import os; os._exit(4)"
STARTS_A_DEMO = """
import sys
from pathlib import Path
import backend.setup.own_feeds
from backend.demo import DemoPlan
from backend.news.newspaper import GeneratedNewspaper
from backend.setup.first_start_process import FirstStartProcess
from backend.server.progress import SilentSteps
settings = DemoPlan(Path(sys.argv[1])).backend_settings()
newspaper = GeneratedNewspaper.of(settings, articles=500, seed=7)
newspaper.open(SilentSteps())
newspaper.step()
with FirstStartProcess(settings, command=[sys.executable, "-c", ""]) as started:
    started.follow(SilentSteps())
print(sorted({"torch", "transformers", "onnxruntime", "tokenizers", "faiss"} & set(sys.modules)))
"""


def follow(settings: BackendSettings, steps: SilentSteps, command: Sequence[str] = COMMAND) -> None:
    with FirstStartProcess(settings, command=command) as started:
        started.follow(steps)


class ShownSteps(SilentSteps):
    """Records what was shown."""

    def __init__(self) -> None:
        self.lines: list[object] = []

    @contextmanager
    def step(self, title: str) -> Iterator[Advance]:
        self.lines.append(title)
        yield lambda done, total: self.lines.append((done, total))
        self.lines.append("ended")


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BackendSettings:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return BackendSettings(data_dir=tmp_path / "news", port=4321)


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_steps_of_the_preparation_process_are_shown(settings: BackendSettings) -> None:
    shown = ShownSteps()
    follow(settings, shown, python(REPORTS_STEPS))
    assert shown.lines == ["Preparing news for 4321", "ended", "Reading", (1, None), (2, 3), "ended"]


def test_refusal_of_the_preparation_process_keeps_its_message(settings: BackendSettings) -> None:
    with pytest.raises(StartRefused, match="The news pool is empty: run `ownfeed ingest newsroom`") as refused:
        follow(settings, SilentSteps())
    assert "\n" not in refused.value.detail


def test_unwritable_folder_is_named_in_the_error_with_the_reason(settings: BackendSettings) -> None:
    settings.data_dir.write_text("a file is in the way", encoding="utf-8")
    with pytest.raises(
        StartRefused, match=r"Preparing .*news failed: Not a directory\. The next start continues from here\."
    ):
        follow(settings, SilentSteps())


@pytest.mark.parametrize(("code", "number"), [(ENDS_WITHIN_A_STEP, 3), (ENDS_UNREAD, 4)], ids=["in a step", "unread"])
def test_preparation_process_that_ends_early_is_reported_as_failed(
    settings: BackendSettings, code: str, number: int
) -> None:
    with pytest.raises(StartRefused, match=f"news ended with code {number}"):
        follow(settings, SilentSteps(), python(code))


def test_interrupting_the_start_also_ends_its_process(settings: BackendSettings, tmp_path: Path) -> None:
    class Interrupting(SilentSteps):
        @contextmanager
        def step(self, title: str) -> Iterator[Advance]:
            raise KeyboardInterrupt
            yield

    waits = "import time; time.sleep(600)"
    note = f"import os; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))"
    with pytest.raises(KeyboardInterrupt):
        follow(settings, Interrupting(), python(f"{note}\n{REPORTS_STEPS}\n{waits}"))
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text(encoding="utf-8")), signal.SIGTERM)


def test_starting_a_demo_loads_no_models(settings: BackendSettings) -> None:
    done = subprocess.run(
        [*python(STARTS_A_DEMO), str(settings.data_dir)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
