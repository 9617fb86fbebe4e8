"""The recipes of ARCHITECTURE.md, carried out in a copy of the tree: each change stays in its folder.

A recipe that needs more files than it says, or that breaks a test elsewhere, fails here.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COPIED = (
    "gpumon",
    "_gpumon_sdk",
    "monitor",
    "sdk",
    "tests",
    "docs",
    "grafana",
    "README.md",
    "ARCHITECTURE.md",
    "pyproject.toml",
    "trainers",
)
MOST_FILES = 3
"""Product files a recipe may touch; generated pages and tests come on top."""

RULE = '''"""Twice as many threads as steps.

Looks at: nothing a real rule would look at.
Why: It shows how a rule is added.
Remedy: none.
Gain: none.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.rule import Advice, rule


@rule("job.example", "Example")
def check(run: RunContext) -> Advice | None:
    if run.run.name != "example":
        return None
    return Advice(title="An example was run", remedy="Rename it.", evidence={"name": run.run.name})
'''
CASE = """    "job.example": (
        snapshot_of(run_of(name="example")),
        snapshot_of(HEALTHY),
    ),
"""
COMMAND = '''"""`gpumon hello`: an example of a command."""

from __future__ import annotations

import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", default="you", help="whom to greet")


def run(args: argparse.Namespace) -> int:
    print(f"hello {args.name}")
    return 0
'''
PANEL = '''"""How many hosts are watched: an example of a panel."""

from __future__ import annotations

from monitor.tui.frame import Frame
from monitor.tui.line_budget import Wants
from monitor.tui.text import Block, Room, Span, line


def wants(frame: Frame, room: Room) -> Wants:
    return Wants((1,))


def table(frame: Frame, room: Room) -> Block:
    return Block((), (line(Span(f" watching {len(frame.hosts)} host"), width=room.width),))
'''
COLLECTOR = '''"""An example of a collector."""

from __future__ import annotations

from monitor.pipeline.draft import Draft, Setup


class ExampleCollector:
    name = "example"

    def __init__(self, setup: Setup) -> None: ...

    def collect(self, draft: Draft) -> None:
        draft.dropped["example"] = 7

    def close(self) -> None: ...
'''
SHOWS_COLLECTOR = """
from pathlib import Path
from monitor.model.settings import Settings
from monitor.pipeline.pipeline import Pipeline
snapshot = Pipeline(Settings(source="none", dir=(Path("rings"),))).once()
print(snapshot.dropped["example"], [one.ok for one in snapshot.collectors if one.name == "example"])
"""
SHOWS_PANEL = """
import asyncio
from tests.tui.stage import picture, staged
print(asyncio.run(picture(staged("one-busy"), (120, 40))))
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name)  # with its bytecode, which is as good there
        else:
            shutil.copy(source, tmp_path / name)
    return tmp_path


def add(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def insert(path: Path, before: str, line: str) -> Path:
    """Insert `line` before the first occurrence of `before`."""
    text = path.read_text(encoding="utf-8")
    assert before in text, f"{path.name} no longer has {before!r}: is the recipe still true?"
    return add(path, text.replace(before, line + before, 1))


def python(tree: Path, *words: str, **environment: str) -> str:
    """Run Python in the copy and return its output. Fails with its error message."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree)} | environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout


def passes(tree: Path, *tests: str, **environment: str) -> None:
    python(tree, "-m", "pytest", "-q", "-x", "--hypothesis-profile=few", *tests, **environment)


@pytest.mark.slow
def test_a_rule(tree: Path) -> None:
    touched = [add(tree / "monitor/advice/rules/job_example.py", RULE)]
    insert(tree / "tests/unit/advice/cases_machine.py", '    "memory.device_full": (', CASE)
    add(tree / "docs/rules.md", python(tree, "-m", "monitor.advice.docs"))
    said = json.loads(python(tree, "-m", "monitor.language.extract"))
    assert {"An example was run", "Rename it.", "Example", "It shows how a rule is added."} <= set(said)
    chinese = json.dumps(dict.fromkeys(said, "例子"))
    touched.append(add(tree / "monitor/language/zh/example.json", chinese))
    registry = [f"tests/unit/advice/test_{name}.py" for name in ("rules", "limits", "changes")]
    passes(tree, *registry, "tests/unit/language")
    assert len(touched) <= MOST_FILES


@pytest.mark.slow
def test_a_metric(tree: Path) -> None:
    line = '    _of("gpumon_example_streams", "gauge", "The streams.", lambda o: len(o.streams), "web"),\n'
    touched = [insert(tree / "monitor/web/families/gpumon.py", '    _of("gpumon_http_streams"', line)]
    add(tree / "docs/metrics.md", python(tree, "-m", "monitor.web.contract"))
    passes(tree, "tests/unit/web", "-k", "golden", GPUMON_UPDATE_GOLDEN="1")
    passes(tree, "tests/unit/web")
    assert "gpumon_example_streams" in (tree / "tests/golden/metrics.txt").read_text()
    assert len(touched) <= MOST_FILES


def test_a_command(tree: Path) -> None:
    touched = [
        add(tree / "monitor/cli/hello.py", COMMAND),
        insert(tree / "monitor/cli/main.py", '    "version": ', '    "hello": "greet somebody",\n'),
        insert(tree / "README.md", "| `gpumon doctor ", "| `gpumon hello` | greets |\n"),
    ]
    assert python(tree, "-m", "monitor.cli.main", "hello", "--name", "Ada") == "hello Ada\n"
    passes(tree, "tests/unit/test_imports.py", "tests/unit/test_faces_lay_out.py")
    assert len(touched) <= MOST_FILES


def test_a_collector(tree: Path) -> None:
    """One file and one registration."""
    rooms = tree / "monitor/pipeline/collectors"
    touched = {
        add(rooms / "example.py", COLLECTOR),
        insert(
            rooms / "__init__.py",
            "from monitor.pipeline.draft",
            "from monitor.pipeline.collectors.example import ExampleCollector\n",
        ),
        insert(rooms / "__init__.py", "    RunCollector,\n", "    ExampleCollector,\n"),
    }
    assert python(tree, "-c", SHOWS_COLLECTOR) == "7 [True]\n"
    assert len(touched) == 2


@pytest.mark.slow
def test_a_panel(tree: Path) -> None:
    overview = tree / "monitor/tui/overview.py"
    touched = [
        add(tree / "monitor/tui/views/watching.py", PANEL),
        insert(
            overview,
            '        PanelSpec("runs", ',
            '        PanelSpec("watching", *of_frame(watching.table, watching.wants), focusable=False),\n',
        ),
    ]
    text = overview.read_text()
    add(overview, text.replace("processes, runs\n", "processes, runs, watching\n", 1))
    assert "watching 1 host" in python(tree, "-c", SHOWS_PANEL)
    passes(tree, "tests/tui/test_views.py", "tests/unit/test_faces_lay_out.py")
    assert len(touched) <= MOST_FILES
