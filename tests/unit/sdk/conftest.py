"""Automatic instrumentation as a fixture: installed before a test, removed after it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def auto(gpumon_dir: Path) -> Iterator[object]:
    """A `Recording` of this process; everything it patched is restored when the test is over."""
    import torch

    from tests.unit.sdk.loops import Recording

    recording = Recording(gpumon_dir)
    yield recording
    recording.monitor.stop_monitoring()
    for function in (torch.autograd.backward, torch.save, torch.compile, torch.amp.GradScaler.step):
        assert not hasattr(function, "__wrapped__"), "every hook is taken out again"
