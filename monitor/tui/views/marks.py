"""How states are marked: a symbol, a word and a role, so that colour never speaks alone.

A busy GPU is good news and calm. What alarms is a GPU that waits while a run is on it.
"""

from __future__ import annotations

from typing import NamedTuple

from monitor.snapshot import Finding, Gpu, Run, Snapshot
from monitor.tui.text import Span

STARVED = 0.2
BUSY = 0.7
FEEDING = ("input.", "transfer.")
"""Areas of findings that leave a GPU without work."""
REASONS = {
    "gpu_idle": "idle",
    "applications_clocks_setting": "app clocks",
    "sw_power_cap": "power cap",
    "hw_slowdown": "hw slowdown",
    "sync_boost": "sync boost",
    "sw_thermal_slowdown": "thermal",
    "hw_thermal_slowdown": "hw thermal",
    "hw_power_brake_slowdown": "power brake",
    "display_clock_setting": "display clock",
}
HARMLESS = frozenset(("gpu_idle", "applications_clocks_setting", "sync_boost", "display_clock_setting"))


class Mark(NamedTuple):
    symbol: str
    word: str
    role: str

    @property
    def span(self) -> Span:
        return Span(self.symbol, self.role)


SEVERITY = {
    "critical": Mark("▲", "critical", "alarm"),
    "warning": Mark("◆", "warning", "warn"),
    "hint": Mark("○", "hint", "info"),
    "healthy": Mark("●", "healthy", "good"),
}
RUN = {
    "running": Mark("●", "running", "good"),
    "stalled": Mark("▲", "stalled", "alarm"),
    "ended": Mark("○", "ended", "dim"),
    "failed": Mark("✕", "failed", "alarm"),
    "killed": Mark("✕", "killed", "warn"),
}


def runs_on(gpu: Gpu, snapshot: Snapshot) -> list[Run]:
    """Live runs that compute on this GPU, by what they say or by the driver's list of processes."""
    pids = {process.pid for process in gpu.processes}
    live = (run for run in snapshot.runs if run.state in ("running", "stalled"))
    return [run for run in live if gpu.uuid in run.gpu_uuids or not pids.isdisjoint(run.pids)]


def throttled(gpu: Gpu) -> list[str]:
    """Why the clocks are down, without the reasons that are no loss."""
    return [
        REASONS.get(name, name) for name, on in (gpu.throttle or {}).items() if on and name not in HARMLESS
    ]


def starving(run: Run, findings: tuple[Finding, ...] = ()) -> bool:
    """The device waits for a large part of the step, or a rule says that it must."""
    if run.starved_ratio is not None:
        return run.starved_ratio >= STARVED
    return any(
        f.run == run.id and f.severity in ("critical", "warning") and f.id.startswith(FEEDING)
        for f in findings
    )


def gpu_mark(gpu: Gpu, snapshot: Snapshot) -> Mark:
    """One word for a GPU, the worst thing first."""
    if gpu.state != "ok":
        return Mark("✕", gpu.state, "alarm")
    runs = runs_on(gpu, snapshot)
    if any(run.state == "stalled" for run in runs):
        return Mark("▲", "stalled", "alarm")
    if any(starving(run, snapshot.findings) for run in runs) and (gpu.utilization_ratio or 0.0) < BUSY:
        return Mark("▲", "starved", "alarm")
    if throttled(gpu):
        return Mark("◆", "throttled", "warn")
    return _by_use(gpu, bool(runs))


def _by_use(gpu: Gpu, has_run: bool) -> Mark:
    use = gpu.utilization_ratio
    if use is None:
        return Mark("○", "mig" if gpu.mig_enabled else "unknown", "dim")
    if use >= BUSY:
        return Mark("●", "busy", "good")
    if has_run and not gpu.mig_enabled:
        return Mark("◐", "part busy", "warn")
    return Mark("○", "idle", "dim") if use < 0.05 else Mark("◐", "in use", "info")


def run_mark(run: Run, findings: tuple[Finding, ...]) -> Mark:
    """A run's mark: its state, or the worst finding about it while it runs."""
    if run.state != "running":
        return RUN[run.state]
    worst = [f.severity for f in findings if f.run == run.id]
    hungry = starving(run, findings)
    if hungry or "critical" in worst:
        return Mark("▲", "starved" if hungry else "critical", "alarm")
    if "warning" in worst:
        return Mark("◆", "warning", "warn")
    return RUN["running"]
