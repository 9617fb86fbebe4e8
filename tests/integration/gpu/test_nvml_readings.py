"""Every reading arrives through the real pynvml, in our units; what is absent stays absent."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from msgspec.structs import astuple

from monitor.model.gpu import THROTTLE_REASONS, Activity, Errors, Gpu, Nvlink, Pcie
from tests.integration.gpu.conftest import Answer, Reader
from tests.nvml.standin import MigSlice, Proc, StandIn

Open = Callable[..., Reader]
GIB = 1 << 30


def complete(answer: Answer) -> bool:
    """Rates, GPM and the slow lane need a second reading."""
    gpu = answer.gpus[0]
    return bool(
        gpu.activity.sm_active_ratio
        and gpu.nvlink.transmit_bytes_per_second
        and gpu.pcie.receive_bytes_per_second
        and len(gpu.ranges) == 3
    )


def test_every_reading_arrives_in_base_units(nvml: StandIn, open_reader: Open) -> None:
    nvml.gpu(0).processes(Proc(pid=os.getpid(), memory=6 * GIB, sm=55))
    nvml.gpu(0).set(throttle=0x44)
    answer = open_reader().until(complete)
    gpu = answer.gpus[0]
    expected = {
        "index": 0,
        "uuid": nvml.gpu(0).uuid,
        "name": "stand-in H100 80GB",
        "simulated": False,
        "state": "ok",
        "pci_bus_id": "00000000:10:00.0",
        "minor": 0,
        "architecture": "Hopper",
        "compute_capability": "9.0",
        "utilization_ratio": 0.42,
        "memory_utilization_ratio": 0.17,
        "encoder_utilization_ratio": 0.03,
        "decoder_utilization_ratio": 0.05,
        "memory_used_bytes": 20 * GIB,
        "memory_total_bytes": 80 * GIB,
        "memory_reserved_bytes": 600 << 20,
        "memory_free_bytes": (60 * 1024 - 600) << 20,
        "power_watts": 251.5,
        "power_limit_watts": 400.0,
        "energy_joules": 123456.789,
        "temperature_celsius": 61.0,
        "temperature_slowdown_celsius": 92.0,
        "temperature_shutdown_celsius": 97.0,
        "memory_temperature_celsius": 70.0,
        "memory_temperature_limit_celsius": 95.0,
        "sm_clock_hertz": 1755e6,
        "sm_clock_max_hertz": 1980e6,
        "memory_clock_hertz": 2619e6,
        "memory_clock_max_hertz": 2619e6,
        "graphics_clock_hertz": 1755e6,
        "video_clock_hertz": 1500e6,
        "compute_mode": "default",
        "recovery_action": "none",
        "fabric_state": "completed",
        "fabric_health": "healthy",
        "virtualization": "none",
        "vgpus": None,
        "vgpu_licensed": None,
        "pstate": 0,
        "fan_ratio": 0.35,
        "mig_enabled": False,
    }
    assert {name: getattr(gpu, name) for name in expected} == expected
    assert gpu.throttle is not None and tuple(gpu.throttle) == THROTTLE_REASONS
    assert {name for name, on in gpu.throttle.items() if on} == {"sw_power_cap", "hw_thermal_slowdown"}
    assert (gpu.pcie.generation, gpu.pcie.generation_max) == (4, 5)
    assert (gpu.pcie.width, gpu.pcie.width_max, gpu.pcie.replays) == (16, 16, 2)
    assert gpu.pcie.transmit_bytes_per_second == 1.5e9 and gpu.pcie.receive_bytes_per_second == 9.5e9
    assert gpu.nvlink.links_active == 4
    assert gpu.nvlink.transmit_bytes_per_second == pytest.approx(3e6 * 1024, rel=0.05)
    assert gpu.nvlink.receive_bytes_per_second == pytest.approx(2e6 * 1024, rel=0.05)
    assert gpu.nvlink.bandwidth_bytes_per_second == 4 * 26562e6
    told = (0.815, 0.332, 0.221, 0.448, 0.901, 0.011, 0.152, 0.073)
    assert astuple(gpu.activity) == pytest.approx(told)
    counted = {reason: seconds for reason, seconds in gpu.throttle_seconds.items() if seconds}
    assert counted == {
        "sw_power_cap": 12.5,
        "thermal": 1.5,
        "low_utilization": 7.0,
        "sw_thermal_slowdown": 0.25,
    }
    assert len(gpu.throttle_seconds) == 9
    assert [(p.pid, p.kind, p.memory_bytes, p.sm_ratio) for p in gpu.processes] == [
        (os.getpid(), "compute", 6 * GIB, 0.55)
    ]
    assert answer.source is not None and answer.source.ok
    assert (answer.source.driver_version, answer.source.cuda_version) == ("999.01", "13.0")
    assert answer.source.nvml_version == "13.999.01"


def test_memory_errors_arrive(nvml: StandIn, open_reader: Open) -> None:
    nvml.gpu(0).set(remapped_pending=1, retired_pending=1)
    assert open_reader().read().gpus[0].errors == Errors(
        ecc_corrected_volatile=7,
        ecc_uncorrected_volatile=1,
        ecc_corrected_aggregate=70,
        ecc_uncorrected_aggregate=2,
        remapped_rows_corrected=3,
        remapped_rows_uncorrected=1,
        remapped_rows_pending=True,
        remapped_rows_failed=False,
        retired_pages_single_bit=4,
        retired_pages_double_bit=2,
        retired_pages_pending=True,
    )


def test_ranges_cover_what_happened_between_ticks(nvml: StandIn, open_reader: Open) -> None:
    answer = open_reader().until(lambda a: a.gpus[0].ranges.get("power_watts") is not None)
    power = answer.gpus[0].ranges["power_watts"]
    assert power.samples >= 1
    assert 231.5 <= power.min <= power.mean <= power.max <= 271.5


def test_what_a_card_does_not_answer_is_absent_and_not_asked_every_tick(
    nvml: StandIn, open_reader: Open
) -> None:
    nvml.count = 1
    nvml.gpu(0).absent()
    reader = open_reader()
    first, gpu = reader.read(), reader.read().gpus[0]
    calls = nvml.calls()
    assert gpu == reader.read().gpus[0]
    known = {"index", "uuid", "name", "state", "pci_bus_id", "minor", "simulated", "age_seconds"}
    for name in Gpu.__struct_fields__:
        if name not in known:
            empty: tuple[object, ...] = (None, Pcie(), Nvlink(), Errors(), Activity(), (), {}, "unknown")
            assert getattr(gpu, name) in empty, name
    assert gpu.state == "ok" and first.source is not None and first.source.ok
    after = nvml.calls()
    assert {name for name in after if after[name] != calls.get(name, 0)} <= {"nvmlDeviceGetCount_v2"}


def test_old_drivers_answer_through_the_older_functions(nvml: StandIn, open_reader: Open) -> None:
    """Memory v2 is absent before driver 510: used and total are still there, reserved is unknown."""
    nvml.gpu(0).absent("memory_reserved")
    gpu = open_reader().read().gpus[0]
    assert gpu.memory_reserved_bytes is None
    assert gpu.memory_total_bytes == 80 * GIB and gpu.memory_used_bytes == 20 * GIB + (600 << 20)


def test_a_reading_that_fails_once_comes_back(nvml: StandIn, open_reader: Open) -> None:
    nvml.gpu(0).fail("power", 999)
    reader = open_reader()
    gpu = reader.read().gpus[0]
    assert gpu.power_watts is None and gpu.state == "ok" and gpu.utilization_ratio == 0.42
    nvml.gpu(0).set(power=100_000)
    assert reader.read().gpus[0].power_watts == 100.0


def test_values_follow_the_card(nvml: StandIn, open_reader: Open) -> None:
    reader = open_reader()
    reader.read()
    nvml.gpu(1).set(temperature=91, utilization=100, pstate=2, sm_clock=1100)
    gpu = reader.read().gpus[1]
    assert (gpu.temperature_celsius, gpu.utilization_ratio) == (91.0, 1.0)
    assert (gpu.pstate, gpu.sm_clock_hertz) == (2, 1100e6)


def test_a_busy_encoder_is_followed_and_an_idle_one_is_found_busy(nvml: StandIn, open_reader: Open) -> None:
    nvml.count = 1
    nvml.gpu(0).set(encoder=0)
    reader = open_reader()
    assert [reader.read().gpus[0].encoder_utilization_ratio for _ in range(3)] == [0.0] * 3
    assert nvml.calls()["nvmlDeviceGetEncoderUtilization"] == 1, "an idle encoder is not asked every tick"
    nvml.gpu(0).set(encoder=30)
    reader.until(lambda answer: answer.gpus[0].encoder_utilization_ratio == 0.3)
    nvml.gpu(0).set(encoder=50)
    assert reader.read().gpus[0].encoder_utilization_ratio == 0.5


def test_pcie_counters_replace_the_slow_call(nvml: StandIn, open_reader: Open) -> None:
    nvml.gpu(0).set(pcie_tx_counter_rate=1_000_000, pcie_rx_counter_rate=5_000_000)
    answer = open_reader().until(lambda a: (a.gpus[0].pcie.receive_bytes_per_second or 9e9) < 9e9)
    assert answer.gpus[0].pcie.receive_bytes_per_second == pytest.approx(5e6, rel=0.05)


def test_a_slow_pcie_call_does_not_slow_the_tick(nvml: StandIn, open_reader: Open) -> None:
    delay = 1.0
    for index in range(3):
        nvml.gpu(index).set(pcie_delay=int(1e6 * delay))
    reader = open_reader()
    reader.read()
    assert reader.quickest() < delay, "a tick is quicker than one slow call: it waits for none"
    reader.until(lambda a: a.gpus[2].pcie.receive_bytes_per_second == 9.5e9)


def test_mig_instances_and_their_processes(nvml: StandIn, open_reader: Open) -> None:
    nvml.gpu(1).mig(MigSlice(gi=1, used=GIB), MigSlice(gi=2, used=3 * GIB, total=20 * GIB))
    nvml.gpu(1).processes(Proc(pid=77, gi=2, ci=0, memory=2 * GIB))
    gpu = open_reader().read().gpus[1]
    assert gpu.mig_enabled is True
    assert [(part.gpu_instance, part.memory_used_bytes) for part in gpu.mig] == [(1, GIB), (2, 3 * GIB)]
    assert gpu.processes[0].mig_uuid == gpu.mig[1].uuid


def test_processes_of_every_kind_appear_and_leave(nvml: StandIn, open_reader: Open) -> None:
    many = [Proc(pid=100 + number) for number in range(30)]
    nvml.gpu(0).processes(*many, Proc(pid=9, kind=1), Proc(pid=8, kind=2, sm=20))
    reader = open_reader()
    processes = {process.pid: process for process in reader.read().gpus[0].processes}
    assert len(processes) == 32
    assert (processes[9].kind, processes[8].kind, processes[8].sm_ratio) == ("graphics", "mps", 0.2)
    assert processes[100].sm_ratio == 0.0
    nvml.gpu(0).processes()
    assert reader.read().gpus[0].processes == ()


def test_process_sm_use_unknown_is_absent(nvml: StandIn, open_reader: Open) -> None:
    nvml.gpu(0).absent("process_utilization")
    nvml.gpu(0).processes(Proc(pid=5))
    assert open_reader().read().gpus[0].processes[0].sm_ratio is None


def test_xid_events_are_counted_per_gpu(nvml: StandIn, open_reader: Open) -> None:
    reader = open_reader()
    reader.read()
    for code in (79, 31, 31):
        nvml.xid(2, code)
    answer = reader.read()
    assert answer.gpus[2].errors.xid_counts == {"79": 1, "31": 2}
    assert answer.gpus[2].errors.xid_last == 31 and answer.gpus[2].errors.xid_last_time is not None
    assert answer.gpus[0].errors.xid_counts == {}
    assert reader.read().gpus[2].errors.xid_counts == {"79": 1, "31": 2}


def test_an_event_counts_for_the_gpu_it_names(nvml: StandIn, open_reader: Open) -> None:
    reader = open_reader()
    reader.read()
    nvml.gpu(0).xid(48, names=2)
    answer = reader.until(lambda a: a.gpus[2].errors.xid_counts)
    assert answer.gpus[2].errors.xid_counts == {"48": 1}
    assert answer.gpus[0].errors.xid_counts == {}


def test_nvlink_errors_are_the_cards_sum_or_that_of_its_links(nvml: StandIn, open_reader: Open) -> None:
    """The stand-in's link n has n more errors than its first one. The sum of CRC flits is refused and that of
    replays is 0; the other two are the card's own."""
    link = open_reader().read().gpus[0].nvlink
    assert link.errors == {"crc_flit": 4 * 10 + 6, "crc_data": 86, "replay": 4 * 30 + 6, "recovery": 6}
    assert [one.errors["replay"] for one in link.links] == [30, 31, 32, 33]
    assert all(one.up and one.transmit_bytes and one.receive_bytes for one in link.links)


