"""`gpumon doctor --gpu-selftest`: does gpumon tell the truth on this card?

Five training loops whose bottleneck is known by construction run under the usual instrumentation. What gpumon
says about each is compared with what torch's profiler and events say without it (`sdk/gpu_selftest.py`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import sdk.ring
from monitor.cli.launch import launch_environment, run_child
from monitor.doctor.gpu_selftest import LOOPS, Answer, Outcome, judge
from monitor.model.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, UserError
from monitor.model.snapshot import encode
from monitor.model.units import percent, seconds
from monitor.report.watch import RunWatcher
from monitor.terminal import table

SCRIPT = Path(sdk.ring.__file__).with_name("gpu_selftest.py")
STEPS = 300
"""Of ten milliseconds each: three seconds per loop, plus starting torch."""
PREPARE_SECONDS = 300


def run(python: str | None, output: Path | None, *, as_json: bool = False) -> int:
    target = output or Path(time.strftime("gpumon-selftest-%Y%m%d-%H%M%S.json"))
    if not target.parent.is_dir():
        raise UserError(f"there is no folder {target.parent}")
    answer = measure(python or sys.executable)
    target.write_bytes(encode(answer) + b"\n")
    print(target.read_text() if as_json else "\n".join(text(answer, target)))
    return EXIT_OK if all(one.held for one in answer.loops) else EXIT_FAILED


def measure(python: str, loops: Sequence[str] = tuple(LOOPS)) -> Answer:
    """Run these loops. Raises `UserError` if there is no device or a loop does not run."""
    _progress("sizes for this card …")
    card = _prepared(python)
    outcomes = []
    for number, loop in enumerate(loops, 1):
        _progress(f"{number} of {len(loops)}: {LOOPS[loop].what} …")
        outcomes.append(_outcome(python, loop, card))
    return Answer({key: card[key] for key in ("device", "torch", "cuda", "hip", "sizes")}, tuple(outcomes))


def _progress(what: str) -> None:
    print(f"gpumon: {what}", file=sys.stderr, flush=True)


def _prepared(python: str) -> dict[str, Any]:
    environment = {**os.environ, "GPUMON_DISABLE": "1", "KINETO_LOG_LEVEL": "99"}
    try:
        done = subprocess.run(
            [python, "-P", str(SCRIPT), "prepare"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=PREPARE_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"the self-test could not be prepared: {error}") from error
    return _printed(done.stdout, done.stderr)


def _printed(out: str, errors: str) -> dict[str, Any]:
    """What the script printed on its last line."""
    try:
        said: dict[str, Any] = json.loads(out.splitlines()[-1])
    except (ValueError, IndexError):
        last = (errors.strip().splitlines() or ["it printed nothing"])[-1]
        hint = "--python names the interpreter that has torch"
        raise UserError(f"the self-test does not run: {last}", hint=hint) from None
    if "error" in said:
        raise UserError(
            f"the self-test needs a GPU: {said['error']}",
            hint="gpumon doctor --deep says whether torch reaches one; "
            "see docs/gpu.md for what is proven without",
        )
    return said


def _outcome(python: str, loop: str, card: dict[str, Any]) -> Outcome:
    environment = launch_environment(f"selftest-{loop}")
    watcher = RunWatcher(environment["GPUMON_RUN_ID"])
    watcher.start()
    words = [python, "-P", str(SCRIPT), loop, json.dumps(card["sizes"]), str(STEPS)]
    with tempfile.TemporaryFile("w+") as out:
        code = run_child(words, environment | watcher.environment(), stdout=out.fileno())
        report = watcher.finish(code)
        if code == EXIT_INTERRUPTED:
            raise KeyboardInterrupt
        out.seek(0)
        said = _printed(out.read(), f"{loop} ended with exit code {code}")
    ids = tuple(finding.id for finding in report.findings)
    return judge(loop, said["step_seconds"], card["kernel_seconds"][loop], report.run, ids)


def text(answer: Answer, target: Path) -> Iterator[str]:
    yield f"{answer.card['device']}, torch {answer.card['torch']}"
    yield ""
    rows = [
        (
            one.loop,
            LOOPS[one.loop].what,
            seconds(one.step_seconds),
            percent(one.idle_true),
            percent(one.idle_measured),
            one.bound,
            "held" if one.held else _wrong(one),
        )
        for one in answer.loops
    ]
    head = ("loop", "what it does", "step", "idle, true", "idle, gpumon", "bound by", "")
    yield table(head, rows, right=(2, 3, 4))
    yield ""
    held = [one for one in answer.loops if one.held]
    yield f"{len(held)} of {len(LOOPS)} held: the bottleneck, and the idle share within 5 points."
    yield f"Written to {target}: please send it to us. It names no person, machine or folder."


def _wrong(one: Outcome) -> str:
    wrong = [word for word, held in (("cause", one.class_held), ("idle share", one.idle_held)) if not held]
    return f"NOT HELD: {' and '.join(wrong)}"
