"""The answer as people read it: complete, and no line wider than the terminal."""

from __future__ import annotations

import msgspec

from monitor.cli.try_text import answer_lines
from monitor.experiments.arm import Arm
from monitor.experiments.experiment import Result
from monitor.experiments.losses import Agreement
from monitor.experiments.spread import Ratio
from monitor.experiments.study import Answer
from monitor.model.finding import Finding, Remedy, Speedup

FINDING = Finding(
    "input.no_workers",
    "warning",
    "No loader workers: 61 % of the step waits for data made in the main process; `Photos.__getitem__` takes "
    "1.40 ms a sample",
    remedy=Remedy("Give the DataLoader 2 workers"),
    speedup=Speedup(1.2, 1.8, 2.1),
)
GOOD = Result(
    Arm({"loader.num_workers": "2", "loader.persistent_workers": "on"}, FINDING),
    4,
    Ratio(1.83, 1.7, 1.97),
    "",
    Agreement("equal", 60, 0.0),
    "identical",
    120 << 20,
)
BROKEN = Result(
    Arm({"model.compiled": "on"}), 1, None, "it failed: RuntimeError: no compiler was found on this machine",
    Agreement("unknown"), "rounding",
)  # fmt: skip
TUNED = Result(
    Arm(options={"num_workers": "2", "products": "none"}), 4, Ratio(1.2, 1.1, 1.3), "",
    Agreement("rounding", 60, 2e-7), "rounding",
)  # fmt: skip


def text(*results: Result, best: Result | None = None, interrupted: bool = False) -> str:
    answer = Answer(
        script="/work/train.py", run="try-1", verdict="The loop waits for its data. " * 4, steps=60,
        step_seconds=0.0741, results=results, together=None, best=best, not_tried=(), isolation="",
        baseline_runs=4, interrupted=interrupted, noise=0.35,
    )  # fmt: skip
    lines = "\n".join(answer_lines(answer, 80)).split("\n")
    assert max(map(len, lines)) <= 80
    return "\n".join(lines)


def test_what_was_tried_says_why_and_what_it_brought() -> None:
    found = text(GOOD, BROKEN, best=GOOD)
    assert "74.1 ms a step as it is (4 runs of 60 steps)." in found
    assert "1. loader.num_workers=2 loader.persistent_workers=on\n   No loader workers:" in found
    assert "   faster ×1.8 (1.7–2.0), predicted ×1.8 (1.2–2.1)" in found
    assert "   memory +120 MiB; 60 losses equal: the training stays the same" in found
    assert "2. model.compiled=on\n   it failed: RuntimeError: no compiler" in found
    assert "To keep it in the script:\n   DataLoader(…, num_workers=2)" in found


def test_a_trainer_is_told_its_options() -> None:
    assert "add --num_workers=2 --products=none; --save FILE" in text(TUNED, best=TUNED)


def test_what_is_not_clear_is_not_called_no_change() -> None:
    doubtful = msgspec.structs.replace(GOOD, ratio=Ratio(0.9, 0.4, 2.0))
    found = text(doubtful)
    assert "   not clear ×0.9" in found
    assert "runs with the same settings differ by about 35 %" in found
    settled = text(msgspec.structs.replace(GOOD, ratio=Ratio(1.0, 0.98, 1.02)))
    assert "   no change ×" in settled and "differ by about" not in settled


def test_interrupted_before_anything_was_clear() -> None:
    found = text(BROKEN, interrupted=True)
    assert "Interrupted: these are the results so far." in found and "Nothing is clear yet." in found
