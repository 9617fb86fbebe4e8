"""Part of a snapshot: what matches some words, or what concerns one user."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from monitor.model.finding import Finding
from monitor.model.gpu import Gpu
from monitor.model.host import Process
from monitor.model.run import Run
from monitor.model.snapshot import Snapshot


def part_of(snapshot: Snapshot, words: str = "", user: str | None = None) -> Snapshot:
    """Leaves out GPUs, runs, groups of findings and processes that do not contain every word, or are not the
    user's. The findings themselves stay: groups refer to them by index."""
    wanted = words.lower().split()
    if not wanted and user is None:
        return snapshot
    gpus = tuple(gpu for gpu in snapshot.gpus if _fits(_of_gpu(gpu), wanted) and _his(gpu.users, user))
    runs = tuple(run for run in snapshot.runs if _fits(_of_run(run), wanted) and _his((run.user,), user))
    return replace(
        snapshot,
        gpus=gpus,
        runs=runs,
        processes=tuple(
            one for one in snapshot.processes if _fits(_of_process(one), wanted) and _his((one.user,), user)
        ),
        groups=tuple(
            group
            for group in snapshot.groups
            if any(
                _finding_fits(one, group.title, wanted) and (user is None or _about(one, gpus, runs))
                for one in map(snapshot.findings.__getitem__, group.findings)
            )
        ),
    )


def _fits(texts: Iterable[object], words: list[str]) -> bool:
    text = " ".join(str(one) for one in texts if one).lower()
    return all(word in text for word in words)


def _his(users: Iterable[str | None], user: str | None) -> bool:
    return user is None or user in users


def _of_gpu(gpu: Gpu) -> Iterable[object]:
    return (
        f"gpu {gpu.index}",
        gpu.name,
        gpu.uuid,
        gpu.condition,
        gpu.state_detail,
        *gpu.run_labels,
        *gpu.users,
    )


def _of_run(run: Run) -> Iterable[object]:
    return run.id, run.name, run.user, run.script, run.state, run.condition, run.slurm_job, run.container


def _of_process(one: Process) -> Iterable[object]:
    return (
        one.pid, one.user, one.name, one.command, one.role, one.run, one.run_label, one.container, one.pod,
        one.slurm_job,
    )  # fmt: skip


def _finding_fits(finding: Finding, title: str, words: list[str]) -> bool:
    return _fits((title, finding.subject, finding.id, finding.severity), words)


def _about(finding: Finding, gpus: Iterable[Gpu], runs: Iterable[Run]) -> bool:
    """A finding about neither a run nor a GPU is about the machine, and so concerns everybody."""
    if finding.run is not None:
        return any(run.id == finding.run for run in runs)
    return finding.gpu is None or any(gpu.uuid == finding.gpu for gpu in gpus)
