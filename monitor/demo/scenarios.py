"""Demonstrations of one trouble each: a training or a simulated GPU that has it, and what gpumon says."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass

from monitor.client import Client
from monitor.demo.page import Page
from monitor.demo.stage import Props, Stage
from monitor.demo.story import tell
from monitor.model.errors import EXIT_FAILED, UserError
from monitor.model.finding import Finding
from monitor.model.gpu import Gpu
from monitor.model.run import Rank, Run
from monitor.model.snapshot import Snapshot
from monitor.model.units import ABSENT, celsius, hertz, number, percent, seconds, size, whole
from monitor.terminal import table

LOOK_SECONDS = 0.5
SIMULATED = Props("simulated")
LONG_SECONDS = 1.0
"""A phase that is open for this long is worth a look."""
PATIENCE_SECONDS = 90.0
"""After this long a demonstration gives up; on a slow machine each takes a fraction of it."""


@dataclass(frozen=True, slots=True)
class Scenario:
    title: str
    happens: str
    """What goes wrong, in a sentence or two."""
    program: tuple[str, ...]
    """A module of `trainers.scenarios` and its arguments."""
    rules: tuple[str, ...]
    """Ids of which one is waited for."""
    evidence: tuple[str, ...]
    elsewhere: str
    """Where else the same is seen."""
    props: Props = SIMULATED


SCENARIOS = {
    "hung-rank": Scenario(
        "A rank that hangs",
        "Four processes train together on the CPU. Rank 2 asks for a sample that never comes; the others "
        "wait for its gradients. No process ends, and nothing is printed anywhere.",
        ("ranks", "--hang=2"),
        ("trend.hung",),
        ("silent_seconds", "live_phase", "steps"),
        "With Prometheus the alert GpumonRunStalled fires. The usual patience is 30 s; here it is 6 s.",
        Props("simulated", gpus=4, policy="hung_seconds = 6\n"),
    ),
    "straggler": Scenario(
        "A rank that is slower than the others",
        "Four processes train together on the CPU. Rank 2 reads from a place that is four times as slow, so "
        "all of them are.",
        ("ranks", "--slow=2"),
        ("distributed.straggler",),
        ("own_seconds", "common_seconds", "cost_share"),
        "gpumon tui shows the ranks side by side; so does the dashboard of a run.",
        Props("simulated", gpus=4),
    ),
    "leak": Scenario(
        "Memory that grows",
        "The script appends the loss of every step to a list. Each of them keeps the graph that made it.",
        ("leak",),
        ("memory.leak",),
        ("bytes_per_step", "grown_bytes", "kept_at"),
        "The run's screen in gpumon tui has the curve. Unwatched, such a run ends in an out-of-memory kill.",
        Props("simulated", interval=1.0),  # a process reads its memory once a second, not more often
    ),
    "throttled-gpu": Scenario(
        "A GPU that is too hot",
        "A healthy training on a simulated GPU; after five seconds the air around the card gets 45 °C "
        "warmer, and the card lowers its clock. The training itself runs on the CPU and keeps its speed.",
        ("steady",),
        ("device.thermal_throttle",),
        ("temperature_celsius", "reasons", "clock_ratio"),
        "On a real card the readings come from NVML; gpumon doctor says whether this machine has one.",
        Props("simulated", events='[[event]]\nat = 5\neffect = "heat"\ncelsius = 45\n'),
    ),
    "starved-gpu": Scenario(
        "A GPU that waits for data",
        "Every sample comes from a slow place, one after the other, while the (simulated) GPU waits.",
        ("starved",),
        ("input.no_workers", "input.bound"),
        ("data_share", "getitem_seconds", "num_workers"),
        "gpumon tui shows a busy GPU in green: here the alarm is one that waits while a run is on.",
    ),
}


class Trouble:
    """Tells one scenario."""

    def __init__(self, scenario: Scenario, stage: Stage, client: Client, page: Page) -> None:
        self.scenario, self.stage, self.client, self.page = scenario, stage, client, page

    def tell(self, python: str) -> bool:
        """Whether gpumon named the trouble."""
        page, scenario = self.page, self.scenario
        page.write(page.on.paint(f"gpumon demo: {scenario.title}", "bold"))
        page.chapter("What happens")
        page.say(scenario.happens)
        module, *options = scenario.program
        child = self.stage.start([python, "-m", f"trainers.scenarios.{module}", *options], module)
        page.chapter("What gpumon sees")
        snapshot, finding = self._watch(child)
        page.write(*self._seen(snapshot))
        if finding is None:
            page.say(f"It was not named within {seconds(PATIENCE_SECONDS)}.", "warning")
            return False
        page.chapter(f"What gpumon says: {finding.id}")
        tell(page, finding, scenario.evidence)
        for run in snapshot.runs:
            page.say(_odd_rank(run))
        page.write("")
        page.say(scenario.elsewhere, "dim")
        page.commands([("gpumon help " + finding.id, "what the rule looks at, and why it matters")])
        return True

    def _watch(self, child: subprocess.Popen[bytes]) -> tuple[Snapshot, Finding | None]:
        """Until the trouble is named, the program ends, or patience does."""
        began = time.monotonic()
        while True:
            snapshot = self.client.snapshot()
            finding = next((one for one in snapshot.findings if one.id in self.scenario.rules), None)
            self.page.draw([*self._seen(snapshot), self.page.on.paint("  watching …", "dim")])
            if finding is not None or time.monotonic() - began > PATIENCE_SECONDS:
                return snapshot, finding
            if child.poll() is not None:
                words = self.stage.last_words(self.scenario.program[0])
                raise UserError(f"the demo's training ended too early: {words}", code=EXIT_FAILED)
            time.sleep(LOOK_SECONDS)

    def _seen(self, snapshot: Snapshot) -> Iterator[str]:
        """The run (rank by rank, if it has several) and the GPU."""
        for run in snapshot.runs:
            rows = [_rank(rank) for rank in run.ranks] if len(run.ranks) > 1 else [_run(run)]
            head = ("rank", "steps", "step", "in phase", "for") if len(run.ranks) > 1 else RUN_HEAD
            yield from ("  " + line for line in table(head, rows, right=(1, 2), on=self.page.on).splitlines())
        if len(snapshot.gpus) == 1:
            yield "  " + _gpu(snapshot.gpus[0])


def _rank(rank: Rank) -> tuple[str, ...]:
    held = (
        seconds(rank.live_seconds)
        if rank.live_seconds is not None and rank.live_seconds >= LONG_SECONDS
        else ""
    )
    return str(rank.rank), whole(rank.steps), seconds(rank.step.p50), rank.live_phase or ABSENT, held


def _odd_rank(run: Run) -> str:
    """The one rank that is somewhere else than all others, in a sentence; empty when there is none."""
    phases = [rank.live_phase for rank in run.ranks]
    odd = [rank for rank in run.ranks if phases.count(rank.live_phase) == 1]
    if len(run.ranks) < 3 or len(odd) != 1 or (odd[0].live_seconds or 0.0) < LONG_SECONDS:
        return ""
    others = next(phase for phase in phases if phase != odd[0].live_phase)
    return f"Rank {odd[0].rank} is in {odd[0].live_phase}, all others wait in {others}: look there."


RUN_HEAD = ("run", "steps", "step", "it/s", "waiting for data", "memory")


def _run(run: Run) -> tuple[str, ...]:
    waiting = next((phase.share for phase in run.phases if phase.name == "data"), None)
    memory = run.ranks[0].scalars.get("proc.rss_bytes") if run.ranks else None
    rate = number(run.iterations_per_second)
    return run.name, whole(run.steps), seconds(run.step.p50), rate, percent(waiting), size(memory)


def _gpu(gpu: Gpu) -> str:
    heat, clock = celsius(gpu.temperature_celsius), hertz(gpu.sm_clock_hertz)
    return f"GPU (simulated)  {percent(gpu.utilization_ratio)} busy, {heat}, {clock}"
