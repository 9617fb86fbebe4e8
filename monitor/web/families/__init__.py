"""Every metric family gpumon serves, in the order it is written. One table: `/metrics` is rendered
from it, docs/metrics.md is generated from it, the golden file freezes it."""

from __future__ import annotations

from monitor.web.families.base import Family
from monitor.web.families.findings import FAMILIES as FINDINGS
from monitor.web.families.gpu import FAMILIES as GPU
from monitor.web.families.host import FAMILIES as HOST
from monitor.web.families.own import FAMILIES as OWN
from monitor.web.families.ranks import FAMILIES as RANKS
from monitor.web.families.runs import FAMILIES as RUNS

FAMILIES: tuple[Family, ...] = (*GPU, *HOST, *RUNS, *RANKS, *FINDINGS, *OWN)
