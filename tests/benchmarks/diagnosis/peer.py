"""TraceML on the same scripts. It needs a `with trace_step(model):` around each step, so every script is
given one, by rewriting its syntax tree; the script itself stays as it is."""

from __future__ import annotations

import ast
import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from tests.benchmarks.diagnosis.catalog import Case
from tests.benchmarks.diagnosis.measure import Result

DEADLINE = 90.0
HEAD = """
import torch as _peer_torch
import traceml_ai as _peer
_peer.init(mode="auto")
_peer_model = _peer_torch.nn.Linear(1, 1)
"""


class Peer:
    """TraceML's command, in a virtual environment of its own (`GPUMON_TRACEML` names its bin folder)."""

    def __init__(self, program: str) -> None:
        self.program = program

    @classmethod
    def find(cls) -> Peer | None:
        folder = os.environ.get("GPUMON_TRACEML", "")
        program = shutil.which("traceml", path=folder) if folder else shutil.which("traceml")
        if program is None:
            print(
                "TraceML is not installed: pip install traceml-ai into a venv, GPUMON_TRACEML=its bin folder"
            )
            return None
        return cls(program)

    def look(self, case: Case, result: Result) -> None:
        """What TraceML says about the script, and its points: 1 the cause, ½ the phase."""
        text = self._report(case)
        verdict = re.search(r"Verdict:\s*(.+?)\s*\|?\s*$", text, re.MULTILINE)
        result.peer = verdict.group(1).strip(" |") if verdict else "no verdict"
        if case.healthy:
            return
        advice = "\n".join(re.findall(r"(?:Verdict|Why|Next|Also|Note):.*", text))
        if case.peer_full and re.search(case.peer_full, advice, re.IGNORECASE):
            result.peer_points = 1.0
        else:
            result.peer_points = 0.5 if re.search(case.peer_half, advice, re.IGNORECASE) else 0.0

    def _report(self, case: Case) -> str:
        with tempfile.TemporaryDirectory(prefix="gpumon-peer-") as name:
            folder = Path(name)
            script = folder / case.path.name
            script.write_text(instrumented(case.path.read_text()))
            command = [
                self.program,
                "run",
                str(script),
                "--mode",
                "summary",
                "--logs-dir",
                str(folder / "logs"),
            ]
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            return _output(command, environment, folder)


def _output(command: list[str], environment: dict[str, str], folder: Path) -> str:
    """What the command says. Out of time, its whole session goes: it leaves an aggregator behind."""
    with subprocess.Popen(
        command, env=environment, cwd=folder, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as child:  # fmt: skip
        try:
            return child.communicate(timeout=DEADLINE)[0]
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            return "Verdict: none in time"


def _comes_first(line: ast.stmt) -> bool:
    """A docstring or an import from the future: nothing may be put before it."""
    return isinstance(line, ast.Expr) or (isinstance(line, ast.ImportFrom) and line.module == "__future__")


def instrumented(source: str) -> str:
    """The script with TraceML's step around the loop body (or function) that goes backward."""
    tree = ast.parse(source)
    _Wrap().visit(tree)
    at = 0
    while at < len(tree.body) and _comes_first(tree.body[at]):
        at += 1
    tree.body[at:at] = ast.parse(HEAD).body
    return ast.unparse(ast.fix_missing_locations(tree))


class _Wrap(ast.NodeTransformer):
    """Wraps the innermost loop that calls `.backward()`; a function without such a loop, whole."""

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        if _goes_backward(node) and not any(_wrapped(child) for child in ast.walk(node)):
            node.body = [_step(node.body)]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        if _goes_backward(node) and not any(_wrapped(child) for child in ast.walk(node)):
            node.body = [_step(node.body)]
        return node


def _goes_backward(node: ast.AST) -> bool:
    return any(isinstance(child, ast.Attribute) and child.attr == "backward" for child in ast.walk(node))


def _wrapped(node: ast.AST) -> bool:
    return isinstance(node, ast.With) and "_peer" in ast.unparse(node.items[0])


def _step(body: list[ast.stmt]) -> ast.With:
    call = ast.parse("_peer.trace_step(_peer_model)", mode="eval").body
    return ast.With(items=[ast.withitem(context_expr=call)], body=body)
