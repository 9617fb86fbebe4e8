"""`gpumon status` in text: complete, narrow when it must be, absent as a dash."""

from __future__ import annotations

import msgspec
import pytest

from monitor.cli.status_text import render, size, span
from monitor.snapshot import Gpu, Source
from tests import scene


def test_it_shows_gpus_host_runs_and_the_remedy() -> None:
    text = render(scene.snapshot(), "daemon at x", 200)
    gpus = ("42 %", "310/700 W", "40.0/80.0 GiB", "throttled: sw_power_cap", "LOST for 12 s: GPU is lost")
    runs = ("CPU 50 % of 2 cores", "40 it/s", "2,560 samples/s", "data 60 %", "×1.80", "→ Set num_workers=4")
    for part in (*gpus, *runs):
        assert part in text


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    assert max(map(len, render(scene.snapshot(), "daemon", width).splitlines())) <= width


def test_names_from_rings_cannot_steer_the_terminal() -> None:
    hostile = msgspec.structs.replace(scene.run(), name="a\x1b[2J\nb")
    text = render(msgspec.structs.replace(scene.snapshot(), runs=(hostile,)), "x", 120)
    assert "\x1b" not in text and "run a [2J b  running" in text


def test_absent_is_a_dash() -> None:
    bare = msgspec.structs.replace(scene.snapshot(), gpus=(Gpu(0, "GPU-0"),), runs=(), findings=())
    line = next(line for line in render(bare, "x", 100).splitlines() if line.startswith("[0]"))
    assert "0 %" not in line and line.count("—") >= 4


def test_simulated_and_missing_gpus_are_said() -> None:
    simulated = msgspec.structs.replace(scene.snapshot(), source=Source("simulated"))
    nothing = msgspec.structs.replace(scene.snapshot(), source=Source("none", detail="no driver"), gpus=())
    assert "SIMULATED" in render(simulated, "x", 100)
    assert "no GPU readings: no driver" in render(nothing, "x", 100)


def test_units() -> None:
    assert [size(value) for value in (None, 500, 1 << 20, 3 << 40)] == ["—", "500 B", "1 MiB", "3.0 TiB"]
    assert [span(value) for value in (None, 5e-5, 0.025, 7, 4000)] == [
        "—",
        "50 µs",
        "25 ms",
        "7 s",
        "1 h 06 min",
    ]
