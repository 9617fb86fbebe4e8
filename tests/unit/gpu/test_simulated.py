"""Simulated cards: plausible, deterministic, following the runs, and never passing for real ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from monitor.gpu.source import GpuReadings, GpuSource, open_source
from monitor.model import facts
from monitor.model.clock import Moment
from monitor.model.gpu import THROTTLE_REASONS, Gpu, Source
from monitor.model.host import Host
from monitor.model.run import Device, Phase, Rank, Run, RunState, Times
from monitor.model.snapshot import Snapshot, encode

GIB = 1 << 30


def rank(number: int = 0, *, busy: float | None = 0.8, state: RunState = "running", **more: object) -> Rank:
    device = Device(busy_ratio=busy) if busy is not None else Device()
    return Rank(rank=number, state=state, pid=1000 + number, device_times=device, **more)  # type: ignore[arg-type]


def run(*ranks: Rank, name: str = "a", state: RunState = "running", **more: object) -> Run:
    return Run(id=name, name=name, state=state, started=0.0, ranks=ranks, world_size=len(ranks), **more)  # type: ignore[arg-type]


def snapshot(*runs: Run) -> Snapshot:
    return Snapshot(
        seq=1,
        time=0.0,
        monotonic=0.0,
        interval_seconds=1.0,
        source=Source(kind="simulated"),
        host=Host(hostname="test"),
        runs=runs,
    )


def tick(source: GpuSource, seconds: int, previous: Snapshot | None = None, start: int = 0) -> GpuReadings:
    for second in range(start, start + seconds + 1):
        readings = source.read(Moment(1e9 + second, 100.0 + second), previous)
    return readings


def scenario(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "scenario.toml"
    path.write_text(text)
    return path


def test_everything_says_simulated() -> None:
    readings = tick(open_source("simulated", gpus=3), 2)
    assert readings.source.kind == "simulated" and "imulated" in (readings.source.detail or "")
    assert len({gpu.uuid for gpu in readings.gpus}) == 3
    for gpu in readings.gpus:
        assert gpu.simulated and "simulated" in (gpu.name or "")


def test_idle_without_runs() -> None:
    gpu = tick(open_source("simulated"), 10).gpus[0]
    assert gpu.utilization_ratio == 0.0 and gpu.pstate == 8 and gpu.processes == ()
    assert gpu.power_watts is not None and gpu.power_watts < 80
    assert gpu.throttle is not None and [name for name, on in gpu.throttle.items() if on] == ["gpu_idle"]
    assert gpu.pcie.generation == 1 and gpu.pcie.generation_max == 5


def test_every_reading_of_a_card_is_there() -> None:
    gpu = tick(open_source("simulated"), 3, snapshot(run(rank()))).gpus[0]
    read = facts.complete(replace(snapshot(), gpus=(gpu,))).gpus[0]
    missing = [name for name in Gpu.__struct_fields__ if getattr(read, name) is None]
    not_modelled = {"video_clock_hertz", "fabric_state", "fabric_health", "vgpus", "vgpu_licensed"}
    assert set(missing) == {"state_detail", "alarm", *not_modelled}
    counters = {"transmit_bytes", "receive_bytes", "total_bytes"}
    for part in (read.pcie, read.nvlink, read.activity):
        names = set(part.__struct_fields__) - (counters if part is read.nvlink else set())
        assert all(getattr(part, name) is not None for name in names)
    assert gpu.throttle is not None and tuple(gpu.throttle) == THROTTLE_REASONS
    assert set(gpu.ranges) == {"utilization_ratio", "power_watts", "sm_clock_hertz"}


def test_use_follows_the_device_busy_share() -> None:
    for busy in (0.2, 0.5, 0.95):
        gpu = tick(open_source("simulated"), 5, snapshot(run(rank(busy=busy)))).gpus[0]
        assert gpu.utilization_ratio == pytest.approx(busy, abs=0.03)
        assert gpu.processes[0].pid == 1000
        assert gpu.processes[0].sm_ratio == pytest.approx(busy, abs=0.03)


def test_a_cpu_run_counts_forward_backward_and_optimizer() -> None:
    phases = tuple(
        Phase(name, share, share)
        for name, share in (("data", 0.5), ("forward", 0.15), ("backward", 0.25), ("optimizer", 0.1))
    )
    gpu = tick(open_source("simulated"), 5, snapshot(run(rank(busy=None, phases=phases)))).gpus[0]
    assert gpu.utilization_ratio == pytest.approx(0.5, abs=0.03)


def test_a_run_that_ended_stalled_or_waits_for_data_leaves_the_card_idle() -> None:
    waiting = rank(live_phase="data", live_seconds=30.0, step=Times(count=9, mean=0.2))
    for idle in (
        run(rank(), state="ended"),
        run(rank(state="stalled"), state="stalled"),
        run(waiting),
    ):
        source = open_source("simulated")
        tick(source, 5, snapshot(run(rank())))
        gpu = tick(source, 10, snapshot(idle), start=6).gpus[0]
        assert gpu.utilization_ratio == 0.0


def test_a_long_backward_is_not_idle() -> None:
    busy = rank(live_phase="backward", live_seconds=30.0, step=Times(count=9, mean=0.2))
    assert tick(open_source("simulated"), 5, snapshot(run(busy))).gpus[0].utilization_ratio == pytest.approx(
        0.8, abs=0.03
    )


def test_ranks_take_their_own_cards_and_keep_them() -> None:
    source = open_source("simulated", gpus=4)
    ranks = [rank(number, local_rank=number) for number in range(3)]
    both = snapshot(run(*ranks, name="many"), run(rank(0), name="late"))
    pids = [[process.pid for process in gpu.processes] for gpu in tick(source, 2, both).gpus]
    assert sum(len(entry) for entry in pids) == 4 and all(len(entry) == 1 for entry in pids)
    late_alone = tick(source, 1, snapshot(run(rank(0), name="late")), start=3).gpus
    before = [index for index, entry in enumerate(pids) if entry == [1000]]
    after = [gpu.index for gpu in late_alone if gpu.processes]
    assert len(after) == 1 and after[0] in before


def test_a_rank_that_names_its_card_gets_it() -> None:
    source = open_source("simulated", gpus=3)
    uuid = tick(source, 0).gpus[2].uuid
    gpus = tick(source, 2, snapshot(run(rank(gpu_uuid=uuid))), start=1).gpus
    assert [bool(gpu.processes) for gpu in gpus] == [False, False, True]


def test_power_clock_and_temperature_follow_use() -> None:
    source = open_source("simulated")
    idle = tick(source, 5).gpus[0]
    busy = tick(source, 90, snapshot(run(rank(busy=0.95))), start=6).gpus[0]
    assert busy.power_watts and idle.power_watts and busy.power_watts > 3 * idle.power_watts
    assert busy.temperature_celsius and idle.temperature_celsius
    assert idle.temperature_celsius + 20 < busy.temperature_celsius < 87
    assert busy.sm_clock_hertz and idle.sm_clock_hertz and busy.sm_clock_hertz > 2 * idle.sm_clock_hertz
    assert busy.pstate == 0 and busy.energy_joules and busy.energy_joules > 20_000
    cooled = tick(source, 120, start=97).gpus[0]
    assert cooled.temperature_celsius == pytest.approx(idle.temperature_celsius, abs=2)


def test_memory_follows_the_allocator_or_the_model() -> None:
    told = run(rank(scalars={"cuda.reserved_bytes": 10.0 * GIB}))
    guessed = run(rank(), batch_size=64, config={"model": {"parameter_bytes": GIB}})
    odd = run(rank(), config={"model": "not a mapping", "precision": None})
    used = [
        tick(open_source("simulated"), 1, snapshot(entry)).gpus[0].memory_used_bytes or 0
        for entry in (told, guessed, odd)
    ]
    assert 10 * GIB < used[0] < 11 * GIB
    assert 5 * GIB < used[1] < 7 * GIB
    assert GIB < used[2] < 2 * GIB


def test_the_same_times_give_the_same_readings() -> None:
    one, two = (tick(open_source("simulated", gpus=2), 30, snapshot(run(rank()))) for _ in range(2))
    assert encode(one.gpus) == encode(two.gpus)


def test_ranges_hold_the_reading() -> None:
    source = open_source("simulated")
    tick(source, 3)
    gpu = tick(source, 1, snapshot(run(rank())), start=4).gpus[0]
    power = gpu.ranges["power_watts"]
    assert power.samples == 4 and power.min <= power.mean <= power.max
    assert power.min < power.max, "the step up to load lies between the ticks"


def test_a_clock_that_stands_still_or_jumps() -> None:
    source = open_source("simulated")
    for monotonic in (5.0, 5.0, 4.0, 1e6):
        gpu = source.read(Moment(0.0, monotonic), snapshot(run(rank()))).gpus[0]
        assert gpu.temperature_celsius is not None and 20 < gpu.temperature_celsius < 95


def test_heat_throttles_and_holds_the_limit(tmp_path: Path) -> None:
    path = scenario(tmp_path, '[[event]]\nat = 10\neffect = "heat"\ncelsius = 45\n')
    source = open_source("simulated", scenario=path)
    gpu = tick(source, 120, snapshot(run(rank(busy=0.95)))).gpus[0]
    assert gpu.throttle is not None and gpu.throttle["sw_thermal_slowdown"]
    assert gpu.temperature_celsius is not None and 85 <= gpu.temperature_celsius <= 91
    assert gpu.sm_clock_hertz is not None and gpu.sm_clock_hertz < 1500e6
    assert gpu.utilization_ratio == pytest.approx(0.95, abs=0.03), "busy all the same: that is the point"


def test_a_power_limit_caps_and_says_so(tmp_path: Path) -> None:
    path = scenario(tmp_path, '[[event]]\neffect = "power_limit"\nwatts = 200\n')
    gpu = tick(open_source("simulated", scenario=path), 20, snapshot(run(rank(busy=0.95)))).gpus[0]
    assert gpu.power_limit_watts == 200 and gpu.power_watts is not None and gpu.power_watts <= 200
    assert gpu.throttle is not None and gpu.throttle["sw_power_cap"]


def test_scenario_events_come_and_go(tmp_path: Path) -> None:
    text = """
        [[event]]
        at = 5
        until = 8
        gpu = 0
        effect = "throttle"
        reason = "hw_power_brake_slowdown"
        clock = 0.5
        [[event]]
        at = 5
        until = 8
        gpu = [0, 1]
        effect = "fill_memory"
        ratio = 0.9
        [[event]]
        at = 5
        until = 8
        effect = "slow_pcie"
        generation = 2
        width = 8
    """
    source = open_source("simulated", gpus=2, scenario=scenario(tmp_path, text))
    work = snapshot(run(rank()))
    before, during = tick(source, 4, work).gpus, tick(source, 2, work, start=5).gpus
    after = tick(source, 1, work, start=8).gpus
    assert before[0].throttle and not before[0].throttle["hw_power_brake_slowdown"]
    assert during[0].throttle and during[0].throttle["hw_power_brake_slowdown"]
    assert during[0].sm_clock_hertz == pytest.approx((before[0].sm_clock_hertz or 0) / 2, rel=0.05)
    assert during[1].memory_used_bytes == pytest.approx(0.9 * 80 * GIB)
    assert (during[0].pcie.generation, during[0].pcie.width) == (2, 8)
    assert after[0].throttle and not after[0].throttle["hw_power_brake_slowdown"]
    assert after[0].pcie.width == 16 and (after[1].memory_used_bytes or 0) < GIB


def test_lost_hung_removed_and_driver_gone(tmp_path: Path) -> None:
    text = "\n".join(
        f'[[event]]\nat = 3\nuntil = 6\ngpu = {index}\neffect = "{effect}"\n'
        for index, effect in enumerate(("lose", "hang", "remove"))
    )
    source = open_source("simulated", gpus=4, scenario=scenario(tmp_path, text))
    before, during = tick(source, 2), tick(source, 2, start=3)
    assert [gpu.state for gpu in before.gpus] == ["ok"] * 4
    assert [(gpu.index, gpu.state) for gpu in during.gpus] == [(0, "lost"), (1, "hung"), (3, "ok")]
    assert during.gpus[0].age_seconds == 3.0 and during.gpus[0].power_watts is not None
    assert "simulated" in (during.gpus[0].state_detail or "")
    assert [gpu.state for gpu in tick(source, 1, start=6).gpus] == ["ok"] * 4


def test_a_driver_that_goes_away(tmp_path: Path) -> None:
    path = scenario(tmp_path, '[[event]]\nat = 2\nuntil = 4\neffect = "driver_gone"\n')
    source = open_source("simulated", scenario=path)
    assert tick(source, 1).source.ok
    gone = tick(source, 0, start=2)
    assert not gone.source.ok and gone.gpus[0].state == "error"
    assert tick(source, 0, start=4).source.ok


def test_xid_and_ecc_are_counted_once(tmp_path: Path) -> None:
    text = """
        [[event]]
        at = 0
        effect = "xid"
        code = 31
        [[event]]
        at = 2.5
        gpu = 0
        effect = "xid"
        code = 79
        [[event]]
        at = 2
        gpu = 0
        effect = "ecc"
        corrected = 5
        uncorrected = 1
        remapped = 1
    """
    errors = tick(open_source("simulated", scenario=scenario(tmp_path, text)), 10).gpus[0].errors
    assert errors.xid_counts == {"31": 1, "79": 1} and errors.xid_last == 79
    assert errors.xid_last_time == 1e9 + 3
    assert (errors.ecc_corrected_volatile, errors.ecc_uncorrected_aggregate) == (5, 1)
    assert (errors.remapped_rows_uncorrected, errors.remapped_rows_pending) == (1, True)
