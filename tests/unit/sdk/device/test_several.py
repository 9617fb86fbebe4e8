"""Two devices of one loop on simulated machines with a common clock: each has its own idle time."""

from __future__ import annotations

from array import array
from types import SimpleNamespace
from typing import Any

import pytest

from sdk import ring
from sdk.core.phases import BACKWARD, DATA, FORWARD
from sdk.device import _marks, _profiler, lane
from sdk.device._gaps import Activity
from sdk.device._kernels import KernelWindow
from sdk.device._profiler import Companion, Profiler
from sdk.device._step import PhaseWork, Piece, idle_by_phase
from sdk.device.lane import DeviceLane
from sdk.device.several import SeveralDevices
from tests.unit.sdk.device.machine import US, Machine

MS = 1000 * US


def known(work: dict[int, PhaseWork], kernels: float) -> KernelWindow:
    """A window that has been read."""
    window = KernelWindow(lambda: pytest.fail("not in this test"), lambda flags: None)
    window._done, window.work, window.causes = True, work, {"kernels": kernels}
    return window


class Halves:
    """A model in two halves: the second device works when the first is done, and the host waits for it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seen: tuple[bool, bool] = (True, True)) -> None:
        self.first, self.second = Machine(), Machine()
        for module in (_marks, lane):
            monkeypatch.setattr(module, "clock", lambda: self.first.now)
        lanes = [
            DeviceLane(machine.marks(), window=known(work, 5.0) if window else None, syncs=None, alone=False)
            for machine, work, window in zip(
                (self.first, self.second),
                ({FORWARD: PhaseWork(6 * MS, 8 * MS)}, {FORWARD: PhaseWork(2 * MS, 8 * MS)}),
                seen,
                strict=True,
            )
        ]
        self.several = SeveralDevices(lanes[0], {"cuda:1": lanes[1]})
        self.begin = self.first.now
        self.records: list[array[int]] = []

    def step(self) -> None:
        self.several.mark(FORWARD, self.first.now)
        self._commit()
        self.first.launch(6 * MS)
        self.second.done = max(self.second.done, self.first.done)  # its stream waits for the first
        self.second.launch(2 * MS)
        self.first.now = self.second.now = self.second.done

    def _commit(self) -> None:
        record = array("Q", ring.EMPTY_RECORD)
        record[ring.W_BEGIN], record[ring.W_END] = self.begin, self.first.now
        self.several.step_ended(len(self.records) + 1, record)
        self.begin = self.first.now
        self.records.append(record)


def test_each_has_its_own_idle_time_and_the_records_are_the_firsts(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Halves(monkeypatch)
    for _ in range(40):
        loop.step()
    found = loop.several.scalars(str)
    assert found["device.other_idle.cuda:1"] == pytest.approx(0.75, abs=0.01)
    assert found["device.other_kernels.cuda:1"] == 5.0
    last = [one for one in loop.records if one[ring.W_DEVICE_SEQ]][-1]
    assert last[ring.W_DEVICE_STARVED] == pytest.approx(2 * MS, abs=50 * US)
    assert last[ring.W_DEVICE_BUSY] == pytest.approx(6 * MS, abs=50 * US)


def test_a_device_that_did_nothing_in_the_window_only_holds_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Halves(monkeypatch, seen=(True, False))
    for _ in range(20):
        loop.step()
    found = loop.several.scalars(str)
    assert found["device.other_kernels.cuda:1"] == 0.0 and "device.other_idle.cuda:1" not in found


def test_without_a_window_nothing_is_said_about_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Halves(monkeypatch, seen=(False, False))
    for _ in range(20):
        loop.step()
    assert not [name for name in loop.several.scalars(str) if "other" in name]


def test_marks_of_all_devices_together_have_the_price_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    several = Halves(monkeypatch).several
    several.allow(0.01)
    assert [one.share for one in several._lanes] == [0.005, 0.005] and several.share == 0.01


def test_a_queue_that_is_not_empty_may_wait_for_another_device() -> None:
    """GIVEN a device far behind the host THEN alone it cannot be idle; beside another that is not known."""
    parts = [Piece(DATA, MS, 20 * MS, False), Piece(FORWARD, 5 * MS, 20 * MS, False)]
    assert idle_by_phase(parts, {}) == {}
    assert idle_by_phase(parts, {}, alone=False) is None
    assert idle_by_phase(parts, {FORWARD: PhaseWork(2 * MS, 5 * MS)}, alone=False) == {
        DATA: MS,
        FORWARD: 3 * MS,
    }


def event(name: str, begin: int, device: int | None, correlation: int) -> Any:
    return SimpleNamespace(
        start_ns=lambda: begin,
        duration_ns=lambda: 10,
        name=lambda: name,
        device_type=lambda: SimpleNamespace(name="CPU" if device is None else "CUDA"),
        device_index=lambda: device,
        correlation_id=lambda: correlation,
    )


def test_one_profile_is_read_for_every_device() -> None:
    events = [
        event("cudaLaunchKernel", 0, None, 1),
        event("gemm", 50, 0, 1),
        event("cudaLaunchKernel", 20, None, 2),
        event("add", 60, 1, 2),
        event("cudaStreamSynchronize", 70, None, 0),
    ]
    found = _profiler._read(events)
    assert {index: [one.name for one in seen.kernels] for index, seen in found.items()} == {
        0: ["gemm"],
        1: ["add"],
    }
    assert all(len(seen.waits) == 1 for seen in found.values()), "the host waits, whatever for"


def test_a_companion_has_nothing_to_read_once_the_profile_is_given_up() -> None:
    leader = Profiler(None, SimpleNamespace(type="cuda", index=0))
    leader._seen = {1: Activity([], [], [], [], launches=[])}
    companion = Companion(leader, 1)
    assert companion.stop() is leader._seen[1]
    leader._give_up(lambda: None)
    assert not companion.stop().kernels and not companion.start(lambda: None)


def test_the_phase_of_all_lanes_is_relabelled(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Halves(monkeypatch)
    loop.several.mark(FORWARD, loop.first.now)
    loop.several.relabel(BACKWARD)
    assert [one._marks[-1].phase for one in loop.several._lanes] == [BACKWARD, BACKWARD]
