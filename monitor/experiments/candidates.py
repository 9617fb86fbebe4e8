"""What is worth trying after a first look: remedies that are knobs, then knobs of what takes time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from monitor.comparison.settings import setting
from monitor.experiments.arm import Arm
from monitor.model.finding import Finding
from monitor.model.run import Run

Settings = dict[str, str]
SHARE = 0.08
"""A choice: a part of the step below this is not worth an experiment of its own."""
_LEFTOVERS = {"anomaly": "off", "gc.collect": "off"}
"""Of the hunt for a bug, or for memory: they cost much, and are forgotten easily."""
LOG_EVERY = "50"
"""A choice: logged this rarely, logging costs nothing."""


def _said(finding: Finding, *patterns: str) -> str | None:
    """A number the remedy names."""
    text = f"{finding.remedy.summary}\n{finding.remedy.change}"
    found = (re.search(pattern, text) for pattern in patterns)
    return next((match.group(1) for match in found if match), None)


def _workers(finding: Finding) -> Settings | None:
    count = _said(finding, r"num_workers from \d+ to (\d+)", r"num_workers=(\d+)")
    return None if count is None else with_workers(int(count))


def with_workers(count: int) -> Settings:
    """Workers are kept between epochs, as the advice has it."""
    return {"loader.num_workers": str(count)} | ({"loader.persistent_workers": "on"} if count else {})


def _numbered(name: str, *patterns: str) -> Callable[[Finding], Settings | None]:
    def read(finding: Finding) -> Settings | None:
        found = _said(finding, *patterns)
        return None if found is None else {name: found}

    return read


def _always(**settings: str) -> Callable[[Finding], Settings | None]:
    return lambda finding: {name.replace("__", "."): value for name, value in settings.items()}


def _optimizer(finding: Finding) -> Settings | None:
    return {f"optimizer.{'fused' if 'fused=True' in finding.remedy.summary else 'foreach'}": "on"}


def _collections(finding: Finding) -> Settings | None:
    return {"gc.collect": "off"} if finding.evidence.get("explicit_call") else {"gc.freeze": "on"}


_threads = _numbered("threads.torch", r"set_num_threads\((\d+)\)", r"OMP_NUM_THREADS=(\d+)")
_BY_RULE: dict[str, Callable[[Finding], Settings | None]] = {
    "input.no_workers": _workers,
    "input.too_few_workers": _workers,
    "input.too_many_workers": _workers,
    "input.workers_restarted": _always(loader__persistent_workers="on"),
    "input.prefetch_low": _numbered("loader.prefetch_factor", r"prefetch_factor=(\d+)"),
    "compute.optimizer_unfused": _optimizer,
    "compute.threads_oversubscribed": _threads,
    "compute.threads_few": _threads,
    "compute.anomaly_mode": _always(anomaly="off"),
    "compute.compile_off": _always(model__compiled="on"),
    "compute.launch_bound": _always(model__compiled="on"),
    "compute.tf32_off": _always(precision__matmul_tf32="on"),
    "compute.cudnn_benchmark_off": _always(cudnn__benchmark="on"),
    "compute.logging_too_often": _always(log__every=LOG_EVERY),
    "compute.amp_off": _always(precision__autocast="bf16"),
    "compute.small_batch": _numbered("loader.batch_size", r"batch size from \d+ to (\d+)"),
    "compute.batch_room": _numbered("loader.batch_size", r"batch size from \d+ to (\d+)"),
    "transfer.unpinned_memory": _always(loader__pin_memory="on"),
    "transfer.blocking_copies": _always(loader__pin_memory="on", transfer__non_blocking="on"),
    "job.gc_pauses": _collections,
}
"""Rule → the settings that are its remedy."""


def from_findings(findings: tuple[Finding, ...]) -> list[Arm]:
    """Remedies that are knobs, the most promising first."""
    found = []
    for finding in findings:
        read = _BY_RULE.get(finding.id)
        settings = read(finding) if read is not None else None
        if settings:
            found.append(Arm(settings, finding))
    return found


def by_share(run: Run, cores: int) -> list[Arm]:
    """Nothing was promised for these; the part of the step they concern is large enough to try."""
    shares = {phase.name: phase.share for phase in run.phases}
    return [Arm(settings) for phase, settings in _general(run, cores) if shares.get(phase, 0.0) >= SHARE]


def _general(run: Run, cores: int) -> Iterator[tuple[str, Settings]]:
    workers = setting(run, "loader", "num_workers")
    if isinstance(workers, int) and not setting(run, "loader", "iterable"):
        yield "data", with_workers(max(2, min(2 * workers, cores)))
    if setting(run, "optimizer", "fused") is None:
        yield "optimizer", {"optimizer.fused": "on"}


def usual(run: Run, cores: int) -> list[Arm]:
    """Where a first look, which is short, suggests nothing: what helps most scripts that are slow."""
    return [*(Arm(settings) for _, settings in _general(run, cores)), Arm(_LEFTOVERS)]


def candidates(findings: tuple[Finding, ...], run: Run, cores: int, most: int) -> list[Arm]:
    """At most so many, and each setting once."""
    chosen: list[Arm] = []
    for arm in (*from_findings(findings), *by_share(run, cores)):
        if not any(set(arm.settings) & set(one.settings) for one in chosen):
            chosen.append(arm)
    return (chosen or usual(run, cores))[:most]