def test_links_beyond_the_twelfth_are_told_by_scope(nvml: StandIn, open_reader: Open) -> None:
    nvml.gpu(0).set(nvlink_links=18, nvlink_dl_replay=100, nvlink_dl_recovery=0, nvlink_dl_crc=5)
    link = open_reader().read().gpus[0].nvlink
    assert len(link.links) == link.links_active == 18
    assert link.links[17].errors == {"crc": 22, "replay": 117, "recovery": 17}
    assert link.links[11].errors == {"crc_flit": 21, "crc_data": 31, "crc": 16, "replay": 111, "recovery": 11}
    assert link.errors["crc"] == sum(5 + number for number in range(18))


@pytest.mark.parametrize("refused", [True, False], ids=["refused", "0"])
def test_nvlink_traffic_is_the_sum_of_the_links_where_the_card_tells_none(
    nvml: StandIn, open_reader: Open, refused: bool
) -> None:
    if refused:
        nvml.gpu(0).absent("nvlink_tx_rate", "nvlink_rx_rate")
    else:
        nvml.gpu(0).set(nvlink_tx_rate=0, nvlink_rx_rate=0)
    answer = open_reader().until(lambda a: a.gpus[0].nvlink.transmit_bytes_per_second)
    link = answer.gpus[0].nvlink
    assert link.transmit_bytes_per_second == pytest.approx(4 * 750_000 * 1024, rel=0.05)
    assert link.receive_bytes_per_second == pytest.approx(4 * 500_000 * 1024, rel=0.05)
    assert link.transmit_bytes == sum(one.transmit_bytes or 0 for one in link.links)


