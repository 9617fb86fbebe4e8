"""Who may import whom, and what a command may cost to start."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ALLOWED = {"sdk": {"sdk"}, "trainers": {"trainers", "sdk"}, "monitor": {"monitor", "sdk.ring"}}
OURS = ("sdk", "monitor", "trainers", "tests", "grafana")
HEAVY = {"textual", "starlette", "uvicorn", "prometheus_client", "torch", "numpy", "sqlite3", "asyncio"}


def imports(path: Path) -> set[str]:
    """Modules of ours that a file imports, anywhere in it, as dotted names."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = _absolute(path, node)
            submodules = {f"{module}.{alias.name}" for alias in node.names if _is_module(module, alias.name)}
            found |= submodules or {module}
    return {name for name in found if name.partition(".")[0] in OURS}


def _absolute(path: Path, node: ast.ImportFrom) -> str:
    """The module an import names; a relative one is counted up from its file's package."""
    if not node.level:
        return node.module or ""
    package = path.relative_to(ROOT).parent.parts
    base = package[: len(package) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])


def _is_module(package: str, name: str) -> bool:
    base = ROOT.joinpath(*package.split("."), name)
    return base.with_suffix(".py").exists() or (base / "__init__.py").exists()


@pytest.mark.parametrize("package", ALLOWED)
def test_imports_go_one_way(package: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for name in sorted(imports(path))
        if not any(name == allowed or name.startswith(f"{allowed}.") for allowed in ALLOWED[package])
    ]
    assert wrong == []


def loaded_by(code: str) -> set[str]:
    """Top-level modules in a fresh interpreter after running `code`."""
    probe = f"{code}\nimport sys\nprint(*sorted(name.partition('.')[0] for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(done.stdout.splitlines()[-1].split())


def test_the_sdk_needs_only_the_standard_library() -> None:
    extra = (
        loaded_by("from sdk import TrainingMonitor")
        - loaded_by("pass")
        - set(sys.stdlib_module_names)
        - {"sdk"}
    )
    assert {name for name in extra if not name.startswith("_sysconfigdata")} == set()


def test_status_starts_light() -> None:
    loaded = loaded_by("import monitor.cli.main, monitor.cli.status\nmonitor.cli.main.build_parser('status')")
    assert loaded & HEAVY == set()


def test_the_front_imports_no_command() -> None:
    assert loaded_by("import monitor.cli.main") & (HEAVY | {"psutil", "msgspec", "pynvml"}) == set()


def test_the_daemon_needs_no_prometheus_client() -> None:
    """Our own writer renders /metrics; the client library is for tests only."""
    assert "prometheus_client" not in loaded_by("import monitor.daemon")
