"""No check found anything to change.

Looks at: everything the other rules look at; reports only if none of them does.
Why: Knowing what was checked saves checking it again, and the next limit says where to look first when the
    model or the data grows.
Remedy: none; names the phase that will be the limit next.
Gain: none predicted.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import hot_lines
from monitor.advice.rule import Advice, all_rules, closing_rule
from monitor.model import units
from monitor.model.devices import by_device, idle_ratios
from monitor.model.finding import Finding
from monitor.model.phase_names import PHASES

LIMITS = {
    "data": "the loader: watch it when the samples get heavier",
    "forward": "the model's forward pass: a larger batch, a compiled or smaller model",
    "backward": "the backward pass: compute itself",
    "optimizer": "the optimizer update: fewer or fused updates, or accumulation",
    "other": "your own code between the phases",
    "between": "your own code between the steps",
}
UNNAMED = ("other", "between")
"""Phases that no mark of the loop names."""
LOOK_LONGER = (
    "Let it end by itself, or with Ctrl-C, or run it for half a minute: the lines it spends its time on are "
    "looked up at its end, or once it is long enough to afford that."
)
NAMED = 0.1
"""Judgement: a share of the time that a reader would ask about."""


@closing_rule("healthy.ok", "No cause found")
def check(run: RunContext, findings: list[Finding]) -> Advice | None:
    if findings or not run.phases or run.period is None:
        return None
    name = max(run.phases, key=lambda phase: run.phases[phase])
    share = run.share(name)
    unexplained = _unexplained(run)
    unknown = hot_lines.never_looked_up(run) and not _unmarked(run) and not run.live
    checks = sum(rule.scope != "closing" for rule in all_rules())
    return Advice(
        title=_unknown(unexplained)
        if unknown
        else f"{_few(run)}{checks} checks, none fired; {_time(run, unexplained)}",
        detail=_rest(run),
        remedy=(LOOK_LONGER if unknown else "")
        or _closer_look(run)
        or _marks(run)
        or f"The next limit is {_limit(run, name)} ({units.percent(share)} of the step in {name}).",
        evidence={
            "checks": checks,
            "step_seconds": run.period,
            "compute_share": run.compute_share,
            "unexplained_share": unexplained,
            "limit": name,
            "limit_share": share,
            "data_share": run.share("data"),
        },
        severity="hint" if unknown else "healthy",
    )


def _unknown(share: float) -> str:
    return (
        f"What takes {units.percent(share)} of the time is not known: the run was ended before the lines of "
        "its own code were looked up"
    )


def _idle(run: RunContext) -> float | None:
    """Share of the time in which the GPU has no work, if its own time was measured; of several, the one that
    waits most."""
    known = [idle for idle in idle_ratios(run.run).values() if idle is not None]
    return max(known, default=None) if run.device else None


def _unexplained(run: RunContext) -> float:
    """Share of the time that no phase names; on a GPU, the time it has no work."""
    idle = _idle(run)
    if idle is not None:
        return idle
    if _unmarked(run):
        return 1.0
    return sum(run.share(phase) for phase in UNNAMED if phase not in run.forward_phases)


def _time(run: RunContext, unexplained: float) -> str:
    if devices := by_device(run.run):
        return devices
    if _idle(run) is not None:
        return f"the GPU has no work for {units.percent(unexplained)} of the time"
    if _unmarked(run):
        return "what its steps do is not known: the loop marks no phases"
    shares = units.percent(run.compute_share), units.percent(unexplained)
    return f"{shares[0]} of the time is {_passes(run)}, {shares[1]} unexplained"


def _rest(run: RunContext) -> str:
    """The largest phase that is neither; on a GPU the host's phases say little."""
    others = run.phases.keys() - {"forward", "backward", *UNNAMED}
    name = max(others, key=run.share, default="")
    if not name or run.share(name) < NAMED or _idle(run) is not None:
        return ""
    return f"most of the rest is {PHASES.get(name, name)}, {units.percent(run.share(name))}"


def _closer_look(run: RunContext) -> str:
    """For a GPU that waits although no check fired: nothing is promised, but it is not called fine either."""
    if (_idle(run) or 0.0) < run.policy.starved_share:
        return ""
    return f"What keeps the GPU waiting is not known: `gpumon profile {run.run.id}` shows its gaps."


def _unmarked(run: RunContext) -> bool:
    """Whether nothing tells what the steps do: neither the script nor the device."""
    return run.unmarked and not run.device


def _marks(run: RunContext) -> str:
    if not _unmarked(run):
        return ""
    return (
        'Mark the phases (`with monitor.phase("forward"):`), or leave it to `TrainingMonitor.auto()` or '
        "`gpumon run`, which find them by themselves."
    )


def _few(run: RunContext) -> str:
    return f"After only {run.steps} steps: " if run.steps < run.policy.few_steps else ""


def _passes(run: RunContext) -> str:
    """Without marks around the forward pass, the figure includes the code around it."""
    own = "other" in run.forward_phases
    return "forward (with your own code around it) and backward" if own else "forward and backward"


def _limit(run: RunContext, name: str) -> str:
    if name == "optimizer" and run.setting("optimizer", "kind") == "LBFGS":
        return "the passes the optimizer makes itself: its max_iter, a smaller model"
    if name == "other" and not run.seconds("forward"):
        return "the forward pass with your own code around it"
    return LIMITS.get(name, f"the phase {name}")