def test_new_cards_count_bytes_of_links_not_kibibytes(nvml: StandIn, open_reader: Open) -> None:
    nvml.gpu(0).absent("nvlink_tx_rate", "nvlink_link_tx_rate")
    nvml.gpu(0).set(nvlink_link_tx_bytes_rate=1_000_000_000)
    answer = open_reader().until(lambda a: a.gpus[0].nvlink.transmit_bytes_per_second)
    assert answer.gpus[0].nvlink.transmit_bytes_per_second == pytest.approx(4e9, rel=0.05)


def test_a_card_that_needs_help_says_so(nvml: StandIn, open_reader: Open) -> None:
    nvml.gpu(0).set(recovery_action=4, fabric_state=2, fabric_health=2, compute_mode=3, virtualization=3)
    nvml.gpu(0).set(license=5, vgpus=5)
    nvml.gpu(1).set(license=0, fabric_state=0, compute_mode=9)
    nvml.gpu(1).absent("fabric_health")
    first, second, *_ = open_reader().read().gpus
    condition = (first.recovery_action, first.fabric_state, first.fabric_health)
    assert condition == ("drain_and_reset", "in_progress", "unhealthy")
    assert (first.compute_mode, first.virtualization) == ("exclusive_process", "host_vgpu")
    assert (first.vgpus, first.vgpu_licensed) == (5, True)
    assert (second.fabric_state, second.fabric_health, second.compute_mode) == (None, None, None)
    assert (second.vgpus, second.vgpu_licensed) == (None, False)


def test_old_drivers_tell_the_fabric_without_its_health(nvml: StandIn, open_reader: Open) -> None:
    nvml.gpu(0).absent("fabric_health")
    gpu = open_reader().read().gpus[0]
    assert (gpu.fabric_state, gpu.fabric_health) == ("completed", None)
