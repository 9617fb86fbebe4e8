"""What advice found, for alerts; rule ids are the same everywhere."""

from __future__ import annotations

from collections.abc import Iterable

from monitor.model.finding import Finding
from monitor.web.families.base import Family, Labels, Sample, Scene

LABELS = ("rule", "run", "uuid", "gpu")


def _labels(finding: Finding, scene: Scene) -> Labels:
    uuid = finding.gpu or ""
    return (finding.id, finding.run or "", uuid, scene.gpu_index.get(uuid, ""))


def _shown(scene: Scene) -> Iterable[tuple[Labels, Finding]]:
    """Live ones, one per label set: of findings that differ in rank only, the first (they are ranked)."""
    seen: dict[Labels, Finding] = {}
    for finding in scene.findings:
        if finding.live:
            seen.setdefault(_labels(finding, scene), finding)
    return seen.items()


def _active(scene: Scene) -> Iterable[Sample]:
    return [((*labels, finding.severity), 1.0) for labels, finding in _shown(scene)]


def _speedup(scene: Scene) -> Iterable[Sample]:
    for labels, finding in _shown(scene):
        if finding.speedup:
            yield (*labels, "low"), finding.speedup.low
            yield (*labels, "likely"), finding.speedup.likely
            yield (*labels, "high"), finding.speedup.high


def _since(scene: Scene) -> Iterable[Sample]:
    return [(labels, finding.since) for labels, finding in _shown(scene)]


FAMILIES = (
    Family("gpumon_finding_active", "gauge", "1 while a rule of the advice engine holds.", (*LABELS, "severity"), _active, "advice", "1 per finding, at most 512"),
    Family("gpumon_finding_predicted_speedup_ratio", "gauge", "Step rate after the remedy over the rate now, as predicted.", (*LABELS, "estimate"), _speedup, "advice", "3 per finding with a prediction"),
    Family("gpumon_finding_since_timestamp_seconds", "gauge", "When the finding was first seen.", LABELS, _since, "advice", "1 per finding"),
)  # fmt: skip
