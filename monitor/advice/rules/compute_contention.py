"""Other processes on the machine take the cores this run needs.

Looks at: CPU of processes outside the run, CPU pressure.
Why: A training loop launches work from one thread; when that thread waits for a core, the GPU waits too.
Remedy: move the other jobs, lower their priority, or restrict them to some of the cores; until then, fewer
    threads.
Gain: the pressure's share of the time, at most; none is stated where compute threads have too few cores, as
    they wait for each other and lose more than that.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.prediction.gain import Bounds
from monitor.advice.prediction.step_model import Change
from monitor.advice.rule import Advice, rule
from monitor.model import units
from monitor.model.policy import Policy

SAVED = Bounds(low=0.0, likely=0.5, high=1.0)
"""Share of the waiting that ends when the others leave. Judgement: a run's own tasks compete, too."""
MOST_WAITED = 0.5
"""Largest share of the time that waiting for a core can cost, whatever the pressure."""
ROUNDED = 0.5
"""A core of which others take less than half still counts as free."""
LEAST_POINTS = 3
"""Readings over a run that are enough for its median."""


@rule(
    "compute.contention",
    "CPU contention",
    steps=False,
    suppresses=(
        "trend.decay",
        "trend.periodic_stalls",
        "compute.small_batch",
        "compute.threads_few",
        "input.prefetch_low",
    ),
)
def check(run: RunContext) -> Advice | None:
    if run.device is not None and run.device.bound == "device":
        return None  # the GPU always has work: a host that waits for a core delays nobody
    cpu = run.snapshot.host.cpu
    found = (_now(run) if run.live else _over_the_run(run)) if cpu is not None else None
    if cpu is None or found is None:
        return None
    other, pressure = found
    waited, left = min(MOST_WAITED, pressure), _threads_left(run, cpu.cores)
    use, wait = ("use", "wait") if run.live else ("used", "waited")
    return Advice(
        title=f"Other processes {use} {units.percent(other)} of all cores; tasks {wait} for a core "
        f"{units.percent(pressure)} of the time",
        remedy="Move the other jobs away, lower their priority (nice), or restrict them to some of the "
        "cores (taskset)." + (f" {_leaving_cores(left)}" if left else ""),
        knobs={"threads.torch": str(left)} if left else {},
        avoid="Pinning this run alone: it would share fewer cores with the same others.",
        effect="rounding" if left else "identical",
        evidence={"other_cpu_ratio": other, "cpu_pressure_ratio": pressure, "cores": cpu.cores},
        gain=SAVED.of(lambda part: Change(everything=1.0 - part * waited))
        if run.reliable and left is None
        else None,
        because=f"tasks wait for a core {units.percent(pressure)} of the time",
        severity="warning" if _heavy(run, cpu.cores, other, pressure) else "hint",
    )


def _threads_left(run: RunContext, cores: int) -> int | None:
    """How many compute threads the others leave room for; None if the run does not have more."""
    threads, free = run.count("threads", "torch"), max(1, int(cores - run.other_cores + ROUNDED))
    return free if threads is not None and threads > free and not run.has_cuda else None


def _leaving_cores(threads: int) -> str:
    return (
        f"Until they are gone, compute on what they leave: torch.set_num_threads({threads}). Threads that "
        "wait for each other in every operation lose far more than the others take, so nobody can say how "
        "much."
    )


def _now(run: RunContext) -> tuple[float, float] | None:
    """Share of the cores that others use, and of the time that tasks wait for one, if both are high."""
    cpu, policy = run.snapshot.host.cpu, run.policy
    known = [process.cpu_ratio for process in run.processes if process.cpu_ratio is not None]
    if cpu is None or cpu.utilization_ratio is None or not known:
        return None
    other, pressure = cpu.utilization_ratio - sum(known) / cpu.cores, cpu.pressure.some_ratio or 0.0
    full = cpu.utilization_ratio >= policy.cpu_full
    return (other, pressure) if full and _contended(policy, other, pressure) else None


def _over_the_run(run: RunContext) -> tuple[float, float] | None:
    """The same for a finished run, from the median of what was read while it ran."""
    cpu = run.snapshot.host.cpu
    pressures = sorted(one.cpu_pressure for one in run.history if one.cpu_pressure is not None)
    if cpu is None or len(pressures) < LEAST_POINTS:
        return None
    other, pressure = run.other_cores / cpu.cores, pressures[len(pressures) // 2]
    return (other, pressure) if _contended(run.policy, other, pressure) else None


def _contended(policy: Policy, other: float, pressure: float) -> bool:
    return other >= policy.other_cpu and pressure >= policy.cpu_pressure


def _heavy(run: RunContext, cores: int, other: float, pressure: float) -> bool:
    """The others have had most of the machine for a while, and this run waits for it."""
    policy = run.policy
    enough = policy.contention_ticks if run.live else LEAST_POINTS
    lasting = len(run.history) >= enough and run.other_cores >= policy.other_cpu_heavy * cores
    return lasting and other >= policy.other_cpu_heavy and pressure >= policy.cpu_pressure_heavy
