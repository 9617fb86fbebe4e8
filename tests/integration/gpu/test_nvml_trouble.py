"""Hung calls, lost GPUs, driver reloads, GPUs that come and go: the rest carries on, and it recovers."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.gpu.conftest import Answer, Reader
from tests.nvml.standin import PROPERTIES, StandIn, build

Open = Callable[..., Reader]


def states(answer: Answer) -> list[str]:
    return [gpu.state for gpu in answer.gpus]


def all_ok(answer: Answer) -> bool:
    return bool(answer.gpus) and set(states(answer)) == {"ok"}


def test_one_hung_gpu_leaves_the_others_alone(nvml: StandIn, open_reader: Open) -> None:
    reader = open_reader(interval=0.5)
    reader.read()
    nvml.gpu(1).hang()
    nvml.gpu(2).set(temperature=77)
    first = reader.read()
    hung = reader.until(lambda a: states(a) == ["ok", "hung", "ok"])
    assert hung.gpus[2].temperature_celsius == 77.0, "GPUs behind the hung one are read in the same tick"
    assert hung.gpus[1].temperature_celsius == 61.0, "the last known reading is kept, with its age"
    later = reader.read()
    assert reader.quickest() < first.seconds, "a GPU known to hang is not waited for again"
    assert later.gpus[1].age_seconds > hung.gpus[1].age_seconds > 0
    assert "not returned" in (later.gpus[1].state_detail or "")
    assert later.source is not None and later.source.ok
    nvml.gpu(1).unhang()
    assert reader.until(all_ok).gpus[1].age_seconds == 0.0


def test_a_driver_that_hangs_as_a_whole(nvml: StandIn, open_reader: Open) -> None:
    reader = open_reader(interval=0.5)
    reader.read()
    nvml.hang()
    hung = reader.read()
    assert states(hung) == ["hung"] * 3, "it is answered while the driver still hangs"
    assert hung.source is not None and not hung.source.ok and "does not answer" in (hung.source.detail or "")
    assert reader.quickest() < hung.seconds, "nor is a driver"
    nvml.unhang()
    answer = reader.until(all_ok)
    assert answer.source is not None and answer.source.ok


@pytest.mark.slow
def test_a_driver_that_hangs_at_start(nvml: StandIn, open_reader: Open) -> None:
    nvml.hang()
    reader = open_reader(interval=0.5)
    answer = reader.read()
    assert answer.gpus == () and answer.source is not None
    assert "has not answered" in (answer.source.detail or "")
    nvml.unhang()
    assert len(reader.until(all_ok).gpus) == 3


def test_close_never_hangs(nvml: StandIn, open_reader: Open) -> None:
    reader = open_reader(interval=0.5)
    reader.read()
    nvml.hang()
    reader.read()
    reader.close()
    assert nvml.calls().get("nvmlShutdown", 0) == 0, "NVML is not shut down under a call in flight"


def test_close_drains_the_slow_lane_and_shuts_down(nvml: StandIn, open_reader: Open) -> None:
    nvml.gpu(0).set(pcie_delay=100_000)
    reader = open_reader()
    reader.read()
    reader.close()
    assert nvml.calls()["nvmlShutdown"] == 1
    assert nvml.calls()["nvmlEventSetFree"] == 3


def test_a_lost_gpu_is_shown_as_lost_and_comes_back(nvml: StandIn, open_reader: Open) -> None:
    reader = open_reader()
    reader.read()
    nvml.xid(1, 79)
    nvml.gpu(1).lose()
    lost = reader.read()
    assert states(lost) == ["ok", "lost", "ok"]
    assert lost.gpus[1].uuid == nvml.gpu(1).uuid and lost.gpus[1].temperature_celsius == 61.0
    assert "lost" in (lost.gpus[1].state_detail or "").lower()
    assert lost.gpus[1].errors.xid_counts == {"79": 1}, "the last words of a card are not missed"
    nvml.xid(1, 154)
    assert reader.read().gpus[1].errors.xid_last == 154, "nor what is reported after its loss"
    assert lost.source is not None and lost.source.ok
    nvml.gpu(1).find()
    assert reader.until(all_ok).gpus[1].age_seconds == 0.0


def test_a_lost_gpu_is_not_asked_every_tick(nvml: StandIn, open_reader: Open) -> None:
    reader = open_reader()
    reader.read()
    nvml.gpu(1).lose()
    for _ in range(20):
        reader.read()
    assert nvml.calls()["nvmlDeviceGetHandleByIndex_v2"] <= 3 + 2


def test_a_gpu_lost_before_the_first_reading(nvml: StandIn, open_reader: Open) -> None:
    nvml.gpu(0).lose()
    answer = open_reader().read()
    assert states(answer) == ["lost", "ok", "ok"]
    assert answer.gpus[0].utilization_ratio is None


def test_a_driver_reload_is_survived(nvml: StandIn, open_reader: Open) -> None:
    reader = open_reader()
    reader.read()
    nvml.xid(0, 13)
    reader.read()
    nvml.unload()
    gone = reader.read()
    assert gone.source is not None and not gone.source.ok and gone.source.kind == "nvml"
    assert "not loaded" in (gone.source.detail or "")
    assert states(gone) == ["error"] * 3 and gone.gpus[0].utilization_ratio == 0.42
    nvml.load()
    nvml.gpu(0).set(utilization=7)
    back = reader.until(all_ok)
    assert back.gpus[0].utilization_ratio == 0.07
    assert back.gpus[0].errors.xid_counts == {"13": 1}, "counted events outlive the reload"
    nvml.xid(0, 13)
    reader.until(lambda a: a.gpus[0].errors.xid_counts == {"13": 2})


def test_a_reload_while_a_gpu_hangs(nvml: StandIn, open_reader: Open) -> None:
    """The call that hung returns with a handle of the old driver, which must not be used again."""
    reader = open_reader(interval=0.5)
    reader.read()
    nvml.gpu(1).hang()
    reader.read()
    nvml.load()
    reader.until(lambda a: states(a) == ["ok", "hung", "ok"])
    nvml.gpu(1).unhang()
    nvml.gpu(1).set(utilization=3)
    assert reader.until(all_ok).gpus[1].utilization_ratio == 0.03


def test_a_gpu_that_stops_answering_is_opened_again(nvml: StandIn, open_reader: Open) -> None:
    reader = open_reader()
    reader.read()
    nvml.gpu(1).absent()
    assert states(reader.read()) == ["ok", "error", "ok"]
    for name, (value, _) in PROPERTIES.items():
        nvml.gpu(1).set(**{name: value})
    assert reader.until(all_ok).gpus[1].utilization_ratio == 0.42


def test_a_reload_between_two_ticks(nvml: StandIn, open_reader: Open) -> None:
    """Only the handles are invalid: one tick notices, the next one reads again."""
    reader = open_reader()
    reader.read()
    nvml.load()
    assert reader.until(all_ok).source is not None


@pytest.mark.slow
def test_gpus_appear_and_disappear(nvml: StandIn, open_reader: Open) -> None:
    nvml.count = 2
    reader = open_reader()
    assert len(reader.read().gpus) == 2
    nvml.count = 3
    assert len(reader.until(lambda a: len(a.gpus) == 3 and all_ok(a)).gpus) == 3
    nvml.count = 1
    shown = reader.until(lambda a: "no longer lists" in (a.gpus[-1].state_detail or ""))
    assert states(shown) == ["ok", "lost", "lost"], "a GPU that went is said to be lost, not hidden"


def test_a_gpu_in_the_middle_goes_and_the_numbers_shift(nvml: StandIn, open_reader: Open) -> None:
    first, middle, last = (nvml.gpu(index).uuid for index in range(3))
    reader = open_reader()
    reader.read()
    nvml.gpu(1).become(last)
    nvml.count = 2
    shown = reader.until(lambda a: "no longer lists" in (a.gpus[-1].state_detail or ""))
    assert [(gpu.uuid, gpu.state) for gpu in shown.gpus] == [(first, "ok"), (last, "ok"), (middle, "lost")]


def test_a_lost_gpu_the_driver_lists_no_more_is_still_shown(nvml: StandIn, open_reader: Open) -> None:
    reader = open_reader()
    reader.read()
    nvml.gpu(2).lose()
    reader.read()
    nvml.count = 2
    shown = reader.until(lambda a: "no longer lists" in (a.gpus[-1].state_detail or ""))
    assert states(shown) == ["ok", "ok", "lost"] and shown.gpus[2].uuid == nvml.gpu(2).uuid
    nvml.gpu(2).find()
    nvml.count = 3
    assert len(reader.until(all_ok).gpus) == 3


def test_a_gpu_nobody_ever_read_leaves_no_trace(nvml: StandIn, open_reader: Open) -> None:
    nvml.gpu(2).lose()
    reader = open_reader()
    assert states(reader.read()) == ["ok", "ok", "lost"]
    nvml.count = 2
    assert len(reader.until(all_ok).gpus) == 2


def test_a_gpu_only_a_new_start_of_nvml_sees(nvml: StandIn, open_reader: Open, tmp_path: Path) -> None:
    """NVML looks for GPUs when it starts; the kernel's own list shows when to restart it."""
    nvml.latch_count()
    nvml.count = 1
    (tmp_path / "0000:10:00.0").mkdir()
    reader = open_reader(listing=str(tmp_path))
    assert len(reader.read().gpus) == 1
    nvml.count = 2
    (tmp_path / "0000:11:00.0").mkdir()
    reader.until(lambda a: len(a.gpus) == 2 and all_ok(a))


