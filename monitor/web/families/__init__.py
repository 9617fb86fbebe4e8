"""Every metric family gpumon serves, in the order it is written. One table: `/metrics` is rendered
from it, docs/metrics.md is generated from it, the golden file freezes it."""

from __future__ import annotations

from monitor.web.families.base import Family
from monitor.web.families.dcgm import FAMILIES as DCGM
from monitor.web.families.findings import FAMILIES as FINDINGS
from monitor.web.families.gpu import FAMILIES as GPU
from monitor.web.families.gpumon import FAMILIES as OWN
from monitor.web.families.host import FAMILIES as HOST
from monitor.web.families.nvlink import FAMILIES as NVLINK
from monitor.web.families.ranks import FAMILIES as RANKS
from monitor.web.families.runs import FAMILIES as RUNS
from monitor.web.families.users import FAMILIES as USERS

__all__ = ["FAMILIES", "OWN", "families"]
FAMILIES: tuple[Family, ...] = (*GPU, *NVLINK, *USERS, *HOST, *RUNS, *RANKS, *FINDINGS, *OWN)


def families(compat: str | None) -> tuple[Family, ...]:
    """All of them, and those of another exporter when its names are asked for."""
    return (*FAMILIES, *DCGM) if compat == "dcgm" else FAMILIES
