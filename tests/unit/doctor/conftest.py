"""The machine that every check starts from."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.doctor.check import Context
from monitor.host.procfs import Roots
from monitor.model.settings import Settings
from tests.unit.doctor.prepared import NO_LIBRARY


@pytest.fixture
def context(tmp_path: Path) -> Context:
    """A machine without anything: empty /proc and /sys, no NVML, no daemon."""
    settings = Settings(dir=(tmp_path / "rings",), socket=tmp_path / "s.sock", store=None, listen=None)
    made = Context(settings, roots=Roots(proc=tmp_path / "proc", sys=tmp_path / "sys"))
    (tmp_path / "proc").mkdir()
    made.nvml = NO_LIBRARY
    return made