def test_no_driver_is_said_and_a_late_one_is_found(nvml: StandIn, open_reader: Open) -> None:
    nvml.unload()
    auto, required = open_reader(), open_reader(required=True)
    first = auto.read()
    assert first.gpus == () and first.source is not None
    assert (first.source.kind, first.source.ok) == ("none", True)
    assert "modprobe" in (first.source.detail or "")
    forced = required.read().source
    assert forced is not None and (forced.kind, forced.ok) == ("nvml", False)
    nvml.load()
    for reader in (auto, required):
        found = reader.until(all_ok)
        assert found.source is not None and (found.source.kind, found.source.ok) == ("nvml", True)


def test_a_library_that_appears_later(nvml: StandIn, open_reader: Open, tmp_path: Path) -> None:
    library = tmp_path / "libnvidia-ml.so.1"
    nvml.library, real = library, nvml.library
    reader = open_reader()
    first = reader.read().source
    assert first is not None and first.kind == "none" and "not found" in (first.detail or "")
    shutil.copy(real, library)
    assert len(reader.until(all_ok).gpus) == 3


def test_readings_not_reached_in_time_are_not_shown_as_current(nvml: StandIn, open_reader: Open) -> None:
    """Every GPU answers, but slowly: what was not read this tick shows its age."""
    reader = open_reader(interval=0.5)
    reader.read()
    for index in range(3):
        nvml.gpu(index).hang()
    aged = reader.read()
    assert states(aged) == ["hung"] * 3 and all(gpu.age_seconds > 0 for gpu in aged.gpus)
    nvml.gpu(0).unhang()
    assert reader.until(lambda a: a.gpus[0].state == "ok").gpus[1].state == "hung"


