"""Which modules may import which, and what a command may cost to start."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ALLOWED = {
    "sdk": {"sdk"},
    "trainers": {"trainers", "sdk"},
    "monitor": {
        "monitor",
        "sdk.delays.slope",
        "sdk.knobs.catalog",
        "sdk.patterns",
        "sdk.redact",
        "sdk.ring",
        "sdk.statistics",
        "sdk.units",
    },
}
ARROWS = {
    # the floor
    "model": set(),
    "language": {"model"},
    "terminal": {"language"},
    "calibration": {"model"},
    # collectors
    "gpu": {"model"},
    "host": {"model"},
    "runs": {"model"},
    "traces": {"model"},
    # judgement and memory
    "advice": {"model"},
    "comparison": {"model"},
    "store": {"model", "comparison"},
    "pipeline": {"model", "calibration", "gpu", "host", "runs", "advice", "store"},
    "catalog": {"model", "runs", "comparison", "store", "pipeline"},
    "fleet": {"model", "advice", "catalog"},
    # faces
    "client": {"model"},
    "document": {"model", "language", "catalog", "comparison", "store"},
    "report": {"model", "language", "client", "pipeline", "store", "terminal"},
    "experiments": {"model", "advice", "comparison", "report", "store"},
    "web": {"model", "language", "catalog", "comparison", "document", "store"},
    "tui": {"model", "language", "client", "catalog", "comparison", "fleet", "pipeline", "store", "terminal"},
    "doctor": {"model", "calibration", "client", "host"},
    # commands on top
    "daemon": {"fleet", "model", "host", "pipeline", "store", "web"},
    "demo": {"model", "language", "client", "comparison", "terminal"},
    "cli": {
        "model",
        "advice",
        "catalog",
        "client",
        "comparison",
        "daemon",
        "demo",
        "doctor",
        "document",
        "experiments",
        "fleet",
        "language",
        "pipeline",
        "report",
        "runs",
        "store",
        "terminal",
        "traces",
        "tui",
    },
}
"""Which rooms of `monitor` a room may import: every arrow there is, in the order of the layers."""
OURS = ("sdk", "monitor", "trainers", "tests", "grafana")
HEAVY = {"textual", "starlette", "uvicorn", "prometheus_client", "torch", "numpy", "sqlite3", "asyncio"}


def imports(path: Path) -> set[str]:
    """Modules of ours that a file imports anywhere, as dotted names."""
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
    """The module an import names; a relative one is resolved from its file's package."""
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


def room(module: str) -> str:
    """The folder (or single file) directly below `monitor` that a module is in."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def arrows() -> dict[str, set[str]]:
    """Room of `monitor` → the rooms its files import."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "monitor").rglob("*.py")):
        own = path.relative_to(ROOT / "monitor").parts[0].removesuffix(".py")
        names = {room(name) for name in imports(path) if name.startswith("monitor.")}
        found.setdefault(own, set()).update(names - {own})
    found.pop("__init__")
    return found


def listed() -> list[str]:
    """The rooms of `monitor` in the order of ARCHITECTURE.md's table."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `monitor/(\w+)(?:/|\.py)` \|", text, re.MULTILINE)


def test_every_arrow_between_rooms_is_known() -> None:
    assert arrows() == ARROWS


@pytest.mark.parametrize("order", [list(ARROWS), listed()], ids=["here", "in ARCHITECTURE.md"])
def test_a_room_imports_only_what_comes_before_it(order: list[str]) -> None:
    assert sorted(order) == sorted(ARROWS)
    wrong = [
        f"{one} imports {other}"
        for one in order
        for other in ARROWS[one]
        if order.index(other) >= order.index(one)
    ]
    assert wrong == []


def test_private_modules_of_the_sdk_stay_in_their_room() -> None:
    """A module whose name begins with an underscore is imported only from its own folder."""
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sorted((ROOT / "sdk").rglob("*.py"))
        for name in sorted(imports(path))
        if name.rpartition(".")[2].startswith("_")
        and name.rpartition(".")[0] != ".".join(path.relative_to(ROOT).parent.parts)
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


def test_only_the_daemon_needs_the_metrics_library() -> None:
    """`gpumon run` watches a training with its own pipeline, which contains nothing of the web."""
    assert "prometheus_client" in loaded_by("import monitor.daemon.daemon")
    assert "prometheus_client" not in loaded_by("import monitor.pipeline.pipeline, monitor.cli.run")
