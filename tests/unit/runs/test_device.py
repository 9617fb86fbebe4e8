"""What the figures of a window say about ordinary steps."""

from __future__ import annotations

import pytest

from monitor.model.records import Counters
from monitor.model.run import Device
from monitor.runs.device import device_times
from monitor.runs.tally import Tally

STEP = {
    "device.known": 100.0,
    "device.time_s.transfer": 0.012,
    "device.time_s.forward": 0.008,
    "device.idle_s.transfer": 0.010,
    "device.idle_s.forward": 0.002,
}
"""20 ms, idle for 12."""


def times(**window: float) -> Device:
    figures = {f"device.{name}": value for name, value in window.items()}
    return device_times(Tally(), Counters(), STEP | figures, 0)


def test_a_copy_takes_as_long_in_any_step_and_what_the_host_did_counts_as_its_part() -> None:
    """GIVEN a window whose steps took twice as long as others because the host was interrupted"""
    seen = times(window_s=0.040, gap_s=0.032, copy_idle_s=0.008, sync_idle_s=0.006, wait_s=0.010)
    assert seen.copy_idle_seconds == pytest.approx(0.008)
    assert seen.sync_idle_seconds == pytest.approx((0.012 - 0.008) * 0.25)
    assert seen.wait_seconds == pytest.approx(0.005)


def test_no_cause_is_more_than_the_idle_time() -> None:
    seen = times(window_s=0.010, gap_s=0.030, copy_idle_s=0.020, sync_idle_s=0.020, wait_s=0.001)
    assert seen.copy_idle_seconds == pytest.approx(0.012)
    assert seen.sync_idle_seconds == pytest.approx(0.0)
    assert seen.wait_seconds == pytest.approx(0.001)


def test_without_a_window_causes_are_not_known() -> None:
    seen = times()
    assert seen.starved_ratio == pytest.approx(0.6)
    assert seen.copy_idle_seconds is seen.sync_idle_seconds is seen.wait_seconds is None