def test_a_driver_update_brings_its_new_library(nvml: StandIn, open_reader: Open, tmp_path: Path) -> None:
    """The library in memory no longer fits the new driver; the one on disk does, and is loaded."""
    library = tmp_path / "libnvidia-ml.so.1"
    shutil.copy(nvml.library, library)
    nvml.library = library
    reader = open_reader()
    reader.until(all_ok)
    nvml.load(library=2)
    stale = reader.until(lambda a: a.source is not None and not a.source.ok).source
    assert stale is not None
    reader.until(lambda a: a.source is not None and "different versions" in (a.source.detail or ""))
    library.unlink()
    shutil.copy(build(version=2), library)
    reader.until(all_ok)
    reader.close()


def test_a_gpu_that_answers_only_errors(nvml: StandIn, open_reader: Open) -> None:
    reader = open_reader()
    reader.read()
    for name in PROPERTIES:
        nvml.gpu(1).fail(name, 999)
    broken = reader.read()
    assert states(broken) == ["ok", "error", "ok"]
    assert "nknown" in (broken.gpus[1].state_detail or "")
    assert broken.gpus[1].utilization_ratio == 0.42 and broken.gpus[1].age_seconds > 0
    for name, (value, status) in PROPERTIES.items():
        nvml.gpu(1).set(**{name: value})
        if status:
            nvml.gpu(1).absent(name)
    reader.until(all_ok)


def test_a_driver_without_gpus(nvml: StandIn, open_reader: Open) -> None:
    nvml.count = 0
    answer = open_reader().read()
    assert answer.gpus == () and answer.source is not None and answer.source.ok
    assert "no GPU" in (answer.source.detail or "")
