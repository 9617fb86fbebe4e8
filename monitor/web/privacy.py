"""Who may see what: commands and source lines are only for the user who owns the run or process.

Anyone whom the kernel does not identify as that user (over the network, or another user of the machine) gets
everything else: states, figures, causes and predicted gains, but not the wording of findings, because that
quotes the user's code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from monitor.model.facts import own_findings
from monitor.model.finding import Finding, FindingGroup, Remedy
from monitor.model.history import RunRecord
from monitor.model.host import Process
from monitor.model.owner import own_uid
from monitor.model.run import Run
from monitor.model.snapshot import Snapshot
from monitor.model.verdict import Verdict
from monitor.web.peer import Peer

PLAIN_KEYS = frozenset(
    (
        "python", "torch", "cuda", "device", "device_uuid", "gpu_name", "gpu_memory_bytes", "cpu_count",
        "cpu_affinity", "cpu_model", "visible_devices", "loader", "optimizer", "model", "precision", "cudnn",
        "anomaly", "deterministic_algorithms", "threads", "allocator", "compile", "shapes", "sampled_steps",
        "framework",
    )
)  # fmt: skip
"""The settings in `Run.config`. Anything else there, now or in a later version, may quote the user's code or
environment. See docs/probe.md."""
FOR_THE_OWNER = "Details are shown to the owner of the run."
ROOT = 0


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who is asking. `uid` is None for somebody the kernel does not know."""

    uid: int | None = None
    sees_all: bool = False

    def owns(self, owner_uid: int | None) -> bool:
        return self.sees_all or (owner_uid is not None and owner_uid == self.uid)


def viewer_of(peer: Peer, *, show_commands: bool) -> Viewer:
    """Over the socket, root and the daemon's own user see everything: they could read it anyway. Not over
    TCP, where a proxy running as root may ask on anybody's behalf."""
    trusted = peer.is_local_socket and peer.uid in (ROOT, own_uid())
    return Viewer(peer.uid, sees_all=show_commands or trusted)


def owners(snapshot: Snapshot) -> frozenset[int | None]:
    uids = [run.owner_uid for run in snapshot.runs] + [one.owner_uid for one in snapshot.processes]
    return frozenset(uids)


def for_viewer(snapshot: Snapshot, viewer: Viewer) -> Snapshot:
    """The snapshot without what this viewer may not see."""
    if viewer.sees_all:
        return snapshot
    hidden = {run.id for run in snapshot.runs if not viewer.owns(run.owner_uid)}
    findings = tuple(_finding(one) if one.run in hidden else one for one in snapshot.findings)
    return replace(
        snapshot,
        runs=tuple(_run(run, findings) if run.id in hidden else run for run in snapshot.runs),
        processes=tuple(one if viewer.owns(one.owner_uid) else _process(one) for one in snapshot.processes),
        findings=findings,
        groups=tuple(_group(one, findings) for one in snapshot.groups),
    )


def record_for_viewer(record: RunRecord, viewer: Viewer) -> RunRecord:
    if viewer.owns(record.run.owner_uid):
        return record
    findings = tuple(map(_finding, record.findings))
    return replace(record, run=_run(record.run, findings), findings=findings)


def _run(run: Run, findings: Sequence[Finding]) -> Run:
    script = run.script.rpartition("/")[2] if run.script else None
    verdict = _verdict(run, findings) if run.verdict else None
    combined = replace(run.combined, why="") if run.combined else None
    return replace(
        run, command=None, script=script, config=_config(run.config), verdict=verdict, combined=combined
    )


def _verdict(run: Run, findings: Sequence[Finding]) -> Verdict | None:
    """Uses the wording of the finding it is about, which has been redacted by now."""
    verdict = run.verdict
    if verdict is None or verdict.kind in ("healthy", "unknown"):
        return verdict
    about = next((one for one in own_findings(run, findings) if one.id == verdict.rule), None)
    headline = about.headline if about else verdict.rule or ""
    return replace(verdict, headline=headline, remedy=FOR_THE_OWNER)


def _config(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key in PLAIN_KEYS}


def _process(process: Process) -> Process:
    return replace(process, command=None)


def _finding(finding: Finding) -> Finding:
    if finding.severity == "healthy":
        return finding
    title = finding.cause or finding.id
    speedup = replace(finding.speedup, why="") if finding.speedup else None
    return replace(
        finding,
        title=title,
        headline=title,
        evidence={key: value for key, value in finding.evidence.items() if isinstance(value, int | float)},
        remedy=Remedy(FOR_THE_OWNER, settings=finding.remedy.settings, effect=finding.remedy.effect),
        speedup=speedup,
    )


def _group(group: FindingGroup, findings: tuple[Finding, ...]) -> FindingGroup:
    """A group of one has its finding's title; the title of several contains only their cause."""
    first = findings[group.findings[0]]
    title = first.title if len(group.findings) == 1 else group.title
    return replace(group, title=title, speedup=first.speedup if group.speedup else None)
