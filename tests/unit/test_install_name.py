"""The distribution is called `gpumon-train`, because on PyPI `gpumon` is somebody else's. Nothing tells
anybody to install that."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
READ = (".md", ".py", ".sh", ".toml", ".yaml", ".yml", ".service", ".txt", ".tpl", ".html", ".js")
SKIPPED = {".git", ".venv", "out", "build", "dist", "node_modules", "__pycache__"}
INSTALLS = re.compile(
    r"""\b(?:pip3?|pipx|uv|uv\ pip|uv\ tool)\ (?:install|download|inject|run)\ (?:(?!--spec|--from)[^\s`]+\ )*
        ['"]?gpumon(?![\w./=-])
      | \buvx\ (?:(?!--from)\S+\ )*gpumon(?![\w-])
      | \bgpumon\[[a-z]""",
    re.VERBOSE,
)
"""A line that installs, or runs from the registry, a distribution called `gpumon` or one of its extras."""


def texts() -> Iterator[tuple[Path, str]]:
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        wanted = path.suffix in READ or path.name in ("Dockerfile", "Makefile", "run")
        if wanted and path.is_file() and not SKIPPED & set(parts) and path != Path(__file__):
            yield path, path.read_text(encoding="utf-8", errors="replace")


@pytest.mark.slow
def test_no_line_installs_the_strangers_package() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {found.group(0)}"
        for path, text in texts()
        for found in INSTALLS.finditer(text)
    ]
    assert wrong == []


def test_the_project_has_the_free_name() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["name"] == "gpumon-train"


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("pip install gpumon", True),
        ("/opt/gpumon/bin/pip install --upgrade gpumon", True),
        ("pip install 'gpumon[auth]'", True),
        ("pipx install gpumon", True),
        ("uvx gpumon run", True),
        ("pip install .", False),
        ("pip install gpumon-train", False),
        ("pip install 'gpumon-train[auth]'", False),
        ("uvx --from gpumon-train gpumon run", False),
        ("pipx run --spec gpumon-train gpumon status", False),
        ("helm install gpumon deploy/helm/gpumon", False),
        ("python3 -m venv /opt/gpumon && /opt/gpumon/bin/pip install gpumon-train", False),
    ],
)
def test_the_pattern_sees_what_it_is_for(line: str, wrong: bool) -> None:
    assert bool(INSTALLS.search(line)) == wrong
