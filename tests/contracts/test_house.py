"""The checkout names nothing of the machine it was written on, and describes its commands correctly."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import click
import pytest
import typer.main
from click.testing import CliRunner

import ownfeed
from backend.news.sources import SOURCES
from experiments import documents
from experiments.commands.bench import BenchName

ROOT = Path(__file__).parents[2]
README, COMMANDS_PAGE = ((ROOT / path).read_text(encoding="utf-8") for path in ("README.md", "docs/commands.md"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
MACHINE_PATHS = re.compile(
    r"(?<![\w.~-])/(?:" + "|".join(("work", "root", "tmp/lab", "tmp/build", "home/[a-z]+")) + r")/"
)
PACKAGE_HOSTS = re.compile(r"https?://([\w.-]*(?:pypi|registry|artifactor|nexus|jfrog|mirror|proxy)[\w.-]*)", re.I)
PUBLIC_HOSTS = {"pypi.org", "registry.npmjs.org"}
DESIGN_NOTES = re.compile(
    r"\b(?:ALGORI[T]HMS|TARGET[S])\b|\b(?:RECALL|PAGES|STYLE|ONNX|BROWSER|ARCHITECTURE)(?:\.md|,? (?:section )?\d)"
)
"""Notes that were written before the first line of code and aren't in the repository: nobody could open them."""
FENCE = "`" * 3


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout: the tracked files can't be listed")
    return [path for name in listed.stdout.decode().split("\0") if name and (path := ROOT / name).is_file()]


def test_tracked_files_name_no_machine_path_or_private_package_host() -> None:
    seen = 0
    for file in tracked():
        text = file.read_text(encoding="utf-8", errors="replace")
        assert not MACHINE_PATHS.search(text), f"{file.relative_to(ROOT)}: {MACHINE_PATHS.search(text)}"
        hosts = {host.lower() for host in PACKAGE_HOSTS.findall(text)}
        assert hosts <= PUBLIC_HOSTS, f"{file.relative_to(ROOT)}: {hosts}"
        seen += 1
    assert seen > 300


def test_tracked_files_cite_no_private_notes() -> None:
    for file in tracked():
        if file.suffix in (".py", ".md", ".html", ".js", ".ts", ".toml"):
            found = DESIGN_NOTES.search(file.read_text(encoding="utf-8", errors="replace"))
            assert not found, f"{file.relative_to(ROOT)}: {found}: cite the paper, or a file of docs"


def test_every_cited_decision_exists() -> None:
    numbers = {file.name[:3] for file in (ROOT / "docs" / "decisions").glob("[0-9]*.md")}
    for file in (path for path in tracked() if path.suffix in (".py", ".md", ".ts")):
        for named in re.findall(r"docs/decisions/(\d{3})", file.read_text(encoding="utf-8", errors="replace")):
            assert named in numbers, f"{file.relative_to(ROOT)}: decision {named}"


def test_searches_for_paths_notes_and_hosts_find_their_examples() -> None:
    assert DESIGN_NOTES.search("(ALGO" + "RITHMS 3.2)")
    assert DESIGN_NOTES.search("(RECALL," + " section 7)")
    assert not DESIGN_NOTES.search('entries[RECALL] and RECALL = "/v1/recall"')
    assert MACHINE_PATHS.search("in /" + "work/main")
    assert MACHINE_PATHS.search('"/' + 'root/.cache"')
    assert not MACHINE_PATHS.search("backend/work/x and https://example.org/home")
    assert PACKAGE_HOSTS.search("https:" + "//pypi.internal.example/simple")


def test_tracked_files_hold_no_data_or_secret() -> None:
    for file in tracked():
        name = file.relative_to(ROOT).as_posix()
        assert file.stat().st_size < 400_000, name
        if name.startswith("exporters/shipped/"):
            continue  # graphs without weights, which travel with Ownfeed
        assert file.suffix not in (".tsv", ".sqlite", ".db", ".onnx", ".safetensors", ".token", ".pem", ".key"), name


def commands(group: click.Group, words: tuple[str, ...] = ()) -> dict[tuple[str, ...], click.Command]:
    """Return every command by its words."""
    found: dict[tuple[str, ...], click.Command] = {words: group}
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            found |= commands(command, (*words, name))  # type: ignore[arg-type]
        else:
            found[*words, name] = command
    return found


COMMANDS = commands(typer.main.get_command(ownfeed.app))  # type: ignore[arg-type]


