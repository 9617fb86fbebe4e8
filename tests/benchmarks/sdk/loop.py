"""One tool that watches a loop, in a process of its own: ``python loop.py TOOL``; prints JSON.

The same training loop runs bare and watched, in short blocks that take turns, at up to three step sizes.
Every step stamps the clocks, on both sides. Two figures come of it:

- `mean`: CPU of the whole process, mean over all steps from the first watched one on, so with everything a
  tool does only at the beginning or now and then (ours: learning the loop, sampled steps, looking them up).
- `usual`: CPU of the thread, the median over pairs of blocks of the difference of their lower quartiles,
  after a warm-up: neighbours on a shared machine only ever add, and this leaves them out, but with them
  everything that is rare. It was the only figure until `mean` came.

Where a tool cannot be taken out again once it is in, the bare blocks come first.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import sys
import time
from array import array
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SIZES = {"1": (1.0, 40), "5": (5.0, 20), "20": (20.0, 10)}
"""Name → (milliseconds a step, steps in a block)."""
PAIRS = {"1": 150, "5": 30, "20": 8}
WARM_UP = {"1": 50, "5": 10, "20": 4}
"""Pairs at the beginning that are in no `usual` figure: a tool warms up, ours samples its first steps."""
torch.set_num_threads(1)
PLACE = ("_compiled_call_impl",)
"""Where a model is watched."""
Loop = Callable[[int], None]
watching: list[Any] = []
"""Our monitor, when it is one of ours."""


class Bench:
    """A model whose step takes about `milliseconds`, and loops over it."""

    def __init__(self, milliseconds: float) -> None:
        width = 64
        while True:
            self.build(width)
            took = self._once()
            if took >= milliseconds * 0.9 or width > 4096:
                break
            width = max(width + 8, int(width * min(1.6, (milliseconds / took) ** 0.5)))

    def stamp(self) -> None:
        """Once a step, at its begin."""
        self.all_cpu.append(time.process_time_ns())
        self.cpu.append(time.thread_time_ns())
        self.wall.append(time.perf_counter_ns())

    def build(self, width: int) -> None:
        self.all_cpu, self.cpu, self.wall = array("q"), array("q"), array("q")
        torch.manual_seed(0)
        self.model = nn.Sequential(
            nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 8)
        )
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.data = TensorDataset(torch.randn(32 * 512, 64), torch.randint(0, 8, (32 * 512,)))

    def _once(self) -> float:
        self.run(5, self.loader(5))
        began = time.perf_counter()
        self.run(15, self.loader(15))
        return (time.perf_counter() - began) / 15 * 1e3

    def loader(self, steps: int) -> DataLoader[Any]:
        return DataLoader(
            torch.utils.data.Subset(self.data, range(32 * steps)), batch_size=32, collate_fn=tuple
        )

    def forward(self, batch: Any) -> torch.Tensor:
        x = torch.stack([row[0] for row in batch[:2]]).repeat(16, 1)
        return self.model(x).square().mean()

    def run(self, steps: int, batches: Any) -> None:
        for batch in batches:
            self.stamp()
            self.optimizer.zero_grad()
            loss = self.forward(batch)
            loss.backward()
            self.optimizer.step()


def laps(bench: Bench) -> Loop:
    from sdk import TrainingMonitor

    monitor = TrainingMonitor("bench", batch_size=32)
    monitor.start_monitoring()
    watching[:] = [monitor]

    def run(steps: int) -> None:
        for batch in monitor.loader(bench.loader(steps)):
            bench.stamp()
            monitor.lap("zero_grad")
            bench.optimizer.zero_grad()
            monitor.lap("forward")
            loss = bench.forward(batch)
            monitor.lap("backward")
            loss.backward()
            monitor.lap("optimizer")
            bench.optimizer.step()
            monitor.step()

    return run


def phases(bench: Bench) -> Loop:
    from sdk import TrainingMonitor

    monitor = TrainingMonitor("bench", batch_size=32)
    monitor.start_monitoring()
    watching[:] = [monitor]

    def run(steps: int) -> None:
        for batch in monitor.loader(bench.loader(steps)):
            bench.stamp()
            with monitor.phase("zero_grad"):
                bench.optimizer.zero_grad()
            with monitor.phase("forward"):
                loss = bench.forward(batch)
            with monitor.phase("backward"):
                loss.backward()
            with monitor.phase("optimizer"):
                bench.optimizer.step()
            monitor.step()

    return run


def auto(bench: Bench) -> Loop:
    from sdk import TrainingMonitor
    from sdk.auto._recognizer import StepRecognizer
    from sdk.auto.hooks import install
    from sdk.loop.session import Session

    monitor = TrainingMonitor("bench", mode="auto")
    monitor.start_monitoring()
    watching[:] = [monitor]
    assert isinstance(monitor.session, Session)
    watcher = StepRecognizer(monitor.session, torch)
    watched: dict[str, Any] = {}
    """How the model is watched, between two blocks."""

    def run(steps: int) -> None:
        bench.run(steps, bench.loader(steps))

    def around(steps: int) -> None:
        """Hooks in for this block only: the bare blocks in between are bare."""
        undo = install(watcher, torch)
        vars(bench.model).update(watched)
        run(steps)
        watched.update({name: vars(bench.model).pop(name) for name in PLACE if name in vars(bench.model)})
        for one in undo:
            one()

    watcher.begin_training()
    return around


def perf_counter(bench: Bench) -> Loop:
    seen: list[float] = []

    def run(steps: int) -> None:
        seen.clear()
        for batch in bench.loader(steps):
            bench.stamp()
            began = time.perf_counter()
            bench.optimizer.zero_grad()
            loss = bench.forward(batch)
            loss.backward()
            bench.optimizer.step()
            seen.append(time.perf_counter() - began)

    return run


def profiler(bench: Bench) -> Loop:
    from torch.profiler import ProfilerActivity, profile

    def run(steps: int) -> None:
        with profile(activities=[ProfilerActivity.CPU]) as recording:
            for batch in bench.loader(steps):
                bench.run(1, [batch])
                recording.step()

    return run


def traceml_auto(bench: Bench) -> Loop:
    traceml: Any = __import__("traceml_ai")
    traceml.init(mode="auto")

    def run(steps: int) -> None:
        for batch in bench.loader(steps):
            with traceml.trace_step(bench.model):
                bench.run(1, [batch])

    return run


def traceml_manual(bench: Bench) -> Loop:
    """With the same phases marked as in `laps`."""
    traceml: Any = __import__("traceml_ai")
    traceml.init(mode="manual")
    traceml.wrap_forward(bench.model)
    traceml.wrap_optimizer(bench.optimizer)

    def run(steps: int) -> None:
        for batch in traceml.wrap_dataloader_fetch(bench.loader(steps)):
            with traceml.trace_step(bench.model):
                bench.stamp()
                bench.optimizer.zero_grad()
                loss = bench.forward(batch)
                traceml.wrap_backward(loss).backward()
                bench.optimizer.step()

    return run


def wandb(bench: Bench) -> Loop:
    os.environ |= {
        "WANDB_MODE": "offline",
        "WANDB_SILENT": "true",
        "WANDB_DIR": os.environ.get("TMPDIR", "/tmp"),
    }
    library: Any = __import__("wandb")
    run_: Any = library.init(project="bench") if library.run is None else library.run

    def run(steps: int) -> None:
        for batch in bench.loader(steps):
            began = time.perf_counter()
            bench.run(1, [batch])
            run_.log({"step_seconds": time.perf_counter() - began})

    return run


TOOLS: dict[str, Callable[[Bench], Loop]] = {
    "laps": laps, "phases": phases, "auto": auto, "perf_counter": perf_counter, "profiler": profiler,
    "traceml_auto": traceml_auto, "traceml_manual": traceml_manual, "wandb": wandb,
}  # fmt: skip
STAYS = {"traceml_auto", "traceml_manual"}
"""Once in, these cannot be taken out of the process: all bare blocks come first."""


class Side:
    """The steps of all blocks of one side."""

    def __init__(self) -> None:
        self.mean: list[float] = []
        self.cpu: list[float] = []
        self.wall: list[float] = []

    def measure(self, loop: Loop, steps: int, bench: Bench) -> None:
        del bench.all_cpu[:], bench.cpu[:], bench.wall[:]
        loop(steps)
        self.mean.append((bench.all_cpu[-1] - bench.all_cpu[0]) / (len(bench.all_cpu) - 1) / 1e3)
        self.cpu.append(usual(gaps(bench.cpu)))
        self.wall.append(usual(gaps(bench.wall)))


def gaps(stamps: array[int]) -> list[int]:
    return [b - a for a, b in itertools.pairwise(stamps)][2:]


def usual(steps: list[int]) -> float:
    """µs."""
    return statistics.quantiles(steps, n=4)[0] / 1e3


def apart(without: list[float], with_it: list[float]) -> list[float]:
    return [b - a for a, b in zip(without, with_it, strict=True)]


def take_turns(bench: Bench, bare: Loop, tool: str, name: str) -> tuple[Side, Side]:
    steps, pairs = SIZES[name][1], WARM_UP[name] + PAIRS[name]
    without, with_it, warm = Side(), Side(), Side()
    for _ in range(WARM_UP[name]):
        warm.measure(bare, steps, bench)
    if tool in STAYS:
        for _ in range(pairs):
            without.measure(bare, steps, bench)
    watched = TOOLS[tool](bench)
    for number in range(pairs):
        # Each side comes first half of the time: what a block leaves behind counts for nobody.
        sides = [(with_it, watched)] if tool in STAYS else [(with_it, watched), (without, bare)]
        for side, loop in sides[:: -1 if number % 2 else 1]:
            side.measure(loop, steps, bench)
    return without, with_it


def figures(without: Side, with_it: Side, warm: int) -> dict[str, float]:
    """In µs a step: how much more the watched side takes."""
    mean = apart(without.mean, with_it.mean)
    cpu, wall = apart(without.cpu, with_it.cpu)[warm:], apart(without.wall, with_it.wall)[warm:]
    return {
        "bare_wall_us": statistics.median(without.wall),
        "mean_us": statistics.fmean(mean),
        "error_us": statistics.stdev(mean) / len(mean) ** 0.5,
        "usual_us": statistics.median(cpu),
        "usual_wall_us": statistics.median(wall),
    }


def main(tool: str, chosen: list[str]) -> None:
    found: dict[str, dict[str, float]] = {}
    for name in chosen:
        bench = Bench(SIZES[name][0])

        def bare(steps: int, bench: Bench = bench) -> None:
            bench.run(steps, bench.loader(steps))

        without, with_it = take_turns(bench, bare, tool, name)
        found[name] = figures(without, with_it, WARM_UP[name])
        if watching:
            recorder = watching[0].recorder
            found[name]["own_us"] = recorder.spent_ns / recorder.steps / 1e3
    print("RESULT " + json.dumps(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2].split(",") if len(sys.argv) > 2 else list(SIZES))
