"""Harmless in every corner case: interrupts while rings grow, files that vanish, loaders that are copied."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from sdk import TrainingMonitor, ring
from sdk.core import NATIVE
from tests.integration.sdk.scripts import AUTO, finish, gpumon, write
from tests.rings import read_ring, trainer_rings

STORM = """
import os, random, signal, threading, time
from sdk import TrainingMonitor

WANTED, STEPS = 1000, 20000
sent = caught = begun = returned = 0
ready = False  # the next interrupt would be caught

def storm():
    global sent, ready
    chance = random.Random(1)
    while sent < WANTED:
        time.sleep(chance.random() * 0.002)
        if ready:
            ready = False
            sent += 1
            os.kill(os.getpid(), signal.SIGINT)

def train(monitor):  # steps and the end
    global begun, returned
    while monitor.recorder.on and monitor.recorder.done < STEPS:
        monitor.lap("forward")
        begun += 1
        monitor.step()
        returned += 1
    monitor.stop_monitoring()

def until_done(monitor):
    global caught, ready
    while True:
        try:
            ready = True
            train(monitor)
            ready = False
            while caught < sent:
                time.sleep(0.001)
            return
        except KeyboardInterrupt:
            caught += 1

monitors = []
threading.Thread(target=storm, daemon=True).start()
while sent < WANTED:
    monitors.append(TrainingMonitor("storm"))
    monitors[-1].start_monitoring()
    until_done(monitors[-1])
print(sent, caught, begun, returned, len(monitors), flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(not NATIVE, reason="in Python an interrupt can come between any two stores")
def test_a_storm_of_interrupts_over_growing_rings(gpumon_dir: Path, tmp_path: Path) -> None:
    done = finish(write(tmp_path, STORM), gpumon_dir)
    assert done.returncode == 0, done.stderr
    sent, caught, begun, returned, count = map(int, done.stdout.split())
    assert sent >= 1000 and caught == sent, "none was swallowed"
    rings = trainer_rings(gpumon_dir)
    assert len(rings) == count
    assert all(one.header.state == ring.S_ENDED for one in rings)
    assert all(one.header.slots > ring.INITIAL_SLOTS for one in rings), "they did grow"
    assert returned <= sum(one.header.head for one in rings) <= begun
    assert sum(one.lost for one in rings) == 0


GONE = """
import os, shutil, sys
from sdk import TrainingMonitor
with TrainingMonitor("gone") as m:
    for number in m.loader(range(20000)):
        m.lap("forward")
        m.step(float(number))
        if number == 3000:
            if sys.argv[1] == "truncated":
                os.truncate(m.path, 0)
            elif sys.argv[1] == "shortened":
                os.truncate(m.path, 70000)
            else:
                shutil.rmtree(os.path.dirname(m.path))
print("trained", m.recorder.steps, flush=True)
"""


@pytest.mark.parametrize("how", ["truncated", "shortened", "removed"])
def test_a_ring_that_vanishes_stops_nobody(gpumon_dir: Path, tmp_path: Path, how: str) -> None:
    if how != "removed" and not NATIVE:
        pytest.skip("only the C core can catch the bus error")
    done = finish(write(tmp_path, GONE), gpumon_dir, how)
    assert (done.stdout.strip(), done.returncode) == ("trained 20000", 0), done.stderr


def test_a_bus_error_of_somebody_else_is_theirs(gpumon_dir: Path, tmp_path: Path) -> None:
    script = """
import mmap, os
from sdk import TrainingMonitor
with TrainingMonitor("other") as m:
    m.step()
    with open("file", "wb+") as file:
        os.truncate("file", 8192)
        view = mmap.mmap(file.fileno(), 8192)
        os.truncate("file", 0)
        view[5000] = 1
"""
    done = finish(write(tmp_path, script), gpumon_dir)
    assert done.returncode == -7, "SIGBUS, as without us"


def test_a_directory_that_vanishes_under_workers(gpumon_dir: Path, tmp_path: Path) -> None:
    script = AUTO + (
        "import shutil\n"
        "model, optimizer = net()\n"
        "loader = DataLoader(Data(), batch_size=8, num_workers=2)\n"
        "for number in range(3):\n"
        "    for x, y in loader:\n"
        "        step(model, optimizer, x, y)\n"
        "    shutil.rmtree(os.environ['GPUMON_DIR'], ignore_errors=True)\n"
        "print('trained', flush=True)\n"
    )
    done = finish(write(tmp_path, script), gpumon_dir, front=gpumon())
    assert (done.stdout.strip(), done.returncode) == ("trained", 0), done.stderr


def loader() -> DataLoader[tuple[torch.Tensor, ...]]:
    return DataLoader(TensorDataset(torch.arange(12.0)), batch_size=4)


def batches(of: object) -> list[list[float]]:
    return [batch[0].tolist() for batch in of]  # type: ignore[attr-defined]


def test_a_monitored_loader_can_be_copied_and_pickled(gpumon_dir: Path) -> None:
    with TrainingMonitor("copies") as m:
        watched = m.loader(loader())
        expected = batches(watched)
        m.step()
        for made in (copy.copy(watched), copy.deepcopy(watched)):
            assert type(made) is type(watched) and len(made) == 3  # type: ignore[arg-type]
            assert batches(made) == expected
        assert isinstance(pickle.loads(pickle.dumps(watched)), DataLoader)


def test_a_loader_under_automatic_instrumentation_too(gpumon_dir: Path) -> None:
    monitor = TrainingMonitor.auto()
    plain = loader()
    expected = batches(plain)
    for made in (copy.copy(plain), copy.deepcopy(plain), pickle.loads(pickle.dumps(plain))):
        assert batches(made) == expected
    monitor.stop_monitoring()


def test_a_ring_that_has_grown_twice_has_every_record(gpumon_dir: Path) -> None:
    with TrainingMonitor("grown") as m:
        for _ in range(3 * ring.INITIAL_SLOTS):
            m.lap("forward")
            m.step()
    assert m.path is not None
    found = read_ring(Path(m.path))
    assert found.lost == 0 and len(found.records) == 3 * ring.INITIAL_SLOTS


def test_a_monitor_that_was_stopped_does_not_wait_for_torch(tmp_path: Path, gpumon_dir: Path) -> None:
    """WHEN torch is imported after an automatic monitor has ended THEN the next one instruments it."""
    script = write(
        tmp_path,
        "import sys\nfrom sdk import TrainingMonitor\nTrainingMonitor.auto().stop_monitoring()\n"
        "import torch\nprint(hasattr(sys, '_gpumon_auto'))\n"
        "monitor = TrainingMonitor.auto()\nprint(sys._gpumon_auto.monitor is monitor)\n",
    )
    assert finish(script, gpumon_dir).stdout.split() == ["False", "True"]
