"""Slopes of real loops whose truth is known: critical is told from hidden, in every place.

How close the slopes come to the truth depends on how quiet the machine is:
`python -m tests.benchmarks.criticality` measures that.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.criticality.loops import LOOPS, probed
from tests.conftest import PATIENCE

pytest.importorskip("torch")
pytestmark = pytest.mark.slow
SOON = 0.1
"""More delays than a real run gets, for an answer after fewer steps."""
STEPS = {"side_job": 1800}
DEFAULT_STEPS = 1400


@pytest.mark.parametrize("name", [name for name, loop in LOOPS.items() if loop.speeds is None])
def test_critical_is_told_from_hidden(tmp_path: Path, name: str) -> None:
    loop = LOOPS[name]
    found = probed(tmp_path, loop, STEPS.get(name, DEFAULT_STEPS), SOON, PATIENCE)
    assert not found.error, found.error
    assert set(found.places) == set(loop.places)
    for one in found.places.values():
        assert one["slope"] is not None, found.places
        assert (one["slope"] > 0.5) == (loop.truth > 0.5), found.places
