"""Slopes of real loops whose truth is known: critical is told from hidden, in every place.

How close the slopes come to the truth depends on how quiet the machine is:
`python -m tests.benchmarks.criticality` measures that.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests import warm
from tests.benchmarks.criticality.loops import LOOPS, Probed, probed
from tests.conftest import PATIENCE, undisturbed

pytest.importorskip("torch")
pytestmark = pytest.mark.slow
SOON = 0.1
"""More delays than a real run gets, for an answer after fewer steps."""
STEPS = {"side_job": 1800}
DEFAULT_STEPS = 1400


AT_ONCE = 2
"""They sleep most of the time."""
Wanted = dict[str, Future[Probed]]
"""First attempts by loop; a test takes its own out."""
Temporary = pytest.TempPathFactory


def probe(name: str, folder: Path) -> Probed:
    python = sys.executable if "rank" in name else warm.python()  # ranks are spawned, and import torch anyway
    return probed(folder, LOOPS[name], STEPS.get(name, DEFAULT_STEPS), SOON, PATIENCE, python)


@pytest.fixture(scope="module")
def wanted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wanted]:
    """The loops of the tests that are run, several at a time, the longest first."""
    items = (item for item in request.session.items if isinstance(item, pytest.Function))
    names = [str(item.callspec.params["name"]) for item in items if item.module is request.module]
    warm.python()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        ranks_first = sorted(names, key=lambda name: "rank" not in name)
        yield {name: pool.submit(probe, name, tmp_path_factory.mktemp(name)) for name in ranks_first}


@pytest.mark.parametrize("name", [name for name, loop in LOOPS.items() if loop.speeds is None])
@undisturbed
def test_critical_is_told_from_hidden(wanted: Wanted, name: str, tmp_path_factory: Temporary) -> None:
    first = wanted.pop(name, None)
    loop, found = LOOPS[name], first.result() if first else probe(name, tmp_path_factory.mktemp(name))
    assert not found.error, found.error
    assert set(found.places) == set(loop.places)
    for one in found.places.values():
        assert one["slope"] is not None, found.places
        assert (one["slope"] > 0.5) == (loop.truth > 0.5), found.places
