"""Device time from events on a simulated machine: what is known, what is not; the host never waits."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sdk import ring
from sdk.core.phases import BACKWARD, BETWEEN, CHECKPOINT, DATA, FORWARD, OPTIMIZER, VALIDATE
from sdk.device._gaps import Activity, Kernel, Span, causes
from sdk.device._kernels import KernelWindow, by_phase, heaviest
from sdk.device._marks import POOL
from sdk.device._step import PhaseWork, Piece, idle_by_phase
from sdk.device.open import open_lane
from tests.unit.sdk.device.machine import US, Event, Loop, Machine

MS = 1000 * US


def train(
    loop: Loop, steps: int, *, load: int = 0, kernels: int = 1, kernel: int = MS, launch: int = 20 * US
) -> None:
    machine = loop.machine
    for _ in range(steps):
        loop.begin_step(DATA)
        machine.host(load)
        for phase in (FORWARD, BACKWARD, OPTIMIZER):
            loop.mark(phase)
            for _ in range(kernels):
                machine.host(launch)
                machine.launch(kernel)


def test_a_wait_for_data_is_idle_time_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    loop = Loop(machine, monkeypatch)
    for _ in range(40):
        loop.begin_step(DATA)
        machine.host(20 * MS)
        loop.mark(FORWARD)
        machine.host(100 * US)
        machine.launch(5 * MS)
        loop.mark(BACKWARD)
        machine.launch(5 * MS)
    busy, idle = loop.results()[-1]
    assert idle == pytest.approx(20 * MS + 100 * US - 10 * MS, abs=200 * US)
    assert busy + idle == pytest.approx(20 * MS + 100 * US, abs=US)


def test_a_loop_bound_by_the_device_has_no_idle_time(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(Machine(), monkeypatch)
    train(loop, 100, load=MS)
    assert len(loop.results()) > 20 and all(idle == 0 for _, idle in loop.results()[1:])
    scalars = loop.scalars()
    assert scalars[f"device.empty.{BACKWARD}"] < 0.1
    assert scalars["device.lag_s"] > 0.003


def test_a_loop_bound_by_launches_has_an_empty_queue_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(Machine(), monkeypatch)
    train(loop, 50, kernels=100, kernel=3 * US)
    scalars = loop.scalars()
    assert all(scalars[f"device.empty.{phase}"] == 1.0 for phase in (FORWARD, BACKWARD, OPTIMIZER))
    assert not loop.results(), "work or gaps: not known without the kernels"


def test_micro_batches_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    loop = Loop(machine, monkeypatch)
    for _ in range(20):
        loop.begin_step(DATA)
        for micro in range(4):
            if micro:
                loop.mark(DATA)
            machine.host(10 * MS)
            loop.mark(FORWARD)
            machine.launch(3 * MS)
        loop.mark(OPTIMIZER)
        machine.launch(3 * MS)
    _, idle = loop.results()[-1]
    assert idle == pytest.approx(40 * MS - 15 * MS, abs=US)


@pytest.mark.parametrize("every", [5, 10, 16])
def test_long_steps_are_timed_as_often_as_others_when_marks_are_dear(
    monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    class Dear(Machine):
        def event(self) -> Event:
            made = super().event()
            record = made.record

            def dear(stream: object) -> None:
                self.now += 15 * US
                record(stream)

            monkeypatch.setattr(made, "record", dear)
            return made

    machine = Dear()
    loop = Loop(machine, monkeypatch)
    for number in range(6000):
        train(loop, 1, load=200 * US, kernel=300 * US)
        if number % every == 0:
            loop.mark(VALIDATE)
            machine.launch(20 * MS)
            machine.sync()
    assert loop.scalars()["device.steps"] < 4000, "marks cost too much to time every step"
    assert loop.scalars()[f"device.time_s.{VALIDATE}"] == pytest.approx(0.020 / every, rel=0.15)


def test_sampled_and_warm_up_steps_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    loop = Loop(machine, monkeypatch)
    for number in range(20):
        loop.begin_step(DATA, flags=ring.F_SAMPLED if number < 15 else 0)
        machine.host(MS)
        loop.mark(FORWARD)
        machine.launch(10 * MS)
        machine.sync()
    assert loop.scalars()["device.steps"] <= 5


def test_a_device_that_never_answers_costs_a_bounded_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(answers=False)
    loop = Loop(machine, monkeypatch)
    train(loop, POOL)
    assert machine.events <= POOL
    assert loop.lane.skipped > 0 and not loop.results()


def test_events_are_reused(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    train(Loop(machine, monkeypatch), 3000, load=5 * MS)
    assert machine.events < 40


def test_graph_capture_is_skipped_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(Machine(), monkeypatch)
    loop.lane._capturing = lambda: True
    train(loop, 5, load=MS)
    assert all(one[ring.W_FLAGS] & ring.F_CAPTURED for one in loop.records[1:])
    assert not loop.results()


def test_the_clocks_may_drift(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(Machine(drift=20e-6), monkeypatch)
    train(loop, 3000, kernels=100, kernel=3 * US)
    assert loop.scalars()[f"device.empty.{BACKWARD}"] > 0.95


@pytest.mark.parametrize("device", [None, "cpu", "meta"])
def test_no_lane_without_a_device(device: str | None) -> None:
    assert not open_lane([device], lambda flags: None).active


PHASES = (DATA, FORWARD, BACKWARD, OPTIMIZER, BETWEEN)
LENGTHS = st.integers(0, 3000).map(lambda us: us * US)
COMPUTE = st.lists(st.tuples(LENGTHS, LENGTHS, st.booleans()), max_size=4)
"""Host time, the kernel launched after it, and whether the host waits for it."""


@given(
    wait=LENGTHS,
    phases=st.lists(st.tuples(st.sampled_from(PHASES[1:]), COMPUTE), min_size=1, max_size=6),
    committed_first=st.booleans(),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_programs(
    monkeypatch: pytest.MonkeyPatch,
    wait: int,
    phases: list[tuple[int, list[tuple[int, int, bool]]]],
    committed_first: bool,
) -> None:
    """GIVEN any loop WHEN its kernels are known THEN the idle time by phase is right."""
    machine = Machine()
    window = KernelWindow(lambda: pytest.fail("not in this test"), lambda flags: None)
    window._done = True
    loop = Loop(machine, monkeypatch, window)

    def step() -> None:
        loop.begin_step(DATA, committed_first=committed_first)
        machine.host(wait + US)
        for phase, work in phases:
            loop.mark(phase)
            for host, kernel, waits in work:
                machine.host(host)
                if kernel:
                    machine.launch(kernel)
                if waits:
                    machine.sync()

    step()
    before = dict(machine.work)
    step()
    kernels = {phase: took - before.get(phase, 0) for phase, took in machine.work.items()}
    window.work = {phase: PhaseWork(kernels.get(phase, 0), 10**12) for phase in PHASES}
    for _ in range(30):
        step()
    measured_from, idle_before = machine.now, dict(machine.idle)
    loop.lane._sums.__init__()  # type: ignore[misc]
    rounds = 40
    for _ in range(rounds):
        step()
    idle = {phase: took - idle_before.get(phase, 0) for phase, took in machine.idle.items()}
    period = (machine.now - measured_from) / rounds
    scalars = loop.scalars()
    if "device.idle_s." not in "".join(scalars):
        assert sum(idle.values()) / rounds <= 0.05 * period, (
            "only a saturated device has no idle time by phase"
        )
        return
    for phase in PHASES:
        ours = scalars.get(f"device.idle_s.{phase}", 0.0) * 1e9
        assert ours == pytest.approx(idle.get(phase, 0) / rounds, abs=max(5 * US, 0.05 * period)), phase


def test_kernels_by_the_phase_that_launched_them() -> None:
    steps = [
        [(100, FORWARD), (200, BACKWARD), (300, FORWARD)],
        [(300, FORWARD), (400, BACKWARD), (500, DATA)],
    ]
    kernels = [
        Kernel(begin=150, end=190, launched=110),
        Kernel(begin=170, end=210, launched=120),  # parallel to the first
        Kernel(begin=290, end=330, launched=250),
        Kernel(begin=600, end=900, launched=550),  # after the window
        Kernel(begin=460, end=480, launched=420),
    ]
    assert by_phase(kernels, steps) == {FORWARD: 60 // 2, BACKWARD: (40 + 20) // 2}


def test_the_heaviest_kernels_are_named() -> None:
    kernels = [Kernel(0, 60, 0, "gemm"), Kernel(60, 70, 0, "add"), Kernel(70, 100, 0, "gemm")]
    assert heaviest(kernels) == [{"name": "gemm", "share": 0.9}, {"name": "add", "share": 0.1}]


def test_an_exchange_counts_where_nothing_else_runs() -> None:
    kernels = [
        Kernel(0, 100, 0, "gemm"),
        Kernel(50, 150, 0, "ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
        Kernel(160, 200, 0, "ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
        Kernel(190, 210, 0, "add"),
    ]
    found = causes(Activity(kernels, [], [], []), 0, 500, steps=2)
    assert found["comm_s"] == pytest.approx((50 + 30) / 2 * 1e-9)


def test_gaps_by_cause() -> None:
    """GIVEN a gap after a wait, one after a copy and one after nothing THEN each gets its cause."""
    kernels = [
        Kernel(begin=0, end=100, launched=0),
        Kernel(begin=130, end=200, launched=120),  # the host had waited from 90 to 110
        Kernel(begin=260, end=300, launched=205),  # a copy ran from 210 to 250
        Kernel(begin=350, end=400, launched=345),
    ]
    seen = Activity(kernels, copies=[Span(210, 250)], pageable=[Span(210, 250)], waits=[Span(90, 110)])
    found = causes(seen, 0, 500, steps=1)
    assert found["sync_idle_s"] == pytest.approx(20e-9), "no more than the wait"
    assert found["copy_idle_s"] == found["pageable_s"] == pytest.approx(40e-9)
    assert found["wait_s"] == pytest.approx(20e-9)
    assert found["window_s"] == pytest.approx(500e-9)
    assert (found["kernels"], found["syncs"]) == (4, 1)


def test_an_evaluation_the_window_did_not_see_is_not_taken_for_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    window = KernelWindow(lambda: pytest.fail("not in this test"), lambda flags: None)
    window._done = True
    loop = Loop(machine, monkeypatch, window)
    window.work = {FORWARD: PhaseWork(5 * MS, 5 * MS), BETWEEN: PhaseWork(0, 100 * US)}
    for number in range(60):
        loop.begin_step(FORWARD)
        machine.launch(5 * MS)
        loop.mark(BETWEEN)
        if number % 10 == 9:
            machine.host(100 * US)
            machine.launch(40 * MS)
        machine.sync()
        machine.host(100 * US)
    assert all(idle < MS for _, idle in loop.results())
    assert len(loop.results()) > 45


def test_a_pause_of_the_host_is_idle_time() -> None:
    """GIVEN steps in which Python collects garbage for long THEN the device's time in them is explained."""
    window = {FORWARD: PhaseWork(5 * MS, 5 * MS), BETWEEN: PhaseWork(0, 100 * US)}
    parts = [Piece(FORWARD, 5 * MS, 0, True), Piece(BETWEEN, 40 * MS, 0, True)]
    assert idle_by_phase(parts, window) is None
    found = idle_by_phase(parts, window, paused=39_950 * US)
    assert found == {FORWARD: 0, BETWEEN: 40 * MS}


def test_saving_is_no_work_of_the_device() -> None:
    window = {FORWARD: PhaseWork(5 * MS, 5 * MS)}
    parts = [Piece(FORWARD, 5 * MS, 0, True), Piece(CHECKPOINT, 40 * MS, 0, True)]
    assert idle_by_phase(parts, window) == {FORWARD: 0, CHECKPOINT: 40 * MS}