def test_command_line_has_exactly_the_listed_commands() -> None:
    assert {words for words in COMMANDS if words} == {
        ("demo",), ("read",), ("serve",), ("device",), ("fleet",), ("round",), ("bench",), ("ingest",),
        ("rounds",), ("rounds", "list"), ("rounds", "pause"), ("rounds", "resume"), ("rounds", "cancel"),
        ("rounds", "schedule"), ("rounds", "unschedule"),
        ("feeds",), ("feeds", "list"), ("feeds", "add"), ("feeds", "pause"), ("feeds", "resume"),
        ("feeds", "remove"), ("feeds", "export"), ("feeds", "section"), ("feeds", "pictures"),
        ("feeds", "rename"), ("feeds", "folder"), ("feeds", "rename-folder"), ("feeds", "restore"),
        ("feeds", "refresh"), ("feeds", "certificate"), ("feeds", "proxy"),
        ("feeds", "full-text"),
        ("backup",), ("backup", "make"), ("backup", "restore"),
        ("keys",), ("keys", "show"), ("keys", "rotate"),
        *(("ingest", source) for source in SOURCES),
        ("evaluate",), ("evaluate", "ranking"), ("evaluate", "popularity"), ("evaluate", "finding"),
        ("evaluate", "fl-mv-dssm"), ("evaluate", "recall"), ("evaluate", "codebook"), ("evaluate", "poisoning"),
        ("evaluate", "sections"), ("evaluate", "basis"), ("evaluate", "real-clicks"),
        ("evaluate", "reports"), ("evaluate", "uni-fedrec"), ("evaluate", "fednewsrec"),
        ("evaluate", "efficient-fedrec"), ("evaluate", "news-baselines"),
    }  # fmt: skip


@pytest.mark.parametrize("words", sorted(COMMANDS), ids=lambda words: " ".join(words) or "ownfeed")
def test_help_describes_every_command_and_option(words: tuple[str, ...]) -> None:
    command = COMMANDS[words]
    shown = CliRunner().invoke(COMMANDS[()], [*words, "--help"], terminal_width=200)
    assert shown.exit_code == 0
    assert (command.help or "").strip().endswith("."), "one sentence, at least"
    assert (command.help or "").strip().split("\n")[0].split()[0] in shown.output
    for option in command.params:
        name = max(option.opts, key=len)
        if name != "--help":
            assert name in shown.output or (option.name or "").upper() in shown.output, name
            lost = [word for word in (getattr(option, "help", None) or "").split() if word not in shown.output]
            assert not lost, f"{name}: words that the terminal takes for markup"


def blocks(language: str) -> str:
    return "\n".join(re.findall(rf"^{FENCE}{language}\n(.*?)^{FENCE}", README + COMMANDS_PAGE, re.M | re.S))


def test_documented_commands_exist_with_their_options() -> None:
    lines = [line.split("#")[0] for line in blocks("sh").splitlines() if line.startswith("ownfeed ")]
    inline = re.findall(r"`(ownfeed [^`<]+)`", README + COMMANDS_PAGE)
    assert len(lines) >= 7
    for line in (*lines, *inline):
        parts = shlex.split(line)[1:]
        words = max((known for known in COMMANDS if tuple(parts[: len(known)]) == known), key=len)
        assert words, line
        options = {name for option in COMMANDS[words].params for name in option.opts}
        assert {part for part in parts if part.startswith("--")} <= options | {"--help"}, line


def test_documented_bench_names_are_the_choices() -> None:
    assert {one.value for one in BenchName} == set(
        re.search(r"ownfeed bench latency\s+# or: (.*)", COMMANDS_PAGE)[1].replace(" ", "").split(",")  # type: ignore[index]
    ) | {"latency"}


def targets() -> set[str]:
    phony = re.search(r"^\.PHONY:(.*)$", MAKEFILE, re.M)
    assert phony is not None
    return set(phony[1].split())


def test_make_help_lists_and_describes_every_target() -> None:
    shown = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    listed = {line.split()[1]: line.split(maxsplit=2)[2] for line in shown.splitlines()}
    assert set(listed) == targets()
    assert all(len(words) > 10 for words in listed.values())
    assert targets() >= {"help", "demo", "test", "check", "bench"}


def test_every_make_target_named_in_documents_exists() -> None:
    for file in (path for path in tracked() if path.suffix == ".md"):
        named = set(re.findall(r"(?:`|^)make ([a-z][a-z-]*)", file.read_text(encoding="utf-8"), re.M))
        assert named <= targets(), file.relative_to(ROOT)


def test_ci_runs_the_developers_test_command() -> None:
    assert "exec make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\((?!https?:|#)([^)]+)\)", README))))
def test_readme_links_have_targets(link: str) -> None:
    assert (ROOT / link.split("#")[0]).exists()


def test_every_reproduced_result_has_a_command_and_a_document() -> None:
    """Only a reader of the paper can say whether a listed table is the paper's."""
    rows = documents.rows_of(ROOT / "experiments" / "reproduced.toml")
    for row in rows:
        assert row["state"] in ("yes", "in part", "no"), row
        assert ("command" in row) == ("where" in row) == (row["state"] != "no"), row
        assert row["state"] == "yes" or row["note"], "says why"
        if "command" in row:
            words = tuple(row["command"].split()[1:])
            command = COMMANDS[words[:1] if words[0] == "bench" else words[:2]]
            given = {word for word in words if word.startswith("-")}
            assert given <= {name for option in command.params for name in option.opts}, row
            assert (ROOT / "experiments" / row["where"]).is_file(), row
    assert len({(row["paper"], row["result"]) for row in rows}) == len(rows)
    assert {row["paper"] for row in rows} == {"Uni-FedRec", "Efficient-FedRec", "FedNewsRec", "FINDING", "FL-MV-DSSM"}
