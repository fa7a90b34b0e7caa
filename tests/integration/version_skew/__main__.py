"""`python -m tests.integration.version_skew --old REVISION`: the last version and this one together, over HTTP.

The old revision is written into a temporary folder with `git archive` and run with this environment. Without --old it
is the last commit before the day on which the schema went beyond `db.schema_readers.READ_SINCE`, the oldest that this
version shares a database with: what stood still for a night is what could be called a version.

Devices of each version read and report at a backend of the other (`devices`), both take part in one count (`mixed`),
old and new servers share a PostgreSQL and a folder while one is replaced by the other (`upgrade`), the old version's
programs are given folders of the new one (`folders`), and Chromium runs the old build at the new backend, and the new
build at the old one (`browser`). `--record` writes what tests of the suite replay (`recording`). Prints what was done
and what was wrong, and exits with 1 where anything was.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from backend.db.schema_readers import READ_SINCE
from tests.integration.version_skew.browser_builds import builds
from tests.integration.version_skew.newer_folders import refused
from tests.integration.version_skew.recording import RECORDED, record
from tests.integration.version_skew.trees import ROOT, SkewFailed, Tree, exported
from tests.integration.version_skew.upgrade import rolling
from tests.integration.version_skew.wire import mixed, pair

PARTS = ("devices", "mixed", "upgrade", "folders", "browser")


def last_version() -> str:
    """The revision that is taken for the last version."""
    follower = _git("grep", "-l", f'down_revision = "{READ_SINCE}"', "--", "alembic/versions")
    added = _git("log", "--format=%H %cs", "--diff-filter=A", "--", follower).split()
    day = added[1] if added else "9999-12-31"
    return _git("log", "-1", "--format=%H", f"--until={day} 00:00:00 +0000", *(added[:1] or ["HEAD"]))


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


class Skew:
    """A run: its folder, the two trees, and what was wrong so far."""

    def __init__(self, home: Path, old: Tree) -> None:
        self.home, self.old, self.new = home, old, Tree("new", ROOT)
        self.wrong: list[str] = []
        self._began = time.monotonic()
        self._worlds: dict[str, Path] = {}

    def say(self, line: str) -> None:
        """A line at once, whatever collects them."""
        sys.stdout.write(f"[{time.monotonic() - self._began:6.0f} s] {line}\n")
        sys.stdout.flush()

    def tell(self, done: str | list[str], wrong: list[str]) -> None:
        """What a part has done, and what was wrong with it."""
        for line in [done] if isinstance(done, str) else done:
            self.say(line)
        for line in wrong:
            self.say(f"wrong: {line}")
        self.wrong += wrong

    @property
    def cache(self) -> Path:
        """Of graphs, for each tree."""
        return self.home / "cache"

    def world(self, tree: Tree, name: str) -> Path:
        """A data folder of a tree's own making, to be changed."""
        if tree.name not in self._worlds:
            self._worlds[tree.name] = tree.world(self.home / f"first {tree.name}", self.cache)
        target = self.home / name
        shutil.copytree(self._worlds[tree.name], target)
        return target

    def graphs(self, tree: Tree) -> Path:
        """Where a tree's graphs are."""
        return self.cache / tree.name / "graphs"

    def devices(self) -> None:
        """Each version's devices at the other's backend."""
        for of, at in ((self.old, self.new), (self.new, self.old)):
            data = self.world(at, f"{at.name} backend of {of.name} devices")
            self.tell(*pair(of, at, data, self.home, self.graphs(at)))

    def mixed(self) -> None:
        """Both versions' devices in a round."""
        for at in (self.new, self.old):
            data = self.world(at, f"{at.name} backend of both")
            self.tell(*mixed((self.old, self.new), at, data, self.home, self.graphs(at)))

    def upgrade(self) -> None:
        """Old and new servers side by side."""
        self.tell([], rolling((self.old, self.new), self.home, self.cache, self.say))

    def folders(self) -> None:
        """The new version's folders, opened by the old one."""
        data = self.world(self.new, "new backend of itself")
        self.tell(*pair(self.new, self.new, data, self.home, self.graphs(self.new)))
        devices = self.home / "new devices at the new backend"
        self.tell(*refused(self.old, data, devices, "code-0000", self.home))

    def browser(self) -> None:
        """Builds of the browser's device."""
        data = self.world(self.old, "backend of browsers")
        self.tell([], builds((self.old, self.new), data, self.home, self.graphs(self.old), self.say))


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", metavar="REVISION")
    parser.add_argument("--record", action="store_true", help=f"write {RECORDED.relative_to(ROOT)}")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all without any")
    given = parser.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    revision = _git("rev-parse", given.old or last_version())
    with tempfile.TemporaryDirectory(prefix="ownfeed-skew-") as folder:
        home = Path(folder)
        skew = Skew(home, exported(revision, home / "old tree"))
        skew.say(f"old: {_git('log', '-1', '--format=%h of %cs, %s', revision)}")
        skew.say(f"new: {_git('log', '-1', '--format=%h of %cs, %s')}, and what is not committed")
        if given.record:
            skew.tell(record(skew.old, revision, home), [])
        for part in given.parts or ([] if given.record else PARTS):
            try:
                getattr(skew, part)()
            except SkewFailed as failed:
                skew.tell([], [f"{part}: {failed}"])
        skew.say(f"{len(skew.wrong)} wrong")
    return 1 if skew.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
