"""`gpumon status` in text: complete, narrow if it must be, a dash for what is absent."""

from __future__ import annotations

import msgspec
import pytest

from monitor.cli.status_text import render
from monitor.model.gpu import Gpu, Source
from monitor.model.snapshot import HISTORY_STEPS
from tests import scene


def test_it_shows_gpus_host_runs_and_the_remedy() -> None:
    text = render(scene.snapshot(), "daemon at x", 200)
    gpus = ("42 %", "310/700 W", "40/80 GiB", "throttled: sw_power_cap", "LOST for 12 s: GPU is lost")
    runs = ("CPU 50 % of 2 cores", "40 it/s", "2560 samples/s", "data 60 %", "×1.8", "→ Set num_workers=4")
    for part in (*gpus, *runs):
        assert part in text


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    assert max(map(len, render(scene.snapshot(), "daemon", width).splitlines())) <= width


def test_a_finding_is_told_without_its_details() -> None:
    title = "Half the step waits"
    known = scene.snapshot().findings[0]
    found = msgspec.structs.replace(known, title=f"{title}; `load` takes 3 ms", headline=title)
    text = render(scene.changed(findings=(found,)), "x", 120)
    assert "Half the step waits (" in text and "`load`" not in text


def test_names_from_rings_cannot_steer_the_terminal() -> None:
    hostile = msgspec.structs.replace(scene.run(), name="a\x1b[2J\nb")
    text = render(scene.changed(runs=(hostile,)), "x", 120)
    assert "\x1b" not in text and "run a [2J b  running" in text


def test_absent_is_a_dash() -> None:
    bare = scene.changed(gpus=(Gpu(0, "GPU-0"),), runs=(), findings=())
    line = next(line for line in render(bare, "x", 100).splitlines() if line.startswith("[0]"))
    assert "0 %" not in line and line.count("—") >= 4


def test_simulated_and_missing_gpus_are_said() -> None:
    simulated = scene.changed(source=Source("simulated"))
    nothing = scene.changed(source=Source("none", detail="no driver"), gpus=())
    assert "SIMULATED" in render(simulated, "x", 100)
    assert "no GPU readings: no driver" in render(nothing, "x", 100)


def test_steps_the_history_has_lost_are_said() -> None:
    assert "history" not in render(scene.snapshot(), "x", 120)
    lossy = scene.changed(dropped={HISTORY_STEPS: 12345})
    assert "12,345 steps could not be written to the history" in render(lossy, "x", 120)


def test_a_hung_run_says_where_it_hangs() -> None:
    stuck = msgspec.structs.replace(scene.rank(1), state="stalled", live_phase="backward", live_seconds=125.0)
    hung = msgspec.structs.replace(scene.run(), state="stalled", ranks=(scene.rank(0), stuck))
    assert "rank 1 has been in backward for 2 min 05 s" in render(scene.changed(runs=(hung,)), "x", 120)


def test_findings_about_runs_that_are_over_are_not_shown() -> None:
    over = msgspec.structs.replace(scene.run(), state="ended", ended=scene.NOW)
    assert "num_workers" not in render(scene.changed(runs=(over,)), "x", 120)
